"""What stands in the registry counts when a run starts, also for a worker that runs already."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.agent_changes import AgentChanges
from agentmon.domain.errors import AgentNotInstalledError, UsageError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import WorkspaceId
from agentmon.services.actors import USER_ACTOR
from agentmon.services.demo_agent import DEMO_AGENT_SLUG, make_demo_agent
from tests.live_home import add_command

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Workspace
    from tests.live_home import LiveHome


async def test_a_change_reaches_a_worker_that_runs_and_a_run_that_waits(
    services: Services, workspace: Workspace, live_home: LiveHome
) -> None:
    folder = live_home.folder / "elsewhere"
    folder.mkdir()
    agents = services.agents
    await agents.add_program("touch", actor=USER_ACTOR)
    task = await add_command(services, workspace, "true")
    words = {"agent_slug": "touch", "actor": USER_ACTOR}
    first = await services.queue.run(task.id, args={"words": ["first"]}, **words)  # type: ignore[arg-type]
    assert (await services.queue.wait(first.id)).status is ExecutionStatus.SUCCEEDED
    await services.queue.pause(actor=USER_ACTOR)
    second = await services.queue.run(task.id, args={"words": ["second"]}, **words)  # type: ignore[arg-type]

    await agents.disable("touch", actor=USER_ACTOR)
    await agents.edit("touch", AgentChanges(working_dir=str(folder)), actor=USER_ACTOR)
    await services.queue.resume(actor=USER_ACTOR)

    with pytest.raises(UsageError, match="touch is switched off"):
        await services.queue.run(task.id, **words)  # type: ignore[arg-type]
    other = await add_command(services, workspace, "true")
    assert (await services.queue.wait((await services.queue.run(other.id, actor=USER_ACTOR)).id)).exit_code == 0
    assert (await services.executions.get(second.id)).status is ExecutionStatus.QUEUED
    await agents.enable("touch", actor=USER_ACTOR)
    assert (await services.queue.wait(second.id)).status is ExecutionStatus.SUCCEEDED
    assert (live_home.project / "first").exists()
    assert (folder / "second").exists()


async def test_an_agent_works_in_its_own_workspace_only_and_a_missing_program_says_what_to_do(
    services: Services, workspace: Workspace
) -> None:
    agents = services.agents
    task = await add_command(services, workspace, "true")
    foreign = replace(await agents.by_slug("command"), workspace_id=WorkspaceId("another"))

    await agents.edit("sh", AgentChanges(binary_path="no-such-shell"), actor=USER_ACTOR)

    with pytest.raises(UsageError, match="belongs to another workspace"):
        foreign.require_usable(workspace.id)
    with pytest.raises(AgentNotInstalledError, match="no-such-shell is not on the PATH") as missing:
        await services.queue.run(task.id, agent_slug="sh", args={"script": "true"}, actor=USER_ACTOR)
    assert "`agentmon agents edit sh --program PATH`" in missing.value.hint


async def test_an_agent_is_told_its_role_and_instructions_whatever_begins_the_conversation(
    services: Services, workspace: Workspace
) -> None:
    await services.queue.pause(actor=USER_ACTOR)
    await services.agents.add(make_demo_agent())
    changes = AgentChanges(role="reviewer", instructions="Be brief.\n")
    await services.agents.edit(DEMO_AGENT_SLUG, changes, actor=USER_ACTOR)
    prompts = []
    for message in (None, "Begin here"):
        task = await add_command(services, workspace, "true")
        run = await services.queue.run(task.id, agent_slug=DEMO_AGENT_SLUG, message=message, actor=USER_ACTOR)
        prompts.append((await services.executions.get(run.id)).prompt)

    assert prompts == [f"Your role: reviewer\n\nBe brief.\n\n{text}" for text in (task.title, "Begin here")]
    asked = [listing.title for listing in reversed(await services.sessions.list(workspace.id))]
    assert asked == [task.title, "Begin here"]

    first = (await services.sessions.list(workspace.id))[0].session
    await services.queue.stop(task.id, actor=USER_ACTOR)
    again = await services.sessions.restart(first.id, actor=USER_ACTOR)
    assert (await services.executions.get(again.id)).prompt == prompts[1]
