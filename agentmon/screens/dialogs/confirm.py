"""The question before something that cannot be taken back; the answer is No unless a person says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from agentmon.domain.plain_text import plain_lines
from agentmon.screens.bindings import CONFIRM
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType


class ConfirmDialog(Guarded, ModalScreen[bool]):
    """Asks one question and ends with True only when it was answered with Yes."""

    CSS_PATH = "confirm.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*CONFIRM]
    AUTO_FOCUS = "#no"

    def __init__(self, question: str, *, loss: str, yes: str) -> None:
        """Make the dialog.

        Args:
            question: What would be done, naming the thing.
            loss: What would be lost, exactly.
            yes: The word of the button that does it.
        """
        super().__init__()
        self._question = plain_lines(question)
        self._loss = plain_lines(loss)
        self._yes = yes

    def compose(self) -> ComposeResult:
        """Yield question, loss and the two buttons."""
        with Vertical(id="dialog"):
            yield Static(self._question, id="question", markup=False)
            yield Static(self._loss, id="loss", markup=False)
            with Horizontal(id="buttons"):
                yield Button("No", id="no", compact=True)
                yield Button(self._yes, id="yes", compact=True)
        yield KeyFooter()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """End with the answer of the button."""
        event.stop()
        self.dismiss(event.button.id == "yes")

    def action_answer(self, answer: str) -> None:
        """End with the answer of the key."""
        self.dismiss(answer == "yes")

    def action_other_button(self) -> None:
        """Go to the other button."""
        self.focus_next()
