"""Real agents in one folder: what one edits by its tool and the other by shell is said of both while both live."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.approvals import RuleDecision
from agentmon.domain.overlaps import OverlapKind
from agentmon.services.actors import USER_ACTOR
from tests.workspaces.worktree_place import commit, write

if TYPE_CHECKING:
    from agentmon.domain.executions import Execution
    from agentmon.domain.overlaps import Overlap
    from tests.agents.drive import Drive

pytestmark = pytest.mark.agents

_HOLDS: dict[str, object] = {"words": 20, "holds": True}
EDITS = "go #mock:" + json.dumps(
    [
        {"tools": [["read", {"path": "edited.txt"}]]},
        {"tools": [["edit", {"path": "edited.txt", "old": "two", "new": "2"}]]},
        _HOLDS,
    ]
)
APPENDS = "go #mock:" + json.dumps([{"tools": [["shell", {"command": "echo more >>edited.txt"}]]}, _HOLDS])


async def test_two_agents_that_touch_one_file_are_said_of_both(drive: Drive) -> None:
    write(drive.project, **{"edited.txt": "one\ntwo\nthree\n", "other.txt": "1\n"})
    commit(drive.project, "first")
    await drive.services.approvals.add_rule(decision=RuleDecision.ALLOW, actor=USER_ACTOR)
    for key, text in (("isolation", "folder"), ("max_per_folder", "0")):
        await drive.services.settings.set(f"workspace.{key}", text, actor=USER_ACTOR, workspace=drive.workspace)

    async def is_edited() -> bool:
        return "2" in (drive.project / "edited.txt").read_text()

    async def overlap_of(execution: Execution) -> Overlap | None:
        found = (await drive.services.executions.get(execution.id)).overlaps
        return next((one for one in found if one.kind is OverlapKind.FOLDER), None)

    first = await drive.start(EDITS)
    await drive.until(is_edited, "the edit of the first")
    second = await drive.start(APPENDS)
    of_first = await drive.until(lambda: overlap_of(first), "the overlap of the first")
    of_second = await drive.until(lambda: overlap_of(second), "the overlap of the second")
    drive.release()
    first, second = await drive.until_over(first), await drive.until_over(second)

    assert (of_first.paths, of_second.paths) == (("edited.txt",), ("edited.txt",))
    assert (of_first.other_id, of_second.other_id) == (second.id, first.id)
    assert (await drive.services.executions.get(first.id)).overlaps == ()
