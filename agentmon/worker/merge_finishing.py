"""The end of a merge, in the worker's hands too: it is written into the database, and its worktree goes."""

from __future__ import annotations

import asyncio
import logging
import shutil
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import AgentmonError, ConflictError, NotFoundError
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.ids import WorktreeId
from agentmon.domain.merges import Merged, MergeHow
from agentmon.domain.worktrees import Loss, LossKind, WorktreeStatus
from agentmon.threads import in_daemon_thread
from agentmon.workspaces import landing, merging, worktrees

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from agentmon.domain.clock import Clock
    from agentmon.domain.worktrees import Worktree
    from agentmon.paths import Paths
    from agentmon.store.worktrees import WorktreeRepository
    from agentmon.workspaces.landing import Landing

_log = logging.getLogger(__name__)

_WITHIN_S: Final = 120.0
"""A git that outlived a killed merge comes to its end first."""
_LOOK_EVERY_S: Final = 0.5
_IN_BASE: Final = frozenset({LossKind.COMMITS, LossKind.UNPUSHED})
"""What a merged branch has, its base has too; a recovery ref keeps the commits themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedUp:
    """What became of a merged worktree."""

    is_removed: bool
    kept_ref: str | None = None
    """What keeps its commits; None when each is on another branch."""
    losses: tuple[Loss, ...] = ()
    """What would be lost with it, and keeps it from being removed."""
    is_in_use: bool = False
    """Whether a run works in it, which keeps it from being removed."""


class MergeFinisher:
    """Brings merges to their end."""

    def __init__(self, *, worktrees: WorktreeRepository, paths: Paths, clock: Clock) -> None:
        self._worktrees = worktrees
        self._paths = paths
        self._clock = clock

    async def recover(self) -> None:
        """Finish or take back what a kill broke off; one that is at work does it itself."""
        for _ in range(round(_WITHIN_S / _LOOK_EVERY_S)):
            try:
                with landing.alone(self._paths.merges_dir) as lock:
                    await self.recover_alone(lock)
            except ConflictError:
                await asyncio.sleep(_LOOK_EVERY_S)
            else:
                return

    async def recover_alone(self, lock: int) -> None:
        """Finish or take back what a kill broke off, under the lock of all merges; what cannot be is tried again."""
        for folder, broken in await in_daemon_thread(
            lambda: list(landing.written_down(self._paths.merges_dir)), name="merges"
        ):
            try:
                await self._recover(folder, broken, lock)
            except (AgentmonError, OSError) as error:
                _log.warning("a merge into %s that was broken off: %s", broken.into, error)

    async def finish(self, folder: Path, done: Landing, *, cause: str = "") -> CleanedUp:
        """Write a merge into the database, remove the worktree, and forget what was written down.

        Args:
            folder: Where it is written down.
            done: What has moved.
            cause: What there is to say about it; empty for nothing.
        """
        worktree = await self._worktrees.get(WorktreeId(done.worktree_id))
        actor = Actor(type=ActorType(done.details["actor_type"]), id=done.details["actor_id"] or None)
        at = self._clock.now()
        how = done.details["how"]
        if how:
            merged = Merged(how=MergeHow(how), into=done.into, before=done.base_commit, commit=done.result)
            await self._worktrees.note_merged(worktree, merged, cause=cause, actor=actor, at=at)
            cleaned_up = await self._clean_up(worktree, actor)
        else:
            await self._worktrees.note_merge_undone(worktree, done.result, cause=cause, actor=actor, at=at)
            cleaned_up = CleanedUp(is_removed=worktree.status is WorktreeStatus.REMOVED)
        await in_daemon_thread(partial(landing.forget, folder), name="merge")
        return cleaned_up

    async def _recover(self, folder: Path, broken: Landing, lock: int) -> None:
        try:
            worktree = await self._worktrees.get(WorktreeId(broken.worktree_id))
        except NotFoundError:
            # Of a database that is not there any more: nothing says whose it is.
            await in_daemon_thread(partial(shutil.rmtree, folder), name="merge")
            return

        def settle() -> tuple[bool, Sequence[str]]:
            merging.remove_aside(worktree, folder)
            if not worktrees.is_missing(worktree):
                merging.finish_commit(worktree, folder=folder)
            return landing.recover(folder, broken, lock=lock)

        has_landed, left = await in_daemon_thread(settle, name="merge")
        if has_landed:
            cause = "finished after it was broken off"
            if left:
                cause += f"; changed since, and left alone: {', '.join(left)}"
            await self.finish(folder, broken, cause=cause)
            _log.info("finished a merge into %s that was broken off", broken.into)
            return
        await self._worktrees.note_merge_broken_off(worktree, broken.into, at=self._clock.now())
        await in_daemon_thread(partial(landing.forget, folder), name="merge")
        _log.info("took back a merge into %s that was broken off", broken.into)

    async def _clean_up(self, worktree: Worktree, actor: Actor) -> CleanedUp:
        """Remove the worktree where nothing is lost with it that its base does not have."""
        if worktree.status is WorktreeStatus.REMOVED:
            return CleanedUp(is_removed=True)
        if worktree.id in await self._worktrees.in_use():
            return CleanedUp(is_removed=False, is_in_use=True)
        folder = self._paths.worktrees_dir

        def remove() -> tuple[str | None, list[Loss]]:
            losses = [loss for loss in worktrees.find_losses(worktree) if loss.kind not in _IN_BASE]
            if losses:
                return None, losses
            with worktrees.held(worktree) as lock:
                return worktrees.remove(worktree, folder=folder, lock=lock), []

        try:
            kept_ref, losses = await in_daemon_thread(remove, name="remove worktree")
        except AgentmonError as error:
            return CleanedUp(is_removed=False, losses=(Loss(kind=LossKind.UNREADABLE, count=1, names=(str(error),)),))
        if losses:
            return CleanedUp(is_removed=False, losses=tuple(losses))
        await self._worktrees.remove(replace(worktree), kept_ref=kept_ref, actor=actor, at=self._clock.now())
        return CleanedUp(is_removed=True, kept_ref=kept_ref)
