"""Worktrees that agentmon made: what is in them, and taking them away without losing anything that nobody named."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import AgentmonError, ConflictError, NotFoundError
from agentmon.domain.events import ActorType
from agentmon.domain.worktrees import Loss, LossKind, Worktree, WorktreeStatus
from agentmon.threads import in_daemon_thread
from agentmon.workspaces import worktree_filling, worktrees
from agentmon.workspaces.snapshots import SnapshotStore
from agentmon.workspaces.undoing import apply, plan

if TYPE_CHECKING:
    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.ids import TaskId, WorkspaceId, WorktreeId
    from agentmon.paths import Paths
    from agentmon.store.worktrees import WorktreeRepository

_log = logging.getLogger(__name__)

_LOOK_WITHIN_S: Final = 20.0
_SIZE_WITHIN_S: Final = 2.0
_LOOKS_AT_ONCE: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreeState:
    """A worktree as it is now."""

    worktree: Worktree
    is_in_use: bool
    """Whether a run works in it."""
    is_missing: bool = False
    """Whether its folder is gone."""
    head: str = ""
    """The branch or commit that is checked out; empty where git cannot say."""
    ahead: int | None = None
    behind: int | None = None
    """Commits that its branch has and its base has not, and the other way round; None where git cannot say."""
    losses: tuple[Loss, ...] = ()
    """What would be lost with it."""
    size_bytes: int | None = None
    """Of its folder; None where that takes too long to find out."""

    @property
    def label(self) -> str:
        """Its state in a few words: ``in use, 2 untracked``; ``clean`` where nothing would be lost."""
        is_ready = self.worktree.status is WorktreeStatus.READY
        head = "in use" if self.is_in_use else "" if is_ready else self.worktree.status.value
        if self.is_missing and is_ready and not self.is_in_use:
            head = "folder gone"
        losses = ", ".join(f"{loss.count} {loss.kind.value}" for loss in self.losses)
        return ", ".join(part for part in (head, losses) if part) or "clean"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedWorktree:
    """A worktree that was taken away."""

    worktree: Worktree
    kept_ref: str | None
    """What keeps its commits; None when each is on another branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredWorktree:
    """A worktree that was made again from its branch, with the files that were seen in it."""

    worktree: Worktree
    paths: tuple[str, ...]
    """Files that came back beyond what its branch has."""
    left_alone: tuple[str, ...]
    """Files that did not: their branch has gone on in another way, or their content was not kept."""
    has_snapshot: bool
    """Whether anybody had looked into it."""


class WorktreeService:
    """Lists, restores and removes worktrees."""

    def __init__(self, repository: WorktreeRepository, paths: Paths, clock: Clock) -> None:
        self._worktrees = repository
        self._paths = paths
        self._clock = clock

    async def get(self, worktree_id: WorktreeId) -> Worktree:
        """Return one worktree, as the database has it.

        Raises:
            NotFoundError: There is none of this id.
        """
        return await self._worktrees.get(worktree_id)

    async def of_task(self, task_id: TaskId) -> Worktree | None:
        """Return the worktree in which a task works, as the database has it; None without one."""
        found = await self._worktrees.of_task(task_id)
        return found[0] if found else None

    async def require_of_task(self, task_id: TaskId, number: int) -> Worktree:
        """Return the worktree of a task.

        Raises:
            NotFoundError: It has none.
        """
        found = await self.of_task(task_id)
        if found is None:
            raise NotFoundError(
                f"#{number} has no worktree of its own", hint="`agentmon worktrees` lists those that there are"
            )
        return found

    async def states(self, workspace_id: WorkspaceId | None) -> tuple[WorktreeState, ...]:
        """Return what is in each worktree, of one workspace or of all; none holds up the others for long."""
        in_use = await self._worktrees.in_use()
        present = await self._worktrees.present(workspace_id)
        slots = asyncio.Semaphore(_LOOKS_AT_ONCE)

        async def look(worktree: Worktree) -> WorktreeState:
            async with slots:
                return await self.state(worktree, is_in_use=worktree.id in in_use)

        return tuple(await asyncio.gather(*map(look, present)))

    async def state(self, worktree: Worktree, *, is_in_use: bool | None = None) -> WorktreeState:
        """Return what is in a worktree."""
        if is_in_use is None:
            is_in_use = worktree.id in await self._worktrees.in_use()
        try:
            async with asyncio.timeout(_LOOK_WITHIN_S):
                return await in_daemon_thread(partial(_state, worktree, is_in_use=is_in_use), name="worktree")
        except TimeoutError:
            loss = Loss(kind=LossKind.UNREADABLE, count=1, names=(f"no answer within {_LOOK_WITHIN_S:g} s",))
            return WorktreeState(worktree=worktree, is_in_use=is_in_use, losses=(loss,))

    async def remove(self, worktree: Worktree, *, confirmed: str | None, actor: Actor) -> RemovedWorktree:
        """Take away a worktree with its branch; commits that are nowhere else stay under a recovery ref.

        Args:
            worktree: Which.
            confirmed: The name of its branch, typed by a person who knows what is lost; needed where something is.
            actor: Who asks.

        Raises:
            ConflictError: A run works in it, or something would be lost that nobody has confirmed.
            GitError: It is not what agentmon made any more; nothing was removed.
        """
        if worktree.id in await self._worktrees.in_use():
            raise ConflictError(
                f"a run of #{worktree.task_number} works in {worktree.path}",
                hint=f"`agentmon stop {worktree.task_number}` ends it",
            )
        losses = (await self.state(worktree, is_in_use=False)).losses
        if losses and confirmed != worktree.branch:
            raise ConflictError(
                f"{worktree.branch} would lose {'; '.join(loss.words for loss in losses)}",
                hint=f"`agentmon worktrees remove {worktree.task_number} --confirm {worktree.branch}` removes it",
            )
        if losses and actor.type is not ActorType.USER:
            raise ConflictError(
                "only a person removes work that is nowhere else", hint="leave it, or commit and merge it"
            )
        kept_ref = await in_daemon_thread(partial(self._remove, worktree), name="remove worktree")
        await self._worktrees.remove(
            worktree, kept_ref=kept_ref, lost=[loss.words for loss in losses], actor=actor, at=self._clock.now()
        )
        return RemovedWorktree(worktree=worktree, kept_ref=kept_ref)

    async def restore(self, worktree: Worktree, *, actor: Actor) -> RestoredWorktree:
        """Make a worktree again whose folder is gone: its branch, and on it the files that were last seen there.

        Where the branch has gone on since, the files are merged with it.

        Raises:
            ConflictError: It is there, a run works in it, or it was never ready.
            GitError: It cannot be made again.
            SnapshotError: What was seen cannot be brought back; the worktree is there, as its branch is.
        """
        if worktree.id in await self._worktrees.in_use():
            raise ConflictError(
                f"a run of #{worktree.task_number} waits or works in {worktree.path}",
                hint=f"`agentmon stop {worktree.task_number}` ends it",
            )
        if worktree.status is not WorktreeStatus.READY:
            raise ConflictError(
                f"the worktree of #{worktree.task_number} is {worktree.status.value}",
                hint=f"`agentmon run {worktree.task_number}` makes it again",
            )
        state = await self.state(worktree, is_in_use=False)
        if not state.is_missing and any(loss.kind is not LossKind.COMMITS for loss in state.losses):
            raise ConflictError(
                f"{worktree.path} is there, and has work in it", hint="what runs changed: `agentmon undo --help`"
            )
        snapshot_id = await self._worktrees.last_snapshot(worktree.id)
        restored = await in_daemon_thread(partial(self._restore, worktree, snapshot_id), name="restore worktree")
        await self._worktrees.note_restored(worktree, files=len(restored.paths), actor=actor, at=self._clock.now())
        return restored

    async def prune(
        self, workspace_id: WorkspaceId | None, *, is_dry: bool, actor: Actor
    ) -> tuple[RemovedWorktree, ...]:
        """Take away the worktrees of closed tasks with which nothing is lost, and what is left of deleted ones."""
        removed = []
        for state in await self.states(workspace_id):
            if state.is_in_use or state.losses:
                continue
            is_left_over = state.is_missing or state.worktree.status is WorktreeStatus.FAILED
            if not (state.worktree.is_task_closed or is_left_over):
                continue
            removed.append(
                RemovedWorktree(worktree=state.worktree, kept_ref=None)
                if is_dry
                else await self.remove(state.worktree, confirmed=None, actor=actor)
            )
        return tuple(removed)

    def _restore(self, worktree: Worktree, snapshot_id: str | None) -> RestoredWorktree:
        store = SnapshotStore(self._paths.snapshots_dir, left_out=(self._paths.data_dir,))
        tree = Path(worktree.path)
        with worktrees.held(worktree) as lock:
            if worktrees.is_missing(worktree):
                worktrees.make(worktree, lock=lock, adopts=True, say=_log.info)
                worktree_filling.fill_submodules(tree, Path(worktree.source), lock=lock, say=_log.info)
                worktree_filling.bring_along(tree, Path(worktree.source), say=_log.info)
            try:
                seen = None if snapshot_id is None else store.get(snapshot_id)
            except NotFoundError:
                seen = None
            if seen is None:
                return RestoredWorktree(worktree=worktree, paths=(), left_alone=(), has_snapshot=False)
            with worktrees.checked_out(worktree, seen.head):
                base = store.take(tree)
            found = plan(store, tree, seen, base)
            undone = apply(found)
        return RestoredWorktree(
            worktree=worktree,
            paths=tuple(step.path for step in found.steps if step.is_done),
            left_alone=(*(step.path for step in found.left_alone), *undone.left_alone),
            has_snapshot=True,
        )

    def _remove(self, worktree: Worktree) -> str | None:
        with worktrees.held(worktree) as lock:
            return worktrees.remove(worktree, folder=self._paths.worktrees_dir, lock=lock)


def _state(worktree: Worktree, *, is_in_use: bool) -> WorktreeState:
    is_missing = worktrees.is_missing(worktree)
    head, ahead, behind = "", None, None
    try:
        ahead, behind = worktrees.count_commits(worktree)
        head = "" if is_missing else worktrees.head_of(worktree)
    except (AgentmonError, OSError):
        # What cannot be read counts among the losses.
        pass
    return WorktreeState(
        worktree=worktree,
        is_in_use=is_in_use,
        is_missing=is_missing,
        head=head,
        ahead=ahead,
        behind=behind,
        losses=worktrees.find_losses(worktree),
        size_bytes=0 if is_missing else _size(worktree.path),
    )


def _size(path: str) -> int | None:
    """Return the bytes of all files in a folder; None when that takes too long."""
    deadline = time.monotonic() + _SIZE_WITHIN_S
    total, folders = 0, [path]
    while folders:
        if time.monotonic() > deadline:
            return None
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return total
