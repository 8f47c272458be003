"""Journals into rows: a stretch of a journal, the offset it ends at and all that follows, in one transaction."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sqlalchemy import insert, select, update

from agentmon.domain.card_moves import status_at_end
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import LIVE_STATUSES, ExecutionStatus
from agentmon.domain.exit_codes import failure_text
from agentmon.domain.ids import LOCAL_USER_ID
from agentmon.domain.life_cycles import require_execution_move
from agentmon.domain.task_status import TaskStatus
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.task_moves import SYSTEM_ACTOR, move_task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.executions import ExecutionEnding, ExecutionProgress
    from agentmon.domain.ids import ExecutionId
    from agentmon.store.database import Database

_FIRST_RETRY_AFTER: Final = timedelta(seconds=2)
LAST_RETRY_AFTER: Final = timedelta(minutes=10)


class IngestRepository:
    """Writes what journals say."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, stretches: Sequence[ExecutionProgress], *, at: datetime) -> Mapping[ExecutionId, bool]:
        """Write the stretches of any number of journals in one transaction.

        A stretch whose ``from_offset`` is not what the row holds was written before, and is dropped.

        Returns:
            The executions whose try is over, each with whether it was queued again.
        """
        over: dict[ExecutionId, bool] = {}
        async with self._database.writing() as connection:
            for stretch in stretches:
                row = await _advance(connection, stretch, at=at)
                if row is None or stretch.ending is None:
                    continue
                over[stretch.execution_id] = await _end(connection, row, stretch.ending, at=at)
        return over

    async def end_without_journal(
        self, execution_id: ExecutionId, ending: ExecutionEnding, *, at: datetime
    ) -> Mapping[ExecutionId, bool]:
        """End an execution whose journal will never tell.

        Returns:
            As ``record``; empty when the execution was over already.
        """
        executions = tables.executions
        statement = select(executions).where(
            executions.c.id == execution_id, executions.c.status.in_(list(LIVE_STATUSES))
        )
        async with self._database.writing() as connection:
            row = (await connection.execute(statement)).mappings().first()
            if row is None:
                return {}
            return {execution_id: await _end(connection, row, ending, at=at)}


async def _advance(connection: AsyncConnection, stretch: ExecutionProgress, *, at: datetime) -> RowMapping | None:
    executions = tables.executions
    columns = {
        "journal_offset": stretch.to_offset,
        "pid": stretch.pid,
        "log_byte_size": stretch.log_byte_size,
        "log_line_count": stretch.log_line_count,
        "log_updated_at": stretch.log_updated_at,
        "last_line": stretch.last_line,
        "updated_at": at,
    }
    advanced = await connection.execute(
        update(executions)
        .where(
            executions.c.id == stretch.execution_id,
            executions.c.journal_offset == stretch.from_offset,
            executions.c.status.in_(list(LIVE_STATUSES)),
        )
        .values({name: content for name, content in columns.items() if content is not None})
        .returning(executions)
    )
    row: RowMapping | None = advanced.mappings().first()
    if row is not None and stretch.events:
        await connection.execute(
            insert(tables.events),
            [
                {
                    "execution_id": event.execution_id,
                    "session_id": event.session_id,
                    "user_id": LOCAL_USER_ID,
                    "trace_id": event.trace_id,
                    "type": event.type,
                    "level": event.level,
                    "timestamp_ms": event.timestamp_ms,
                    "payload": dict(event.payload),
                }
                for event in stretch.events
            ],
        )
    return row


async def _end(connection: AsyncConnection, row: RowMapping, ending: ExecutionEnding, *, at: datetime) -> bool:
    present = ExecutionStatus(row["status"])
    status = ExecutionStatus.CANCELLED if present is ExecutionStatus.CANCELLING else ending.status
    if status is ExecutionStatus.CANCELLED and present is ExecutionStatus.RUNNING:
        # The host was stopped by other means than a command of ours; the life cycle knows no shorter way.
        require_execution_move(present, ExecutionStatus.CANCELLING)
        present = ExecutionStatus.CANCELLING
    require_execution_move(present, status)
    error = ending.error
    if error is None and status is ExecutionStatus.FAILED:
        error = failure_text(ending.exit_code, row["last_line"])
    executions, tasks = tables.executions, tables.tasks
    await connection.execute(
        update(executions)
        .where(executions.c.id == row["id"])
        .values(
            status=status,
            ended_at=ending.ended_at,
            exit_code=ending.exit_code,
            error=error,
            output_data=dict(ending.output_data),
            updated_at=at,
        )
    )
    await append_task_event(
        connection,
        task_id=row["task_id"],
        actor=SYSTEM_ACTOR,
        event_type=TaskEventType.EXECUTION_ENDED,
        payload={
            "execution_id": row["id"],
            "status": status.value,
            "exit_code": ending.exit_code,
            "error": error,
        },
        at=at,
    )
    if status is ExecutionStatus.FAILED and ending.may_retry and row["retry_count"] < row["max_retries"]:
        await _queue_again(connection, row, at=at)
        return True
    task = (await connection.execute(select(tasks).where(tasks.c.id == row["task_id"]))).mappings().one()
    target = status_at_end(TaskStatus(task["status"]), status)
    await move_task(connection, task, target, actor=SYSTEM_ACTOR, at=at, cause=f"its run {status.value}")
    return False


async def _queue_again(connection: AsyncConnection, row: RowMapping, *, at: datetime) -> None:
    """Put the execution back as if it had never begun; how it ended stands in the audit trail."""
    require_execution_move(ExecutionStatus.FAILED, ExecutionStatus.QUEUED)
    executions = tables.executions
    retry_count = row["retry_count"] + 1
    not_before = at + min(_FIRST_RETRY_AFTER * 2 ** min(retry_count - 1, 20), LAST_RETRY_AFTER)
    await connection.execute(
        update(executions)
        .where(executions.c.id == row["id"])
        .values(
            status=ExecutionStatus.QUEUED,
            retry_count=retry_count,
            not_before=not_before,
            journal_offset=0,
            pid=None,
            worker_id=None,
            tmux_session_name=None,
            started_at=None,
            ended_at=None,
            exit_code=None,
            error=None,
            output_data=None,
            log_byte_size=0,
            log_line_count=0,
            log_updated_at=None,
            last_line=None,
        )
    )
    await append_task_event(
        connection,
        task_id=row["task_id"],
        actor=SYSTEM_ACTOR,
        event_type=TaskEventType.EXECUTION_REQUEUED,
        payload={"execution_id": row["id"], "retry_count": retry_count, "max_retries": row["max_retries"]},
        at=at,
    )
