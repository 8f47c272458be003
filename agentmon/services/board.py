"""The board: pages of cards and the status line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agentmon.worker.import_progress import find_running_import

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from agentmon.domain.board import BoardPage, ColumnRequest
    from agentmon.domain.ids import TaskId
    from agentmon.domain.task_status import TaskStatus
    from agentmon.domain.tasks import Workspace
    from agentmon.services.settings import SettingsService
    from agentmon.store.board_pages import BoardRepository


class BoardService:
    """Reads the board."""

    def __init__(self, repository: BoardRepository, settings: SettingsService, *, import_progress: Path) -> None:
        """Make the service.

        Args:
            repository: Reads the database.
            settings: Say what holds where the database does not.
            import_progress: The file that is there while histories of agents are imported.
        """
        self._import_progress = import_progress
        self._repository = repository
        self._settings = settings

    async def page(self, workspace: Workspace, requests: Sequence[ColumnRequest]) -> BoardPage:
        """Return the asked part of each column and the status line, from one moment."""
        page = await self._repository.page(
            workspace,
            requests,
            running_limit=self._settings.default_worker_settings().max_running,
            money_words=self._settings.default_money_words(),
        )
        running = find_running_import(self._import_progress)
        return page if running is None else replace(page, import_percent=running.progress.percent)

    async def locate(
        self, workspace: Workspace, task_id: TaskId, text_filter: str = ""
    ) -> tuple[TaskStatus, int] | None:
        """Return the column of a task and its index there among the cards that pass the filter; None when gone."""
        del workspace
        return await self._repository.locate(task_id, text_filter)
