"""Commands of clients for running agents: written here, handed on by the worker, obeyed by the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import insert, select

from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.events import ActorType, TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import CommandCause, CommandType
from agentmon.domain.ids import CommandId, new_id
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.mapping import command_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor
    from agentmon.domain.executions import ExecutionCommand
    from agentmon.domain.ids import ExecutionId
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
        type: CommandType,  # noqa: A002 - the name of the column
        payload: Mapping[str, object],
        *,
        actor: Actor,
        at: datetime,
    ) -> CommandId:
        """Write a command for an execution that runs, and the line of the audit trail that tells of it.

        Raises:
            NotFoundError: There is no such execution.
            ConflictError: It does not run.
        """
        async with self._database.writing() as connection:
            row = (
                await connection.execute(
                    select(tables.executions.c.status, tables.executions.c.task_id).where(
                        tables.executions.c.id == execution_id
                    )
                )
            ).first()
            if row is None:
                raise NotFoundError("there is no such execution")
            if ExecutionStatus(row.status) is not ExecutionStatus.RUNNING:
                raise ConflictError(
                    f"its run is {ExecutionStatus(row.status).value}, so nobody listens", hint="run the task again"
                )
            command_id = await add_command(connection, execution_id, type, payload, actor=actor, at=at)
            await append_task_event(
                connection,
                task_id=row.task_id,
                actor=actor,
                event_type=TaskEventType.MESSAGE_SENT if type in _SAYING else TaskEventType.AGENT_COMMANDED,
                payload={"execution_id": execution_id, "command_id": command_id, "type": type.value} | _told(payload),
                at=at,
            )
            return command_id

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
