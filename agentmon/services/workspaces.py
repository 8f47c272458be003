"""Workspaces: which project folder a board belongs to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agentmon.domain.errors import NotFoundError
from agentmon.paths import find_workspace_root, is_repository
from agentmon.runners.agent_files import AGENT_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agentmon.domain.clock import Clock
    from agentmon.domain.ids import WorkspaceId
    from agentmon.domain.tasks import Workspace
    from agentmon.domain.workspace_counts import WorkspaceCounts
    from agentmon.store.workspace_counts import WorkspaceCountRepository
    from agentmon.store.workspaces import WorkspaceRepository


class WorkspaceService:
    """Finds and registers workspaces."""

    def __init__(self, repository: WorkspaceRepository, counts: WorkspaceCountRepository, clock: Clock) -> None:
        self._repository = repository
        self._counts = counts
        self._clock = clock

    async def open(self, root: Path) -> Workspace:
        """Return the workspace whose root is this folder, registered at first sight.

        Raises:
            NotFoundError: There is no such folder.
        """
        root, is_folder = await asyncio.to_thread(_resolved, root)
        if not is_folder:
            raise NotFoundError(f"there is no folder {root}", hint="name a project folder, or make this one first")
        found = await self._repository.find_by_roots([str(root)])
        if found is not None:
            return found
        return await self._repository.register(root_path=str(root), name=root.name or "/", at=self._clock.now())

    async def find_for(self, folder: Path) -> Workspace:
        """Return the workspace that a folder belongs to.

        That is the nearest registered one at or above it, unless a git root lies nearer: a repository inside a
        registered folder is a project of its own. A worktree that agentmon made belongs to that of its task.
        """
        folder, _ = await asyncio.to_thread(_resolved, folder)
        root = await asyncio.to_thread(find_workspace_root, folder)
        return await self._registered(folder, root) or await self.open(root)

    async def find_known(self, folder: Path) -> Workspace | None:
        """Return the workspace that a folder belongs to; None when it is not registered and has no agents of its own.

        Whoever only looks leaves nothing behind that way.
        """
        folder, _ = await asyncio.to_thread(_resolved, folder)
        root = await asyncio.to_thread(find_workspace_root, folder)
        found = await self._registered(folder, root)
        if found is None and await asyncio.to_thread(root.joinpath(*AGENT_FILE).exists):
            return await self.open(root)
        return found

    async def _registered(self, folder: Path, root: Path) -> Workspace | None:
        parts = [str(part) for part in (folder, *folder.parents)]
        of_task = await self._repository.find_by_worktrees(parts)
        if of_task is not None:
            return of_task
        found = await self._repository.find_by_roots(parts)
        is_root_of_one = await asyncio.to_thread(is_repository, root)
        is_nearer = found is not None and (not is_root_of_one or len(found.root_path) >= len(str(root)))
        return found if is_nearer else None

    async def get(self, workspace_id: WorkspaceId) -> Workspace:
        """Return the workspace of this id.

        Raises:
            NotFoundError: There is none.
        """
        found = await self._repository.find(workspace_id)
        if found is None:
            raise NotFoundError("the workspace of this task is not registered")
        return found

    async def own_settings(self, workspace_id: WorkspaceId) -> Mapping[str, int | str]:
        """Return what was chosen for the workspace, by the names of its settings; what was not is left out."""
        return await self._repository.settings(workspace_id)

    async def list(self) -> tuple[Workspace, ...]:
        """Return every workspace by name."""
        return await self._repository.list()

    async def counts(self) -> tuple[WorkspaceCounts, ...]:
        """Return every workspace by name, with what runs, waits and is to be done in it."""
        return await self._counts.all()


def _resolved(folder: Path) -> tuple[Path, bool]:
    folder = folder.expanduser().resolve()
    return folder, folder.is_dir()
