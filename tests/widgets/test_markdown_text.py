from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App
from textual.widgets import Markdown

from agentmon.widgets.markdown_text import MarkdownText
from tests.screen_stage import NASTY_TITLES, screen_text, shown

if TYPE_CHECKING:
    from textual.app import ComposeResult


class Page(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.copied: list[str] = []
        self.opened: list[str] = []

    def compose(self) -> ComposeResult:
        yield MarkdownText(id="text")

    def copy_to_clipboard(self, text: str) -> None:
        self.copied.append(text)

    def open_url(self, url: str, *, new_tab: bool = True) -> None:
        self.opened.append(f"{url}{new_tab}")


async def test_markdown_is_drawn_and_what_only_looks_like_markup_is_text() -> None:
    app = Page()
    async with app.run_test(size=(60, 30)) as pilot:
        text = app.query_one(MarkdownText)
        await text.show("two\nlines and words")
        await pilot.pause()
        assert not app.query(Markdown)
        assert "two" in screen_text(app).splitlines()[0]

        await text.show(
            "# Heading\n\n- [x] done\n- a Vec<String> [@click=app.quit]x[/] [/b]\n\none\ntwo\n\n"
            "```python\nx = '[/]'\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
        )
        await pilot.pause()
        drawn = screen_text(app)
        for words in ("Heading", "a Vec<String> [@click=app.quit]x[/] [/b]", "x = '[/]'"):
            assert words in drawn
        rows = [row.strip() for row in drawn.splitlines()]
        assert rows.index("two") == rows.index("one") + 1
        assert "# Heading" not in drawn

        for title in NASTY_TITLES:
            await text.show(f"**bold** {title}")
            await pilot.pause()
            assert "bold" in screen_text(app)
            assert shown(title).strip()[:4] in screen_text(app)
        for too_much in ("#" * 40_000, "http://a " * 2_000, "- a\n" * 5_000):
            await text.show(too_much)
            assert not app.query_one(Markdown).display
        await text.show("")


async def test_a_click_on_a_link_copies_where_it_leads_and_opens_nothing() -> None:
    app = Page()
    async with app.run_test(size=(60, 10)) as pilot:
        text = app.query_one(MarkdownText)
        await text.show("[a file](file:///etc/passwd) [code](javascript:x)")
        await pilot.pause()
        await pilot.click(MarkdownText, offset=(1, 0))
        assert app.copied == []

        await text.show("[bank.example](https://elsewhere.example/x)")
        await pilot.pause()

        await pilot.click(MarkdownText, offset=(1, 0))
        await pilot.pause()

        assert app.copied == ["https://elsewhere.example/x"]
        assert app.opened == []
