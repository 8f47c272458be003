"""Executions as clients see them: put into the queue, asked to stop, listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import exists, func, insert, not_, select, text, true, update

from agentmon.domain.errors import ConflictError, NotFoundError, WaitsForTasksError
from agentmon.domain.events import ActorType, TaskEventType
from agentmon.domain.execution_status import OPEN_STATUSES, EndReason, ExecutionStatus, WaitReason
from agentmon.domain.executions import ExecutionListing
from agentmon.domain.ids import LOCAL_USER_ID, ExecutionId, TaskId
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import awaited_text
from agentmon.store import tables
from agentmon.store.approvals import hold_for_approval
from agentmon.store.audit import append_task_event
from agentmon.store.card_states import NEEDS_YOU
from agentmon.store.conversation_starts import begin_conversation
from agentmon.store.dependencies import drop_dependencies, read_prerequisites
from agentmon.store.idempotency import find_result, note_result
from agentmon.store.mapping import event_of, execution_of
from agentmon.store.review_comments import note_comments_sent
from agentmon.store.stops import ask_to_stop, cancel_queued, find_open
from agentmon.store.task_moves import ask_about_waiting, move_task, open_column_of, require_on_board

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import RowMapping, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor, Event
    from agentmon.domain.executions import CommandType, Execution, ExecutionRequest
    from agentmon.domain.idempotency import IdempotencyKey
    from agentmon.domain.ids import WorkspaceId
    from agentmon.store.database import Database


class ExecutionRepository:
    """Reads executions, queues them and asks running ones to stop."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def enqueue(
        self,
        request: ExecutionRequest,
        *,
        execution_id: ExecutionId,
        log_file_path: str,
        key: IdempotencyKey | None = None,
        actor: Actor,
        at: datetime,
    ) -> Execution:
        """Put one execution of a task into the queue; one that came of the same key before is returned instead.

        One that is there already and waits for a time, for a retry or for its vendor is let go at once instead, unless
        the request names a time itself. A card that is closed comes back to the open columns.

        Raises:
            NotFoundError: The task is gone.
            WaitsForTasksError: It waits for tasks, which the message names, and the request may not wait.
            ConflictError: It is queued or running already.
        """
        async with self._database.writing() as connection:
            known = await find_result(connection, key, actor=actor)
            if known is not None:
                return await _read(connection, ExecutionId(known))
            execution = await queue_execution(
                connection, request, execution_id=execution_id, log_file_path=log_file_path, actor=actor, at=at
            )
            await note_comments_sent(connection, request.comment_ids, at=at)
            await note_result(connection, key, execution.id, actor=actor, at=at)
            return execution

    async def start_anyway(
        self, task_id: TaskId, *, key: IdempotencyKey | None = None, actor: Actor, at: datetime
    ) -> Execution | None:
        """Let the queued execution of a task start without what the task waits for, which it waits for no longer.

        None when nothing of it is queued, or it waits for no tasks.

        Raises:
            NotFoundError: The task is gone.
        """
        async with self._database.writing() as connection:
            present = await find_open(connection, task_id)
            if present is None or present.status is not ExecutionStatus.QUEUED:
                return None
            if not await drop_dependencies(connection, task_id, actor=actor, at=at):
                return None
            await note_result(connection, key, present.id, actor=actor, at=at)
            return await _read(connection, present.id)

    async def was_queued(self, execution_id: ExecutionId) -> bool:
        """Return whether the execution has a row, once whatever was being written is there or will never be."""
        statement = select(tables.executions.c.id).where(tables.executions.c.id == execution_id)
        async with self._database.writing() as connection:
            return (await connection.execute(statement)).first() is not None

    async def request_stop(
        self,
        task_id: TaskId,
        *,
        command_type: CommandType,
        key: IdempotencyKey | None = None,
        actor: Actor,
        at: datetime,
    ) -> Execution:
        """Cancel the queued execution of a task at once, or ask for the end of the running one.

        Asking again only adds what is stronger: a kill after a stop; under the same key it adds nothing.

        Raises:
            ConflictError: Nothing of the task waits or runs.
        """
        async with self._database.writing() as connection:
            known = await find_result(connection, key, actor=actor)
            if known is not None:
                return await _read(connection, ExecutionId(known))
            execution = await find_open(connection, task_id)
            if execution is None:
                raise ConflictError("nothing of this task is queued or running")
            if execution.status is ExecutionStatus.QUEUED:
                await cancel_queued(connection, execution, actor=actor, at=at)
                await _back_to_todo(connection, task_id, actor=actor, at=at)
                await ask_about_waiting(connection, task_id, at=at)
            else:
                await ask_to_stop(connection, execution, command_type, actor=actor, at=at)
            await note_result(connection, key, execution.id, actor=actor, at=at)
            return await _read(connection, execution.id)

    async def get(self, execution_id: ExecutionId) -> Execution:
        """Return one execution.

        Raises:
            NotFoundError: There is none of this id.
        """
        async with self._database.reading() as connection:
            return await _read(connection, execution_id)

    async def is_open(self, execution_id: ExecutionId) -> bool:
        """Return whether the execution waits or runs; the cheapest of all looks at one."""
        statement = f"SELECT 1 FROM executions WHERE id = ? AND {tables.IS_OPEN.text}"
        found = await self._database.read(lambda driver: driver.execute(statement, (execution_id,)).fetchone())
        return found is not None

    async def find_by_start(self, text: str) -> tuple[Execution, ...]:
        """Return at most two executions whose id begins with the text."""
        executions = tables.executions
        statement = select(executions).where(executions.c.id.startswith(text, autoescape=True)).limit(2)
        async with self._database.reading() as connection:
            return tuple(execution_of(row) for row in (await connection.execute(statement)).mappings())

    async def lost_task_ids(self, workspace_id: WorkspaceId | None, *, since: datetime | None) -> tuple[TaskId, ...]:
        """Return the tasks whose newest execution was lost, and ended at or after the time, oldest first."""
        executions, tasks = tables.executions, tables.tasks
        newer = executions.alias("newer")
        statement = (
            select(tasks.c.id)
            .join(executions, executions.c.task_id == tasks.c.id)
            .where(
                executions.c.end_reason == EndReason.LOST,
                executions.c.status == ExecutionStatus.FAILED,
                tasks.c.deleted_at.is_(None),
                tasks.c.archived_at.is_(None),
                tasks.c.status.in_([TaskStatus.BLOCKED, TaskStatus.IN_PROGRESS]),
                ~exists().where(newer.c.task_id == tasks.c.id, newer.c.created_at > executions.c.created_at),
                true() if workspace_id is None else tasks.c.workspace_id == workspace_id,
                true() if since is None else executions.c.ended_at >= since,
            )
            .order_by(executions.c.ended_at)
            .limit(1000)
        )
        async with self._database.reading() as connection:
            return tuple(TaskId(found) for found in (await connection.execute(statement)).scalars())

    async def live_log_paths(self) -> tuple[str, ...]:
        """Return where the output of every execution goes that has or may have a process."""
        executions = tables.executions
        statement = select(executions.c.log_file_path).where(
            tables.IS_OPEN, executions.c.status != ExecutionStatus.QUEUED, executions.c.log_file_path.is_not(None)
        )
        async with self._database.reading() as connection:
            return tuple((await connection.execute(statement)).scalars())

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

    async def without_request(self, workspace_id: WorkspaceId | None) -> tuple[ExecutionListing, ...]:
        """Return the executions that need a person and have no request to decide, the one that waits longest first."""
        executions, approvals = tables.executions, tables.approvals
        asks = exists().where(approvals.c.execution_id == executions.c.id, tables.IS_PENDING_APPROVAL)
        needs_you = text(NEEDS_YOU.replace("o.", "executions."))
        statement = (
            _listed(workspace_id, None)
            .where(tables.IS_OPEN, needs_you, not_(asks))
            .order_by(None)
            .order_by(executions.c.activity_at, executions.c.id)
        )
        async with self._database.reading() as connection:
            return tuple(_listing_of(row) for row in (await connection.execute(statement)).mappings())

    async def ended_by_budgets(self, workspace_id: WorkspaceId | None) -> tuple[ExecutionListing, ...]:
        """Return what a budget stopped, since it could not wait, while its card is blocked; oldest first."""
        executions, tasks = tables.executions, tables.tasks
        newer = executions.alias("newer")
        statement = (
            _listed(workspace_id, None)
            .where(
                tables.IS_ENDED_BY_BUDGET,
                tasks.c.status == TaskStatus.BLOCKED,
                tasks.c.deleted_at.is_(None),
                tasks.c.archived_at.is_(None),
                ~exists().where(newer.c.task_id == executions.c.task_id, newer.c.created_at > executions.c.created_at),
            )
            .order_by(None)
            .order_by(executions.c.ended_at, executions.c.id)
        )
        async with self._database.reading() as connection:
            return tuple(_listing_of(row) for row in (await connection.execute(statement)).mappings())

    async def list(
        self, workspace_id: WorkspaceId | None, *, task_id: TaskId | None = None, limit: int, offset: int
    ) -> tuple[ExecutionListing, ...]:
        """Return executions with what a list shows beside them: open ones first, then the newest."""
        executions = tables.executions
        listed = _listed(workspace_id, task_id)
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
        return tuple(_listing_of(row) for row in rows)

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


async def queue_execution(
    connection: AsyncConnection,
    request: ExecutionRequest,
    *,
    execution_id: ExecutionId,
    log_file_path: str,
    actor: Actor,
    at: datetime,
) -> Execution:
    """Put one execution into the queue inside the caller's transaction; see ``ExecutionRepository.enqueue``."""
    tasks, executions = tables.tasks, tables.executions
    statement = select(tasks).where(tasks.c.id == request.task_id, tasks.c.deleted_at.is_(None))
    task = (await connection.execute(statement)).mappings().first()
    if task is None:
        raise NotFoundError("this task was deleted", hint="`agentmon task restore` brings it back")
    require_on_board(task, "does not run")
    present = await find_open(connection, request.task_id)
    drops = request.drops_dependencies and await drop_dependencies(connection, request.task_id, actor=actor, at=at)
    if present is not None:
        if drops and present.status is ExecutionStatus.QUEUED:
            raise ConflictError(
                f"#{task['number']} is queued already as something else",
                hint=f"stop it first: `agentmon stop {task['number']}`; --anyway alone starts it as it is",
            )
        await _hasten(connection, present, request, task["number"], actor=actor, at=at)
        return await _read(connection, present.id)
    if not request.may_wait:
        await _require_no_prerequisites(connection, request.task_id, task["number"])
    conversation = await begin_conversation(connection, request, at=at)
    not_before = request.not_before
    wait_reason = WaitReason.SCHEDULED if not_before is not None and not_before > at else None
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
            priority=task["priority"],
            repository=request.repository,
            isolation=request.isolation,
            base=request.base,
            sandbox=request.sandbox,
            not_before=not_before,
            queued_at=at if wait_reason is None else not_before,
            wait_reason=wait_reason,
            created_at=at,
            updated_at=at,
            **conversation,
        )
    )
    if request.start_approval is not None:
        await hold_for_approval(connection, execution_id, request.start_approval, at=at)
    await append_task_event(
        connection,
        task_id=request.task_id,
        actor=actor,
        event_type=TaskEventType.EXECUTION_QUEUED,
        payload={"execution_id": execution_id}
        | ({} if wait_reason is None or not_before is None else {"not_before": not_before.isoformat()}),
        at=at,
    )
    await _open_card(connection, task, actor=actor, at=at)
    await ask_about_waiting(connection, request.task_id, at=at)
    return await _read(connection, execution_id)


async def _back_to_todo(connection: AsyncConnection, task_id: TaskId, *, actor: Actor, at: datetime) -> None:
    """Move the card of a run that was cancelled between two tries out of In progress."""
    tasks = tables.tasks
    task = (await connection.execute(select(tasks).where(tasks.c.id == task_id))).mappings().one()
    if TaskStatus(task["status"]) is TaskStatus.IN_PROGRESS:
        target = await open_column_of(connection, task_id)
        await move_task(connection, task, target, actor=actor, at=at, cause="its queued run was cancelled")


async def _hasten(
    connection: AsyncConnection,
    execution: Execution,
    request: ExecutionRequest,
    number: int,
    *,
    actor: Actor,
    at: datetime,
) -> None:
    """Let a queued execution that waits for a time start at once.

    Raises:
        ConflictError: It waits for no time, runs already, or is not what is asked for.
    """
    if execution.status is ExecutionStatus.QUEUED and execution.is_held:
        raise ConflictError(
            f"#{number} waits for your leave to start",
            hint=f"6 on the board, or `agentmon approve '#{number}'`; `agentmon stop {number}` takes it back",
        )
    if request.start_approval is not None and actor.type is ActorType.AGENT:
        raise ConflictError(
            f"#{number} has an open run already, and an agent may not start it sooner",
            hint=f"a person starts it at once, or its time comes: {request.start_approval.danger_reason}",
        )
    if execution.status is ExecutionStatus.QUEUED and execution.wait_reason is WaitReason.BUDGET:
        raise ConflictError(
            f"#{number} waits: {execution.error or 'a budget is spent'}",
            hint="it goes on by itself when the budget is raised, or its period is over; `agentmon budget` shows it",
        )
    waits_until = execution.not_before if execution.status is ExecutionStatus.QUEUED else None
    if waits_until is None or waits_until <= at or not _is_what_waits(request, execution):
        raise ConflictError(
            f"#{number} has an open run already: {execution.live_state.value}",
            hint="one run of a task at a time; x on the board or `agentmon stop` ends it",
        )
    executions = tables.executions
    await connection.execute(
        update(executions)
        .where(executions.c.id == execution.id, executions.c.status == ExecutionStatus.QUEUED)
        .values(not_before=None, queued_at=at, wait_reason=None, error=None, updated_at=at)
    )
    await append_task_event(
        connection,
        task_id=execution.task_id,
        actor=actor,
        event_type=TaskEventType.EXECUTION_HASTENED,
        payload={"execution_id": execution.id, "waited_until": waits_until.isoformat()},
        at=at,
    )


def _is_what_waits(request: ExecutionRequest, execution: Execution) -> bool:
    """Return whether a request asks for nothing that the waiting execution would not do."""
    is_same = (execution.agent_id, execution.capability_id) == (request.agent_id, request.capability_id)
    is_same = is_same and dict(execution.args) == dict(request.args) and request.not_before is None
    said = request.conversation
    if said is None or not is_same:
        return is_same
    says_more = said.is_message and said.prompt != execution.prompt
    return not says_more and said.parent_execution_id in {None, execution.parent_execution_id}


async def _open_card(connection: AsyncConnection, task: RowMapping, *, actor: Actor, at: datetime) -> None:
    """Take a card that is closed back to the open columns, since it is queued again."""
    if TaskStatus(task["status"]).is_open:
        return
    target = await open_column_of(connection, task["id"])
    await move_task(connection, task, target, actor=actor, at=at, cause="queued again")


async def _require_no_prerequisites(connection: AsyncConnection, task_id: TaskId, number: int) -> None:
    prerequisites = await read_prerequisites(connection, task_id, holding_only=True)
    if not prerequisites:
        return
    raise WaitsForTasksError(
        f"#{number} waits for {awaited_text(prerequisites)}",
        hint=(
            "only a task that is done lets others start; "
            if any(one.is_given_up for one in prerequisites)
            else f"`agentmon run {number} --when-ready` starts it by itself after that; "
        )
        + f"`agentmon run {number} --anyway` starts it now and drops the dependency",
    )


async def _read(connection: AsyncConnection, execution_id: ExecutionId) -> Execution:
    statement = select(tables.executions).where(tables.executions.c.id == execution_id)
    row = (await connection.execute(statement)).mappings().first()
    if row is None:
        raise NotFoundError(f"there is no execution {execution_id}", hint="`agentmon executions` lists them")
    return execution_of(row)


def _listed(workspace_id: WorkspaceId | None, task_id: TaskId | None) -> Select[Any]:
    """Return executions with what a list shows beside them, newest first."""
    executions, tasks, agents = tables.executions, tables.tasks, tables.agents
    capabilities, sessions = tables.agent_capabilities, tables.sessions
    in_workspace = true() if workspace_id is None else tasks.c.workspace_id == workspace_id
    return (
        select(
            executions,
            tasks.c.number.label("task_number"),
            tasks.c.title.label("task_title"),
            agents.c.slug.label("agent_slug"),
            capabilities.c.key.label("capability_key"),
            sessions.c.model.label("session_model"),
        )
        .join(tasks, tasks.c.id == executions.c.task_id)
        .join(agents, agents.c.id == executions.c.agent_id)
        .join(capabilities, capabilities.c.id == executions.c.capability_id)
        .outerjoin(sessions, sessions.c.id == executions.c.session_id)
        .where(in_workspace, true() if task_id is None else executions.c.task_id == task_id)
        .order_by(executions.c.created_at.desc(), executions.c.id.desc())
    )


def _listing_of(row: RowMapping) -> ExecutionListing:
    return ExecutionListing(
        execution=execution_of(row),
        task_number=row["task_number"],
        task_title=row["task_title"],
        agent_slug=row["agent_slug"],
        capability_key=row["capability_key"],
        model=row["session_model"],
    )
