"""What real agents changed, by their tools and by a shell, is commented on, undone and redone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.diffs import Diff, DiffSide, LineSpan
from agentmon.domain.review_comments import message_text
from agentmon.domain.standing import Standing
from agentmon.services.actors import USER_ACTOR
from tests.agents.drive import require_succeeded
from tests.agents.test_real_conversations import steps

if TYPE_CHECKING:
    from agentmon.domain.executions import Execution
    from agentmon.services.changes import RunChanges
    from tests.agents.drive import Drive

pytestmark = pytest.mark.agents

_MADE = "hello.txt"
_ANSWER = steps({"tools": [["shell", {"command": f"echo bye > {_MADE}"}]]}, {"text": "Changed it."})


async def test_a_comment_changes_what_an_agent_did_and_both_runs_are_undone_and_redone(drive: Drive) -> None:
    changes = drive.services.changes

    async def read(run: Execution) -> tuple[RunChanges, Diff]:
        require_succeeded(run, drive)
        found = await changes.of_run(await drive.services.executions.get(run.id))
        return found, Diff(await changes.patch_of_run(found))

    async def text() -> str | None:
        file = drive.project / _MADE
        return await asyncio.to_thread(lambda: file.read_text() if file.exists() else None)

    run = await drive.allow_all_until_over(await drive.start("go #mock:tools"))
    first, diff = await read(run)
    file = next(one for one in diff.files if one.path == _MADE)
    (name,) = diff.hunk_digests(file)
    comment = await changes.comment_at(first, LineSpan(_MADE, DiffSide.NEW, 1, 1))
    comment = replace(comment, text=f"rather say bye {_ANSWER}")
    await changes.write_comment(comment, actor=USER_ACTOR)
    if drive.agent.slug == "gemini":
        # It may not find its own conversation again, and begins another one.
        began = await drive.services.queue.run(
            run.task_id,
            actor=USER_ACTOR,
            environ=drive.agent.environ,
            message=message_text([comment]),
            comment_ids=[comment.id],
        )
    else:
        task = await drive.services.tasks.get(run.task_id)
        began = (await changes.send_comments(task, actor=USER_ACTOR))[0].execution
    second, answer = await read(await drive.allow_all_until_over(began))

    assert (comment.quoted, comment.digest) == (diff.lines(file.hunks[0]).text(0), name)
    assert f"{_MADE}:1\n> {comment.quoted}\nrather say bye" in drive.texts(second.execution, "user")[-1]
    assert (await text(), [one.path for one in answer.files]) == ("bye\n", [_MADE])
    assert (await changes.standings(first, diff))[name] is Standing.CHANGED
    await changes.undo(second.execution, await changes.plan_undo(second), actor=USER_ACTOR)
    assert (await text(), (await changes.standings(first, diff)).get(name)) == ("hello\n", None)
    await changes.undo(first.execution, await changes.plan_undo(first), actor=USER_ACTOR)
    assert (await text(), (await changes.standings(first, diff))[name]) == (None, Standing.TAKEN_BACK)
    await changes.undo(first.execution, await changes.plan_redo(run.task_id), actor=USER_ACTOR)
    assert (await text(), (await changes.standings(first, diff)).get(name)) == ("hello\n", None)
