"""Journals into rows: a stretch of a journal, the offset it ends at and all that follows, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import insert, select, update

from agentmon.domain.card_moves import status_at_end
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import LIVE_STATUSES, ExecutionStatus
from agentmon.domain.exit_codes import failure_text
from agentmon.domain.ids import LOCAL_USER_ID
from agentmon.domain.life_cycles import require_execution_move
from agentmon.domain.refusals import RefusalKind
from agentmon.domain.task_status import TaskStatus
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.news_recording import record_news
from agentmon.store.parking import count_ending, park_for_quota
from agentmon.store.retries import find_wait_end, queue_after_failure, queue_until
from agentmon.store.session_moves import close_conversation
from agentmon.store.stops import find_stop_reason, is_card_to_be_cancelled
from agentmon.store.task_moves import SYSTEM_ACTOR, move_task, open_column_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.executions import ExecutionEnding, ExecutionProgress
    from agentmon.domain.ids import ExecutionId
    from agentmon.store.database import Database


class IngestRepository:
    """Writes what journals say."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(
        self, stretches: Sequence[ExecutionProgress], *, park_after: int, at: datetime
    ) -> Mapping[ExecutionId, bool]:
        """Write the stretches of any number of journals in one transaction.

        A stretch whose ``from_offset`` is not what the row holds was written before, and is dropped.

        Args:
            stretches: Those of one journal in their order.
            park_after: After how many failures in a row an agent is parked; 0 means never.
            at: The time now.

        Returns:
            The executions whose try is over, each with whether it was queued again.
        """
        over: dict[ExecutionId, bool] = {}
        async with self._database.writing() as connection:
            for stretch in stretches:
                row = await _advance(connection, stretch, at=at)
                if row is None:
                    continue
                session_id = await record_news(connection, row, stretch, at=at)
                await _write_events(connection, stretch, session_id)
                if stretch.ending is None:
                    continue
                if session_id != row["session_id"]:
                    row = await _read(connection, row["id"])
                over[stretch.execution_id] = await _end(connection, row, stretch.ending, park_after=park_after, at=at)
        return over

    async def complain(self, execution_id: ExecutionId, complaint: str, *, at: datetime) -> None:
        """Write what a person has to know of an execution that is still open."""
        executions = tables.executions
        async with self._database.writing() as connection:
            await connection.execute(
                update(executions)
                .where(
                    executions.c.id == execution_id,
                    executions.c.status.in_(list(LIVE_STATUSES)),
                    executions.c.error.is_distinct_from(complaint),
                )
                .values(error=complaint, updated_at=at)
            )

    async def end_without_journal(
        self, execution_id: ExecutionId, ending: ExecutionEnding, *, park_after: int, at: datetime
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
            return {execution_id: await _end(connection, row, ending, park_after=park_after, at=at)}


async def _advance(connection: AsyncConnection, stretch: ExecutionProgress, *, at: datetime) -> RowMapping | None:
    executions = tables.executions
    columns = {
        "journal_offset": stretch.to_offset,
        "pid": stretch.pid,
        "log_byte_size": stretch.log_byte_size,
        "log_line_count": stretch.log_line_count,
        "log_updated_at": stretch.log_updated_at,
        "last_line": stretch.last_line,
        "error": stretch.complaint,
        "updated_at": at,
    }
    paused: dict[str, object] = {}
    if stretch.is_paused is not None:
        paused = {"paused_at": at if stretch.is_paused else None}
    advanced = await connection.execute(
        update(executions)
        .where(
            executions.c.id == stretch.execution_id,
            executions.c.journal_offset == stretch.from_offset,
            executions.c.status.in_(list(LIVE_STATUSES)),
        )
        .values({name: content for name, content in columns.items() if content is not None} | paused)
        .returning(executions)
    )
    row: RowMapping | None = advanced.mappings().first()
    return row


async def _read(connection: AsyncConnection, execution_id: str) -> RowMapping:
    statement = select(tables.executions).where(tables.executions.c.id == execution_id)
    return (await connection.execute(statement)).mappings().one()


async def _write_events(connection: AsyncConnection, stretch: ExecutionProgress, session_id: str | None) -> None:
    if stretch.events:
        await connection.execute(
            insert(tables.events),
            [
                {
                    "execution_id": event.execution_id,
                    "session_id": session_id,
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


async def _end(
    connection: AsyncConnection, row: RowMapping, ending: ExecutionEnding, *, park_after: int, at: datetime
) -> bool:
    present = ExecutionStatus(row["status"])
    status = ExecutionStatus.CANCELLED if present is ExecutionStatus.CANCELLING else ending.status
    require_execution_move(present, ExecutionStatus.FINALIZING)
    require_execution_move(ExecutionStatus.FINALIZING, status)
    error, refusal = ending.error, ending.refusal if status is ExecutionStatus.FAILED else None
    wait_end = None if refusal is None else find_wait_end(row, refusal, at=at)
    if refusal is not None and wait_end is None:
        error = f"{refusal.text} – {refusal.advice}" if refusal.advice else refusal.text
    stop_reason = await find_stop_reason(connection, row["id"]) if status is ExecutionStatus.CANCELLED else None
    if stop_reason is not None:
        error = f"stopped: {stop_reason}"
    if error is None and status is ExecutionStatus.FAILED:
        error = failure_text(ending.exit_code, row["last_line"])
    await _write_ending(connection, row, ending, status, error, at=at)
    if refusal is not None and wait_end is not None:
        if refusal.kind is RefusalKind.USAGE_LIMIT:
            await park_for_quota(connection, row["agent_id"], refusal, until=wait_end, at=at)
        await close_conversation(connection, row, status, is_queued_again=True, at=ending.ended_at)
        await queue_until(connection, row, refusal, until=wait_end, at=at)
        return True
    tasks = tables.tasks
    task = (await connection.execute(select(tasks).where(tasks.c.id == row["task_id"]))).mappings().one()
    present_column = TaskStatus(task["status"])
    may_retry = status is ExecutionStatus.FAILED and ending.may_retry and refusal is None and present_column.is_open
    is_queued_again = may_retry and row["retry_count"] < row["max_retries"]
    await close_conversation(connection, row, status, is_queued_again=is_queued_again, at=ending.ended_at)
    if is_queued_again:
        await queue_after_failure(connection, row, at=at)
    await count_ending(connection, row, status, ending.reason, park_after=park_after, at=at)
    if is_queued_again:
        return True
    is_card_cancelled = status is ExecutionStatus.CANCELLED and await is_card_to_be_cancelled(connection, row["id"])
    # Of one that agentmon stopped by itself, a person has to decide what becomes of it.
    outcome = status if stop_reason is None else ExecutionStatus.FAILED
    target = status_at_end(present_column, outcome, is_card_cancelled=is_card_cancelled)
    if target is TaskStatus.TODO and target is not present_column:
        target = await open_column_of(connection, row["task_id"])
    await move_task(connection, task, target, actor=SYSTEM_ACTOR, at=at, cause=f"its run {status.value}")
    return False


async def _write_ending(
    connection: AsyncConnection,
    row: RowMapping,
    ending: ExecutionEnding,
    status: ExecutionStatus,
    error: str | None,
    *,
    at: datetime,
) -> None:
    executions = tables.executions
    await connection.execute(
        update(executions)
        .where(executions.c.id == row["id"])
        .values(
            status=status,
            ended_at=ending.ended_at,
            exit_code=ending.exit_code,
            end_reason=ending.reason,
            error=error,
            paused_at=None,
            output_data=dict(ending.output_data),
            updated_at=at,
        )
    )
    commands = tables.execution_commands
    await connection.execute(
        update(commands)
        .where(commands.c.execution_id == row["id"], commands.c.delivered_at.is_(None))
        .values(delivered_at=at)
    )
    await append_task_event(
        connection,
        task_id=row["task_id"],
        actor=SYSTEM_ACTOR,
        event_type=TaskEventType.EXECUTION_ENDED,
        payload={
            "execution_id": row["id"],
            "status": status.value,
            "reason": ending.reason.value,
            "exit_code": ending.exit_code,
            "error": error,
        },
        at=at,
    )
