"""A text that people and agents wrote as Markdown, drawn; what it links to is never opened by a click."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from agentmon.domain.plain_text import plain_line, plain_lines
from agentmon.widgets.guarded import Guarded

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from textual.widgets import Markdown

_DRAWN_MAX_CHARACTERS: Final = 30_000
"""A longer text is shown as it is written: each paragraph becomes a widget."""
_DRAWN_MAX_LINES: Final = 500
_DRAWN_MAX_ADDRESSES: Final = 100
"""The parser looks for each address through all the text behind it."""
_SIGNS: Final = frozenset("#*_`>|[]-+~1234567890<\\")
_LONGEST_LINK: Final = 200


class MarkdownText(Guarded, Vertical):
    """Takes as many rows as the text needs; line breaks stay where they are written."""

    DEFAULT_CSS = """
    MarkdownText {
        height: auto;
        Static { height: auto; }
        Markdown {
            height: auto;
            padding: 0;
            background: transparent;
            & > MarkdownH1 { content-align: left middle; }
            & > MarkdownHeader { margin: 1 0 1 0; }
            & > MarkdownBlock:first-child { margin-top: 0; }
            & > MarkdownBlock:last-child { margin-bottom: 0; }
        }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._text = ""
        self._plain = Static()
        self._drawn: Markdown | None = None

    async def show(self, text: str) -> None:
        """Show the text; nothing is done when it is shown already."""
        text = "\t".join(plain_lines(part) for part in text.split("\t")).strip()
        if text == self._text:
            return
        self._text = text
        is_plain = _is_too_much(text) or _SIGNS.isdisjoint(text)
        if self._drawn is not None:
            self._drawn.display = not is_plain
        if not self._plain.is_attached and is_plain:
            await self.mount(self._plain)
        self._plain.display = is_plain
        if is_plain:
            self._plain.update(Content(text.expandtabs(4)))
            return
        if self._drawn is None:
            from textual.widgets import Markdown  # noqa: PLC0415 - most pages need none, and it brings a parser

            self._drawn = Markdown(parser_factory=_parser, open_links=False)
            await self.mount(self._drawn)
        # Two blanks keep a line break, as people who write a list of lines mean it.
        await self._drawn.update(text.replace("\n", "  \n"))

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        """Copy the address: what it says may differ from where it leads."""
        event.stop()
        self.app.copy_to_clipboard(event.href)
        self.notify(f"copied {plain_line(event.href, max_characters=_LONGEST_LINK)}", markup=False)


def _is_too_much(text: str) -> bool:
    return (
        len(text) > _DRAWN_MAX_CHARACTERS
        or text.count("\n") > _DRAWN_MAX_LINES
        or text.count("://") > _DRAWN_MAX_ADDRESSES
    )


def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - as above

    # Without HTML, so that Vec<String> stays what it is.
    return MarkdownIt("gfm-like", {"html": False})
