"""Which columns the table of executions shows, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from agentmon.domain.execution_columns import DEFAULT_COLUMNS, ExecutionColumn
from agentmon.screens.bindings import COLUMNS_DIALOG
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType


class ColumnsDialog(Guarded, ModalScreen["tuple[ExecutionColumn, ...] | None"]):
    """Ends with the chosen columns from left to right, at least one; None when the person left all as it is."""

    CSS_PATH = "columns_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*COLUMNS_DIALOG]
    AUTO_FOCUS = "OptionList"

    def __init__(
        self,
        chosen: Sequence[ExecutionColumn],
        fitting: Callable[[Sequence[ExecutionColumn]], Collection[ExecutionColumn]],
    ) -> None:
        """Make the dialog.

        Args:
            chosen: The columns that are wanted, from left to right.
            fitting: Returns for which of some columns the table has room.
        """
        super().__init__()
        self._chosen = set(chosen)
        self._fitting = fitting
        self._order = [*chosen, *(column for column in ExecutionColumn if column not in self._chosen)]

    def compose(self) -> ComposeResult:
        """Yield heading, list and keys."""
        with Vertical(id="dialog"):
            yield Static(Content("Columns, from left to right"), id="heading")
            yield OptionList(*self._options(), id="columns", compact=True)
            yield KeyFooter()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Show or hide the column that was clicked; the key of the list itself does so too."""
        event.stop()
        self._toggle(event.option_index)

    def action_toggle_column(self) -> None:
        """Show or hide the column under the cursor."""
        at = self._list.highlighted
        if at is not None:
            self._toggle(at)

    def action_go_row(self, rows: int) -> None:
        """Move in the list."""
        self._list.action_cursor_down() if rows > 0 else self._list.action_cursor_up()

    def action_move(self, rows: int) -> None:
        """Take the column further to the left or to the right."""
        at = self._list.highlighted
        if at is not None and 0 <= at + rows < len(self._order):
            self._order.insert(at + rows, self._order.pop(at))
            self._show(at + rows)

    def action_reset(self) -> None:
        """Choose what is shown where nobody chose."""
        self._chosen = set(DEFAULT_COLUMNS)
        self._order = [*DEFAULT_COLUMNS, *(column for column in ExecutionColumn if column not in self._chosen)]
        self._show(0)

    def action_keep(self) -> None:
        """End with what is chosen."""
        self.dismiss(self._wanted)

    def action_cancel(self) -> None:
        """Leave all as it is."""
        self.dismiss(None)

    @property
    def _wanted(self) -> tuple[ExecutionColumn, ...]:
        return tuple(column for column in self._order if column in self._chosen)

    @property
    def _list(self) -> OptionList:
        return self.query_one(OptionList)

    def _toggle(self, at: int) -> None:
        column = self._order[at]
        if self._chosen == {column}:
            self.notify("a table needs at least one column", severity="warning", markup=False)
            return
        self._chosen ^= {column}
        self._show(at)

    def _show(self, at: int) -> None:
        self._list.set_options(self._options())
        self._list.highlighted = at

    def _options(self) -> list[Option]:
        without_room = self._chosen.difference(self._fitting(self._wanted))
        return [
            Option(
                Content.assemble(
                    ("✓ " if column in self._chosen else "  ", "$success"),
                    column.heading,
                    ("  no room in this window" if column in without_room else "", "$text-muted"),
                ),
                id=column.value,
            )
            for column in self._order
        ]
