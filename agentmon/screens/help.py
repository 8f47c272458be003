"""The keys of the screen that it was opened from, read from the tables of the bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.table import Table
from rich.text import Text
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from agentmon.screens.bindings import APP, HELP, TABLES
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.screen import Screen

_KEY_NAMES = {
    "question_mark": "?",
    "slash": "/",
    "escape": "esc",
    "pageup": "page up",
    "pagedown": "page down",
    "right_square_bracket": "]",
    "left_square_bracket": "[",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
}


class HelpScreen(Guarded, ModalScreen[None]):
    """All keys of one screen, and those that work everywhere."""

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*HELP]

    def __init__(self, asked_from: Screen[object]) -> None:
        super().__init__()
        own = {binding.id for binding in asked_from.BINDINGS if isinstance(binding, Binding) and binding.id}
        self._tables = [
            (name, table)
            for name, table in TABLES.items()
            if table is not APP and own & {binding.id for binding in table}
        ]
        self._tables.append(("Everywhere", APP))

    def compose(self) -> ComposeResult:
        """Yield one section for each table."""
        with VerticalScroll(id="help"):
            for name, table in self._tables:
                yield Static(Text(name), classes="section", markup=False)
                yield Static(_rows(table), markup=False)
        yield KeyFooter()

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(None)

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self.query_one("#help").scroll_relative(y=lines, animate=False)


def key_words(key: str) -> str:
    """Return the keys of a binding as people call them: ``h · ←``."""
    return " · ".join(_key_word(part.strip()) for part in key.split(","))


def _key_word(key: str) -> str:
    *modifiers, name = key.split("+")
    return "+".join([*modifiers, _KEY_NAMES.get(name, name)])


def _rows(table: Iterable[Binding]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(justify="right", no_wrap=True, min_width=16)
    grid.add_column()
    for binding in table:
        if not binding.system:
            grid.add_row(Text(key_words(binding.key), style="bold"), Text(binding.tooltip or binding.description))
    return grid
