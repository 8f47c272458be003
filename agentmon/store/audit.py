"""The audit trail: append-only, written in the transaction of the change it tells of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, insert, or_, select

from agentmon.store import tables
from agentmon.store.mapping import task_event_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor, TaskEvent, TaskEventType
    from agentmon.domain.ids import TaskId, WorkspaceId
    from agentmon.store.database import Database


async def append_task_event(
    connection: AsyncConnection,
    *,
    task_id: str | None,
    actor: Actor,
    event_type: TaskEventType,
    payload: Mapping[str, object],
    at: datetime,
) -> None:
    """Write one line of the audit trail inside the caller's transaction.

    Args:
        connection: Of the caller's transaction.
        task_id: What it is about; None for what concerns no single task.
        actor: Who made the change.
        event_type: What changed.
        payload: The particulars, as JSON can hold them.
        at: When.
    """
    await append_task_events(connection, [(task_id, payload)], actor=actor, event_type=event_type, at=at)


async def append_task_events(
    connection: AsyncConnection,
    lines: Sequence[tuple[str | None, Mapping[str, object]]],
    *,
    actor: Actor,
    event_type: TaskEventType,
    at: datetime,
) -> None:
    """Write one line for each pair of a task and its payload."""
    if lines:
        await connection.execute(
            insert(tables.task_events),
            [
                {
                    "task_id": task_id,
                    "actor_type": actor.type,
                    "actor_id": actor.id,
                    "event_type": event_type.value,
                    "payload": dict(payload),
                    "created_at": at,
                }
                for task_id, payload in lines
            ],
        )


class AuditRepository:
    """Reads the audit trail."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_task(self, task_id: TaskId, *, limit: int) -> tuple[TaskEvent, ...]:
        """Return the newest ``limit`` entries of a task, oldest first."""
        events = tables.task_events
        newest = select(events).where(events.c.task_id == task_id).order_by(events.c.id.desc()).limit(limit)
        async with self._database.reading() as connection:
            rows = (await connection.execute(newest)).mappings().all()
        return tuple(task_event_of(row) for row in reversed(rows))

    async def all(
        self, workspace_id: WorkspaceId | None, *, after_id: int, limit: int
    ) -> tuple[tuple[TaskEvent, int | None, str | None], ...]:
        """Return the newest ``limit`` entries after an id, oldest first, each with number and workspace of its task.

        Args:
            workspace_id: Only entries of its tasks, and those that concern no single task; None means all workspaces.
            after_id: The id of the last entry that is known already; 0 for the whole trail.
            limit: Most entries.
        """
        events, tasks, workspaces = tables.task_events, tables.tasks, tables.workspaces
        newest = (
            select(events, tasks.c.number, workspaces.c.name)
            .outerjoin(tasks, tasks.c.id == events.c.task_id)
            .outerjoin(workspaces, workspaces.c.id == tasks.c.workspace_id)
            .where(events.c.id > after_id)
            .order_by(events.c.id.desc())
            .limit(limit)
        )
        if workspace_id is not None:
            newest = newest.where(or_(events.c.task_id.is_(None), tasks.c.workspace_id == workspace_id))
        async with self._database.reading() as connection:
            rows = (await connection.execute(newest)).mappings().all()
        return tuple((task_event_of(row), row["number"], row["name"]) for row in reversed(rows))

    async def news(self, after_id: int, *, limit: int) -> tuple[tuple[TaskEvent, int | None, str, str], ...]:
        """Return the oldest ``limit`` entries after an id, each with number, title and workspace of its task."""
        events, tasks, workspaces = tables.task_events, tables.tasks, tables.workspaces
        statement = (
            select(events, tasks.c.number, tasks.c.title, workspaces.c.name)
            .outerjoin(tasks, tasks.c.id == events.c.task_id)
            .outerjoin(workspaces, workspaces.c.id == tasks.c.workspace_id)
            .where(events.c.id > after_id)
            .order_by(events.c.id)
            .limit(limit)
        )
        async with self._database.reading() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return tuple((task_event_of(row), row["number"], row["title"] or "", row["name"] or "") for row in rows)

    async def newest_id(self) -> int:
        """Return the id of the newest entry; 0 when there is none."""
        async with self._database.reading() as connection:
            return (await connection.execute(select(func.max(tables.task_events.c.id)))).scalar() or 0
