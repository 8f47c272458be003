"""Commands of clients for running agents: written here, handed on by the worker, obeyed by the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import func, insert, select

from agentmon.domain.conversation import AskKind
from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.events import ActorType, TaskEventType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import CommandCause, CommandType, hears_late
from agentmon.domain.ids import CommandId, ExecutionId, new_id
from agentmon.domain.live_state import live_state
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.idempotency import find_result, note_result
from agentmon.store.mapping import command_of, ending_of
from agentmon.store.review_comments import note_comments_sent

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor
    from agentmon.domain.executions import ExecutionCommand
    from agentmon.domain.idempotency import IdempotencyKey
    from agentmon.store.database import Database

CAUSES: Final = {
    ActorType.USER: CommandCause.PERSON,
    ActorType.AGENT: CommandCause.AGENT,
    ActorType.SYSTEM: CommandCause.SYSTEM,
}
_SAYING: Final = frozenset({CommandType.MESSAGE, CommandType.TYPE})


class CommandRepository:
    """Writes and reads commands for running executions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self,
        execution_id: ExecutionId,
        *commands: tuple[CommandType, Mapping[str, object]],
        comment_ids: Sequence[str] = (),
        key: IdempotencyKey | None = None,
        actor: Actor,
        at: datetime,
    ) -> CommandId:
        """Write commands for an execution that runs, and the lines of the audit trail that tell of them.

        Args:
            execution_id: What they are for.
            *commands: What is asked, with the payload that ``CommandType`` describes: all of it, or nothing.
            comment_ids: The comments on changes that are sent with it.
            key: Of the request for them; what came of the same one before is returned instead.
            actor: Who asks.
            at: The time now.

        Returns:
            The id of the last one.

        Raises:
            NotFoundError: There is no such execution.
            ConflictError: It does not run, or would be told something while it waits for a budget.
        """
        executions = tables.executions
        async with self._database.writing() as connection:
            known = await find_result(connection, key, actor=actor)
            if known is not None:
                return CommandId(known)
            row = (
                await connection.execute(
                    select(
                        executions.c.status,
                        executions.c.end_reason,
                        executions.c.task_id,
                        executions.c.mode,
                        executions.c.ending,
                    ).where(executions.c.id == execution_id)
                )
            ).first()
            if row is None:
                raise NotFoundError("there is no such execution")
            is_heard = ExecutionStatus(row.status) is ExecutionStatus.RUNNING or (
                all(command_type is CommandType.MESSAGE for command_type, _ in commands)
                and row.ending is not None
                and hears_late(ExecutionStatus(row.status), ExecutionMode(row.mode), ending_of(row.ending))
            )
            if not is_heard:
                state = live_state(ExecutionStatus(row.status), end_reason=row.end_reason)
                raise ConflictError(f"nobody listens, its run: {state.value}", hint="run the task again")
            if any(command_type in _SAYING for command_type, _ in commands):
                await _require_budget(connection, execution_id)
            for command_type, payload in commands:
                command_id = await add_command(connection, execution_id, command_type, payload, actor=actor, at=at)
                told = {"execution_id": execution_id, "command_id": command_id, "type": command_type.value}
                await append_task_event(
                    connection,
                    task_id=row.task_id,
                    actor=actor,
                    event_type=(
                        TaskEventType.MESSAGE_SENT if command_type in _SAYING else TaskEventType.AGENT_COMMANDED
                    ),
                    payload=told | _told(payload),
                    at=at,
                )
            await note_comments_sent(connection, comment_ids, at=at)
            await note_result(connection, key, command_id, actor=actor, at=at)
            return command_id

    async def note_typed(self, execution_id: ExecutionId, *, actor: Actor, at: datetime) -> CommandId:
        """Write into the audit trail that somebody types into a run, and return the id under which that is done.

        Raises:
            ConflictError: It does not run, or waits for a budget.
        """
        executions, command_id = tables.executions, CommandId(new_id())
        running = select(executions.c.task_id).where(
            executions.c.id == execution_id, executions.c.status == ExecutionStatus.RUNNING
        )
        async with self._database.writing() as connection:
            task_id = (await connection.execute(running)).scalar()
            if task_id is None:
                raise ConflictError("nobody listens: it does not run any more", hint="run the task again")
            await _require_budget(connection, execution_id)
            await append_task_event(
                connection,
                task_id=task_id,
                actor=actor,
                event_type=TaskEventType.MESSAGE_SENT,
                payload={"execution_id": execution_id, "command_id": command_id, "type": CommandType.TYPE.value},
                at=at,
            )
        return command_id

    async def find_execution_id(self, command_id: str) -> ExecutionId | None:
        """Return the execution that a command is for; None when there is no such command."""
        commands = tables.execution_commands
        statement = select(commands.c.execution_id).where(commands.c.id == command_id)
        async with self._database.reading() as connection:
            found = (await connection.execute(statement)).scalar()
        return None if found is None else ExecutionId(found)

    async def count_waiting(self, execution_id: ExecutionId, *, before: CommandId) -> int:
        """Return how many messages that came before a command the agent has not taken yet."""
        commands = tables.execution_commands
        waiting = select(func.count()).where(
            commands.c.execution_id == execution_id,
            commands.c.type == CommandType.MESSAGE,
            commands.c.delivered_at.is_(None),
            commands.c.id < before,
        )
        async with self._database.reading() as connection:
            return (await connection.execute(waiting)).scalar_one()

    async def of_execution(
        self, execution_id: ExecutionId, *, types: Collection[CommandType] = ()
    ) -> tuple[ExecutionCommand, ...]:
        """Return the commands for an execution, oldest first; of all types when none is named."""
        commands = tables.execution_commands
        statement = select(commands).where(commands.c.execution_id == execution_id).order_by(commands.c.id).limit(1000)
        if types:
            statement = statement.where(commands.c.type.in_(sorted(types)))
        async with self._database.reading() as connection:
            return tuple(command_of(row) for row in (await connection.execute(statement)).mappings())


async def _require_budget(connection: AsyncConnection, execution_id: str) -> None:
    approvals = tables.approvals
    waits = select(approvals.c.id, approvals.c.title).where(
        tables.IS_PENDING_APPROVAL,
        approvals.c.execution_id == execution_id,
        approvals.c.ask_kind == AskKind.BUDGET,
    )
    row = (await connection.execute(waits.limit(1))).first()
    if row is not None:
        raise ConflictError(
            f"it waits for its budget, not for a message. {row.title}",
            hint=f"`agentmon answer {row.id} raise`, or once, or stop; in the inbox, enter",
        )


async def add_command(
    connection: AsyncConnection,
    execution_id: str,
    command_type: CommandType,
    payload: Mapping[str, object],
    *,
    actor: Actor,
    cause: CommandCause | None = None,
    at: datetime,
) -> CommandId:
    """Write a command for the present try inside the caller's transaction, and return its id.

    Args:
        connection: Of the caller's transaction.
        execution_id: What it is for.
        command_type: What is asked.
        payload: As ``CommandType`` describes it.
        actor: Who asks.
        cause: Why; what follows from who asks when it is None.
        at: The time now.
    """
    command_id = CommandId(new_id())
    executions = tables.executions
    await connection.execute(
        insert(tables.execution_commands).values(
            id=command_id,
            execution_id=execution_id,
            actor_type=actor.type,
            actor_id=actor.id,
            cause=cause or CAUSES[actor.type],
            attempt=select(executions.c.attempt).where(executions.c.id == execution_id).scalar_subquery(),
            type=command_type,
            payload=dict(payload),
            created_at=at,
        )
    )
    return command_id


def _told(payload: Mapping[str, object]) -> dict[str, object]:
    """Return what the audit trail keeps of a payload: texts, without the words of a message."""
    return {name: content for name, content in payload.items() if isinstance(content, str) and name != "text"}
