"""Real agents in each sandbox: they work, keep their own things, call agentmon, and see and write nothing else."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.activity import Activity
from agentmon.domain.sandboxes import Sandbox
from agentmon.runners.sandbox.trial import find_sandbox_problem
from agentmon.services.actors import USER_ACTOR
from tests.agents.drive import require_succeeded
from tests.agents.test_real_limits import shell, steps
from tests.agents.test_states import DONE_NOTE, until_noted

if TYPE_CHECKING:
    from tests.agents.drive import Drive

pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(bool(find_sandbox_problem()), reason="this machine gives an ordinary user no sandbox"),
]


@pytest.mark.parametrize("sandbox", [Sandbox.AGENTMON, Sandbox.PROJECT])
async def test_an_agent_works_in_a_sandbox(drive: Drive, sandbox: Sandbox) -> None:
    data, outside = drive.services.paths.data_dir, f"/var/lib/agentmon-outside-{drive.project.parent.name}"
    agentmon = shlex.join([sys.executable, "-P", "-m", "agentmon"])
    looks = (
        f"find {data} -name '*.db*' > seen; touch {outside} 2> refused; "
        f"{agentmon} task list --json > tasks 2> called; echo $? > code; echo made > made"
    )
    task = await drive.add(steps(shell(looks), {"text": "Done."}), capability_key="work")
    started = await drive.services.queue.run(task.id, actor=USER_ACTOR, environ=drive.agent.environ, sandbox=sandbox)

    ended = await drive.allow_all_until_over(started)

    require_succeeded(ended, drive)
    assert ended.sandbox is sandbox
    assert (drive.project / "made").read_text() == "made\n"
    assert (drive.project / "seen").read_text() == ""
    assert drive.texts(ended, "assistant")[-1] == "Done."
    assert drive.rows("llm_interactions", ended)
    if sandbox is Sandbox.PROJECT:
        assert (drive.project / "refused").read_text() != ""
    said = (drive.project / "called").read_text()
    # Codex lets a command in its own sandbox make no connection.
    expected = "1\n" if "own sandbox forbids" in said else "0\n"
    assert (drive.project / "code").read_text() == expected, said


@pytest.mark.parametrize("sandbox", [Sandbox.AGENTMON, Sandbox.PROJECT])
async def test_an_own_screen_works_in_a_sandbox(drive: Drive, sandbox: Sandbox) -> None:
    more = {"permission_mode": "ask"} if drive.agent.slug == "codex" else {}
    task = await drive.add("say hello #mock:plain", capability_key="screen", **more)

    started = await drive.services.queue.run(task.id, actor=USER_ACTOR, environ=drive.agent.environ, sandbox=sandbox)
    await until_noted(drive, started, Activity.WAITING, DONE_NOTE)
    await drive.services.conversations.finish(task.id, actor=USER_ACTOR)
    ended = await drive.until_over(started)

    require_succeeded(ended, drive)
    assert ended.sandbox is sandbox

    async def is_read() -> bool:
        return bool(drive.texts(ended, "assistant"))

    # Claude Code and Codex write it down in a file, which the worker reads a moment later.
    await drive.until(is_read, "what it said")
