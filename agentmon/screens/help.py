"""The keys of the screen that it was opened from, read from the tables of the bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from rich.table import Table
from rich.text import Text
from textual.binding import Binding
from textual.containers import Container, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from agentmon.screens.bindings import APP, HELP, TABLES, key_words
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.screen import Screen

_KEYS_WIDTH: Final = 18


class HelpScreen(Guarded, ModalScreen[None]):
    """All keys of one screen, and those that work everywhere."""

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*HELP]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 - Textual types it as an instance's

    def __init__(self, asked_from: Screen[object], changed: Mapping[str, str]) -> None:
        """Make the help.

        Args:
            asked_from: The screen whose keys are shown.
            changed: Keys that the person has changed, by the ids of their actions.
        """
        super().__init__()
        self._changed = changed
        focused = asked_from.focused
        nodes = [asked_from] if focused is None else focused.ancestors_with_self
        own = {one.id for node in nodes for one in node.BINDINGS if isinstance(one, Binding) and one.id}
        self._tables = [
            (name, table)
            for name, table in TABLES.items()
            if table is not APP and own & {binding.id for binding in table}
        ]
        self._tables.append(("Everywhere", APP))

    def compose(self) -> ComposeResult:
        """Yield one section for each table."""
        with VerticalScroll(id="help"), Container(id="sections"):
            for name, table in self._tables:
                with Vertical(classes="section"):
                    yield Static(Text(name), classes="name", markup=False)
                    yield Static(_rows(table, self._changed), markup=False)
        yield KeyFooter()

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(None)

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self.query_one("#help").scroll_relative(y=lines, animate=False)


def _rows(table: Iterable[Binding], changed: Mapping[str, str]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(justify="right", no_wrap=True, min_width=_KEYS_WIDTH)
    grid.add_column()
    for binding in table:
        if not binding.system:
            key = changed.get(str(binding.id), binding.key)
            grid.add_row(Text(key_words(key), style="bold"), Text(binding.tooltip or binding.description))
    return grid
