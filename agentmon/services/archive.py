"""The archive: cards that are off the board, with everything kept."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from agentmon.schedule import next_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.ids import TaskId
    from agentmon.domain.tasks import Task, Workspace
    from agentmon.store.task_archive import ArchiveRepository
    from agentmon.store.tasks import TaskRepository

_AT_ONE_TIME: Final = 500


class ArchiveService:
    """Takes cards off the board and brings them back."""

    def __init__(self, archive: ArchiveRepository, tasks: TaskRepository, clock: Clock) -> None:
        self._archive = archive
        self._tasks = tasks
        self._clock = clock

    async def archive(self, task_id: TaskId, *, actor: Actor) -> Task:
        """Take the card off the board; ``unarchive`` brings it back.

        Raises:
            NotFoundError: The task is gone.
            ConflictError: It is queued or running.
        """
        return await self._archive.archive(task_id, actor=actor, at=self._clock.now())

    async def unarchive(self, task_id: TaskId, *, actor: Actor) -> Task:
        """Bring the card back to where it was; a card that is on the board stays.

        Raises:
            NotFoundError: The task is gone.
        """
        task, now = await self._tasks.get(task_id), self._clock.now()
        schedule = task.schedule
        next_run_at = (
            None if schedule is None else await asyncio.to_thread(next_time, schedule.cron, schedule.zone, now)
        )
        return await self._archive.unarchive(task_id, next_run_at=next_run_at, actor=actor, at=now)

    async def archive_closed_before(
        self, moment: datetime, workspace: Workspace | None, *, cause: str, actor: Actor
    ) -> tuple[Task, ...]:
        """Archive all closed cards of the workspace that nothing has changed since the moment, and return them.

        None as the workspace means all. What runs or waits is left alone.
        """
        archived: list[Task] = []
        while found := await self._closed_before(moment, workspace):
            ids = [task.id for task in found]
            now = self._clock.now()
            gone = await self._archive.archive_closed(moment, ids, cause=cause, actor=actor, at=now)
            if not gone:
                break
            archived += gone
        return tuple(archived)

    async def _closed_before(self, moment: datetime, workspace: Workspace | None) -> Sequence[Task]:
        workspace_id = None if workspace is None else workspace.id
        return await self._archive.closed_before(moment, workspace_id, limit=_AT_ONE_TIME)
