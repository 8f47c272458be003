"""Counts of each workspace, from the partial indexes over open executions and the board."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from agentmon.domain.ids import UserId, WorkspaceId
from agentmon.domain.tasks import Workspace
from agentmon.domain.workspace_counts import WorkspaceCounts
from agentmon.domain.workspace_names import short_names
from agentmon.store.card_states import NEEDS_YOU, ON_BOARD, OPEN

if TYPE_CHECKING:
    from agentmon.store.database import Database

_WORKSPACES: Final = text("SELECT id, owner_id, name, root_path FROM workspaces ORDER BY root_path")
_OPEN_TASKS: Final = text(
    "SELECT t.workspace_id, count(*) FROM tasks t"
    f" WHERE t.status IN ('todo', 'in_progress', 'blocked', 'review') AND {ON_BOARD} GROUP BY t.workspace_id"
)
_RUNS: Final = text(
    f"SELECT t.workspace_id, sum(o.status <> 'queued'), sum(o.status = 'queued'), sum({NEEDS_YOU})"
    f" FROM executions o JOIN tasks t ON t.id = o.task_id WHERE {OPEN} GROUP BY t.workspace_id"
)


class WorkspaceCountRepository:
    """Counts what runs, waits and is to be done."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> tuple[WorkspaceCounts, ...]:
        """Return every workspace with its counts, by name."""
        async with self._database.reading() as connection:
            rows = (await connection.execute(_WORKSPACES)).all()
            tasks = {row[0]: row[1] for row in await connection.execute(_OPEN_TASKS)}
            runs = {row[0]: row[1:] for row in await connection.execute(_RUNS)}
        names = short_names({row.id: (row.name, row.root_path) for row in rows})
        counts = []
        for row in rows:
            running, queued, needs_you = runs.get(row.id, (0, 0, 0))
            workspace = Workspace(
                id=WorkspaceId(row.id), owner_id=UserId(row.owner_id), name=row.name, root_path=row.root_path
            )
            counts.append(
                WorkspaceCounts(
                    workspace=workspace,
                    short_name=names[row.id],
                    running=running,
                    queued=queued,
                    needs_you=needs_you or 0,
                    open_tasks=tasks.get(row.id, 0),
                )
            )
        return tuple(sorted(counts, key=lambda one: one.short_name.lower()))
