"""What each tool call of a real agent changed: by its own tools and by its shell, told apart and taken back alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agentmon.domain.changes import ChangeType
from agentmon.services.actors import USER_ACTOR
from tests.agents.drive import require_succeeded
from tests.agents.test_real_conversations import steps
from tests.workspaces.folders import files_of
from tests.workspaces.worktree_place import commit, write

if TYPE_CHECKING:
    from agentmon.domain.executions import Execution
    from tests.agents.drive import Drive

pytestmark = pytest.mark.agents


async def allow_each_when_the_one_before_is_recorded(drive: Drive, started: Execution) -> Execution:
    """Allow all that is asked, as slowly as a model answers, and return the run when it is over."""

    async def is_over() -> Execution | None:
        calls = [call for call, _ in await drive.services.changes.of_calls(started)]
        if all(call.changes is not None or call.finished_at is None for call in calls):
            for listing in await drive.services.approvals.inbox(None):
                await drive.allow(listing)
        found = await drive.services.executions.get(started.id)
        return None if found.status.is_open else found

    ended: Execution = await drive.until(is_over, "the end of the run")
    return ended


async def test_each_call_has_what_it_changed_and_is_taken_back_alone(drive: Drive) -> None:
    write(drive.project, **{"kept.txt": "one\ntwo\nthree\n", "old.txt": "old\n"})
    commit(drive.project, "first")
    asked: list[dict[str, Any]] = [
        {"text": "I write.", "tools": [["write", {"path": "new.txt", "content": "new\nlines\n"}]]},
        {"text": "I run.", "tools": [["shell", {"command": "rm old.txt; echo four >>kept.txt; echo made >made.txt"}]]},
        {"text": "I run again.", "tools": [["shell", {"command": "echo more >>made.txt"}]]},
        {"text": "Done."},
    ]
    ended = await allow_each_when_the_one_before_is_recorded(drive, await drive.start(f"go {steps(*asked)}"))

    require_succeeded(ended, drive)
    found = await drive.services.changes.of_calls(ended)
    changed = [{one.path: one.change_type for one in files} for _, files in found]
    assert changed == [
        {"new.txt": ChangeType.CREATE},
        {"old.txt": ChangeType.DELETE, "kept.txt": ChangeType.MODIFY, "made.txt": ChangeType.CREATE},
        {"made.txt": ChangeType.MODIFY},
    ]
    assert all(one.can_undo for _, files in found for one in files)

    now = files_of(drive.project)
    for number, left in ((1, {"new.txt"}), (3, set[str]())):
        plan = await drive.services.changes.plan_undo_of_call(ended, number)
        await drive.services.changes.undo(ended, plan, actor=USER_ACTOR)
        assert now.keys() - files_of(drive.project).keys() == left
        await drive.services.changes.undo(
            ended, await drive.services.changes.plan_redo(ended.task_id), actor=USER_ACTOR
        )
        assert files_of(drive.project) == now


@pytest.mark.only("claude", "opencode")  # Codex names no file before it writes it, Gemini CLI opens no ignored one.
async def test_an_ignored_file_that_an_agent_reads_and_edits_comes_back(drive: Drive) -> None:
    write(drive.project, **{".gitignore": ".env\n", ".env": "secret=one\n"})
    commit(drive.project, "first")
    (drive.project / ".env").chmod(0o600)
    before = files_of(drive.project)
    asked: list[dict[str, Any]] = [
        {"text": "I read.", "tools": [["read", {"path": str(drive.project / ".env")}]]},
        {"text": "I edit.", "tools": [["edit", {"path": str(drive.project / ".env"), "old": "one", "new": "two"}]]},
        {"text": "Done."},
    ]
    ended = await allow_each_when_the_one_before_is_recorded(drive, await drive.start(f"go {steps(*asked)}"))

    require_succeeded(ended, drive)
    assert (drive.project / ".env").read_text() == "secret=two\n"
    plan = await drive.services.changes.plan_undo(await drive.services.changes.of_run(ended))
    await drive.services.changes.undo(ended, plan, actor=USER_ACTOR)
    assert files_of(drive.project) == before
