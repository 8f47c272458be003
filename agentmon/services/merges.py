"""Merging what a task's branch has into its base in the person's own repository, and taking that back by a commit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.merges import (
    Forecast,
    MergeConflictsError,
    Merged,
    MergeHow,
    few,
    proposed_message,
    solve_text,
    trailer_lines,
)
from agentmon.domain.plain_text import plain_line
from agentmon.domain.worktrees import WorktreeStatus
from agentmon.paths import find_workspace_root
from agentmon.private_folders import make_private_folder
from agentmon.settings import MergeSettings, load_settings
from agentmon.threads import to_its_end
from agentmon.workspaces import landing, merging, worktrees
from agentmon.workspaces.landing import BaseMovedError, Landing
from agentmon.workspaces.repositories import find_repository

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.domain.events import Actor
    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Task
    from agentmon.domain.worktrees import Worktree
    from agentmon.paths import Paths
    from agentmon.services.conversations import ConversationService, SentMessage
    from agentmon.store.changes import ChangeRepository
    from agentmon.store.conversations import ConversationRepository
    from agentmon.store.executions import ExecutionRepository
    from agentmon.store.setting_rows import SettingRepository
    from agentmon.store.worktrees import WorktreeRepository
    from agentmon.worker.merge_finishing import CleanedUp, MergeFinisher

_Found = TypeVar("_Found")
_MOST_TRIES: Final = 5
"""How often a merge is foretold again because its base moved meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """A merge, or taking one back, that is not done yet."""

    worktree: Worktree
    forecast: Forecast
    message: str
    """That is proposed for the commit; a rebase keeps those of the branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """A merge, or taking one back, that is done."""

    worktree: Worktree
    forecast: Forecast
    commit: str
    """The tip of the base."""
    left_alone: tuple[str, ...]
    """Files that somebody changed in the very moment, and that stay as they made them."""
    cleaned_up: CleanedUp


class MergeService:
    """Foretells merges, does them, and takes them back."""

    def __init__(
        self,
        *,
        worktrees: WorktreeRepository,
        executions: ExecutionRepository,
        changes: ChangeRepository,
        conversations: ConversationRepository,
        talking: ConversationService,
        settings: SettingRepository,
        finisher: MergeFinisher,
        paths: Paths,
    ) -> None:
        self._worktrees = worktrees
        self._executions = executions
        self._changes = changes
        self._conversations = conversations
        self._talking = talking
        self._settings = settings
        self._finisher = finisher
        self._paths = paths

    async def default_how(self) -> MergeHow:
        """Return how branches are merged where nobody says."""
        return MergeHow((await self._read_settings()).how)

    async def worktree_of(self, task: Task) -> Worktree:
        """Return the worktree of a task in which nothing works.

        Raises:
            NotFoundError: It has none.
            ConflictError: A run works there, or will.
        """
        number = task.number
        newest = await self._executions.of_task(task.id, limit=1)
        if newest and newest[0].status.is_open:
            raise ConflictError(
                f"a run of #{number} works on it, or waits in the queue",
                hint=f"merge when it has ended; `agentmon stop {number}` ends it",
            )
        found = await self._worktrees.of_task(task.id)
        if not found:
            merged = await self._worktrees.merged_of_task(task.id)
            if merged is not None and merged.merged is not None:
                raise NotFoundError(
                    f"#{number} was merged into {merged.merged.into} as {merged.merged.commit[:10]}",
                    hint=f"`agentmon merge {number} --undo` takes that back",
                )
            raise NotFoundError(
                f"#{number} has no branch of its own: it works in the folder itself",
                hint=f"commit there; `agentmon task edit {number} --isolation worktree` gives its next run a worktree",
            )
        worktree = found[0]
        worktrees.require_own(worktree, self._paths.worktrees_dir)
        if worktree.status is not WorktreeStatus.READY:
            raise ConflictError(
                f"the worktree of #{number} is not ready: {worktree.error or worktree.status.value}",
                hint=f"`agentmon run {number}` makes it",
            )
        return worktree

    async def plan(self, task: Task, *, how: MergeHow | None = None, into: str | None = None) -> MergePlan:
        """Return what merging the task's branch would do; nothing is touched.

        Args:
            task: Whose branch.
            how: What becomes of its commits; None for the setting.
            into: The branch that gets it; None for the one from which it was made.

        Raises:
            NotFoundError: The task has no worktree.
            ConflictError: It cannot be merged as things are; the hint says what to do.
            GitError: git is too old, or failed.
        """
        worktree = await self.worktree_of(task)
        chosen = how or await self.default_how()
        forecast = await _in_thread(partial(merging.foretell, worktree, into=into, how=chosen))
        return MergePlan(worktree=worktree, forecast=forecast, message=await self.message(task, worktree.branch))

    async def message(self, task: Task, branch: str, text: str | None = None) -> str:
        """Return the commit message that is proposed for a task.

        Args:
            task: Whose title begins it.
            branch: That is merged.
            text: What a person wrote instead of title and summary; it gets the trailers that it does not have.
        """
        template = (await self._read_settings()).trailers
        trailers = trailer_lines(template, number=task.number, title=task.title, branch=branch)
        if text is None:
            return proposed_message(task.title, await self._conversations.last_answer(task.id), trailers)
        missing = [line for line in trailers if line not in text.splitlines()]
        return "\n\n".join(part for part in (text.rstrip(), "\n".join(missing)) if part) + "\n"

    async def merge(
        self,
        task: Task,
        *,
        how: MergeHow | None = None,
        into: str | None = None,
        message: str | None = None,
        runs_hooks: bool = True,
        actor: Actor,
    ) -> MergeResult:
        """Merge the task's branch: all of it, or nothing.

        What is uncommitted in its worktree is committed on it first. Behind it the worktree goes, where nothing is lost
        with it, and the card moves to Done.

        Args:
            task: Whose branch.
            how: What becomes of its commits; None for the setting.
            into: The branch that gets it; None for the one from which it was made.
            message: Of the commit; None for the one that is proposed.
            runs_hooks: Whether the hooks of the person run.
            actor: Who merges.

        Raises:
            NotFoundError: The task has no worktree.
            MergeConflictsError: git cannot merge some files by itself; nothing was done.
            ConflictError: It cannot be merged as things are, or an agent asks; nothing was done.
            SnapshotError: A hook refused, git failed, or a file could not be written; nothing was merged.
        """
        worktree = await self.worktree_of(task)
        chosen = how or await self.default_how()
        text = message if message is not None else await self.message(task, worktree.branch)
        folder = self._paths.merges_dir / worktree.id

        def foretell() -> Forecast:
            forecast = merging.foretell(worktree, into=into, how=chosen)
            self._require_possible(worktree, forecast)
            merging.require_identity(Path(worktree.path))
            if forecast.uncommitted:
                merging.commit_all(worktree, text, folder=folder, runs_hooks=runs_hooks)
                committed = merging.foretell(worktree, into=into, how=chosen)
                self._require_possible(worktree, committed)
                forecast = replace(committed, uncommitted=forecast.uncommitted)
            return forecast

        return await self._do(worktree, foretell, text, runs_hooks=runs_hooks, actor=actor)

    async def plan_undo(self, task: Task) -> MergePlan:
        """Return what a commit that takes the task's merge back would do; nothing is touched.

        Raises:
            NotFoundError: The task was not merged.
            ConflictError: It is taken back already, or cannot be as things are.
            GitError: git is too old, or failed.
        """
        worktree, merged = await self._merged(task)
        forecast = await _in_thread(partial(merging.foretell_undo, worktree, merged))
        what = f"This reverts commit {merged.commit}."
        if merged.how is not MergeHow.SQUASH:
            what = f"This reverts {merged.before}..{merged.commit}."
        return MergePlan(worktree=worktree, forecast=forecast, message=f'Revert "{task.title}"\n\n{what}\n')

    async def undo(
        self, task: Task, *, message: str | None = None, runs_hooks: bool = True, actor: Actor
    ) -> MergeResult:
        """Take the merge of a task back by a commit on its base; nothing is rewritten.

        Raises:
            NotFoundError: The task was not merged.
            MergeConflictsError: What came since is in the way; nothing was done.
            ConflictError: It cannot be taken back as things are, or an agent asks; nothing was done.
            SnapshotError: A hook refused, git failed, or a file could not be written; nothing was done.
        """
        worktree, merged = await self._merged(task)
        text = message if message is not None else (await self.plan_undo(task)).message

        def foretell() -> Forecast:
            forecast = merging.foretell_undo(worktree, merged)
            self._require_possible(worktree, forecast)
            merging.require_identity(Path(forecast.checkout or worktree.repository or "/"))
            return forecast

        return await self._do(worktree, foretell, text, undone=merged, runs_hooks=runs_hooks, actor=actor)

    async def ask_to_solve(self, task: Task, forecast: Forecast, *, actor: Actor) -> SentMessage:
        """Let the task's agent solve the conflicts of a merge in its worktree, in the same conversation.

        Raises:
            UsageError: The task has had no conversation.
            AgentmonError: It cannot go on; see ``ConversationService.send``.
        """
        return await self._talking.send(task.id, solve_text(forecast), actor=actor)

    async def require_unmerged(self, execution: Execution) -> None:
        """Refuse to take back files of a run whose worktree was merged and is gone.

        Raises:
            ConflictError: It was; the hint says what takes it back.
        """
        if execution.worktree_id is None:
            return
        worktree = await self._worktrees.get(execution.worktree_id)
        merged = worktree.merged
        if merged is not None and merged.reverted_by is None and worktree.status is WorktreeStatus.REMOVED:
            raise ConflictError(
                f"#{worktree.task_number} was merged into {merged.into} as {merged.commit[:10]}",
                hint=f"`agentmon merge {worktree.task_number} --undo` reverts that",
            )

    async def commit_left_over(self, worktree: Worktree, message: str) -> bool:
        """Commit what is uncommitted in a worktree on its branch; return whether there was any.

        Raises:
            ConflictError: git does not know who commits, or another merge is at work.
            GitError: A hook refused, or git failed.
        """
        folder = self._paths.merges_dir / worktree.id

        def commit() -> bool:
            merging.require_identity(Path(worktree.path))
            make_private_folder(folder)
            try:
                return merging.commit_all(worktree, message, folder=folder, runs_hooks=True)
            finally:
                landing.forget(folder)

        with landing.alone(self._paths.merges_dir) as lock:
            await self._finisher.recover_alone(lock)
            return await _in_thread(commit)

    async def _do(
        self,
        worktree: Worktree,
        foretell: Callable[[], Forecast],
        message: str,
        *,
        undone: Merged | None = None,
        runs_hooks: bool,
        actor: Actor,
    ) -> MergeResult:
        folder = self._paths.merges_dir / worktree.id
        with landing.alone(self._paths.merges_dir) as lock:
            await self._finisher.recover_alone(lock)
            for tries_left in reversed(range(_MOST_TRIES)):
                begun = Landing(
                    worktree_id=worktree.id,
                    repository=worktree.repository or "",
                    into="",
                    base_commit="",
                    details={"how": "", "actor_type": actor.type.value, "actor_id": actor.id or ""},
                )
                try:
                    await _in_thread(partial(landing.write_down, folder, begun))
                    forecast = await _in_thread(foretell)
                    await self._require_quiet(forecast)
                    moving = partial(_move, worktree, forecast, begun, message, undone, folder, lock, runs_hooks)
                    done, left = await _in_thread(moving)
                except BaseMovedError:
                    await _in_thread(partial(landing.forget, folder))
                    if not tries_left:
                        raise
                except (Exception, asyncio.CancelledError):
                    await _in_thread(partial(landing.forget_undone, folder))
                    raise
                else:
                    cleaned_up = await self._finisher.finish(folder, done)
                    await _in_thread(partial(landing.run_post_merge, done))
                    return MergeResult(
                        worktree=worktree,
                        forecast=forecast,
                        commit=done.result,
                        left_alone=left,
                        cleaned_up=cleaned_up,
                    )
        raise AssertionError("the last try returns or raises")

    async def _merged(self, task: Task) -> tuple[Worktree, Merged]:
        worktree = await self._worktrees.merged_of_task(task.id)
        if worktree is None or worktree.merged is None:
            raise NotFoundError(
                f"#{task.number} was not merged", hint=f"`agentmon undo {task.number}` undoes what a run changed"
            )
        if worktree.merged.reverted_by is not None:
            raise ConflictError(
                f"the merge of #{task.number} was undone already, by {worktree.merged.reverted_by[:10]}",
                hint=f"git revert {worktree.merged.reverted_by[:10]} brings it back",
            )
        return worktree, worktree.merged

    async def _require_quiet(self, forecast: Forecast) -> None:
        """Refuse while a run works in the folder whose files would change."""
        for number, folder in await self._changes.folders_at_work():
            if forecast.checkout is not None and find_workspace_root(Path(folder)) == Path(forecast.checkout):
                raise ConflictError(
                    f"#{number} works in {folder}, where {forecast.into} is checked out",
                    hint=f"merge when it has ended; `agentmon stop {number}` ends it",
                )

    def _require_possible(self, worktree: Worktree, forecast: Forecast) -> None:
        number = worktree.task_number
        if forecast.conflicts:
            hint = f"`agentmon merge {number} --solve` asks its agent to resolve them"
            if forecast.how is None:
                hint = f"what came since is in the way; git revert in {forecast.checkout or worktree.source} shows it"
            raise MergeConflictsError(forecast, hint=hint)
        if forecast.blocked:
            names = few([plain_line(path) for path in forecast.blocked])
            raise ConflictError(
                f"the merge would overwrite local changes in {forecast.checkout}: {names}",
                hint="commit them, or put them aside with git stash; then merge again",
            )

    async def _read_settings(self) -> MergeSettings:
        return load_settings(MergeSettings, self._paths.settings_file, await self._settings.all())


async def _in_thread(work: Callable[[], _Found]) -> _Found:
    """Return what the work returns; a caller that is cancelled waits for its end, since git would go on anyway."""
    return await to_its_end(asyncio.to_thread(work))


def _move(
    worktree: Worktree,
    forecast: Forecast,
    begun: Landing,
    message: str,
    undone: Merged | None,
    folder: Path,
    lock: int,
    runs_hooks: bool,
) -> tuple[Landing, tuple[str, ...]]:
    """Make the commit, and move the base there; return what has moved, and the files that were left alone."""
    making = merging.made_aside(
        worktree, forecast, message=message, undone=undone, folder=folder, lock=lock, runs_hooks=runs_hooks
    )
    with making as (commit, tree):
        checkout = None if forecast.checkout is None else find_repository(Path(forecast.checkout))
        moved = replace(
            begun,
            into=forecast.into,
            base_commit=forecast.base_commit,
            result=commit,
            checkout=forecast.checkout,
            git_dir=None if checkout is None else str(checkout.git_dir),
            details={**begun.details, "how": forecast.how.value if forecast.how is not None else ""},
        )
        landing.write_down(folder, moved)
        return moved, landing.land(folder, moved, tree=tree, lock=lock)
