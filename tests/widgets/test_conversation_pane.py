from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.app import App

from agentmon.widgets.conversation_pane import ConversationPane
from agentmon.widgets.text_rows import Span

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from agentmon.widgets.block_view import BlockView
    from agentmon.widgets.text_rows import Row


@dataclass(frozen=True)
class Folded:
    key: str
    can_unfold: bool = True

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:
        words = [self.key, f"all of {self.key}"[:width]]
        return [(Span(text),) for text in words[: 1 + is_unfolded]]


class Bench(App[None]):
    def on_block_view_opened(self, message: BlockView.Opened) -> None:
        message.view.toggle()

    def compose(self) -> ComposeResult:
        yield ConversationPane(placeholder="Nothing was said yet.")


async def test_that_there_is_nothing_is_said_only_once_it_is_known() -> None:
    app = Bench()
    async with app.run_test(size=(40, 5)):
        pane = app.query_one(ConversationPane)
        assert pane.view.render_line(0).text.strip() == ""

        pane.show((), None)

        assert pane.view.render_line(0).text.strip() == "Nothing was said yet."


async def test_a_click_unfolds_and_a_double_click_folds_what_was_unfolded() -> None:
    app = Bench()
    async with app.run_test(size=(40, 8)) as pilot:
        pane = app.query_one(ConversationPane)
        pane.show((Folded("one"), Folded("two"), Folded("three", can_unfold=False)), None)
        await pilot.pause()

        await pilot.click(pane.view, offset=(3, 1))
        assert pane.view.shown_text.split("\n") == ["one", "two", "all of two", "three"]
        assert pane.view.selected_key == "two"
        await pilot.click(pane.view, offset=(3, 3))
        await pilot.click(pane.view, offset=(3, 0), times=2)
        assert pane.view.shown_text.split("\n") == ["one", "all of one", "two", "all of two", "three"]
        await pilot.click(pane.view, offset=(3, 4))
        await pilot.click(pane.view, offset=(3, 1), times=2)
        assert pane.view.shown_text.split("\n") == ["one", "two", "all of two", "three"]
