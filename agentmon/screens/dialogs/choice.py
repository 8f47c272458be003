"""A question with named answers; the first one is the usual, and leaving changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from agentmon.domain.plain_text import plain_lines
from agentmon.screens.bindings import CHOICE
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType


class Answer(NamedTuple):
    """One thing that can be answered."""

    name: str
    """What the dialog ends with; lower-case letters."""
    label: str
    """The words of its button."""


class ChoiceDialog(Guarded, ModalScreen[str | None]):
    """Asks one question; ends with the name of the answer, or with None when the person left it."""

    CSS_PATH = "choice.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*CHOICE]
    AUTO_FOCUS = "Button"

    def __init__(self, question: str, *, detail: str, answers: Sequence[Answer]) -> None:
        """Make the dialog.

        Args:
            question: What is asked, naming what it is about.
            detail: What the answers do.
            answers: The usual one first; a button that leaves is added behind them.
        """
        super().__init__()
        self._question = plain_lines(question)
        self._detail = plain_lines(detail)
        self._answers = tuple(answers)

    def compose(self) -> ComposeResult:
        """Yield question, detail and a button for each answer."""
        with Vertical(id="dialog"):
            yield Static(self._question, id="question", markup=False)
            yield Static(self._detail, id="detail", markup=False)
            with Horizontal(id="buttons"):
                for answer in self._answers:
                    yield Button(answer.label, id=f"answer-{answer.name}", compact=True)
                yield Button("Cancel", id="cancel", compact=True)
        yield KeyFooter()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """End with the answer of the button."""
        event.stop()
        name = str(event.button.id).removeprefix("answer-")
        self.dismiss(None if name == "cancel" else name)

    def action_choose(self) -> None:
        """End with the answer that is lit."""
        if isinstance(self.focused, Button):
            self.focused.press()

    def action_leave(self) -> None:
        """Leave all as it is."""
        self.dismiss(None)

    def action_other_button(self, steps: int) -> None:
        """Go to the next button, or to the one before."""
        self.focus_next() if steps > 0 else self.focus_previous()
