"""Pull requests for the branches of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.domain.errors import ConflictError
from agentmon.domain.ids import PullRequestId, new_id
from agentmon.domain.pull_requests import PullRequest, PullRequestProgram, PullRequestStatus
from agentmon.threads import in_daemon_thread
from agentmon.workspaces import forges, merging

if TYPE_CHECKING:
    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.ids import TaskId
    from agentmon.domain.tasks import Task
    from agentmon.domain.worktrees import Worktree
    from agentmon.services.merges import MergeService
    from agentmon.store.pull_requests import PullRequestRepository
    from agentmon.workspaces.forges import Pushed


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPullRequest:
    """What came of it."""

    pull_request: PullRequest
    pushed: Pushed
    is_new: bool
    """Whether it was opened now; one that was open already got the new commits."""
    has_committed: bool
    """Whether something was uncommitted, and was committed first."""


class PullRequestService:
    """Opens pull requests, and says what became of them."""

    def __init__(self, *, repository: PullRequestRepository, merges: MergeService, clock: Clock) -> None:
        self._pull_requests = repository
        self._merges = merges
        self._clock = clock

    async def of_task(self, task_id: TaskId) -> PullRequest | None:
        """Return the newest one of a task, as its server said last; None for none."""
        return await self._pull_requests.of_task(task_id)

    async def open(
        self,
        task: Task,
        *,
        title: str | None = None,
        body: str | None = None,
        base: str | None = None,
        is_draft: bool = False,
        actor: Actor,
    ) -> OpenedPullRequest:
        """Push the task's branch and open a pull request for it: with ``gh`` or ``glab``, else it is only pushed.

        What is uncommitted in its worktree is committed first. Nothing is ever pushed by force.

        Args:
            task: Whose branch.
            title: None for the title of the task.
            body: None for what the agent said last.
            base: The branch that is to get it; None for the one from which it was made.
            is_draft: Whether it is not ready yet.
            actor: Who asks.

        Raises:
            NotFoundError: The task has no worktree.
            ConflictError: There is no remote or nothing to propose, the program refused, or an agent asks.
            GitError: A hook or the server refused.
        """
        worktree = await self._merges.worktree_of(task)
        into = base or worktree.base_branch
        if into is None:
            raise ConflictError(
                f"#{task.number} was made from a detached head, and so has no base",
                hint=f"name one: agentmon pr {task.number} --base main",
            )
        proposed = await self._merges.message(task, worktree.branch)
        subject, _, rest = proposed.partition("\n")
        folder = Path(worktree.path)
        remote = await in_daemon_thread(partial(forges.find_remote, folder, into), name="remote")
        has_committed = await self._merges.commit_left_over(worktree, proposed)
        await in_daemon_thread(partial(_require_commits, worktree, remote, into), name="commits")
        pushing = partial(forges.push, folder, remote, worktree.branch, beside=Path(worktree.source))
        pushed = await in_daemon_thread(pushing, name="push")
        program = await in_daemon_thread(partial(forges.find_program, folder, remote), name="forge")
        number, url, status, is_new = None, pushed.url or pushed.address, PullRequestStatus(), True
        if program is not PullRequestProgram.GIT:
            opening = partial(
                forges.open_pull_request,
                folder,
                program,
                branch=worktree.branch,
                base=into,
                title=title or subject,
                body=rest.strip() if body is None else body,
                is_draft=is_draft,
            )
            opened = await in_daemon_thread(opening, name="pull request")
            number, url, status, is_new = opened.number, opened.url, opened.status, opened.is_new
        pull_request = PullRequest(
            id=PullRequestId(new_id()),
            task_id=task.id,
            program=program,
            folder=worktree.source,
            branch=worktree.branch,
            base=into,
            url=url,
            number=number,
            status=status,
            created_at=self._clock.now(),
        )
        await self._pull_requests.add(pull_request, actor=actor)
        return OpenedPullRequest(pull_request=pull_request, pushed=pushed, is_new=is_new, has_committed=has_committed)


def _require_commits(worktree: Worktree, remote: str, base: str) -> None:
    """Refuse a branch that has nothing of its own.

    Raises:
        ConflictError: It has not.
    """
    if not merging.has_commits_beyond(worktree, (f"refs/remotes/{remote}/{base}", f"refs/heads/{base}")):
        raise ConflictError(
            f"{worktree.branch} has no commit that {base} does not have", hint="`agentmon changes` shows what was done"
        )
