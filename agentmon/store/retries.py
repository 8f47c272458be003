"""Executions that go back to the queue: after a failure, or until the vendor serves them again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sqlalchemy import update

from agentmon.domain.conversation import MessageNews
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import ExecutionStatus, WaitReason
from agentmon.domain.life_cycles import require_execution_move
from agentmon.domain.operations import MessageRole
from agentmon.domain.refusals import RefusalKind
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.message_rows import write_messages
from agentmon.store.task_moves import SYSTEM_ACTOR
from agentmon.store.told_conversation import ToldConversation

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.refusals import Refusal

_FIRST_RETRY_AFTER: Final = timedelta(seconds=2)
LAST_RETRY_AFTER: Final = timedelta(minutes=10)
"""The longest time that a retry waits."""
_FIRST_LIMIT_WAIT: Final = timedelta(seconds=30)
_LAST_LIMIT_WAIT: Final = timedelta(minutes=30)
_UNTOLD_RESET: Final = timedelta(minutes=30)
"""How long a used-up quota is waited for when the vendor did not say when it resets."""
MAX_RATE_LIMIT_WAITS: Final = 8
"""How often a short limit is waited for before it counts as a failure; some 90 minutes in all."""
_FIRST_START_WAIT: Final = timedelta(seconds=5)
_LAST_START_WAIT: Final = timedelta(minutes=1)
_END_OF_TRY: Final = "end-of-try"
_AFTER_RESET: Final = timedelta(seconds=5)
"""The clocks of the vendor and of this machine are not the same."""


async def queue_after_failure(connection: AsyncConnection, row: RowMapping, error: str | None, *, at: datetime) -> None:
    """Put a failed execution back with one retry less; how the try ended stands in its conversation and the trail."""
    await _tell_failed_try(connection, row, error, at=at)
    retry_count = row["retry_count"] + 1
    not_before = at + min(_FIRST_RETRY_AFTER * 2 ** min(retry_count - 1, 20), LAST_RETRY_AFTER)
    await _queue_again(
        connection,
        row,
        not_before=not_before,
        wait_reason=WaitReason.RETRY,
        at=at,
        retry_count=retry_count,
        wait_count=0,
    )
    await append_task_event(
        connection,
        task_id=row["task_id"],
        actor=SYSTEM_ACTOR,
        event_type=TaskEventType.EXECUTION_REQUEUED,
        payload={"execution_id": row["id"], "retry_count": retry_count, "max_retries": row["max_retries"]},
        at=at,
    )


def find_wait_end(row: RowMapping, refusal: Refusal, *, at: datetime) -> datetime | None:
    """Return until when an execution waits for the vendor, or None when waiting is no answer to the refusal."""
    match refusal.kind:
        case RefusalKind.BAD_LOGIN:
            return None
        case RefusalKind.USAGE_LIMIT:
            return at + _UNTOLD_RESET if refusal.until is None else max(refusal.until, at) + _AFTER_RESET
        case RefusalKind.RATE_LIMIT:
            if row["wait_count"] >= MAX_RATE_LIMIT_WAITS:
                return None
            wait = min(_FIRST_LIMIT_WAIT * 2 ** row["wait_count"], _LAST_LIMIT_WAIT)
            return at + wait if refusal.until is None else max(refusal.until, at + timedelta(seconds=1))


async def queue_until(
    connection: AsyncConnection, row: RowMapping, refusal: Refusal, *, until: datetime, at: datetime
) -> None:
    """Put an execution back until the vendor serves it again; that is no failure and takes no retry."""
    is_quota = refusal.kind is RefusalKind.USAGE_LIMIT
    await _tell_failed_try(connection, row, refusal.text, at=at)
    await _queue_again(
        connection,
        row,
        not_before=until,
        wait_reason=WaitReason.USAGE_LIMIT if is_quota else WaitReason.RATE_LIMIT,
        at=at,
        error=refusal.text,
        wait_count=0 if is_quota else row["wait_count"] + 1,
    )
    await append_task_event(
        connection,
        task_id=row["task_id"],
        actor=SYSTEM_ACTOR,
        event_type=TaskEventType.EXECUTION_PARKED,
        payload={
            "execution_id": row["id"],
            "reason": refusal.kind.value,
            "until": until.isoformat(),
            "text": refusal.text,
        },
        at=at,
    )


async def queue_until_startable(
    connection: AsyncConnection, row: RowMapping, error: str | None, *, at: datetime
) -> None:
    """Put an execution back that could not be started; a try whose host had not begun is begun anew.

    Nothing of it ran, so that no retry is taken and nobody is told of a failed try.
    """
    until = at + min(_FIRST_START_WAIT * 2 ** min(row["wait_count"], 20), _LAST_START_WAIT)
    await _queue_again(
        connection,
        row,
        not_before=until,
        wait_reason=WaitReason.NOT_STARTED,
        at=at,
        error=error,
        wait_count=row["wait_count"] + 1,
        attempt=row["attempt"] + (row["journal_offset"] > 0),
    )
    await append_task_event(
        connection,
        task_id=row["task_id"],
        actor=SYSTEM_ACTOR,
        event_type=TaskEventType.EXECUTION_PARKED,
        payload={
            "execution_id": row["id"],
            "reason": WaitReason.NOT_STARTED.value,
            "until": until.isoformat(),
            "text": error or "",
        },
        at=at,
    )


async def _tell_failed_try(connection: AsyncConnection, row: RowMapping, error: str | None, *, at: datetime) -> None:
    if row["session_id"] is None:
        return
    conversation = ToldConversation(
        execution_id=row["id"],
        session_id=row["session_id"],
        agent_id=row["agent_id"],
        task_id=row["task_id"],
        attempt=row["attempt"],
    )
    text = f"This try failed: {error}" if error else "This try failed."
    news = MessageNews(message_ref=_END_OF_TRY, role=MessageRole.SYSTEM, text=text)
    await write_messages(connection, conversation, [(round(at.timestamp() * 1000), news)])


async def _queue_again(
    connection: AsyncConnection,
    row: RowMapping,
    *,
    not_before: datetime,
    wait_reason: WaitReason,
    at: datetime,
    error: str | None = None,
    **counts: int,
) -> None:
    """Put the execution back as if it had never begun."""
    require_execution_move(ExecutionStatus.FAILED, ExecutionStatus.QUEUED)
    executions = tables.executions
    await connection.execute(
        update(executions)
        .where(executions.c.id == row["id"])
        .values(
            status=ExecutionStatus.QUEUED,
            not_before=not_before,
            queued_at=not_before,
            wait_reason=wait_reason,
            error=error,
            journal_offset=0,
            pid=None,
            worker_id=None,
            tmux_session_name=None,
            started_at=None,
            ended_at=None,
            exit_code=None,
            end_reason=None,
            paused_at=None,
            output_data=None,
            ending=None,
            journal_problem=None,
            working_dir=None,
            log_byte_size=0,
            log_line_count=0,
            log_updated_at=None,
            last_line=None,
            updated_at=at,
            **{"attempt": row["attempt"] + 1, **counts},
        )
    )
