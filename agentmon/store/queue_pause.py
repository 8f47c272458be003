"""The freeze: a row that every claim looks at, so that it holds from the first moment of any worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, insert, select

from agentmon.domain.errors import ConflictError
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import CommandType
from agentmon.domain.ids import new_id
from agentmon.domain.pause import QueuePause
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.execution_commands import CAUSES

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor
    from agentmon.store.database import Database

PAUSE_KEY: Final = "queue.paused"


class QueuePauseRepository:
    """Reads and changes whether the queue is paused."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self) -> QueuePause | None:
        """Return the pause in force, or None."""
        async with self._database.reading() as connection:
            return await _read(connection)

    async def pause(self, *, halts_running: bool, actor: Actor, at: datetime) -> QueuePause:
        """Let nothing start any more; a pause that is in force can only be extended to what runs.

        Args:
            halts_running: Whether what runs is halted where it is, rather than left to finish.
            actor: Who asks.
            at: The time now.

        Raises:
            ConflictError: The queue is paused this way already.
        """
        async with self._database.writing() as connection:
            present = await _read(connection)
            if present is not None and (present.halts_running or not halts_running):
                raise ConflictError("the queue is paused already", hint="`agentmon resume` lets it go on")
            since = at if present is None else present.since
            await connection.execute(delete(tables.settings).where(tables.settings.c.key == PAUSE_KEY))
            await connection.execute(
                insert(tables.settings).values(
                    key=PAUSE_KEY,
                    value={"since": since.isoformat(), "halts_running": halts_running},
                    created_at=since,
                    updated_at=at,
                )
            )
            if halts_running:
                await _command_running(connection, CommandType.PAUSE, actor=actor, at=at)
            await append_task_event(
                connection,
                task_id=None,
                actor=actor,
                event_type=TaskEventType.QUEUE_PAUSED,
                payload={"halts_running": halts_running},
                at=at,
            )
            return QueuePause(since=since, halts_running=halts_running)

    async def resume(self, *, actor: Actor, at: datetime) -> QueuePause:
        """Let the queue go on, and what was halted; return the pause that ended.

        Raises:
            ConflictError: The queue is not paused.
        """
        async with self._database.writing() as connection:
            present = await _read(connection)
            if present is None:
                raise ConflictError("the queue is not paused")
            await connection.execute(delete(tables.settings).where(tables.settings.c.key == PAUSE_KEY))
            await _command_running(connection, CommandType.RESUME, actor=actor, at=at)
            await append_task_event(
                connection,
                task_id=None,
                actor=actor,
                event_type=TaskEventType.QUEUE_RESUMED,
                payload={"since": present.since.isoformat()},
                at=at,
            )
            return present


async def _read(connection: AsyncConnection) -> QueuePause | None:
    settings = tables.settings
    row = (await connection.execute(select(settings).where(settings.c.key == PAUSE_KEY))).mappings().first()
    if row is None:
        return None
    stored = row["value"] if isinstance(row["value"], dict) else {}
    return QueuePause(since=row["created_at"], halts_running=stored.get("halts_running") is True)


async def _command_running(
    connection: AsyncConnection, command_type: CommandType, *, actor: Actor, at: datetime
) -> None:
    executions, commands = tables.executions, tables.execution_commands
    running = select(executions.c.id, executions.c.attempt).where(
        tables.IS_OPEN, executions.c.status == ExecutionStatus.RUNNING
    )
    rows = [
        {
            "id": new_id(),
            "execution_id": execution_id,
            "actor_type": actor.type,
            "actor_id": actor.id,
            "cause": CAUSES[actor.type],
            "attempt": attempt,
            "type": command_type,
            "payload": {},
            "created_at": at,
        }
        for execution_id, attempt in (await connection.execute(running)).all()
    ]
    if rows:
        await connection.execute(insert(commands), rows)
