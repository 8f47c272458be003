"""A document that a session fetched or wrote down, whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agentmon.domain.plain_text import plain_line, plain_lines
from agentmon.screens.bindings import DETAIL
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

_MOST_CHARACTERS = 200_000
"""More would take longer than a frame to lay out."""
_LONGEST_TITLE = 500


class DocumentDialog(Guarded, ModalScreen[None]):
    """Title and text."""

    CSS_PATH = "document_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*DETAIL]
    AUTO_FOCUS = ""

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title_text = plain_line(title, max_characters=_LONGEST_TITLE)
        self._text = plain_lines(text[:_MOST_CHARACTERS]) + ("\n…" if len(text) > _MOST_CHARACTERS else "")

    def compose(self) -> ComposeResult:
        """Yield title, text and keys."""
        with Vertical(id="dialog"):
            yield Static(Content.styled(self._title_text, "bold"), id="title")
            with VerticalScroll(id="text", can_focus=False):
                yield Static(Content(self._text))
            yield KeyFooter()

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(None)

    def action_scroll(self, rows: int) -> None:
        """Scroll by rows."""
        self.query_one("#text").scroll_relative(y=rows, animate=False)

    def action_scroll_page(self, direction: int) -> None:
        """Scroll by a page."""
        text = self.query_one("#text")
        text.scroll_relative(y=direction * max(1, text.size.height - 1), animate=False)
