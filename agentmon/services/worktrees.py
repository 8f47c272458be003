"""Working trees that agentmon made: what is in them, and taking them away without losing anything that nobody named."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import AgentmonError, ConflictError, NotFoundError
from agentmon.domain.events import ActorType
from agentmon.domain.worktrees import Loss, LossKind, Worktree, WorktreeStatus
from agentmon.threads import in_daemon_thread
from agentmon.workspaces import worktrees

if TYPE_CHECKING:
    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.ids import TaskId, WorkspaceId, WorktreeId
    from agentmon.paths import Paths
    from agentmon.store.worktrees import WorktreeRepository

_LOOK_WITHIN_S: Final = 20.0
_SIZE_WITHIN_S: Final = 2.0
_LOOKS_AT_ONCE: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreeState:
    """A working tree as it is now."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedWorktree:
    """A working tree that was taken away."""

    worktree: Worktree
    kept_ref: str | None
    """What keeps its commits; None when each is on another branch."""


class WorktreeService:
    """Lists and removes working trees."""

    def __init__(self, repository: WorktreeRepository, paths: Paths, clock: Clock) -> None:
        self._worktrees = repository
        self._paths = paths
        self._clock = clock

    async def get(self, worktree_id: WorktreeId) -> Worktree:
        """Return one working tree, as the database has it.

        Raises:
            NotFoundError: There is none of this id.
        """
        return await self._worktrees.get(worktree_id)

    async def of_task(self, task_id: TaskId) -> Worktree | None:
        """Return the working tree in which a task works, as the database has it; None without one."""
        found = await self._worktrees.of_task(task_id)
        return found[0] if found else None

    async def require_of_task(self, task_id: TaskId, number: int) -> Worktree:
        """Return the working tree of a task.

        Raises:
            NotFoundError: It has none.
        """
        found = await self.of_task(task_id)
        if found is None:
            raise NotFoundError(
                f"#{number} has no working tree of its own", hint="`agentmon worktrees` lists those that there are"
            )
        return found

    async def states(self, workspace_id: WorkspaceId | None) -> tuple[WorktreeState, ...]:
        """Return what is in each working tree, of one workspace or of all; none holds up the others for long."""
        in_use = await self._worktrees.in_use()
        present = await self._worktrees.present(workspace_id)
        slots = asyncio.Semaphore(_LOOKS_AT_ONCE)

        async def look(worktree: Worktree) -> WorktreeState:
            async with slots:
                return await self.state(worktree, is_in_use=worktree.id in in_use)

        return tuple(await asyncio.gather(*map(look, present)))

    async def state(self, worktree: Worktree, *, is_in_use: bool | None = None) -> WorktreeState:
        """Return what is in a working tree."""
        if is_in_use is None:
            is_in_use = worktree.id in await self._worktrees.in_use()
        try:
            async with asyncio.timeout(_LOOK_WITHIN_S):
                return await in_daemon_thread(partial(_state, worktree, is_in_use=is_in_use), name="working tree")
        except TimeoutError:
            loss = Loss(kind=LossKind.UNREADABLE, count=1, names=(f"no answer within {_LOOK_WITHIN_S:g} s",))
            return WorktreeState(worktree=worktree, is_in_use=is_in_use, losses=(loss,))

    async def remove(self, worktree: Worktree, *, confirmed: str | None, actor: Actor) -> RemovedWorktree:
        """Take away a working tree with its branch; commits that are nowhere else stay under a recovery ref.

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
        kept_ref = await in_daemon_thread(partial(self._remove, worktree), name="remove working tree")
        await self._worktrees.remove(
            worktree, kept_ref=kept_ref, lost=[loss.words for loss in losses], actor=actor, at=self._clock.now()
        )
        return RemovedWorktree(worktree=worktree, kept_ref=kept_ref)

    async def prune(
        self, workspace_id: WorkspaceId | None, *, is_dry: bool, actor: Actor
    ) -> tuple[RemovedWorktree, ...]:
        """Take away the working trees of closed tasks with which nothing is lost, and what is left of deleted ones."""
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
