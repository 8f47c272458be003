"""Stopping inside a transaction: what waits is cancelled at once, what runs is asked to end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import insert, select, update

from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import CommandType
from agentmon.domain.ids import new_id
from agentmon.domain.life_cycles import require_execution_move
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.mapping import execution_of
from agentmon.store.session_moves import close_conversation

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor
    from agentmon.domain.executions import Execution

_CANCELS_CARD: Final = "cancels_card"
_REASON: Final = "reason"
_STOPPING: Final = frozenset({CommandType.STOP, CommandType.KILL, CommandType.INTERRUPT})


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
    reason: str = "",
) -> None:
    """Ask for the end of a running execution; asking again only adds what is stronger: a kill after a stop.

    Args:
        connection: Of the caller's transaction.
        execution: What runs.
        command_type: Stop or kill.
        actor: Who asks.
        at: The time now.
        cancels_card: Whether its card goes to Cancelled when nothing of it is alive any more, rather than to Todo.
        reason: Why, when that is no wish of a person; the execution tells it when it is over.
    """
    executions, commands = tables.executions, tables.execution_commands
    asked = select(commands.c.type, commands.c.payload).where(commands.c.execution_id == execution.id)
    rows = (await connection.execute(asked)).all()
    present = {CommandType(row.type) for row in rows}
    is_known = command_type in present or CommandType.KILL in present
    if is_known and (not cancels_card or any(row.payload.get(_CANCELS_CARD) for row in rows)):
        return
    if execution.status is not ExecutionStatus.CANCELLING:
        require_execution_move(execution.status, ExecutionStatus.CANCELLING)
        await connection.execute(
            update(executions)
            .where(executions.c.id == execution.id)
            .values(status=ExecutionStatus.CANCELLING, updated_at=at)
        )
    await connection.execute(
        insert(commands).values(
            id=new_id(),
            execution_id=execution.id,
            actor_type=actor.type,
            actor_id=actor.id,
            type=command_type,
            payload=({_CANCELS_CARD: True} if cancels_card else {}) | ({_REASON: reason} if reason else {}),
            created_at=at,
        )
    )
    await append_task_event(
        connection,
        task_id=execution.task_id,
        actor=actor,
        event_type=TaskEventType.EXECUTION_STOP_REQUESTED,
        payload={"execution_id": execution.id, "type": command_type.value} | ({_REASON: reason} if reason else {}),
        at=at,
    )


async def is_card_to_be_cancelled(connection: AsyncConnection, execution_id: str) -> bool:
    """Return whether somebody cancelled the card while this execution of it ran."""
    commands = tables.execution_commands
    asked = select(commands.c.payload).where(commands.c.execution_id == execution_id)
    return any(payload.get(_CANCELS_CARD) for payload in (await connection.execute(asked)).scalars())


async def find_stop_reason(connection: AsyncConnection, execution_id: str) -> str | None:
    """Return why an execution was stopped; None when it was not, or because a person wished it."""
    commands = tables.execution_commands
    asked = (
        select(commands.c.payload)
        .where(commands.c.execution_id == execution_id, commands.c.type.in_(sorted(_STOPPING)))
        .order_by(commands.c.id)
    )
    reasons = (payload.get(_REASON) for payload in (await connection.execute(asked)).scalars())
    return next((reason for reason in reasons if isinstance(reason, str) and reason), None)
