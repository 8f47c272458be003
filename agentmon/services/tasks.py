"""Tasks: making, changing and moving cards."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import NotFoundError, UsageError
from agentmon.domain.events import ActorType
from agentmon.domain.labels import parse_labels
from agentmon.domain.plain_text import storable
from agentmon.domain.tasks import TITLE_MAX_CHARACTERS, InputContext, Schedule
from agentmon.schedule import check_cron, check_zone, next_time
from agentmon.services.budgets import require_above_nothing
from agentmon.services.gate import require_person
from agentmon.store.tasks import NewTask

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agentmon.domain.budgets import TaskBudget
    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.ids import AgentId, TaskId
    from agentmon.domain.task_graph import TaskGraph
    from agentmon.domain.task_picks import TaskPick
    from agentmon.domain.task_status import TaskStatus
    from agentmon.domain.tasks import AwaitedTask, Task, TaskDraft, Workspace
    from agentmon.store.dependencies import DependencyRepository
    from agentmon.store.subtasks import SubtaskRepository
    from agentmon.store.task_labels import LabelRepository
    from agentmon.store.task_picks import TaskPickRepository
    from agentmon.store.tasks import TaskRepository


_BLANKS: Final = r"[ \t\r\n\v\f\x1c-\x1f\x85\u2028\u2029]+"
"""What becomes one blank in a title; a blank that does not break is meant."""


class TaskService:
    """Everything about cards but running them."""

    def __init__(
        self,
        tasks: TaskRepository,
        dependencies: DependencyRepository,
        subtasks: SubtaskRepository,
        labels: LabelRepository,
        picks: TaskPickRepository,
        clock: Clock,
    ) -> None:
        self._tasks = tasks
        self._dependencies = dependencies
        self._subtasks = subtasks
        self._labels = labels
        self._picks = picks
        self._clock = clock

    async def add(
        self,
        workspace: Workspace,
        draft: TaskDraft,
        *,
        actor: Actor,
        after: Sequence[int] = (),
        budget: TaskBudget | None = None,
    ) -> Task:
        """Make a task; it waits for the tasks numbered in ``after``, and its runs together may cost the budget.

        Raises:
            UsageError: The title is empty or too long, a label is none, the schedule cannot be read, or the budget is
                not above nothing.
            NotFoundError: A number in ``after`` names no task, or the parent is not there.
            ConflictError: An agent would say what may be spent.
        """
        _check_budget(budget, actor)
        _check_verification(draft, None, actor)
        new_task = await self._new(draft, tuple(after))
        (task,) = await self._tasks.add_all(
            workspace.id, [new_task._replace(budget=budget)], actor=actor, at=self._clock.now()
        )
        return task

    async def add_all(
        self, workspace: Workspace, drafts: Sequence[tuple[TaskDraft, tuple[int, ...]]], *, actor: Actor
    ) -> tuple[Task, ...]:
        """Make tasks, each with the numbers of those that it waits for: all of them, or none; see ``add``."""
        for draft, _ in drafts:
            _check_verification(draft, None, actor)
        new_tasks = [await self._new(draft, after) for draft, after in drafts]
        return await self._tasks.add_all(workspace.id, new_tasks, actor=actor, at=self._clock.now())

    async def edit(
        self,
        task_id: TaskId,
        draft: TaskDraft,
        *,
        expected_version: int,
        added: Sequence[int] = (),
        removed: Sequence[int] = (),
        budget: TaskBudget | None = None,
        actor: Actor,
    ) -> Task:
        """Write the draft over the task of that version, with what it waits for and may cost: all of it, or nothing.

        Args:
            task_id: Which.
            draft: What it is to be.
            expected_version: On which the draft was made.
            added: Numbers of tasks that it is to wait for.
            removed: Numbers of tasks that it waits for no longer.
            budget: What all its runs together may cost; None leaves that as it is.
            actor: Who edits it.

        Raises:
            UsageError: The title is empty or too long, a label is none, the schedule cannot be read, or the budget is
                not above nothing.
            NotFoundError: The task, its parent or one of the others is gone.
            ConflictError: Somebody changed the task meanwhile, the parent is one of its own subtasks, or tasks would
                wait for each other, or an agent would say what may be spent.
        """
        _check_budget(budget, actor)
        if actor.type is ActorType.AGENT:
            _check_verification(draft, await self._tasks.get(task_id), actor)
        draft = await self._checked(draft)
        return await self._tasks.edit(
            task_id,
            draft,
            expected_version=expected_version,
            next_run_at=await self._next_run_at(draft),
            added=added,
            removed=removed,
            budget=budget,
            actor=actor,
            at=self._clock.now(),
        )

    async def move(self, task_id: TaskId, status: TaskStatus, *, actor: Actor, index: int | None = None) -> Task:
        """Move the card to a column: at ``index`` inside it, or at its top.

        Closing it cancels its queued execution. Cancelling it while an execution runs asks for the end of that; the
        returned task is then where it was, and moves when nothing of the execution is alive any more. One that is
        called done while its execution runs lets what waits for it start when that has ended, unless it fails.

        Raises:
            NotFoundError: The task is gone.
            IllegalMoveError: The life cycle of tasks has no such move.
            ConflictError: An agent calls it done.
        """
        return await self._tasks.move(task_id, status, index=index, actor=actor, at=self._clock.now())

    async def shift(self, task_id: TaskId, steps: int, *, actor: Actor) -> Task:
        """Move the card up (negative) or down inside its column; at the end of the column it stays.

        Raises:
            NotFoundError: The task is gone.
            ConflictError: It is archived.
        """
        return await self._tasks.shift(task_id, steps, actor=actor, at=self._clock.now())

    async def delete(self, task_id: TaskId, *, actor: Actor) -> Task:
        """Take the card off the board; ``restore`` brings it back.

        Raises:
            NotFoundError: The task is gone already.
            ConflictError: It is queued or running.
        """
        return await self._tasks.delete(task_id, actor=actor, at=self._clock.now())

    async def restore(self, task_id: TaskId, *, actor: Actor) -> Task:
        """Bring a deleted card back to where it was; a card that is there stays."""
        return await self._tasks.restore(task_id, actor=actor, at=self._clock.now())

    async def get(self, task_id: TaskId) -> Task:
        """Return the task.

        Raises:
            NotFoundError: The task is gone.
        """
        return await self._tasks.get(task_id)

    async def by_number(self, workspace: Workspace, number: int, *, deleted_too: bool = False) -> Task:
        """Return the task that people call by this number.

        Raises:
            NotFoundError: The workspace has no such task.
        """
        task = await self._tasks.find_by_number(workspace.id, number, deleted_too=deleted_too)
        if task is None:
            raise NotFoundError(
                f"there is no task #{number} in {workspace.name}",
                hint="`agentmon task list` shows its tasks; -C PATH names another workspace",
            )
        return task

    async def last_agent_id(self, workspace: Workspace) -> AgentId | None:
        """Return the program of the newest task of the workspace that has one."""
        return await self._tasks.last_agent_id(workspace.id)

    async def known_labels(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the labels that tasks of the workspace have, the most used first."""
        return await self._labels.known(workspace.id)

    async def picks(self, workspace: Workspace, typed: str, *, limit: int = 8) -> tuple[TaskPick, ...]:
        """Return open tasks for what is typed of their number or title, the best first; the newest for nothing."""
        return await self._picks.find(workspace.id, typed, limit=limit)

    async def list(
        self, workspace: Workspace, *, statuses: Sequence[TaskStatus] = (), is_archived: bool = False
    ) -> tuple[Task, ...]:
        """Return the tasks of the columns, all when none is named, in the order of the board; or the archived ones."""
        return await self._tasks.list(workspace.id, statuses, is_archived=is_archived)

    async def subtasks(self, task_id: TaskId) -> tuple[Task, ...]:
        """Return the tasks whose parent it is, by number."""
        return await self._subtasks.of_task(task_id)

    async def graph(self, task_id: TaskId) -> TaskGraph:
        """Return the task with all that it depends on and all that depends on it.

        Raises:
            NotFoundError: The task is gone.
        """
        return await self._dependencies.around(task_id)

    async def rings(self) -> tuple[tuple[Task, ...], ...]:
        """Return the groups of tasks that wait for each other: none, unless the data came from elsewhere."""
        return await self._dependencies.rings()

    async def dependencies(self, task_id: TaskId) -> tuple[AwaitedTask, ...]:
        """Return the tasks it waits for or has waited for, by number."""
        return await self._dependencies.of_task(task_id)

    async def change_dependencies(
        self, task_id: TaskId, *, added: Sequence[int] = (), removed: Sequence[int] = (), actor: Actor
    ) -> None:
        """Let the task wait for some tasks of its workspace and no longer for others: all of it, or nothing.

        Raises:
            NotFoundError: One of the tasks is not there, or is to be removed and was not waited for.
            ConflictError: They would wait for each other, and the message shows the ring; or the task runs and would
                wait for one that is not done; or an agent takes away one that still holds it.
        """
        await self._dependencies.change(task_id, added=added, removed=removed, actor=actor, at=self._clock.now())

    async def add_dependency(self, task_id: TaskId, on_number: int, *, actor: Actor) -> None:
        """Let the task wait for another one of its workspace; see ``change_dependencies``."""
        await self.change_dependencies(task_id, added=[on_number], actor=actor)

    async def remove_dependency(self, task_id: TaskId, on_number: int, *, actor: Actor) -> None:
        """Let the task no longer wait for the other one; see ``change_dependencies``."""
        await self.change_dependencies(task_id, removed=[on_number], actor=actor)

    async def _new(self, draft: TaskDraft, after: tuple[int, ...]) -> NewTask:
        checked = await self._checked(draft)
        return NewTask(checked, after, await self._next_run_at(checked))

    async def _checked(self, draft: TaskDraft) -> TaskDraft:
        if draft.schedule is not None:
            cron = await asyncio.to_thread(check_cron, draft.schedule.cron)
            zone = await asyncio.to_thread(check_zone, draft.schedule.zone)
            draft = replace(draft, schedule=Schedule(cron=cron, zone=zone))
        return _checked_text(draft)

    async def _next_run_at(self, draft: TaskDraft) -> datetime | None:
        if draft.schedule is None:
            return None
        return await asyncio.to_thread(next_time, draft.schedule.cron, draft.schedule.zone, self._clock.now())


def _check_budget(budget: TaskBudget | None, actor: Actor) -> None:
    if budget is not None:
        require_person(actor, "set a budget")
        if budget.limit is not None:
            require_above_nothing(budget.limit)


def _check_verification(draft: TaskDraft, before: Task | None, actor: Actor) -> None:
    """Refuse an agent that would say what its own work has to pass: a person's command runs outside of its limits."""
    context, known = draft.input_context, InputContext() if before is None else before.input_context
    if (context.verify, context.verify_retries) != (known.verify, known.verify_retries):
        require_person(actor, "say what work has to pass")


def _checked_text(draft: TaskDraft) -> TaskDraft:
    title = storable(re.sub(_BLANKS, " ", draft.title).strip())
    if not title:
        raise UsageError("a task needs a title", hint="a few words that say what is to be done")
    if len(title) > TITLE_MAX_CHARACTERS:
        raise UsageError(
            f"the title has {len(title):,} characters; {TITLE_MAX_CHARACTERS:,} are the most",
            hint="put the long text into the description",
        )
    return replace(draft, title=title, description=storable(draft.description), labels=parse_labels(draft.labels))
