"""The end of an execution: its processes are gone, what belongs to its end is done, and then its outcome counts."""

from __future__ import annotations

import logging
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from sqlalchemy import select, text, update

from agentmon.domain.card_moves import status_at_end
from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import LIVE_STATUSES, EndReason, ExecutionStatus
from agentmon.domain.exit_codes import failure_text
from agentmon.domain.ids import ExecutionId
from agentmon.domain.life_cycles import require_execution_move
from agentmon.domain.live_state import live_state
from agentmon.domain.refusals import RefusalKind
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.verifications import VerificationStatus
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.conversation_names import name_found_conversation
from agentmon.store.errors import refusal_of_a_row
from agentmon.store.executions import queue_execution
from agentmon.store.late_messages import close_commands, find_late, say_in, say_in_next_try, tell_unheard
from agentmon.store.mapping import ending_document, ending_of
from agentmon.store.parking import count_ending, park_for_quota
from agentmon.store.retries import find_wait_end, queue_after_failure, queue_until, queue_until_startable
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
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.executions import ExecutionCommand, ExecutionEnding, FollowUp
    from agentmon.domain.refusals import Refusal
    from agentmon.store.database import Database

_log = logging.getLogger(__name__)

_UNDECIDED: Final = text("""
SELECT 1 FROM tasks t JOIN tasks v ON v.alternatives_id = t.alternatives_id AND v.id <> t.id
WHERE t.id = :task_id AND v.deleted_at IS NULL AND v.status <> 'cancelled' AND NOT EXISTS (
    SELECT 1 FROM tasks taken WHERE taken.alternatives_id = t.alternatives_id AND taken.status = 'done')
LIMIT 1
""")
_UNSEEN_CHANGES: Final = text("""
SELECT 1 FROM executions e JOIN agents a ON a.id = e.agent_id
WHERE e.task_id = :task_id AND e.changed_files > 0 AND a.tool_type = 'ai-agent' AND e.created_at > coalesce((
    SELECT max(m.created_at) FROM task_events m
    WHERE m.task_id = :task_id AND m.event_type = 'task_moved' AND json_extract(m.payload, '$.to') = 'done'), '')
LIMIT 1
""")


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
        self,
        execution_ids: Collection[ExecutionId],
        *,
        park_after: int,
        reviews: bool = False,
        follow_ups: Mapping[ExecutionId, FollowUp | None] = MappingProxyType({}),
        at: datetime,
    ) -> tuple[Mapping[ExecutionId, bool], Mapping[ExecutionId, Exception]]:
        """Let the noted ends count, in one transaction: each as a whole or not at all.

        Args:
            execution_ids: What is finalizing; what is not is passed over.
            park_after: After how many failures in a row an agent is parked; 0 means never.
            reviews: Whether a person looks at what AI agents changed before it is done.
            follow_ups: What goes on with those whose work did not pass, unless somebody stopped them or moved their
                card, and with those that were spoken to too late; None where nothing can.
            at: The time now.

        Returns:
            The executions whose try is over, each with whether it was queued again, and those whose end cannot be
            written, each with the reason: ``SpokenToError`` when one has come that ``follow_ups`` lacks.

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
                        over[execution_id] = await _settle(
                            connection, row, park_after=park_after, reviews=reviews, follow_ups=follow_ups, at=at
                        )
                        # It may have been called done while it ran.
                        await free_dependents(connection, row["task_id"], at=at)
                        await ask_about_waiting(connection, row["task_id"], at=at)
                except SpokenToError as error:
                    problems[execution_id] = error
                except Exception as error:
                    refusal = refusal_of_a_row(error)
                    if refusal is None:
                        raise
                    problems[execution_id] = refusal
        return over, problems

    async def late_messages(
        self, execution_ids: Collection[ExecutionId]
    ) -> Mapping[ExecutionId, tuple[ExecutionCommand, ...]]:
        """Return what was said to the agents of executions that had ended before they heard it, oldest first."""
        async with self._database.reading() as connection:
            return await find_late(connection, execution_ids)


class SpokenToError(ConflictError):
    """Somebody said something to an agent that has ended, and what goes on with its conversation is not made yet."""


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


async def _settle(
    connection: AsyncConnection,
    row: RowMapping,
    *,
    park_after: int,
    reviews: bool,
    follow_ups: Mapping[ExecutionId, FollowUp | None],
    at: datetime,
) -> bool:
    ending = _with_verdict(ending_of(row["ending"]), row["verification_status"])
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
    tasks = tables.tasks
    task = (await connection.execute(select(tasks).where(tasks.c.id == row["task_id"]))).mappings().one()
    present_column = TaskStatus(task["status"])
    if refusal is not None and wait_end is not None:
        await _let_wait(connection, row, refusal, until=wait_end, ended_at=ending.ended_at, at=at)
        return True
    if status is ExecutionStatus.FAILED and ending.is_not_started and present_column.is_open:
        await _let_start_again(connection, row, error, ended_at=ending.ended_at, at=at)
        return True
    may_retry = status is ExecutionStatus.FAILED and ending.may_retry and refusal is None and present_column.is_open
    is_queued_again = may_retry and row["retry_count"] < row["max_retries"]
    is_unverified = status is ExecutionStatus.FAILED and ending.reason is EndReason.UNVERIFIED
    # Of one whose work did not pass the conversation came to its end.
    talk_status = ExecutionStatus.SUCCEEDED if is_unverified else status
    await close_conversation(connection, row, talk_status, is_queued_again=is_queued_again, at=ending.ended_at)
    if is_queued_again:
        await say_in_next_try(connection, row)
        await queue_after_failure(connection, row, error, at=at)
    await count_ending(connection, row, status, ending.reason, park_after=park_after, at=at)
    if is_queued_again:
        return True
    is_sent_back = is_unverified and present_column is TaskStatus.IN_PROGRESS
    if await _goes_on(connection, row, status, is_sent_back=is_sent_back, follow_ups=follow_ups, at=at):
        return False
    # Of one that agentmon stopped by itself, a person has to decide what becomes of it.
    outcome = status if stop_reason is None else ExecutionStatus.FAILED
    cause = f"its run: {live_state(status, end_reason=ending.reason).value}"
    await _move_card(connection, row, task, outcome, reviews=reviews, cause=cause, at=at)
    return False


async def _let_wait(
    connection: AsyncConnection, row: RowMapping, refusal: Refusal, *, until: datetime, ended_at: datetime, at: datetime
) -> None:
    if refusal.kind is RefusalKind.USAGE_LIMIT:
        await park_for_quota(connection, row["agent_id"], refusal, until=until, at=at)
    await close_conversation(connection, row, ExecutionStatus.FAILED, is_queued_again=True, at=ended_at)
    await say_in_next_try(connection, row)
    await queue_until(connection, row, refusal, until=until, at=at)


async def _let_start_again(
    connection: AsyncConnection, row: RowMapping, error: str | None, *, ended_at: datetime, at: datetime
) -> None:
    await close_conversation(connection, row, ExecutionStatus.FAILED, is_queued_again=True, at=ended_at)
    if row["journal_offset"]:
        await say_in_next_try(connection, row)
    await queue_until_startable(connection, row, error, at=at)


async def _goes_on(
    connection: AsyncConnection,
    row: RowMapping,
    status: ExecutionStatus,
    *,
    is_sent_back: bool,
    follow_ups: Mapping[ExecutionId, FollowUp | None],
    at: datetime,
) -> bool:
    """Queue what goes on with the conversation; return whether there is that.

    Raises:
        SpokenToError: That is to be made first.
    """
    execution_id = ExecutionId(row["id"])
    late: tuple[ExecutionCommand, ...] = ()
    goes_on = status is ExecutionStatus.SUCCEEDED or is_sent_back
    # Who asked for its end wants nothing to follow; cancelling the card asks for that, too.
    if goes_on and not await is_asked_to_stop(connection, row["id"], row["attempt"]):
        late = (await find_late(connection, [execution_id])).get(execution_id, ())
    if late and execution_id not in follow_ups:
        raise SpokenToError("somebody spoke to its agent meanwhile")
    if (late or is_sent_back) and await _queue_follow_up(connection, row, follow_ups.get(execution_id), late, at=at):
        return True
    await tell_unheard(connection, row, at=at)
    return False


async def _move_card(
    connection: AsyncConnection,
    row: RowMapping,
    task: RowMapping,
    outcome: ExecutionStatus,
    *,
    reviews: bool,
    cause: str,
    at: datetime,
) -> None:
    present = TaskStatus(task["status"])
    is_card_cancelled = await is_card_to_be_cancelled(connection, row["id"])
    is_reviewed = outcome is ExecutionStatus.SUCCEEDED and (
        (reviews and await _has_unseen_changes(connection, task["id"])) or await _is_undecided(connection, task["id"])
    )
    target = status_at_end(present, outcome, is_card_cancelled=is_card_cancelled, is_reviewed=is_reviewed)
    if target is TaskStatus.TODO and target is not present:
        target = await open_column_of(connection, row["task_id"])
    await move_task(connection, task, target, actor=SYSTEM_ACTOR, at=at, cause=cause)


async def _is_undecided(connection: AsyncConnection, task_id: str) -> bool:
    """Return whether a person has to choose between a task and its alternatives."""
    return (await connection.execute(_UNDECIDED, {"task_id": task_id})).first() is not None


async def _has_unseen_changes(connection: AsyncConnection, task_id: str) -> bool:
    """Return whether AI agents changed something for a task since it was last called done."""
    return (await connection.execute(_UNSEEN_CHANGES, {"task_id": task_id})).first() is not None


def _with_verdict(ending: ExecutionEnding, verdict: VerificationStatus | None) -> ExecutionEnding:
    """Return the ending; whatever became of the step that looks after it, nothing succeeds without a pass."""
    if ending.status is not ExecutionStatus.SUCCEEDED or verdict in {None, VerificationStatus.PASSED}:
        return ending
    return replace(ending, status=ExecutionStatus.FAILED, reason=EndReason.UNVERIFIED, may_retry=False)


async def _queue_follow_up(
    connection: AsyncConnection,
    row: RowMapping,
    follow_up: FollowUp | None,
    late: Sequence[ExecutionCommand],
    *,
    at: datetime,
) -> bool:
    """Queue what the agent of a run does next, which is told what came too late; return whether there is that."""
    if follow_up is None:
        return False
    try:
        async with connection.begin_nested():
            await queue_execution(
                connection,
                follow_up.request,
                execution_id=follow_up.id,
                log_file_path=follow_up.log_file_path,
                actor=SYSTEM_ACTOR,
                at=at,
            )
            executions = tables.executions
            await connection.execute(
                update(executions).where(executions.c.id == follow_up.id).values(verify_retry=follow_up.verify_retry)
            )
            await say_in(connection, late, follow_up.id, follow_up.message_ids, at=at)
    except (ConflictError, NotFoundError) as error:
        _log.warning("task %s: its agent cannot go on: %s", follow_up.request.task_id, error)
        return False
    if follow_up.verify_retry:
        await append_task_event(
            connection,
            task_id=row["task_id"],
            actor=SYSTEM_ACTOR,
            event_type=TaskEventType.EXECUTION_REQUEUED,
            payload={
                "execution_id": row["id"],
                "retry_count": follow_up.verify_retry,
                "max_retries": follow_up.verify_retries,
            },
            at=at,
        )
    return True


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
    await close_commands(connection, row["id"], at=at)
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
