"""The name of what destroys things, typed by the person before it is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from agentmon.domain.letters import cut
from agentmon.domain.plain_text import exact_lines, plain_line, plain_lines
from agentmon.screens.bindings import NAME_DIALOG
from agentmon.widgets.form import LineInput
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

_LONGEST_COMMAND: Final = 600
_LONGEST_NAME: Final = 120


class NameDialog(Guarded, ModalScreen[str | None]):
    """Ends with the name when it was typed, or with None when the person left."""

    CSS_PATH = "name_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*NAME_DIALOG]
    AUTO_FOCUS = "Input"

    def __init__(
        self,
        name: str,
        *,
        command: str,
        danger: str,
        heading: str = "Allow what destroys things?",
        deed: str = "allow it once",
    ) -> None:
        """Make the dialog.

        Args:
            name: What has to be typed.
            command: What would be done, letter for letter.
            danger: What harm that does.
            heading: The question.
            deed: What is done when the name is typed.
        """
        super().__init__()
        self._name_to_type = name
        self._command = command
        self._danger = danger
        self._heading = heading
        self._deed = deed

    def compose(self) -> ComposeResult:
        """Yield what would be done, what harm that does, the field, and the keys."""
        name = plain_line(self._name_to_type, max_characters=_LONGEST_NAME)
        command = cut(exact_lines(self._command), _LONGEST_COMMAND)
        with Vertical(id="dialog"):
            yield Static(Content(self._heading), id="heading")
            yield Static(Content(command), id="command")
            yield Static(Content(plain_lines(self._danger)), id="danger")
            yield Static(Content.assemble("Type ", (name, "bold $warning"), f" to {self._deed}."), id="ask")
            yield LineInput(id="name")
            yield Static(id="told")
        yield KeyFooter()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Take the complaint away while the person mends it."""
        event.stop()
        self.query_one("#told", Static).update("")

    def action_save(self) -> None:
        """End with the name, or say that it is another one."""
        typed = self.query_one(Input).value.strip()
        if typed == self._name_to_type:
            self.dismiss(typed)
        else:
            self.query_one("#told", Static).update(Content.styled("That is not its name.", "$error"))

    def action_cancel(self) -> None:
        """Decide nothing."""
        self.dismiss(None)
