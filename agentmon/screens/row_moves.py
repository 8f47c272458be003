"""The moves of the cursor in the table of a screen, as actions of its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmon.widgets.row_table import RowTable


class RowMoves:
    """What the keys of a screen with one table do; the screen says which table that is."""

    @property
    def _table(self) -> RowTable:
        raise NotImplementedError

    def action_go_row(self, rows: int) -> None:
        """Move the cursor by rows."""
        self._table.move_by(rows)

    def action_go_end(self, direction: int) -> None:
        """Move the cursor to the first or the last row."""
        self._table.go_end(direction)

    def action_go_page(self, direction: int) -> None:
        """Move the cursor by half a screenful."""
        self._table.go_page(direction)
