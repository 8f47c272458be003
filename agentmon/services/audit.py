"""The audit trail: who changed what, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmon.domain.notifications import notifications_in

if TYPE_CHECKING:
    from agentmon.domain.events import TaskEvent
    from agentmon.domain.ids import TaskId
    from agentmon.domain.notifications import Notification
    from agentmon.domain.tasks import Workspace
    from agentmon.store.audit import AuditRepository


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLine:
    """One entry with the number of the task it is about."""

    event: TaskEvent
    task_number: int | None
    """None for what concerns no single task: the queue, an agent, a setting."""
    workspace_name: str | None = None
    """That of the task."""


class AuditService:
    """Reads the audit trail; nothing changes it."""

    def __init__(self, audit: AuditRepository) -> None:
        self._audit = audit

    async def of_task(self, task_id: TaskId, *, limit: int = 500) -> tuple[TaskEvent, ...]:
        """Return the newest entries of a task, oldest first."""
        return await self._audit.of_task(task_id, limit=limit)

    async def all(self, workspace: Workspace | None, *, after_id: int = 0, limit: int = 500) -> tuple[AuditLine, ...]:
        """Return the newest entries after an id, oldest first.

        Args:
            workspace: Only its tasks, and what concerns no single task; None means all workspaces.
            after_id: The id of the last entry that is known already; 0 for the whole trail.
            limit: Most entries.
        """
        workspace_id = None if workspace is None else workspace.id
        found = await self._audit.all(workspace_id, after_id=after_id, limit=limit)
        return tuple(
            AuditLine(event=event, task_number=number, workspace_name=workspace_name)
            for event, number, workspace_name in found
        )

    async def newest_id(self) -> int:
        """Return the id of the newest entry; 0 when there is none."""
        return await self._audit.newest_id()

    async def notifications(self, after_id: int, *, limit: int = 1_000) -> tuple[int, tuple[Notification, ...]]:
        """Return what a person is to be told of the oldest entries after an id, and the id of the last one looked at.

        Args:
            after_id: The id of the last entry that was looked at before.
            limit: Most entries.
        """
        lines = await self._audit.news(after_id, limit=limit)
        return lines[-1][0].id if lines else after_id, tuple(notifications_in(lines))
