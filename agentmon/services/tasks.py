"""Tasks: making, changing and moving cards."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agentmon.domain.errors import NotFoundError, UsageError
from agentmon.domain.tasks import TITLE_MAX_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor, TaskEvent
    from agentmon.domain.ids import TaskId
    from agentmon.domain.task_status import TaskStatus
    from agentmon.domain.tasks import Task, TaskDraft, Workspace
    from agentmon.store.audit import AuditRepository
    from agentmon.store.dependencies import DependencyRepository
    from agentmon.store.tasks import TaskRepository


class TaskService:
    """Everything about cards but running them."""

    def __init__(
        self, tasks: TaskRepository, dependencies: DependencyRepository, audit: AuditRepository, clock: Clock
    ) -> None:
        self._tasks = tasks
        self._dependencies = dependencies
        self._audit = audit
        self._clock = clock

    async def add(self, workspace: Workspace, draft: TaskDraft, *, actor: Actor, after: Sequence[int] = ()) -> Task:
        """Make a task; it waits for the tasks numbered in ``after``.

        Raises:
            UsageError: The title is empty or too long.
            NotFoundError: A number in ``after`` names no task.
        """
        return await self._tasks.add(workspace.id, _checked(draft), after=after, actor=actor, at=self._clock.now())

    async def edit(self, task_id: TaskId, draft: TaskDraft, *, expected_version: int, actor: Actor) -> Task:
        """Write the draft over the task of that version.

        Raises:
            UsageError: The title is empty or too long.
            NotFoundError: The task is gone.
            ConflictError: Somebody changed the task meanwhile.
        """
        return await self._tasks.edit(
            task_id, _checked(draft), expected_version=expected_version, actor=actor, at=self._clock.now()
        )

    async def move(self, task_id: TaskId, status: TaskStatus, *, actor: Actor, index: int | None = None) -> Task:
        """Move the card to a column: at ``index`` inside it, or at its top.

        Raises:
            NotFoundError: The task is gone.
            IllegalMoveError: The life cycle of tasks has no such move.
        """
        return await self._tasks.move(task_id, status, index=index, actor=actor, at=self._clock.now())

    async def shift(self, task_id: TaskId, steps: int, *, actor: Actor) -> Task:
        """Move the card up (negative) or down inside its column; at the end of the column it stays.

        Raises:
            NotFoundError: The task is gone.
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

    async def list(self, workspace: Workspace, *, statuses: Sequence[TaskStatus] = ()) -> tuple[Task, ...]:
        """Return the tasks of the columns, all when none is named, in the order of the board."""
        return await self._tasks.list(workspace.id, statuses)

    async def history(self, task_id: TaskId, *, limit: int = 500) -> tuple[TaskEvent, ...]:
        """Return the newest entries of the task's audit trail, oldest first."""
        return await self._audit.of_task(task_id, limit=limit)

    async def dependencies(self, task_id: TaskId) -> tuple[Task, ...]:
        """Return the tasks it waits for or has waited for, by number."""
        return await self._dependencies.of_task(task_id)

    async def add_dependency(self, task_id: TaskId, on_number: int, *, actor: Actor) -> None:
        """Let the task wait for another one of its workspace.

        Raises:
            NotFoundError: One of the two is not there.
            ConflictError: They would wait for each other; the message shows the ring.
        """
        await self._dependencies.add(task_id, on_number, actor=actor, at=self._clock.now())

    async def remove_dependency(self, task_id: TaskId, on_number: int, *, actor: Actor) -> None:
        """Let the task no longer wait for the other one.

        Raises:
            NotFoundError: It does not wait for it.
        """
        await self._dependencies.remove(task_id, on_number, actor=actor, at=self._clock.now())


def _checked(draft: TaskDraft) -> TaskDraft:
    title = _storable(" ".join(draft.title.split()))
    if not title:
        raise UsageError("a task needs a title", hint="a few words that say what is to be done")
    if len(title) > TITLE_MAX_CHARACTERS:
        raise UsageError(
            f"the title has {len(title):,} characters; {TITLE_MAX_CHARACTERS:,} are the most",
            hint="put the long text into the description",
        )
    return replace(draft, title=title, description=_storable(draft.description))


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "�")
