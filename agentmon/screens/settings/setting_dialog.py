"""The new value of one setting; a value that is not allowed stays in the dialog with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from agentmon.domain.plain_text import plain_lines
from agentmon.screens.bindings import SETTING_DIALOG
from agentmon.screens.settings.setting_rows import value_text
from agentmon.widgets.form import LineInput
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.worker import Worker

    from agentmon.services.settings import SettingValue


class SettingDialog(Guarded, ModalScreen[bool]):
    """Ends with whether the value was changed."""

    CSS_PATH = "setting_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*SETTING_DIALOG]
    AUTO_FOCUS = "Input"

    def __init__(self, setting: SettingValue, *, keep: Callable[[str], Awaitable[str]]) -> None:
        """Make the dialog.

        Args:
            setting: What is changed.
            keep: Keeps a value, and returns what is wrong with it; empty when it is kept.
        """
        super().__init__()
        self._setting = setting
        self._keep = keep
        self._is_keeping = False

    def compose(self) -> ComposeResult:
        """Yield name, help, value, what is wrong with it, and the keys."""
        with Vertical(id="dialog"):
            yield Static(Content(self._setting.key), id="heading")
            yield Static(Content(plain_lines(self._setting.help)), id="help")
            yield LineInput("" if self._setting.value == "" else value_text(self._setting.value), id="value")
            yield Static(Content.styled(f"default {value_text(self._setting.default)}", "$text-muted"), id="told")
        yield KeyFooter()

    def action_save(self) -> None:
        """Keep the value, or say what is wrong with it."""
        if not self._is_keeping:
            self._is_keeping = True
            _keeping: Worker[None] = self.run_worker(self._save, name="keep", exit_on_error=False)

    def action_cancel(self) -> None:
        """Leave it as it is."""
        if not self._is_keeping:
            self.dismiss(False)

    async def _save(self) -> None:
        try:
            wrong = await self._keep(self.query_one(Input).value)
        finally:
            self._is_keeping = False
        if wrong:
            self.query_one("#told", Static).update(Content.styled(plain_lines(wrong), "$error"))
        else:
            self.dismiss(True)
