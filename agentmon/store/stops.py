"""Stopping inside a transaction: what waits is cancelled at once, what runs is asked to end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import select, update

from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import CommandCause, CommandType
from agentmon.domain.life_cycles import require_execution_move
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.execution_commands import add_command
from agentmon.store.late_messages import close_commands, tell_unheard
from agentmon.store.mapping import execution_of
from agentmon.store.session_moves import close_conversation

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor
    from agentmon.domain.executions import Execution

_CANCELS_CARD: Final = "cancels_card"
_REASON: Final = "reason"


async def find_open(connection: AsyncConnection, task_id: str) -> Execution | None:
    """Return the execution of the task that waits or runs."""
    executions = tables.executions
    statement = select(executions).where(executions.c.task_id == task_id, tables.IS_OPEN)
    row = (await connection.execute(statement)).mappings().first()
    return None if row is None else execution_of(row)


async def cancel_queued(connection: AsyncConnection, execution: Execution, *, actor: Actor, at: datetime) -> None:
    """Cancel an execution that has not begun; the card stays where it is."""
    require_execution_move(execution.status, ExecutionStatus.CANCELLED)
    executions = tables.executions
    cancelled = await connection.execute(
        update(executions)
        .where(executions.c.id == execution.id, executions.c.status == ExecutionStatus.QUEUED)
        .values(
            status=ExecutionStatus.CANCELLED,
            end_reason=EndReason.STOPPED,
            wait_reason=None,
            error=None,
            ended_at=at,
            updated_at=at,
        )
        .returning(executions)
    )
    row = cancelled.mappings().first()
    if row is not None:
        await close_conversation(connection, row, ExecutionStatus.CANCELLED, is_queued_again=False, at=at)
        # What a try that is over did not hear was left for this one.
        await tell_unheard(connection, row, at=at)
        await close_commands(connection, execution.id, at=at)
    await append_task_event(
        connection,
        task_id=execution.task_id,
        actor=actor,
        event_type=TaskEventType.EXECUTION_ENDED,
        payload={"execution_id": execution.id, "status": ExecutionStatus.CANCELLED.value},
        at=at,
    )


async def ask_to_stop(
    connection: AsyncConnection,
    execution: Execution,
    command_type: CommandType,
    *,
    actor: Actor,
    at: datetime,
    cancels_card: bool = False,
    cause: CommandCause | None = None,
    reason: str = "",
) -> bool:
    """Ask for the end of a running execution; return whether that is new.

    Asking again only adds what is stronger: a kill after a stop. An interrupt ends an execution only for the cause
    that asks, so that one of a person, after which a conversation goes on, is not taken for one of a budget.

    Args:
        connection: Of the caller's transaction.
        execution: What runs.
        command_type: Stop or kill; an interrupt for a cause that lets the agent end by itself.
        actor: Who asks.
        at: The time now.
        cancels_card: Whether its card goes to Cancelled when nothing of it is alive any more, rather than to Todo.
        cause: Why; what follows from who asks when it is None.
        reason: The words for it, when that is no wish of a person; the execution tells it when it is over.
    """
    executions, commands = tables.executions, tables.execution_commands
    asked = select(commands.c.type, commands.c.cause, commands.c.payload).where(
        commands.c.execution_id == execution.id, commands.c.attempt == execution.attempt
    )
    rows = (await connection.execute(asked)).all()
    enough = {CommandType.KILL} if command_type is CommandType.KILL else {CommandType.KILL, CommandType.STOP}
    is_known = any(row.type in enough or (row.type, row.cause) == (command_type, cause) for row in rows)
    if is_known and (not cancels_card or any(row.payload.get(_CANCELS_CARD) for row in rows)):
        return False
    if execution.status is ExecutionStatus.RUNNING:
        require_execution_move(execution.status, ExecutionStatus.CANCELLING)
        await connection.execute(
            update(executions)
            .where(executions.c.id == execution.id)
            .values(status=ExecutionStatus.CANCELLING, updated_at=at)
        )
    payload = ({_CANCELS_CARD: True} if cancels_card else {}) | ({_REASON: reason} if reason else {})
    await add_command(connection, execution.id, command_type, payload, actor=actor, cause=cause, at=at)
    await append_task_event(
        connection,
        task_id=execution.task_id,
        actor=actor,
        event_type=TaskEventType.EXECUTION_STOP_REQUESTED,
        payload={"execution_id": execution.id, "type": command_type.value} | ({_REASON: reason} if reason else {}),
        at=at,
    )
    return True


async def is_card_to_be_cancelled(connection: AsyncConnection, execution_id: str) -> bool:
    """Return whether somebody cancelled the card while this execution of it ran."""
    commands = tables.execution_commands
    asked = select(commands.c.payload).where(commands.c.execution_id == execution_id)
    return any(payload.get(_CANCELS_CARD) for payload in (await connection.execute(asked)).scalars())


async def is_asked_to_stop(connection: AsyncConnection, execution_id: str, attempt: int) -> bool:
    """Return whether somebody asked for the end of this try."""
    commands = tables.execution_commands
    asked = select(commands.c.id).where(
        commands.c.execution_id == execution_id,
        commands.c.attempt == attempt,
        commands.c.type.in_([CommandType.STOP, CommandType.KILL]),
    )
    return (await connection.execute(asked.limit(1))).first() is not None


async def find_stop_reason(connection: AsyncConnection, execution_id: str) -> str | None:
    """Return why a budget stopped an execution; None when none did."""
    commands = tables.execution_commands
    asked = (
        select(commands.c.payload)
        .where(commands.c.execution_id == execution_id, commands.c.cause == CommandCause.BUDGET)
        .order_by(commands.c.id)
    )
    reasons = (payload.get(_REASON) for payload in (await connection.execute(asked)).scalars())
    return next((reason for reason in reasons if isinstance(reason, str) and reason), None)
