"""Parents and their subtasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import literal, select

from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.store import tables
from agentmon.store.mapping import task_of
from agentmon.store.task_labels import select_tasks

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.ids import TaskId
    from agentmon.domain.tasks import Task
    from agentmon.store.database import Database


class SubtaskRepository:
    """Reads the subtasks of a task."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_task(self, task_id: TaskId) -> tuple[Task, ...]:
        """Return the tasks whose parent it is, by number."""
        tasks = tables.tasks
        statement = (
            select_tasks()
            .where(tasks.c.parent_task_id == task_id, tasks.c.deleted_at.is_(None))
            .order_by(tasks.c.number)
            .limit(10_000)
        )
        async with self._database.reading() as connection:
            return tuple(task_of(row) for row in (await connection.execute(statement)).mappings())


async def require_parent(connection: AsyncConnection, workspace_id: str, task_id: str, parent_id: str | None) -> None:
    """Return when the task may have the parent.

    Raises:
        NotFoundError: The workspace has no such task.
        ConflictError: The parent is the task itself or one of its subtasks, at any depth.
    """
    if parent_id is None:
        return
    tasks = tables.tasks
    parent = (
        (
            await connection.execute(
                select(tasks).where(
                    tasks.c.id == parent_id, tasks.c.workspace_id == workspace_id, tasks.c.deleted_at.is_(None)
                )
            )
        )
        .mappings()
        .first()
    )
    if parent is None:
        raise NotFoundError("the parent is not there", hint="`agentmon task list` shows all tasks")
    # UNION drops what was seen, so that even a ring made by other means ends the recursion.
    above = select(literal(parent_id).label("id")).cte("above", recursive=True)
    above = above.union(
        select(tasks.c.parent_task_id).join(above, tasks.c.id == above.c.id).where(tasks.c.parent_task_id.is_not(None))
    )
    is_own = select(above.c.id).where(above.c.id == task_id)
    if (await connection.execute(is_own)).first() is not None:
        raise ConflictError(
            f"#{parent['number']} cannot be the parent: it is the task itself or one of its subtasks",
            hint="choose a task that is not below this one",
        )
