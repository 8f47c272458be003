"""The place that shows every setting with the value in force, and changes it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, Final

from textual.content import Content
from textual.widgets import Input, Static

from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import AgentmonError
from agentmon.screens.bindings import SETTINGS
from agentmon.screens.dialogs.menu_dialog import MenuDialog, MenuEntry
from agentmon.screens.frame import ServiceScreen
from agentmon.screens.row_filter import clear_filter, leave_filter, show_filter
from agentmon.screens.row_moves import RowMoves
from agentmon.screens.settings.setting_dialog import SettingDialog
from agentmon.screens.settings.setting_rows import SETTING_COLUMNS, has_words, setting_content, setting_rows
from agentmon.services.settings import SettingOrigin
from agentmon.services.theme_names import THEME_KEY, theme_names
from agentmon.widgets.form import LineInput
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.row_table import RowTable
from agentmon.widgets.status_line import StatusBar

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.domain.clock import Clock
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter
    from agentmon.services.settings import SettingValue

_CLOCK_INTERVAL_S: Final = 20.0


class SettingsScreen(RowMoves, ServiceScreen[None]):
    """A table of all settings, with what each of them is; enter changes the one under the cursor."""

    CSS_PATH = "screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*SETTINGS]
    AUTO_FOCUS = "#settings"

    def __init__(self, services: ServicesGetter, workspace: WorkspaceGetter, *, clock: Clock | None = None) -> None:
        super().__init__(services, workspace)
        self._clock = clock or SystemClock()
        self._known: dict[str, SettingValue] = {}
        self._problem = ""

    def compose(self) -> ComposeResult:
        """Yield summary, table, what is told of a row, and search."""
        yield StatusBar(id="status")
        yield Static(id="summary")
        yield RowTable(SETTING_COLUMNS, id="settings")
        yield Static(id="told")
        yield LineInput(placeholder="words of a setting", id="search")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Show the time."""
        self.set_interval(_CLOCK_INTERVAL_S, self._show_time, name="clock")
        self._show_time()
        self._show_summary()

    async def refresh_snapshot(self) -> None:
        """Read all settings; where they cannot be read it says why."""
        services = await self.services()
        workspace = await self.workspace()
        try:
            found = await services.settings.all(workspace)
        except AgentmonError as error:
            self._problem = f"{error} – {error.hint}" if error.hint else str(error)
            self._show()
            return
        self._problem = ""
        self._known = {one.key: one for one in found}
        self._show()
        page = await services.board.page(workspace, ())
        status_bar = self.query_one(StatusBar)
        status_bar.place = page.workspace_name
        status_bar.numbers = page.status_line
        self.is_queue_paused = page.status_line.is_paused

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer what the row under the cursor allows."""
        selected = self._selected
        if action == "change":
            return True if selected is not None else None
        if action == "reset":
            return True if selected is not None and selected.origin is SettingOrigin.STORED else None
        return True

    def action_change(self) -> None:
        """Change the setting under the cursor: what is true or false turns round, anything else is asked for."""
        self._table.open_selected()

    def action_reset(self) -> None:
        """Let the file, the environment or the default say it again."""
        selected = self._selected
        if selected is not None and selected.origin is SettingOrigin.STORED:
            self.start(self._reset(selected.key), name="reset")

    def action_search(self) -> None:
        """Show the search and type into it."""
        show_filter(self, self.query_one("#search", Input))

    def action_clear(self) -> None:
        """Clear the search."""
        clear_filter(self, self.query_one("#search", Input))
        self._table.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what has the words."""
        event.stop()
        self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go back to the rows; an empty search goes away."""
        event.stop()
        leave_filter(self, event.input)
        self._table.focus()

    def on_row_table_highlighted(self, message: RowTable.Highlighted) -> None:
        """Tell of the row."""
        message.stop()
        self._show_told()
        self.refresh_bindings()

    def on_row_table_opened(self, message: RowTable.Opened) -> None:
        """Change the setting."""
        message.stop()
        setting = self._known.get(message.key)
        if setting is None:
            return
        if isinstance(setting.value, bool):
            self.start(self._set(setting.key, str(not setting.value).lower()), name="change")
        elif setting.key == THEME_KEY:
            self.open_dialog(self._choose_theme(setting), name="change")
        else:
            self.open_dialog(self._ask(setting), name="change")

    async def _choose_theme(self, setting: SettingValue) -> None:
        services = await self.services()
        names = await asyncio.to_thread(theme_names, services.paths.themes_dir)
        entries = [MenuEntry("theme", name, is_present=name == setting.value) for name in names]
        chosen = await self.ask(MenuDialog(setting.key, entries, free_kind="theme"))
        if chosen is not None:
            await self._set(setting.key, chosen.word)

    async def _ask(self, setting: SettingValue) -> None:
        services, workspace = await asyncio.gather(self.services(), self.workspace())

        async def keep(text: str) -> str:
            try:
                await services.settings.set(setting.key, text, workspace=workspace, actor=services.actor)
            except AgentmonError as error:
                return str(error)
            return ""

        await self.ask(SettingDialog(setting, keep=keep))
        self.request_refresh()

    async def _set(self, key: str, text: str) -> None:
        services = await self.services()
        await services.settings.set(key, text, workspace=await self.workspace(), actor=services.actor)
        self.request_refresh()

    async def _reset(self, key: str) -> None:
        services = await self.services()
        await services.settings.reset(key, workspace=await self.workspace(), actor=services.actor)
        self.request_refresh()

    @property
    def _table(self) -> RowTable:
        return self.query_one("#settings", RowTable)

    @property
    def _selected(self) -> SettingValue | None:
        table = self.query_one_optional("#settings", RowTable)
        return None if table is None else self._known.get(table.selected_key or "")

    def _show(self) -> None:
        search = self.query_one("#search", Input).value
        with self.app.batch_update():
            self._table.rows = setting_rows(one for one in self._known.values() if has_words(one, search))
            self._show_summary()
            self._show_told()
        self.refresh_bindings()

    def _show_time(self) -> None:
        self.query_one(StatusBar).time = self._clock.now().astimezone()

    def _show_told(self) -> None:
        told = Content.styled(self._problem, "$error") if self._problem else setting_content(self._selected)
        self.query_one("#told", Static).update(told, layout=False)

    def _show_summary(self) -> None:
        parts: list[tuple[str, str]] = [("Settings", "bold")]
        if self._problem:
            parts.append(("   they cannot be read", "$error"))
        elif self._known:
            own = sum(one.value != one.default for one in self._known.values())
            parts.append((f"   {len(self._known)} in all, {own} of your own", "$text-muted"))
            if not self._table.rows:
                parts.append(("   nothing has these words; esc clears the search", "$text-muted"))
        self.query_one("#summary", Static).update(Content.assemble(*parts), layout=False)
