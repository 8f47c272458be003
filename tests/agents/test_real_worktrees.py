"""Real agents in one repository: the second works in a git worktree of its own, and so does what follows."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import ConflictError
from agentmon.domain.executions import ConversationStart
from agentmon.domain.merges import MergeConflictsError, solve_text
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.worktrees import Isolation
from agentmon.services.actors import USER_ACTOR
from tests.agents.drive import require_succeeded
from tests.agents.test_real_conversations import ASKS, MADE
from tests.workspaces.worktree_place import commit, git, write

if TYPE_CHECKING:
    from tests.agents.drive import Drive

pytestmark = pytest.mark.agents


async def test_the_second_of_two_agents_in_one_repository_works_beside_the_first(drive: Drive) -> None:
    write(drive.project, readme="hello\n")
    commit(drive.project, "first")
    # Of two agents that make their home at the same time one may fail.
    require_succeeded(await drive.allow_all_until_over(await drive.start("go #mock:plain")), drive)
    first = await drive.start("go #mock:slow")

    async def has_begun() -> bool:
        return (await drive.services.executions.get(first.id)).pid is not None

    await drive.until(has_begun, "the start of the first")
    second = await drive.allow_all_until_over(await drive.start(ASKS[drive.agent.slug]))
    require_succeeded(second, drive)
    again = await drive.services.queue.run(
        second.task_id,
        actor=USER_ACTOR,
        environ=drive.agent.environ,
        message="say hello #mock:plain",
        start=ConversationStart.FRESH if drive.agent.slug == "gemini" else ConversationStart.RESUME,
        parent_execution_id=None if drive.agent.slug == "gemini" else second.id,
    )
    again = await drive.until_over(again)
    with contextlib.suppress(ConflictError):
        # It may be over by itself.
        await drive.services.queue.stop(first.task_id, actor=USER_ACTOR, kill=True)
    first = await drive.until_over(first)

    require_succeeded(again, drive)
    tree = await drive.services.worktrees.of_task(second.task_id)
    assert tree is not None
    assert (first.working_dir, second.working_dir) == (str(drive.project), tree.path)
    assert (again.worktree_id, again.working_dir) == (tree.id, tree.path)
    assert Path(tree.path, MADE[drive.agent.slug]).exists()
    assert not (drive.project / MADE[drive.agent.slug]).exists()
    assert drive.texts(again, "assistant")[-1] == "Hello from the mock model."
    assert git(drive.project, "status", "--porcelain", "--untracked-files=all", "--", MADE[drive.agent.slug]) == ""


async def test_conflicts_go_to_the_agent_and_its_branch_is_merged_behind_them(drive: Drive) -> None:
    write(drive.project, readme="hello\n")
    commit(drive.project, "first")
    for key, text in (("user.name", "Ann"), ("user.email", "ann@example.org")):
        git(drive.project, "config", key, text)
    task = await drive.add(ASKS[drive.agent.slug])
    run = await drive.services.queue.run(
        task.id, actor=USER_ACTOR, environ=drive.agent.environ, isolation=Isolation.WORKTREE
    )
    run = await drive.allow_all_until_over(run)
    require_succeeded(run, drive)
    tree = Path(run.working_dir or "")
    write(tree, readme="the agent's\n")
    write(drive.project, readme="mine\n")
    commit(drive.project, "meanwhile")
    merges = drive.services.merges

    with pytest.raises(MergeConflictsError) as refused:
        await merges.merge(task, actor=USER_ACTOR)
    if drive.agent.slug == "gemini":
        # It cannot resume: a fresh conversation gets the history, as on the screens.
        session = (await drive.services.sessions.of_task(task.id))[0]
        asked = await drive.services.sessions.restart(
            session.id, solve_text(refused.value.forecast) + " #mock:plain", actor=USER_ACTOR
        )
    else:
        asked = (await merges.ask_to_solve(task, refused.value.forecast, actor=USER_ACTOR)).execution
    asked = await drive.allow_all_until_over(asked)
    told = drive.texts(asked, "user")

    assert asked.working_dir == run.working_dir
    assert any("- readme (contents)" in text for text in told), told
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message", "work")
    git(tree, "merge", "--quiet", "--strategy-option", "ours", "--message", "solved", refused.value.forecast.into)
    merged = await merges.merge(task, actor=USER_ACTOR)
    assert git(drive.project, "rev-parse", "HEAD") == merged.commit
    assert (drive.project / "readme").read_text() == "the agent's\n"
    assert (drive.project / MADE[drive.agent.slug]).exists()
    assert (await drive.services.tasks.get(task.id)).status is TaskStatus.DONE
