"""Alternatives: one thing done by several agents, each on a card of its own, of which a person takes one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import insert, literal, select, update

from agentmon.domain.budgets import BudgetScope
from agentmon.domain.errors import ConflictError
from agentmon.domain.ids import BudgetId, ExecutionId, TaskId, new_id
from agentmon.domain.task_status import TaskStatus
from agentmon.store import tables
from agentmon.store.budgets import read_budgets, set_budget
from agentmon.store.executions import queue_execution
from agentmon.store.idempotency import find_result, note_result
from agentmon.store.mapping import execution_of, task_of
from agentmon.store.stops import find_open
from agentmon.store.task_labels import select_tasks
from agentmon.store.task_moves import SYSTEM_ACTOR, move_task, open_column_of
from agentmon.store.tasks import NewTask, add_task, move_card, task_row, write_draft

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor
    from agentmon.domain.executions import Execution, ExecutionRequest
    from agentmon.domain.idempotency import IdempotencyKey
    from agentmon.domain.tasks import Task, TaskDraft
    from agentmon.store.database import Database


class WantedRun(NamedTuple):
    """A run that is to be queued."""

    request: ExecutionRequest
    """Those behind the first get the id of their own card, when it is made."""
    execution_id: ExecutionId
    log_file_path: str
    draft: TaskDraft | None = None
    """The card as it is then, where it is an alternative to others."""


class AlternativeRepository:
    """Makes alternatives, and lets those go that were not taken."""

    def __init__(self, database: Database, *, money_words: Mapping[str, str]) -> None:
        """Make it, like ``TaskRepository``."""
        self._database = database
        self._money_words = money_words

    async def queue(
        self,
        wanted: Sequence[WantedRun],
        *,
        expected_version: int,
        key: IdempotencyKey | None = None,
        actor: Actor,
        at: datetime,
    ) -> Execution:
        """Queue a run of a task, and of a new card for each alternative to it: all of them, or none.

        The new cards wait for the same tasks, and may cost as much. The run of the task is returned; that of the same
        key before, where there is one.

        Args:
            wanted: That of the task first; all have a draft.
            expected_version: Of the task, on which the drafts were made.
            key: Of this request.
            actor: Who asks.
            at: The time now.

        Raises:
            NotFoundError: The task is gone.
            WaitsForTasksError: It waits for tasks, and the requests may not wait.
            ConflictError: A run of it is open, or somebody changed it meanwhile.
        """
        async with self._database.writing() as connection:
            known = await find_result(connection, key, actor=actor)
            if known is not None:
                return await _read(connection, known)
            task_id = wanted[0].request.task_id
            row = await task_row(connection, task_id)
            present = await find_open(connection, task_id)
            if present is not None:
                raise ConflictError(
                    f"#{row['number']} has an open run already: {present.live_state.value}",
                    hint=f"stop it first: x on the board, or `agentmon stop {row['number']}`",
                )
            if row["version"] != expected_version:
                raise ConflictError(
                    f"#{row['number']} was changed by somebody else meanwhile", hint="look at it, then run it again"
                )
            first = None
            for run in wanted:
                assert run.draft is not None
                request = run.request
                if first is None:
                    first = await self._begin_group(connection, row, run.draft, actor=actor, at=at)
                else:
                    made = await self._add(connection, first, run.draft, actor=actor, at=at)
                    request = replace(request, task_id=made)
                await queue_execution(
                    connection,
                    request,
                    execution_id=run.execution_id,
                    log_file_path=run.log_file_path,
                    actor=actor,
                    at=at,
                )
            await note_result(connection, key, wanted[0].execution_id, actor=actor, at=at)
            return await _read(connection, wanted[0].execution_id)

    async def queued_with(self, execution_id: ExecutionId) -> tuple[Execution, ...]:
        """Return the runs that one ``queue`` made, the given one first."""
        async with self._database.reading() as connection:
            return await _queued_with(connection, execution_id)

    async def let_go(self, task_id: TaskId, *, actor: Actor, at: datetime) -> tuple[Task, ...]:
        """Cancel the open cards among a task and its alternatives, since one of them was taken; return these.

        What is queued of them is taken out of the queue, and what runs is asked to end; the card moves after that.

        Raises:
            NotFoundError: The task is gone.
            ConflictError: None of them was taken, or none is left.
        """
        tasks = tables.tasks
        async with self._database.writing() as connection:
            row = await task_row(connection, task_id)
            number = row["number"]
            if row["alternatives_id"] is None:
                raise ConflictError(
                    f"#{number} has no alternatives", hint=f"`agentmon run {number} --also AGENT` makes them"
                )
            statement = (
                select_tasks()
                .where(tasks.c.alternatives_id == row["alternatives_id"], tasks.c.deleted_at.is_(None))
                .order_by(tasks.c.number)
            )
            group = (await connection.execute(statement)).mappings().all()
            if all(TaskStatus(one["status"]) is not TaskStatus.DONE for one in group):
                raise ConflictError(
                    f"no alternative to #{number} was taken yet",
                    hint=f"take one first: `agentmon merge {number}`, or `agentmon task move {number} done`",
                )
            on_board = [one for one in group if one["archived_at"] is None]
            left = [TaskId(one["id"]) for one in on_board if TaskStatus(one["status"]).is_open]
            if not left:
                raise ConflictError(f"no alternative to #{number} is open any more")
            return tuple([await move_card(connection, one, TaskStatus.CANCELLED, actor=actor, at=at) for one in left])

    @staticmethod
    async def _begin_group(
        connection: AsyncConnection, row: RowMapping, draft: TaskDraft, *, actor: Actor, at: datetime
    ) -> Task:
        """Let a task be the alternative of others; return it."""
        tasks = tables.tasks
        await write_draft(connection, row, draft, next_run_at=row["next_run_at"], actor=actor, at=at)
        group = row["alternatives_id"] or row["id"]
        await connection.execute(update(tasks).where(tasks.c.id == row["id"]).values(alternatives_id=group))
        return task_of(await task_row(connection, row["id"]))

    async def _add(
        self, connection: AsyncConnection, first: Task, draft: TaskDraft, *, actor: Actor, at: datetime
    ) -> TaskId:
        """Make the card of an alternative, which waits for the same and may cost the same."""
        dependencies = tables.task_dependencies
        new = NewTask(replace(draft, schedule=None), (), None, alternative_to=first)
        made = await add_task(connection, first.workspace_id, new, self._money_words, actor=actor, at=at)
        same = select(literal(made.id), dependencies.c.depends_on_task_id, literal(at, dependencies.c.created_at.type))
        await connection.execute(
            insert(dependencies).from_select(
                ["task_id", "depends_on_task_id", "created_at"], same.where(dependencies.c.task_id == first.id)
            )
        )
        column = await open_column_of(connection, made.id)
        if column is not TaskStatus.TODO:
            row = await task_row(connection, made.id)
            await move_task(connection, row, column, actor=SYSTEM_ACTOR, at=at, cause="waits for tasks")
        for budget in await read_budgets(connection, self._money_words):
            if budget.scope is BudgetScope.TASK and budget.scope_id == first.id:
                own = replace(budget, id=BudgetId(new_id()), scope_id=made.id, created_at=at)
                await set_budget(connection, own, self._money_words, actor=actor, at=at)
        return made.id


async def _read(connection: AsyncConnection, execution_id: str) -> Execution:
    executions = tables.executions
    found = await connection.execute(select(executions).where(executions.c.id == execution_id))
    return execution_of(found.mappings().one())


async def _queued_with(connection: AsyncConnection, execution_id: str) -> tuple[Execution, ...]:
    """Return the runs of a group that were queued in one transaction, which gave them one time."""
    executions, tasks = tables.executions, tables.tasks
    first = tables.executions.alias("first")
    own = tables.tasks.alias("own")
    statement = (
        select(executions)
        .join(tasks, tasks.c.id == executions.c.task_id)
        .join(first, first.c.id == execution_id)
        .join(own, own.c.id == first.c.task_id)
        .where(
            tasks.c.alternatives_id == own.c.alternatives_id,
            executions.c.created_at == first.c.created_at,
        )
        .order_by(executions.c.id != execution_id, tasks.c.number)
    )
    return tuple(execution_of(row) for row in (await connection.execute(statement)).mappings())
