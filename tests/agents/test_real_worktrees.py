"""Real agents in one repository: the second works in a git worktree of its own, and so does what follows."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import ConflictError
from agentmon.domain.executions import ConversationStart
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
    first = await drive.start("go #mock:slow")

    async def has_begun() -> bool:
        return (await drive.services.executions.get(first.id)).pid is not None

    await drive.until(has_begun, "the start of the first")
    second = await drive.allow_all_until_over(await drive.start(ASKS[drive.agent.slug]))
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

    require_succeeded(second, drive)
    require_succeeded(again, drive)
    tree = await drive.services.worktrees.of_task(second.task_id)
    assert tree is not None
    assert (first.working_dir, second.working_dir) == (str(drive.project), tree.path)
    assert (again.worktree_id, again.working_dir) == (tree.id, tree.path)
    assert Path(tree.path, MADE[drive.agent.slug]).exists()
    assert not (drive.project / MADE[drive.agent.slug]).exists()
    assert drive.texts(again, "assistant")[-1] == "Hello from the mock model."
    assert git(drive.project, "status", "--porcelain", "--untracked-files=all", "--", MADE[drive.agent.slug]) == ""
