"""Where a person was on a board: kept while another workspace is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentmon.domain.ids import TaskId
    from agentmon.domain.task_status import TaskStatus
    from agentmon.widgets.board_column import BoardColumn


class BoardPlace(NamedTuple):
    """The column with the focus, and the selection in each."""

    status: TaskStatus
    selections: Mapping[TaskStatus, tuple[TaskId, int]]
    """The selected task and its index, of the columns that had one."""

    @classmethod
    def of(cls, current: BoardColumn, columns: Iterable[BoardColumn]) -> BoardPlace:
        """Return where the selection is now."""
        selections = {
            column.status: (card.task_id, column.cursor) for column in columns if (card := column.selected) is not None
        }
        return cls(current.status, selections)

    def restore(self, board: Mapping[TaskStatus, BoardColumn]) -> BoardColumn:
        """Select the same cards again, and return the column that had the focus."""
        for status, (task_id, index) in self.selections.items():
            board[status].follow(task_id, index)
        return board[self.status]
