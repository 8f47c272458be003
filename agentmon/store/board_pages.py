"""The board's read model over the application's own database connection."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from agentmon.store.board import find_place, read_alternatives, read_board, read_spent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.board import BoardPage, BoardSort, Card, ColumnRequest
    from agentmon.domain.ids import TaskId
    from agentmon.domain.spending import Spent
    from agentmon.domain.task_status import TaskStatus
    from agentmon.domain.tasks import Workspace
    from agentmon.store.database import Database


_PIECE: Final = 500
"""So many tasks are asked for at once."""


class BoardRepository:
    """Reads pages of the board."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self,
        workspace: Workspace | None,
        requests: Sequence[ColumnRequest],
        *,
        running_limit: int,
        money_words: Mapping[str, str],
        board_words: Mapping[str, str],
    ) -> BoardPage:
        """Return the asked part of each column and the status line, from one moment; of all workspaces for None."""
        return await self._database.read(
            lambda connection: read_board(
                connection,
                workspace_id=None if workspace is None else workspace.id,
                workspace_name="" if workspace is None else workspace.name,
                is_all=workspace is None,
                requests=requests,
                running_limit=running_limit,
                money_words=money_words,
                board_words=board_words,
            )
        )

    async def spent(self, task_ids: Sequence[TaskId]) -> dict[str, Spent]:
        """Return by task what all of its runs took together; nothing of tasks that never ran."""
        pieces = [task_ids[begin : begin + _PIECE] for begin in range(0, len(task_ids), _PIECE)]
        found: dict[str, Spent] = {}
        for piece in pieces:
            found |= await self._database.read(partial(read_spent, task_ids=piece))
        return found

    async def alternatives(self, task_id: TaskId, *, money_words: Mapping[str, str]) -> tuple[Card, ...]:
        """Return the cards that are alternatives of each other, the task's own among them, by number."""
        return await self._database.read(lambda connection: read_alternatives(connection, task_id, money_words))

    async def locate(
        self,
        workspace: Workspace | None,
        task_id: TaskId,
        text_filter: str,
        *,
        sort: BoardSort | None,
        board_words: Mapping[str, str],
    ) -> tuple[TaskStatus, int] | None:
        """Return the column of a task and its index there, in this order or the one that is set; None when gone.

        The index counts the cards of the workspace, or of all for None.
        """
        return await self._database.read(
            lambda connection: find_place(
                connection,
                workspace_id=None if workspace is None else workspace.id,
                task_id=task_id,
                text_filter=text_filter,
                sort=sort,
                board_words=board_words,
            )
        )
