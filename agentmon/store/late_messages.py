"""Messages that came when their run was over: the next try hears them, or another run begins with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import or_, select, update

from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.executions import CommandCause, CommandType
from agentmon.domain.ids import ExecutionId
from agentmon.domain.unheard import ENDED_BEFORE, UNHEARD
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.mapping import command_of
from agentmon.store.task_moves import SYSTEM_ACTOR

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from sqlalchemy import ColumnElement, RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.executions import ExecutionCommand

_COMMANDS: Final = tables.execution_commands
_PROTOCOLS: Final = sorted(mode for mode in ExecutionMode if mode.is_protocol)


async def find_late(
    connection: AsyncConnection, execution_ids: Collection[ExecutionId]
) -> Mapping[ExecutionId, tuple[ExecutionCommand, ...]]:
    """Return what a person said to agents, in a protocol, that had ended before they heard it; oldest first.

    An agent starts no run by what it says to another that is over; and what a person has left in an agent's own screen
    may have been left on purpose.
    """
    executions = tables.executions
    statement = (
        select(_COMMANDS)
        .join(executions, executions.c.id == _COMMANDS.c.execution_id)
        .where(
            _COMMANDS.c.execution_id.in_(execution_ids),
            executions.c.mode.in_(_PROTOCOLS),
            _COMMANDS.c.cause == CommandCause.PERSON,
            *_is_late(executions.c.attempt),
        )
        .order_by(_COMMANDS.c.id)
    )
    found: dict[ExecutionId, tuple[ExecutionCommand, ...]] = {}
    for row in (await connection.execute(statement)).mappings():
        execution_id = ExecutionId(row["execution_id"])
        found[execution_id] = (*found.get(execution_id, ()), command_of(row))
    return found


async def say_in_next_try(connection: AsyncConnection, row: RowMapping) -> None:
    """Hand what the agent of a try did not hear to that of the next one, whose number is one higher."""
    await connection.execute(
        update(_COMMANDS)
        .where(_COMMANDS.c.execution_id == row["id"], *_is_late(row["attempt"]))
        .values(attempt=row["attempt"] + 1, delivered_at=None, error=None, is_queued=False)
    )


async def say_in(
    connection: AsyncConnection,
    late: Iterable[ExecutionCommand],
    execution_id: ExecutionId,
    begins_with: Collection[str],
    *,
    at: datetime,
) -> None:
    """Let messages that came too late belong to the run that begins with them; what it does not, it is told then."""
    for command in late:
        is_said = command.id in begins_with
        await connection.execute(
            update(_COMMANDS)
            .where(_COMMANDS.c.id == command.id)
            .values(
                execution_id=execution_id,
                attempt=0,
                delivered_at=at if is_said else None,
                obeyed_at=at if is_said else None,
                error=None,
                is_queued=False,
            )
        )


async def tell_unheard(connection: AsyncConnection, row: RowMapping, *, at: datetime) -> None:
    """Write into the audit trail which messages reached nobody: whoever sent them has to see it."""
    statement = select(_COMMANDS.c.id).where(_COMMANDS.c.execution_id == row["id"], *_is_late(row["attempt"]))
    for one in (await connection.execute(statement.order_by(_COMMANDS.c.id))).all():
        await append_task_event(
            connection,
            task_id=row["task_id"],
            actor=SYSTEM_ACTOR,
            event_type=TaskEventType.MESSAGE_UNHEARD,
            payload={"execution_id": row["id"], "command_id": one.id, "cause": ENDED_BEFORE},
            at=at,
        )


async def close_commands(connection: AsyncConnection, execution_id: str, *, at: datetime) -> None:
    """Note of all commands to a run that is over that nobody hands them on any more."""
    await connection.execute(
        update(_COMMANDS)
        .where(_COMMANDS.c.execution_id == execution_id, _COMMANDS.c.delivered_at.is_(None))
        .values(delivered_at=at)
    )


def _is_late(attempt: object) -> tuple[ColumnElement[bool], ...]:
    return (
        _COMMANDS.c.type == CommandType.MESSAGE,
        _COMMANDS.c.cause.in_([CommandCause.PERSON, CommandCause.AGENT]),
        _COMMANDS.c.attempt == attempt,
        _COMMANDS.c.obeyed_at.is_(None),
        or_(_COMMANDS.c.error.is_(None), _COMMANDS.c.error.in_(sorted(UNHEARD))),
    )
