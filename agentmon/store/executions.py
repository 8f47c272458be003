"""Executions as clients see them: put into the queue, asked to stop, listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, insert, select, true, update

from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import OPEN_STATUSES, ExecutionStatus
from agentmon.domain.executions import CommandType, ExecutionListing
from agentmon.domain.ids import LOCAL_USER_ID, ExecutionId, new_id
from agentmon.domain.life_cycles import require_execution_move
from agentmon.domain.task_status import TaskStatus
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.dependencies import read_prerequisites
from agentmon.store.mapping import event_of, execution_of
from agentmon.store.task_moves import move_task

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor, Event
    from agentmon.domain.executions import Execution, ExecutionRequest
    from agentmon.domain.ids import TaskId, WorkspaceId
    from agentmon.store.database import Database


class ExecutionRepository:
    """Reads executions, queues them and asks running ones to stop."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def enqueue(
        self, request: ExecutionRequest, *, execution_id: ExecutionId, log_file_path: str, actor: Actor, at: datetime
    ) -> Execution:
        """Put one execution of a task into the queue.

        Raises:
            NotFoundError: The task is gone.
            ConflictError: It is queued or running already, or waits for open tasks, which the message names.
        """
        tasks, executions = tables.tasks, tables.executions
        async with self._database.writing() as connection:
            statement = select(tasks).where(tasks.c.id == request.task_id, tasks.c.deleted_at.is_(None))
            task = (await connection.execute(statement)).mappings().first()
            if task is None:
                raise NotFoundError("this task was deleted", hint="`agentmon task restore` brings it back")
            await _require_free(connection, request.task_id, task["number"])
            await connection.execute(
                insert(executions).values(
                    id=execution_id,
                    task_id=request.task_id,
                    agent_id=request.agent_id,
                    capability_id=request.capability_id,
                    requested_by=LOCAL_USER_ID,
                    status=ExecutionStatus.QUEUED,
                    mode=request.mode,
                    args=dict(request.args),
                    log_file_path=log_file_path,
                    max_retries=request.max_retries,
                    created_at=at,
                    updated_at=at,
                )
            )
            await append_task_event(
                connection,
                task_id=request.task_id,
                actor=actor,
                event_type=TaskEventType.EXECUTION_QUEUED,
                payload={"execution_id": execution_id},
                at=at,
            )
            return await _read(connection, execution_id)

    async def request_stop(
        self, task_id: TaskId, *, command_type: CommandType, actor: Actor, at: datetime
    ) -> Execution:
        """Cancel the queued execution of a task at once, or ask for the end of the running one.

        Asking again only adds what is stronger: a kill after a stop.

        Raises:
            ConflictError: Nothing of the task waits or runs.
        """
        executions = tables.executions
        async with self._database.writing() as connection:
            statement = select(executions).where(
                executions.c.task_id == task_id, executions.c.status.in_(list(OPEN_STATUSES))
            )
            row = (await connection.execute(statement)).mappings().first()
            if row is None:
                raise ConflictError("nothing of this task is queued or running")
            execution = execution_of(row)
            if execution.status is ExecutionStatus.QUEUED:
                await _cancel_queued(connection, execution, actor=actor, at=at)
            else:
                await _ask_to_stop(connection, execution, command_type, actor=actor, at=at)
            return await _read(connection, execution.id)

    async def get(self, execution_id: ExecutionId) -> Execution:
        """Return one execution.

        Raises:
            NotFoundError: There is none of this id.
        """
        async with self._database.reading() as connection:
            return await _read(connection, execution_id)

    async def count_open(self) -> int:
        """Return how many executions wait or run, over all workspaces."""
        statement = select(func.count()).select_from(tables.executions).where(tables.IS_OPEN)
        async with self._database.reading() as connection:
            return (await connection.execute(statement)).scalar_one()

    async def of_task(self, task_id: TaskId, *, limit: int) -> tuple[Execution, ...]:
        """Return the executions of a task, newest first."""
        executions = tables.executions
        statement = (
            select(executions)
            .where(executions.c.task_id == task_id)
            .order_by(executions.c.created_at.desc(), executions.c.id.desc())
            .limit(limit)
        )
        async with self._database.reading() as connection:
            return tuple(execution_of(row) for row in (await connection.execute(statement)).mappings())

    async def list(self, workspace_id: WorkspaceId | None, *, limit: int, offset: int) -> tuple[ExecutionListing, ...]:
        """Return executions with what a list shows beside them: open ones first, then the newest."""
        executions, tasks, agents = tables.executions, tables.tasks, tables.agents
        capabilities = tables.agent_capabilities
        in_workspace = true() if workspace_id is None else tasks.c.workspace_id == workspace_id
        listed = (
            select(
                executions,
                tasks.c.number.label("task_number"),
                tasks.c.title.label("task_title"),
                agents.c.slug.label("agent_slug"),
                capabilities.c.key.label("capability_key"),
            )
            .join(tasks, tasks.c.id == executions.c.task_id)
            .join(agents, agents.c.id == executions.c.agent_id)
            .join(capabilities, capabilities.c.id == executions.c.capability_id)
            .where(in_workspace)
            .order_by(executions.c.created_at.desc(), executions.c.id.desc())
        )
        open_ones = listed.where(tables.IS_OPEN).limit(10_000)
        async with self._database.reading() as connection:
            rows = list((await connection.execute(open_ones)).mappings())
            over_offset = max(0, offset - len(rows))
            rows = rows[offset : offset + limit]
            # Two statements, since one that sorts by being open cannot use the index on the time.
            others = (
                listed.where(executions.c.status.not_in(sorted(OPEN_STATUSES)))
                .limit(limit - len(rows))
                .offset(over_offset)
            )
            if len(rows) < limit:
                rows += (await connection.execute(others)).mappings()
        return tuple(
            ExecutionListing(
                execution=execution_of(row),
                task_number=row["task_number"],
                task_title=row["task_title"],
                agent_slug=row["agent_slug"],
                capability_key=row["capability_key"],
            )
            for row in rows
        )

    async def events(self, execution_id: ExecutionId, *, after_id: int, limit: int) -> tuple[Event, ...]:
        """Return the stream of an execution after an id, oldest first."""
        events = tables.events
        statement = (
            select(events)
            .where(events.c.execution_id == execution_id, events.c.id > after_id)
            .order_by(events.c.id)
            .limit(limit)
        )
        async with self._database.reading() as connection:
            return tuple(event_of(row) for row in (await connection.execute(statement)).mappings())


async def _require_free(connection: AsyncConnection, task_id: TaskId, number: int) -> None:
    executions = tables.executions
    statement = select(executions.c.status).where(
        executions.c.task_id == task_id, executions.c.status.in_(list(OPEN_STATUSES))
    )
    present = (await connection.execute(statement)).scalar()
    if present is not None:
        raise ConflictError(
            f"#{number} is already {ExecutionStatus(present).value}",
            hint="one run of a task at a time; x on the board or `agentmon stop` ends it",
        )
    prerequisites = await read_prerequisites(connection, task_id, open_only=True)
    if prerequisites:
        named = ", ".join(f"#{prerequisite.number}" for prerequisite in prerequisites)
        raise ConflictError(
            f"#{number} waits for {named}",
            hint="finish or cancel those first, or take the dependency away with `agentmon task edit --not-after N`",
        )


async def _cancel_queued(connection: AsyncConnection, execution: Execution, *, actor: Actor, at: datetime) -> None:
    require_execution_move(execution.status, ExecutionStatus.CANCELLED)
    executions, tasks = tables.executions, tables.tasks
    await connection.execute(
        update(executions)
        .where(executions.c.id == execution.id, executions.c.status == ExecutionStatus.QUEUED)
        .values(status=ExecutionStatus.CANCELLED, ended_at=at, updated_at=at)
    )
    payload = {"execution_id": execution.id, "status": ExecutionStatus.CANCELLED.value}
    await append_task_event(
        connection,
        task_id=execution.task_id,
        actor=actor,
        event_type=TaskEventType.EXECUTION_ENDED,
        payload=payload,
        at=at,
    )
    task = (await connection.execute(select(tasks).where(tasks.c.id == execution.task_id))).mappings().one()
    if TaskStatus(task["status"]) is TaskStatus.IN_PROGRESS:
        await move_task(connection, task, TaskStatus.TODO, actor=actor, at=at, cause="its queued run was cancelled")


async def _ask_to_stop(
    connection: AsyncConnection, execution: Execution, command_type: CommandType, *, actor: Actor, at: datetime
) -> None:
    executions, commands = tables.executions, tables.execution_commands
    asked = select(commands.c.type).where(commands.c.execution_id == execution.id)
    present = {CommandType(word) for word in (await connection.execute(asked)).scalars()}
    if command_type in present or CommandType.KILL in present:
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
            created_at=at,
        )
    )
    await append_task_event(
        connection,
        task_id=execution.task_id,
        actor=actor,
        event_type=TaskEventType.EXECUTION_STOP_REQUESTED,
        payload={"execution_id": execution.id, "type": command_type.value},
        at=at,
    )


async def _read(connection: AsyncConnection, execution_id: ExecutionId) -> Execution:
    statement = select(tables.executions).where(tables.executions.c.id == execution_id)
    row = (await connection.execute(statement)).mappings().first()
    if row is None:
        raise NotFoundError(f"there is no execution {execution_id}", hint="`agentmon executions` lists them")
    return execution_of(row)
