"""Tasks: the cards of the board."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, insert, select, update

from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.events import ActorType, TaskEventType
from agentmon.domain.execution_status import OPEN_STATUSES, ExecutionStatus
from agentmon.domain.executions import CommandType
from agentmon.domain.ids import LOCAL_USER_ID, AgentId, TaskId, new_id
from agentmon.domain.life_cycles import require_task_move
from agentmon.domain.task_status import TaskStatus
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.budgets import set_task_budget
from agentmon.store.columns import bottom_of, place_at
from agentmon.store.dependencies import add_dependency, change_dependencies
from agentmon.store.mapping import input_context_row, task_of
from agentmon.store.optional_columns import optional
from agentmon.store.stops import ask_to_stop, cancel_queued, find_open
from agentmon.store.subtasks import require_parent
from agentmon.store.task_labels import select_tasks, write_labels
from agentmon.store.task_moves import (
    SYSTEM_ACTOR,
    ask_about_waiting,
    free_waiting,
    move_task,
    open_column_of,
    require_on_board,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.budgets import TaskBudget
    from agentmon.domain.events import Actor
    from agentmon.domain.ids import WorkspaceId
    from agentmon.domain.tasks import Task, TaskDraft
    from agentmon.store.database import Database


class NewTask(NamedTuple):
    """A task that is to be made."""

    draft: TaskDraft
    after: tuple[int, ...]
    """Numbers of the tasks that it waits for."""
    next_run_at: datetime | None
    """The next time of the draft's schedule; None without one."""
    budget: TaskBudget | None = None
    """None for none."""
    alternative_to: Task | None = None
    """One that has alternatives; None for a task by itself."""


class TaskRepository:
    """Reads and changes tasks, each change with its line in the audit trail."""

    def __init__(self, database: Database, *, money_words: Mapping[str, str] | None = None) -> None:
        """Make it, like ``BudgetRepository``."""
        self._database = database
        self._money_words = money_words or {}

    async def add(
        self,
        workspace_id: WorkspaceId,
        draft: TaskDraft,
        *,
        after: Sequence[int],
        next_run_at: datetime | None,
        actor: Actor,
        at: datetime,
    ) -> Task:
        """Put a new task at the bottom of Todo, or of Blocked when it has to wait for tasks.

        Args:
            workspace_id: Where.
            draft: What the person filled in.
            after: Numbers of the tasks that it waits for.
            next_run_at: The next time of the draft's schedule; None without one.
            actor: Who makes it.
            at: The time now.

        Raises:
            NotFoundError: A number in ``after`` names no task of the workspace, or the parent is not there.
        """
        (task,) = await self.add_all(workspace_id, [NewTask(draft, tuple(after), next_run_at)], actor=actor, at=at)
        return task

    async def add_all(
        self, workspace_id: WorkspaceId, new_tasks: Sequence[NewTask], *, actor: Actor, at: datetime
    ) -> tuple[Task, ...]:
        """Put new tasks at the bottom of Todo, one below the other, as ``add`` does: all of them, or none.

        Raises:
            NotFoundError: One waits for a task that is not in the workspace, or its parent is not there.
        """
        async with self._database.writing() as connection:
            return tuple(
                [
                    await add_task(connection, workspace_id, one, self._money_words, actor=actor, at=at)
                    for one in new_tasks
                ]
            )

    async def edit(
        self,
        task_id: TaskId,
        draft: TaskDraft,
        *,
        expected_version: int,
        next_run_at: datetime | None,
        added: Sequence[int] = (),
        removed: Sequence[int] = (),
        budget: TaskBudget | None = None,
        actor: Actor,
        at: datetime,
    ) -> Task:
        """Write the draft over the task, with what it waits for and what it may cost: all of it, or nothing.

        An open execution of it takes the new priority, since it may be queued again.

        Args:
            task_id: Which.
            draft: What the person filled in.
            expected_version: On which the draft was made.
            next_run_at: The next time of the draft's schedule; None without one.
            added: Numbers of the tasks that it is to wait for.
            removed: Numbers of those that it waits for no longer.
            budget: What all its runs together may cost; None leaves that as it is.
            actor: Who edits it.
            at: The time now.

        Raises:
            NotFoundError: The task, its parent or one of the others is gone.
            ConflictError: Somebody changed the task since the version that the draft was made on, the parent is one
                of its own subtasks, or tasks would wait for each other.
        """
        async with self._database.writing() as connection:
            row = await task_row(connection, task_id)
            if row["version"] != expected_version:
                raise ConflictError(
                    f"#{row['number']} was changed by somebody else meanwhile",
                    hint="look at the newest version, then change it again",
                )
            await write_draft(connection, row, draft, next_run_at=next_run_at, actor=actor, at=at)
            if added or removed:
                await change_dependencies(connection, task_id, added=added, removed=removed, actor=actor, at=at)
            if budget is not None:
                await set_task_budget(connection, task_id, budget, self._money_words, actor=actor, at=at)
            return task_of(await task_row(connection, task_id))

    async def move(self, task_id: TaskId, target: TaskStatus, *, index: int | None, actor: Actor, at: datetime) -> Task:
        """Move the card to a column, at the index inside it or at its top.

        Closing a card cancels its queued execution. Cancelling one whose execution runs asks for the end of that; the
        card moves when nothing of it is alive any more. One that is called done while its execution runs lets what
        waits for it start when that has ended, unless it fails.

        Raises:
            NotFoundError: The task is gone.
            IllegalMoveError: The life cycle of tasks has no such move.
            ConflictError: An agent calls it done.
        """
        async with self._database.writing() as connection:
            return await move_card(connection, task_id, target, index=index, actor=actor, at=at)

    async def shift(self, task_id: TaskId, steps: int, *, actor: Actor, at: datetime) -> Task:
        """Move the card up (negative) or down inside its column; at the end of the column it stays.

        Raises:
            NotFoundError: The task is gone.
            ConflictError: It is archived.
        """
        tasks = tables.tasks
        async with self._database.writing() as connection:
            row = await task_row(connection, task_id)
            require_on_board(row, "stays where it is")
            in_column = select(func.count()).where(
                tasks.c.workspace_id == row["workspace_id"],
                tasks.c.status == row["status"],
                tasks.c.deleted_at.is_(None),
                tasks.c.archived_at.is_(None),
            )
            above = in_column.where(
                (tasks.c.sort_order < row["sort_order"])
                | ((tasks.c.sort_order == row["sort_order"]) & (tasks.c.id < task_id)),
            )
            present = (await connection.execute(above)).scalar_one()
            last = (await connection.execute(in_column)).scalar_one() - 1
            index = min(max(0, present + steps), last)
            if index == present:
                return task_of(row)
            status = TaskStatus(row["status"])
            sort_order = await place_at(connection, row["workspace_id"], status, index, moved_id=task_id)
            await move_task(connection, row, status, actor=actor, at=at, sort_order=sort_order)
            return task_of(await task_row(connection, task_id))

    async def delete(self, task_id: TaskId, *, actor: Actor, at: datetime) -> Task:
        """Take the card off the board; its row and history stay.

        Raises:
            NotFoundError: The task is gone.
            ConflictError: An execution of it waits or runs.
        """
        async with self._database.writing() as connection:
            row = await task_row(connection, task_id)
            executions = tables.executions
            live = select(func.count()).where(
                executions.c.task_id == task_id, executions.c.status.in_(list(OPEN_STATUSES))
            )
            if (await connection.execute(live)).scalar_one():
                raise ConflictError(
                    f"#{row['number']} is queued or running",
                    hint=f"stop it first: x on the board, or `agentmon stop {row['number']}`",
                )
            await self._set_deleted(connection, row, at, TaskEventType.TASK_DELETED, actor=actor, at=at)
            await ask_about_waiting(connection, task_id, at=at)
            return task_of(row)

    async def restore(self, task_id: TaskId, *, actor: Actor, at: datetime) -> Task:
        """Bring a deleted card back to where it was.

        Raises:
            NotFoundError: There never was such a task.
        """
        async with self._database.writing() as connection:
            row = await task_row(connection, task_id, deleted_too=True)
            if row["deleted_at"] is not None:
                await self._set_deleted(connection, row, None, TaskEventType.TASK_RESTORED, actor=actor, at=at)
                # What it waits for went on without it.
                await free_waiting(connection, tables.tasks.c.id == task_id, at=at)
                row = await task_row(connection, task_id)
                if TaskStatus(row["status"]) is TaskStatus.TODO:
                    column = await open_column_of(connection, task_id)
                    await move_task(connection, row, column, actor=SYSTEM_ACTOR, at=at, cause="waits for tasks")
                await ask_about_waiting(connection, task_id, at=at)
            return task_of(await task_row(connection, task_id))

    async def get(self, task_id: TaskId) -> Task:
        """Return the task.

        Raises:
            NotFoundError: The task is gone.
        """
        async with self._database.reading() as connection:
            return task_of(await task_row(connection, task_id))

    async def last_agent_id(self, workspace_id: WorkspaceId) -> AgentId | None:
        """Return the program of the newest task of the workspace that has one; also of one that was deleted.

        Looks at the newest thousand: where none of them has one there is no habit to go by.
        """
        tasks = tables.tasks
        newest = (
            select(tasks.c.number, tasks.c.assignee_agent_id)
            .where(tasks.c.workspace_id == workspace_id)
            .order_by(tasks.c.number.desc())
            .limit(1000)
            .subquery()
        )
        statement = (
            select(newest.c.assignee_agent_id)
            .where(newest.c.assignee_agent_id.is_not(None))
            .order_by(newest.c.number.desc())
            .limit(1)
        )
        async with self._database.reading() as connection:
            return optional(AgentId, (await connection.execute(statement)).scalar())

    async def find_by_number(self, workspace_id: WorkspaceId, number: int, *, deleted_too: bool = False) -> Task | None:
        """Return the task of this number."""
        tasks = tables.tasks
        statement = select_tasks().where(tasks.c.workspace_id == workspace_id, tasks.c.number == number)
        if not deleted_too:
            statement = statement.where(tasks.c.deleted_at.is_(None))
        async with self._database.reading() as connection:
            row = (await connection.execute(statement)).mappings().first()
        return None if row is None else task_of(row)

    async def list(
        self, workspace_id: WorkspaceId, statuses: Sequence[TaskStatus], *, is_archived: bool = False
    ) -> tuple[Task, ...]:
        """Return the tasks of the columns (all when none is named), column by column in the order of the board.

        Of the archived ones instead of those on the board where they are asked for.
        """
        tasks = tables.tasks
        wanted = [status for status in TaskStatus if not statuses or status in statuses]
        found: list[Task] = []
        async with self._database.reading() as connection:
            statement = (
                select_tasks()
                .where(
                    tasks.c.workspace_id == workspace_id,
                    tasks.c.status.in_(wanted),
                    tasks.c.deleted_at.is_(None),
                    tasks.c.archived_at.is_not(None) if is_archived else tasks.c.archived_at.is_(None),
                )
                .order_by(tasks.c.sort_order, tasks.c.id)
                .limit(100_000)
            )
            found = [task_of(row) for row in (await connection.execute(statement)).mappings()]
        return tuple(sorted(found, key=lambda task: wanted.index(task.status)))

    @staticmethod
    async def _set_deleted(
        connection: AsyncConnection,
        row: RowMapping,
        deleted_at: datetime | None,
        event_type: TaskEventType,
        *,
        actor: Actor,
        at: datetime,
    ) -> None:
        await connection.execute(
            update(tables.tasks)
            .where(tables.tasks.c.id == row["id"])
            .values(deleted_at=deleted_at, version=tables.tasks.c.version + 1, updated_at=at)
        )
        await append_task_event(
            connection, task_id=row["id"], actor=actor, event_type=event_type, payload={"title": row["title"]}, at=at
        )


async def add_task(
    connection: AsyncConnection,
    workspace_id: WorkspaceId,
    new: NewTask,
    money_words: Mapping[str, str],
    *,
    actor: Actor,
    at: datetime,
) -> Task:
    """Put a new task at the bottom of its column inside the caller's transaction; see ``TaskRepository.add``."""
    tasks = tables.tasks
    task_id = new_id()
    draft = new.draft
    await require_parent(connection, workspace_id, task_id, draft.parent_task_id)
    newest = select(func.coalesce(func.max(tasks.c.number), 0)).where(tasks.c.workspace_id == workspace_id)
    number = (await connection.execute(newest)).scalar_one() + 1
    await connection.execute(
        insert(tasks).values(
            id=task_id,
            number=number,
            owner_id=LOCAL_USER_ID,
            workspace_id=workspace_id,
            status=TaskStatus.TODO,
            sort_order=await bottom_of(connection, workspace_id, TaskStatus.TODO),
            created_at=at,
            updated_at=at,
            next_run_at=new.next_run_at,
            alternatives_id=None if new.alternative_to is None else new.alternative_to.alternatives_id,
            **_draft_row(draft),
        )
    )
    await write_labels(connection, task_id, draft.labels)
    await append_task_event(
        connection,
        task_id=task_id,
        actor=actor,
        event_type=TaskEventType.TASK_CREATED,
        payload={"number": number, "title": draft.title}
        | ({} if new.alternative_to is None else {"alternative_to": new.alternative_to.number}),
        at=at,
    )
    for prerequisite in new.after:
        await add_dependency(connection, await task_row(connection, task_id), prerequisite, actor=actor, at=at)
    if new.budget is not None:
        await set_task_budget(connection, task_id, new.budget, money_words, actor=actor, at=at)
    return task_of(await task_row(connection, task_id))


async def move_card(
    connection: AsyncConnection,
    task_id: TaskId,
    target: TaskStatus,
    *,
    index: int | None = None,
    actor: Actor,
    at: datetime,
) -> Task:
    """Move a card inside the caller's transaction; see ``TaskRepository.move``."""
    row = await task_row(connection, task_id)
    if target is TaskStatus.DONE and actor.type is ActorType.AGENT and row["status"] != TaskStatus.DONE:
        raise ConflictError(
            f"an agent cannot move #{row['number']} to Done",
            hint="it moves there by itself when its run succeeds, and a person may move it",
        )
    open_execution = None if target.is_open else await find_open(connection, task_id)
    if open_execution is not None and open_execution.status is ExecutionStatus.QUEUED:
        require_task_move(TaskStatus(row["status"]), target)
        await cancel_queued(connection, open_execution, actor=actor, at=at)
    elif open_execution is not None and target is TaskStatus.CANCELLED:
        require_task_move(TaskStatus(row["status"]), target)
        await ask_to_stop(connection, open_execution, CommandType.STOP, actor=actor, at=at, cancels_card=True)
        return task_of(row)
    sort_order = (
        None if index is None else await place_at(connection, row["workspace_id"], target, index, moved_id=task_id)
    )
    await move_task(connection, row, target, actor=actor, at=at, sort_order=sort_order)
    return task_of(await task_row(connection, task_id))


async def write_draft(
    connection: AsyncConnection,
    row: RowMapping,
    draft: TaskDraft,
    *,
    next_run_at: datetime | None,
    actor: Actor,
    at: datetime,
) -> None:
    """Write a draft over a task inside the caller's transaction; see ``TaskRepository.edit``."""
    task_id, before, fresh = row["id"], task_of(row), _draft_row(draft)
    changed = sorted(name for name, content in fresh.items() if (row[name] or None) != (content or None))
    if before.labels != draft.labels:
        changed = sorted([*changed, "labels"])
        await write_labels(connection, task_id, draft.labels)
    if not changed:
        return
    await require_parent(connection, row["workspace_id"], task_id, draft.parent_task_id)
    is_rescheduled = not {"cron", "cron_zone"}.isdisjoint(changed)
    await connection.execute(
        update(tables.tasks)
        .where(tables.tasks.c.id == task_id)
        .values(
            version=row["version"] + 1,
            next_run_at=next_run_at if is_rescheduled else row["next_run_at"],
            updated_at=at,
            **fresh,
        )
    )
    if "priority" in changed:
        executions = tables.executions
        await connection.execute(
            update(executions)
            .where(executions.c.task_id == task_id, tables.IS_OPEN)
            .values(priority=int(draft.priority))
        )
    shown: dict[str, object] = {
        name: {"from": row[name], "to": fresh[name]} for name in changed if name in {"title", "priority"}
    }
    if "labels" in changed:
        shown["labels"] = {"from": list(before.labels), "to": list(draft.labels)}
    await append_task_event(
        connection,
        task_id=task_id,
        actor=actor,
        event_type=TaskEventType.TASK_EDITED,
        payload={"changed": changed, **shown},
        at=at,
    )


async def task_row(connection: AsyncConnection, task_id: str, *, deleted_too: bool = False) -> RowMapping:
    """Return the row of a task with its labels inside the caller's transaction.

    Raises:
        NotFoundError: It was deleted, or there never was one.
    """
    statement = select_tasks().where(tables.tasks.c.id == task_id)
    row = (await connection.execute(statement)).mappings().first()
    if row is None or (row["deleted_at"] is not None and not deleted_too):
        raise NotFoundError(
            "this task was deleted", hint="ctrl+z on the board or `agentmon task restore` brings it back"
        )
    return row


def _draft_row(draft: TaskDraft) -> dict[str, object]:
    return {
        "title": draft.title,
        "description": draft.description,
        "priority": int(draft.priority),
        "assignee_agent_id": draft.assignee_agent_id,
        "input_context": input_context_row(draft.input_context),
        "due_at": draft.due_at,
        "parent_task_id": draft.parent_task_id,
        "cron": None if draft.schedule is None else draft.schedule.cron,
        "cron_zone": None if draft.schedule is None else draft.schedule.zone,
    }
