"""The audit trail: append-only, written in the transaction of the change it tells of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import insert, select

from agentmon.store import tables
from agentmon.store.mapping import task_event_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor, TaskEvent, TaskEventType
    from agentmon.domain.ids import TaskId
    from agentmon.store.database import Database


async def append_task_event(
    connection: AsyncConnection,
    *,
    task_id: str,
    actor: Actor,
    event_type: TaskEventType,
    payload: Mapping[str, object],
    at: datetime,
) -> None:
    """Write one line of the audit trail inside the caller's transaction."""
    await connection.execute(
        insert(tables.task_events).values(
            task_id=task_id,
            actor_type=actor.type,
            actor_id=actor.id,
            event_type=event_type.value,
            payload=dict(payload),
            created_at=at,
        )
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
