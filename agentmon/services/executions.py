"""Executions: what runs, waits and ran."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from agentmon.domain.events import Event
    from agentmon.domain.executions import Execution, ExecutionListing
    from agentmon.domain.ids import ExecutionId, TaskId
    from agentmon.domain.tasks import Workspace
    from agentmon.paths import Paths
    from agentmon.runners.drafts import DraftReader
    from agentmon.runners.log_times import LogTimesReader
    from agentmon.services.sightings import SightingService
    from agentmon.store.executions import ExecutionRepository
    from agentmon.store.overlaps import OverlapRepository


class ExecutionService:
    """Reads executions, their events and where their logs lie."""

    def __init__(
        self, repository: ExecutionRepository, overlaps: OverlapRepository, sightings: SightingService, paths: Paths
    ) -> None:
        self._repository = repository
        self._overlaps = overlaps
        self._sightings = sightings
        self._paths = paths

    async def list(
        self, workspace: Workspace | None, *, task_id: TaskId | None = None, limit: int = 500, offset: int = 0
    ) -> tuple[ExecutionListing, ...]:
        """Return executions of one workspace or of all, or of one task: open ones first, then the newest."""
        return await self._seen(
            await self._repository.list(
                None if workspace is None else workspace.id, task_id=task_id, limit=limit, offset=offset
            )
        )

    async def without_request(self, workspace: Workspace | None) -> tuple[ExecutionListing, ...]:
        """Return the executions of one workspace or of all that need a person and have no request to decide."""
        return await self._seen(await self._repository.without_request(None if workspace is None else workspace.id))

    async def ended_by_budgets(self, workspace: Workspace | None) -> tuple[ExecutionListing, ...]:
        """Return the executions of one workspace or of all that a budget stopped and nobody has decided about."""
        return await self._repository.ended_by_budgets(None if workspace is None else workspace.id)

    async def of_task(self, task_id: TaskId, *, limit: int = 200) -> tuple[Execution, ...]:
        """Return the executions of a task, newest first."""
        return await self._with_looks(await self._repository.of_task(task_id, limit=limit))

    async def newest(self, task_id: TaskId) -> Execution | None:
        """Return the newest execution of a task, or None when it never ran."""
        found = await self.of_task(task_id, limit=1)
        return found[0] if found else None

    async def get(self, execution_id: ExecutionId) -> Execution:
        """Return one execution.

        Raises:
            NotFoundError: There is none of this id.
        """
        return (await self._with_looks([await self._repository.get(execution_id)]))[0]

    async def events(self, execution_id: ExecutionId, *, after_id: int = 0, limit: int = 500) -> tuple[Event, ...]:
        """Return the stream of an execution after an id, oldest first."""
        return await self._repository.events(execution_id, after_id=after_id, limit=limit)

    async def _seen(self, listings: Sequence[ExecutionListing]) -> tuple[ExecutionListing, ...]:
        seen = await self._with_looks([listing.execution for listing in listings])
        return tuple(replace(listing, execution=one) for listing, one in zip(listings, seen, strict=True))

    async def _with_looks(self, executions: Sequence[Execution]) -> tuple[Execution, ...]:
        """Return executions with what was seen of those that live."""
        seen = await self._sightings.add_to(executions)
        overlaps = await self._overlaps.of_runs([one.id for one in seen if one.status.is_live])
        return tuple(replace(one, overlaps=overlaps.get(one.id, ())) for one in seen) if overlaps else seen

    def log_path(self, execution: Execution) -> Path:
        """Return where its output is or will be; the file need not exist yet."""
        return self._paths.output_of(execution.id, execution.log_file_path)

    def draft_reader(self, execution: Execution) -> DraftReader:
        """Return what reads the messages that its agent is writing; it looks into files."""
        from agentmon.runners.drafts import DraftReader  # noqa: PLC0415 - seldom needed
        from agentmon.runners.execution_folder import ExecutionFolder  # noqa: PLC0415 - seldom needed

        drafts = ExecutionFolder(self.log_path(execution).parent).drafts
        return DraftReader(drafts, execution_id=execution.id, attempt=execution.attempt)

    def log_times_reader(self, execution: Execution, log: Path | None = None) -> LogTimesReader:
        """Return what reads when its log was written, or that of an earlier try; it looks into files."""
        from agentmon.runners.execution_folder import ExecutionFolder  # noqa: PLC0415 - seldom needed
        from agentmon.runners.log_times import LogTimesReader  # noqa: PLC0415 - seldom needed

        return LogTimesReader(ExecutionFolder((log or self.log_path(execution)).parent).journal)
