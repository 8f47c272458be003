"""The stream of what executions did, as clients read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from agentmon.store import tables
from agentmon.store.mapping import event_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from agentmon.domain.events import Event, EventLevel, EventType
    from agentmon.domain.ids import ExecutionId, SessionId
    from agentmon.store.database import Database


class EventRepository:
    """Reads the stream."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(
        self,
        *,
        execution_id: ExecutionId | None = None,
        session_id: SessionId | None = None,
        types: Collection[EventType] = (),
        levels: Collection[EventLevel] = (),
        after_id: int = 0,
        limit: int = 500,
    ) -> tuple[Event, ...]:
        """Return entries after an id, oldest first.

        Args:
            execution_id: Only those of this execution.
            session_id: Only those of this session.
            types: Only these types; none means all.
            levels: Only these levels; none means all, also entries without one.
            after_id: The id of the last entry that is known already.
            limit: Most entries.
        """
        events = tables.events
        statement = select(events).where(events.c.id > after_id).order_by(events.c.id).limit(max(0, limit))
        if execution_id is not None:
            statement = statement.where(events.c.execution_id == execution_id)
        if session_id is not None:
            statement = statement.where(events.c.session_id == session_id)
        if types:
            statement = statement.where(events.c.type.in_(sorted(types)))
        if levels:
            statement = statement.where(events.c.level.in_(sorted(levels)))
        async with self._database.reading() as connection:
            return tuple(event_of(row) for row in (await connection.execute(statement)).mappings())

    async def last(self, *, execution_id: ExecutionId, types: Collection[EventType], limit: int) -> tuple[Event, ...]:
        """Return the newest ``limit`` entries of these types (none means all), oldest first."""
        events = tables.events
        statement = (
            select(events)
            .where(events.c.execution_id == execution_id)
            .order_by(events.c.id.desc())
            .limit(max(0, limit))
        )
        if types:
            statement = statement.where(events.c.type.in_(sorted(types)))
        async with self._database.reading() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return tuple(event_of(row) for row in reversed(rows))
