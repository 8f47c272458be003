"""The end of an execution: its processes are gone, what belongs to its end is done, and then its outcome counts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import select, update

from agentmon.domain.card_moves import status_at_end
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import LIVE_STATUSES, EndReason, ExecutionStatus
from agentmon.domain.exit_codes import failure_text
from agentmon.domain.ids import ExecutionId
from agentmon.domain.life_cycles import require_execution_move
from agentmon.domain.live_state import live_state
from agentmon.domain.refusals import RefusalKind
from agentmon.domain.task_status import TaskStatus
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.conversation_names import name_found_conversation
from agentmon.store.errors import refusal_of_a_row
from agentmon.store.mapping import ending_document, ending_of
from agentmon.store.parking import count_ending, park_for_quota
from agentmon.store.retries import find_wait_end, queue_after_failure, queue_until
from agentmon.store.session_moves import close_conversation
from agentmon.store.stops import find_stop_reason, is_asked_to_stop, is_card_to_be_cancelled
from agentmon.store.task_moves import (
    SYSTEM_ACTOR,
    ask_about_waiting,
    free_dependents,
    move_task,
    open_column_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.executions import ExecutionEnding
    from agentmon.store.database import Database


class SettlementRepository:
    """Brings executions to their end."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(
        self, execution_id: ExecutionId, ending: ExecutionEnding, *, at: datetime
    ) -> ExecutionEnding | None:
        """Note the end of an execution whose journal will never tell it; return it, or None if it has ended."""
        executions = tables.executions
        statement = select(executions).where(
            executions.c.id == execution_id,
            executions.c.status.in_([ExecutionStatus.RUNNING, ExecutionStatus.CANCELLING]),
        )
        async with self._database.writing() as connection:
            row = (await connection.execute(statement)).mappings().first()
            return None if row is None else await begin_end(connection, row, ending, at=at)

    async def revise(self, execution_id: ExecutionId, ending: ExecutionEnding, *, at: datetime) -> None:
        """Replace what is noted of the end of an execution that is finalizing."""
        executions = tables.executions
        async with self._database.writing() as connection:
            await connection.execute(
                update(executions)
                .where(executions.c.id == execution_id, executions.c.status == ExecutionStatus.FINALIZING)
                .values(ending=ending_document(ending), updated_at=at)
            )

    async def settle(
        self, execution_ids: Collection[ExecutionId], *, park_after: int, at: datetime
    ) -> tuple[Mapping[ExecutionId, bool], Mapping[ExecutionId, Exception]]:
        """Let the noted ends count, in one transaction: each as a whole or not at all.

        Args:
            execution_ids: What is finalizing; what is not is passed over.
            park_after: After how many failures in a row an agent is parked; 0 means never.
            at: The time now.

        Returns:
            The executions whose try is over, each with whether it was queued again, and those whose end cannot be
            written, each with the reason.

        Raises:
            StoreError: The database as a whole cannot be written; nothing was.
        """
        executions = tables.executions
        chosen = select(executions).where(
            executions.c.id.in_(execution_ids), executions.c.status == ExecutionStatus.FINALIZING
        )
        over: dict[ExecutionId, bool] = {}
        problems: dict[ExecutionId, Exception] = {}
        async with self._database.writing() as connection:
            for row in (await connection.execute(chosen)).mappings().all():
                execution_id = ExecutionId(row["id"])
                try:
                    async with connection.begin_nested():
                        over[execution_id] = await _settle(connection, row, park_after=park_after, at=at)
                        # It may have been called done while it ran.
                        await free_dependents(connection, row["task_id"], at=at)
                        await ask_about_waiting(connection, row["task_id"], at=at)
                except Exception as error:
                    refusal = refusal_of_a_row(error)
                    if refusal is None:
                        raise
                    problems[execution_id] = refusal
        return over, problems


async def begin_end(
    connection: AsyncConnection, row: RowMapping, ending: ExecutionEnding, *, at: datetime
) -> ExecutionEnding:
    """Note inside the caller's transaction how the processes of a live execution ended, and return that.

    One that was asked to end has the status cancelled, however its program took that.
    """
    present = ExecutionStatus(row["status"])
    require_execution_move(present, ExecutionStatus.FINALIZING)
    if present is ExecutionStatus.CANCELLING:
        ending = replace(ending, status=ExecutionStatus.CANCELLED)
    executions = tables.executions
    await connection.execute(
        update(executions)
        .where(executions.c.id == row["id"], executions.c.status.in_(list(LIVE_STATUSES)))
        .values(
            status=ExecutionStatus.FINALIZING,
            ending=ending_document(ending),
            paused_at=None,
            updated_at=at,
        )
    )
    return ending


async def _settle(connection: AsyncConnection, row: RowMapping, *, park_after: int, at: datetime) -> bool:
    ending = ending_of(row["ending"])
    status = ending.status
    if status is not ExecutionStatus.SUCCEEDED and await is_asked_to_stop(connection, row["id"], row["attempt"]):
        status = ExecutionStatus.CANCELLED
    require_execution_move(ExecutionStatus.FINALIZING, status)
    error, refusal = ending.error, ending.refusal if status is ExecutionStatus.FAILED else None
    wait_end = None if refusal is None else find_wait_end(row, refusal, at=at)
    if refusal is not None and wait_end is None:
        error = f"{refusal.text} – {refusal.advice}" if refusal.advice else refusal.text
    stop_reason = await find_stop_reason(connection, row["id"]) if status is ExecutionStatus.CANCELLED else None
    if stop_reason is not None:
        error = f"stopped: {stop_reason}"
        ending = replace(ending, reason=EndReason.BUDGET)
    if error is None and status is ExecutionStatus.FAILED:
        error = failure_text(ending.exit_code, ending.output_data.get("signal"), row["last_line"])
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
        await queue_after_failure(connection, row, error, at=at)
    await count_ending(connection, row, status, ending.reason, park_after=park_after, at=at)
    if is_queued_again:
        return True
    is_card_cancelled = await is_card_to_be_cancelled(connection, row["id"])
    # Of one that agentmon stopped by itself, a person has to decide what becomes of it.
    outcome = status if stop_reason is None else ExecutionStatus.FAILED
    target = status_at_end(present_column, outcome, is_card_cancelled=is_card_cancelled)
    if target is TaskStatus.TODO and target is not present_column:
        target = await open_column_of(connection, row["task_id"])
    state = live_state(status, end_reason=ending.reason)
    await move_task(connection, task, target, actor=SYSTEM_ACTOR, at=at, cause=f"its run: {state.value}")
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
            ending=None,
            output_data=dict(ending.output_data),
            updated_at=at,
        )
    )
    if ending.session_ref is not None:
        await name_found_conversation(connection, row, ending.session_ref)
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
