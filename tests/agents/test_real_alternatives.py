"""A real agent does one task twice, side by side, and one of the two is taken."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.task_status import TaskStatus
from agentmon.services.actors import USER_ACTOR
from tests.agents.drive import require_succeeded
from tests.agents.test_real_conversations import ASKS, MADE
from tests.workspaces.worktree_place import commit, git, write

if TYPE_CHECKING:
    from tests.agents.drive import Drive

pytestmark = pytest.mark.agents


async def test_what_was_done_twice_is_compared_and_one_is_merged_and_the_other_let_go(drive: Drive) -> None:
    write(drive.project, readme="hello\n")
    commit(drive.project, "first")
    for key, text in (("user.name", "Ann"), ("user.email", "ann@example.org")):
        git(drive.project, "config", key, text)
    services, made = drive.services, MADE[drive.agent.slug]
    # Of two Codex that make their home at the same time one fails.
    require_succeeded(await drive.allow_all_until_over(await drive.start("go #mock:plain")), drive)
    task = await drive.add(ASKS[drive.agent.slug])
    first = await services.queue.run(task.id, actor=USER_ACTOR, environ=drive.agent.environ, also=[drive.agent.slug])
    runs = [await drive.allow_all_until_over(run) for run in await services.queue.queued_with(first)]
    for run in runs:
        require_succeeded(run, drive)
    Path(runs[1].working_dir or "", made).write_text("otherwise\n")
    found = [await services.changes.of_run(run) for run in runs]
    between = await services.changes.between(*found)
    cards = await services.board.alternatives(task.id)
    await services.merges.merge(task, actor=USER_ACTOR)
    left = await services.queue.let_go(task.id, actor=USER_ACTOR)

    assert len({run.working_dir for run in runs}) == 2
    assert [[one.path for one in changes.files] for changes in found] == [[made], [made]]
    assert between.files == (), "what the run left counts, and not what came after it"
    assert [card.status for card in cards] == [TaskStatus.REVIEW, TaskStatus.REVIEW]
    assert [card.changed_files for card in cards] == [1, 1]
    assert (drive.project / made).exists()
    assert [one.id for one in left] == [runs[1].task_id]
    assert (await services.tasks.get(runs[1].task_id)).status is TaskStatus.CANCELLED
    assert Path(runs[1].working_dir or "", made).exists()
