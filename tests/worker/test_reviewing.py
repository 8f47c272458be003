"""What agents changed waits in Review for a person, with a real worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.agent_changes import AgentChanges
from agentmon.domain.agents import ToolType
from agentmon.domain.board import ColumnRequest
from agentmon.domain.task_status import AwaitedState, TaskStatus
from agentmon.services.actors import USER_ACTOR
from tests.live_home import add_command, run_to_end

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Task
    from tests.live_home import LiveHome


@pytest.fixture
async def services(live_home: LiveHome) -> AsyncIterator[Services]:
    """Services in which any command counts as an AI agent."""
    async with open_services(live_home.paths) as services:
        await services.agents.edit("command", AgentChanges(tool_type=ToolType.AI_AGENT), actor=USER_ACTOR)
        yield services


async def _status(services: Services, task: Task) -> TaskStatus:
    return (await services.tasks.get(task.id)).status


async def test_what_an_agent_changed_waits_for_a_person_and_only_done_releases(
    services: Services, live_home: LiveHome
) -> None:
    workspace = await services.workspaces.open(live_home.project)
    task = await add_command(services, workspace, "touch", "made", verify="test -e made")
    waiting = await add_command(services, workspace, "true", title="later")
    await services.tasks.add_dependency(waiting.id, task.number, actor=USER_ACTOR)
    await services.queue.run(waiting.id, actor=USER_ACTOR, when_ready=True)
    await run_to_end(services, task)
    landed = await _status(services, task)
    (awaited,) = await services.tasks.dependencies(waiting.id)
    held = await services.executions.newest(waiting.id)
    page = await services.board.page(workspace, [ColumnRequest(status=status) for status in TaskStatus])
    counts = {one.workspace.id: one.open_tasks for one in await services.workspaces.counts()}
    await services.tasks.move(task.id, TaskStatus.DONE, actor=USER_ACTOR)
    assert held is not None
    await services.queue.wait(held.id)
    released = await _status(services, waiting)

    assert landed is TaskStatus.REVIEW
    assert awaited.awaited_state is AwaitedState.IN_REVIEW
    assert not awaited.is_given_up
    assert held.activity is None, "nobody is asked about what a person has to look at"
    assert page.columns[TaskStatus.REVIEW].total == 1
    assert page.columns[TaskStatus.REVIEW].cards[0].changed_files == 1
    assert page.status_line.needs_you == 0
    assert counts[workspace.id] == 2
    assert released is TaskStatus.DONE, "it changed nothing"


async def test_what_changed_nothing_is_done_and_so_is_everything_without_the_column(
    services: Services, live_home: LiveHome
) -> None:
    workspace = await services.workspaces.open(live_home.project)
    idle = await add_command(services, workspace, "true")
    await run_to_end(services, idle)
    await services.settings.set("board.review", "false", actor=USER_ACTOR)
    busy = await add_command(services, workspace, "touch", "made")
    await run_to_end(services, busy)
    page = await services.board.page(workspace, [ColumnRequest(status=status) for status in TaskStatus])

    assert await _status(services, idle) is TaskStatus.DONE
    assert await _status(services, busy) is TaskStatus.DONE
    assert not page.has_review


async def test_changes_that_nobody_has_looked_at_come_back_to_review_also_behind_a_run_without_any(
    services: Services, live_home: LiveHome
) -> None:
    workspace = await services.workspaces.open(live_home.project)
    task = await add_command(services, workspace, "sh", "-c", "test -e made || touch made")
    await run_to_end(services, task)
    await run_to_end(services, task)
    again = await _status(services, task)
    await services.tasks.move(task.id, TaskStatus.DONE, actor=USER_ACTOR)
    await run_to_end(services, task)

    assert again is TaskStatus.REVIEW
    assert await _status(services, task) is TaskStatus.DONE, "what was looked at needs no second look"


async def test_a_card_that_a_person_moved_meanwhile_stays_there(services: Services, live_home: LiveHome) -> None:
    workspace = await services.workspaces.open(live_home.project)
    task = await add_command(
        services, workspace, "sh", "-c", "touch made; until test -e go; do sleep 0.05; done", verify="true"
    )
    run = await services.queue.run(task.id, actor=USER_ACTOR)
    await services.tasks.move(task.id, TaskStatus.DONE, actor=USER_ACTOR)
    (live_home.project / "go").touch()
    await services.queue.wait(run.id)

    assert await _status(services, task) is TaskStatus.DONE
