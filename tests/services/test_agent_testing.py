"""A test of an agent: its program answers in a box, and each thing in the way is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.domain.agent_changes import AgentChanges
from agentmon.services.actors import USER_ACTOR

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from tests.live_home import LiveHome


async def test_a_program_tells_its_version_and_what_is_in_the_way_is_told(
    services: Services, live_home: LiveHome
) -> None:
    program = live_home.folder / "lint"
    program.write_text('#!/bin/sh\ntouch "$HOME/here"\necho "lint $1 4.2.0"\n')
    program.chmod(0o755)
    folder = live_home.folder / "gone"
    folder.mkdir()
    agents = services.agents
    await agents.add_program(str(program), actor=USER_ACTOR)
    fine = await agents.test_run("lint")
    await agents.edit("lint", AgentChanges(working_dir=str(folder), is_active=False), actor=USER_ACTOR)
    folder.rmdir()

    bad = await agents.test_run("lint")
    program.unlink()
    gone = await agents.test_run("lint")

    assert (fine.found_path, fine.version, fine.is_fine) == (str(program), "4.2.0", True)
    assert (await agents.by_slug("lint")).version == "4.2.0"
    assert bad.problems == ("it is switched off", f"its folder {folder} is not there")
    assert gone.problems[0].startswith(f"{program} ")
