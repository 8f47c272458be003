"""A repository with a worktree in which a task has worked, merged as the service does it, without its database."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.domain.merges import Forecast, Merged, MergeHow
from agentmon.workspaces import landing, merging, worktrees
from agentmon.workspaces.landing import Landing
from agentmon.workspaces.repositories import find_repository
from tests.workspaces.worktree_place import WorktreePlace, a_repository, commit, git, write

if TYPE_CHECKING:
    from agentmon.domain.worktrees import Worktree


@dataclass
class MergePlace:
    """One task's worktree, and the person's repository that it was made from."""

    repository: Path
    folder: Path
    worktree: Worktree

    @property
    def tree(self) -> Path:
        return Path(self.worktree.path)

    def foretell(self, *, how: MergeHow = MergeHow.SQUASH, into: str | None = None) -> Forecast:
        return merging.foretell(self.worktree, into=into, how=how)

    def merge(
        self,
        *,
        how: MergeHow = MergeHow.SQUASH,
        into: str | None = None,
        undone: Merged | None = None,
        runs_hooks: bool = True,
    ) -> Merged:
        inner = self.folder / self.worktree.id
        with landing.alone(self.folder) as lock:
            for left, written in landing.written_down(self.folder):
                self._settle(left, written, lock)
            begun = Landing(
                worktree_id=self.worktree.id,
                repository=self.worktree.repository or "",
                into="",
                base_commit="",
                details={},
            )
            landing.write_down(inner, begun)
            try:
                moved = self._move(inner, begun, lock, how, into, undone, runs_hooks)
            except BaseException:
                landing.forget_undone(inner)
                raise
            landing.forget(inner)
        return Merged(how=how, into=moved.into, before=moved.base_commit, commit=moved.result)

    def _move(
        self,
        inner: Path,
        begun: Landing,
        lock: int,
        how: MergeHow,
        into: str | None,
        undone: Merged | None,
        runs_hooks: bool,
    ) -> Landing:
        if undone is not None:
            forecast = merging.foretell_undo(self.worktree, undone)
        else:
            forecast = merging.foretell(self.worktree, into=into, how=how)
            assert forecast.is_possible, forecast
            if forecast.uncommitted:
                merging.commit_all(self.worktree, "left over\n", folder=inner, runs_hooks=runs_hooks)
                forecast = merging.foretell(self.worktree, into=into, how=how)
        made = merging.made_aside(
            self.worktree, forecast, message="merged\n", undone=undone, folder=inner, lock=lock, runs_hooks=runs_hooks
        )
        with made as (result, tree):
            checkout = None if forecast.checkout is None else find_repository(Path(forecast.checkout))
            moved = replace(
                begun,
                into=forecast.into,
                base_commit=forecast.base_commit,
                result=result,
                checkout=forecast.checkout,
                git_dir=None if checkout is None else str(checkout.git_dir),
            )
            landing.write_down(inner, moved)
            assert landing.land(inner, moved, tree=tree, lock=lock) == ()
        return moved

    def recover(self) -> list[bool]:
        """Do what the next start does; return for each merge that was broken off whether it is done."""
        with landing.alone(self.folder) as lock:
            return [self._settle(inner, written, lock) for inner, written in landing.written_down(self.folder)]

    def _settle(self, inner: Path, written: Landing, lock: int) -> bool:
        merging.remove_aside(self.worktree, inner)
        if not worktrees.is_missing(self.worktree):
            merging.finish_commit(self.worktree, folder=inner)
        has_landed, left = landing.recover(inner, written, lock=lock)
        assert left == ()
        landing.forget(inner)
        return has_landed


def a_merge_place(folder: Path, *, base: str | None = None, **files: str) -> MergePlace:
    """Make a repository with these files in a commit, and a worktree of it."""
    repository = a_repository(folder / "api", **files)
    git(repository, "config", "user.name", "Ann")
    git(repository, "config", "user.email", "ann@example.org")
    worktree = WorktreePlace(folder / "data" / "worktrees").made(repository, base=base)
    return MergePlace(repository, folder / "data" / "merges", worktree)


__all__ = ["MergePlace", "a_merge_place", "commit", "git", "write"]
