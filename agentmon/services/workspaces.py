"""Workspaces: which project folder a board belongs to."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import AgentmonError, NotFoundError, UsageError
from agentmon.domain.ids import LOCAL_USER_ID, WorkspaceId, new_id
from agentmon.domain.repository_identity import RepositoryIdentity
from agentmon.domain.tasks import Workspace
from agentmon.paths import expanded, find_workspace_root, is_repository
from agentmon.runners.agent_files import AGENT_FILE
from agentmon.services.folders import LOOK_MAX_S, in_own_thread
from agentmon.workspaces.identity import find_identity, find_same, repair_worktrees

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.workspace_counts import WorkspaceCounts
    from agentmon.store.workspace_counts import WorkspaceCountRepository
    from agentmon.store.workspace_moves import WorkspaceMoveRepository
    from agentmon.store.workspaces import WorkspaceRepository

_HISTORY_MAX_S: Final = 5.0
"""How long the first commit of a repository is looked for, once."""
_REPAIR_MAX_S: Final = 60.0


class WorkspaceService:
    """Finds and registers workspaces."""

    def __init__(
        self,
        repository: WorkspaceRepository,
        counts: WorkspaceCountRepository,
        moves: WorkspaceMoveRepository,
        clock: Clock,
    ) -> None:
        self._repository = repository
        self._counts = counts
        self._moves = moves
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
        if found is None:
            found = await self._repository.register(root_path=str(root), name=root.name or "/", at=self._clock.now())
        await self._note_identity(found)
        return found

    async def find_for(self, folder: Path) -> Workspace:
        """Return the workspace that a folder belongs to, registered at first sight.

        That is the nearest registered one at or above it, unless a git root lies nearer: a repository inside a
        registered folder is a project of its own. A worktree that agentmon made belongs to that of its task.
        """
        folder, _ = await asyncio.to_thread(_resolved, folder)
        root = await asyncio.to_thread(find_workspace_root, folder)
        found = await self._registered(folder, root)
        if found is None:
            return await self.open(root)
        await self._note_identity(found)
        return found

    async def look_at(self, folder: Path) -> Workspace:
        """Return the workspace that a folder belongs to, as ``find_for`` does, for whoever only looks.

        One that is not registered is not registered by that, so that nothing is stored of it.
        """
        folder, _ = await asyncio.to_thread(_resolved, folder)
        root = await asyncio.to_thread(find_workspace_root, folder)
        return await self._registered(folder, root) or _unregistered(root)

    async def find_known(self, folder: Path) -> Workspace | None:
        """Return the workspace as ``look_at`` does; None when it is not registered and has no agents of its own."""
        folder, _ = await asyncio.to_thread(_resolved, folder)
        root = await asyncio.to_thread(find_workspace_root, folder)
        found = await self._registered(folder, root)
        if found is None and await asyncio.to_thread(root.joinpath(*AGENT_FILE).exists):
            return _unregistered(root)
        return found

    async def find_moved(self, workspace: Workspace) -> tuple[Workspace, ...]:
        """Return the workspaces whose folder is gone and whose repository is the one in this workspace's folder.

        There are none for a workspace of which anything was made.
        """
        if await self._moves.is_used(workspace.id):
            return ()
        known = await self._repository.identities()
        if not known:
            return ()
        others = [one for one in await self.list() if one.id in known]
        gone = await _find_gone(one.root_path for one in others)
        known = {one.id: known[one.id] for one in others if one.root_path in gone}
        if not known:
            return ()
        try:
            root, wanted = Path(workspace.root_path), set(known.values())
            same = await asyncio.to_thread(find_same, root, wanted, limit_s=_HISTORY_MAX_S)
        except (AgentmonError, OSError):
            return ()
        return tuple(one for one in others if known.get(one.id) in same)

    async def move(self, old: str, new: Path, *, actor: Actor) -> tuple[Workspace, ...]:
        """Say that a folder was moved: each workspace at or below it is moved with it; return them as they are now.

        Paths of tasks, agents, rules and runs that led there lead to the new place; worktrees find their repository.

        Args:
            old: Where the folder was, or the short name of a workspace.
            new: Where it is.
            actor: Who says so.

        Raises:
            NotFoundError: There is no such folder, or no workspace was at the old place.
            UsageError: Both are the same.
            ConflictError: Something runs there, or the new place has a board of its own.
        """
        new, is_folder = await asyncio.to_thread(_resolved, new)
        if not is_folder:
            raise NotFoundError(f"there is no folder {new}", hint="name the folder as it is called now")
        counts = await self._counts.all()
        roots = {one.short_name: one.workspace.root_path for one in counts}
        place = roots[old] if old in roots else await asyncio.to_thread(_place_of, old, roots.values())
        if place == str(new):
            raise UsageError(f"the workspace is at {new} already")
        moved = await self._moves.move(place, str(new), actor=actor, at=self._clock.now())
        for workspace in moved:
            await self._note_identity(workspace)
            await self._repair(workspace)
        return moved

    async def _repair(self, workspace: Workspace) -> None:
        root = Path(workspace.root_path)
        try:
            await asyncio.to_thread(repair_worktrees, root, limit_s=_REPAIR_MAX_S)
        except (AgentmonError, OSError):
            # A worktree that finds no repository is said where it is used.
            return

    async def _note_identity(self, workspace: Workspace) -> None:
        """Note which repository the workspace is, once, as soon as there is a commit."""
        if not await self._repository.lacks_identity(workspace.id):
            return
        try:
            found = await asyncio.to_thread(find_identity, Path(workspace.root_path), limit_s=_HISTORY_MAX_S)
        except AgentmonError:
            found = RepositoryIdentity(first_commit="")
        except OSError:
            return
        if found is not None:
            await self._repository.note_identity(workspace.id, found)

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
        counts = await self._counts.all()
        gone = await _find_gone(one.workspace.root_path for one in counts)
        return tuple(replace(one, is_gone=one.workspace.root_path in gone) for one in counts)


def _place_of(text: str, roots: Iterable[str]) -> str:
    """Return the path that is meant, of which the last part may be gone or be a link to the new place by now."""
    typed = expanded(text).absolute()
    is_known = any(Path(root).is_relative_to(typed) for root in roots)
    return str(typed if is_known else typed.resolve())


async def _find_gone(folders: Iterable[str]) -> set[str]:
    """Return those that are not there any more; what does not answer in time is not known to be gone.

    One that is a link by now is not there either: whoever goes there is at the end of the link.
    """
    gone: set[str] = set()

    def look() -> None:
        for folder in folders:
            try:
                is_there = Path(folder).resolve(strict=True) == Path(folder) and Path(folder).is_dir()
            except (FileNotFoundError, NotADirectoryError):
                is_there = False
            except (OSError, RuntimeError):
                continue
            if not is_there:
                gone.add(folder)

    try:
        await in_own_thread(look, LOOK_MAX_S)
    except TimeoutError:
        return set(gone)
    return gone


def _unregistered(root: Path) -> Workspace:
    return Workspace(id=WorkspaceId(new_id()), owner_id=LOCAL_USER_ID, name=root.name or "/", root_path=str(root))


def _resolved(folder: Path) -> tuple[Path, bool]:
    folder = expanded(str(folder)).resolve()
    return folder, folder.is_dir()
