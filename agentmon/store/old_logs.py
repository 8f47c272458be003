"""Logs of ended executions: which are the oldest, and the note that one was removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import select, update

from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import OPEN_STATUSES
from agentmon.domain.ids import ExecutionId, TaskId
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.task_moves import SYSTEM_ACTOR

if TYPE_CHECKING:
    from datetime import datetime

    from agentmon.store.database import Database

_AT_ONE_TIME: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class OldLog:
    """The log of an execution that is over."""

    execution_id: ExecutionId
    task_id: TaskId
    log_file_path: str
    log_byte_size: int
    is_too_old: bool
    """Whether its age is the reason to remove it, rather than the size of all together."""


class OldLogRepository:
    """Finds logs that are to be removed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, *, ended_before: datetime | None, max_total_bytes: int | None) -> tuple[OldLog, ...]:
        """Return logs to remove, oldest first, at most 1000.

        Args:
            ended_before: Logs of executions that ended earlier are too old; None means that none is.
            max_total_bytes: Most bytes of all logs of ended executions together; None means no limit.
        """
        executions = tables.executions
        statement = (
            select(
                executions.c.id,
                executions.c.task_id,
                executions.c.log_file_path,
                executions.c.log_byte_size,
                executions.c.ended_at,
            )
            .where(
                executions.c.status.not_in(sorted(OPEN_STATUSES)),
                executions.c.log_removed_at.is_(None),
                executions.c.log_file_path.is_not(None),
                executions.c.log_byte_size > 0,
            )
            .order_by(executions.c.created_at, executions.c.id)
        )
        async with self._database.reading() as connection:
            rows = (await connection.execute(statement)).all()
        surplus = 0 if max_total_bytes is None else sum(row.log_byte_size for row in rows) - max_total_bytes
        found = []
        for row in rows:
            is_too_old = ended_before is not None and row.ended_at is not None and row.ended_at < ended_before
            if surplus <= 0 and not is_too_old:
                continue
            surplus -= row.log_byte_size
            found.append(
                OldLog(
                    execution_id=ExecutionId(row.id),
                    task_id=TaskId(row.task_id),
                    log_file_path=row.log_file_path,
                    log_byte_size=row.log_byte_size,
                    is_too_old=is_too_old,
                )
            )
        return tuple(found[:_AT_ONE_TIME])

    async def mark_removed(self, log: OldLog, *, at: datetime) -> None:
        """Note that a log is gone, in its row and in the audit trail."""
        executions = tables.executions
        async with self._database.writing() as connection:
            await connection.execute(
                update(executions).where(executions.c.id == log.execution_id).values(log_removed_at=at, updated_at=at)
            )
            await append_task_event(
                connection,
                task_id=log.task_id,
                actor=SYSTEM_ACTOR,
                event_type=TaskEventType.EXECUTION_LOG_REMOVED,
                payload={
                    "execution_id": log.execution_id,
                    "log_byte_size": log.log_byte_size,
                    "reason": "age" if log.is_too_old else "size",
                },
                at=at,
            )
