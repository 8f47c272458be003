"""A text of several lines that a person writes: a message, a reason, an answer, the input of a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from agentmon.domain.plain_text import plain_lines
from agentmon.screens.bindings import TEXT_DIALOG
from agentmon.widgets.form import TextBox
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult
    from textual.binding import BindingType

_FEW_LINES = 1


class TextDialog(Guarded, ModalScreen[str | None]):
    """Ends with the text, or with None when the person left it."""

    CSS_PATH = "text_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*TEXT_DIALOG]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-tall")]  # noqa: RUF012 - Textual types it as an instance's
    AUTO_FOCUS = "TextArea"

    def __init__(
        self,
        heading: str,
        *,
        note: str = "",
        text: str = "",
        obstacle: str = "",
        allows_empty: bool = False,
        complaint: Callable[[str], str] | None = None,
    ) -> None:
        """Make the dialog.

        Args:
            heading: What the text is for.
            note: What becomes of it.
            text: What stands there at first.
            obstacle: Why nothing can be sent now; an empty text lets it be sent.
            allows_empty: Whether it may be taken without a text.
            complaint: Returns what is wrong with a text; empty when nothing is.
        """
        super().__init__()
        self._heading = plain_lines(heading)
        self._note = plain_lines(note)
        self._first_text = text
        self._obstacle = plain_lines(obstacle)
        self._allows_empty = allows_empty
        self._complaint = complaint
        self._is_over = False

    def compose(self) -> ComposeResult:
        """Yield heading, text, what is told about it, and the keys."""
        with Vertical(id="dialog"):
            yield Static(Content(self._heading), id="heading")
            yield TextBox(self._first_text, id="text")
            yield Static(id="told")
            yield KeyFooter()

    def on_mount(self) -> None:
        """Say what becomes of the text."""
        box = self.query_one(TextArea)
        box.move_cursor(box.document.end)
        self._tell()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer to send only what can be sent."""
        return action != "save" or not self._obstacle

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Count what is written."""
        event.stop()
        self._tell()

    def action_save(self) -> None:
        """End with the text, or say what is wrong with it."""
        text = self.query_one(TextArea).text
        if self._is_over or self._obstacle:
            return
        if not text.strip() and not self._allows_empty:
            self._tell("Nothing is written yet.")
            return
        wrong = self._complaint(text) if self._complaint is not None else ""
        if wrong:
            self._tell(wrong)
            return
        self._is_over = True
        self.dismiss(text)

    def action_cancel(self) -> None:
        """Leave it undone."""
        if not self._is_over:
            self._is_over = True
            self.dismiss(None)

    def _tell(self, wrong: str = "") -> None:
        text = self.query_one(TextArea).text
        lines = text.count("\n") + 1
        counts = f"{lines:,} lines, {len(text):,} characters" if lines > _FEW_LINES else ""
        parts = [
            Content.styled(plain_lines(wrong or self._obstacle), "$error"),
            Content.styled(self._note, "$text-muted"),
            Content.styled(counts, "$text-muted"),
        ]
        self.query_one("#told", Static).update(Content("\n").join([part for part in parts if part]))
