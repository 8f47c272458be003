from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.cli.explain import explanation_lines
from agentmon.domain.errors import ConflictError
from agentmon.domain.tasks import TaskDraft
from agentmon.services.actors import USER_ACTOR
from tests.live_home import add_command, run_to_end
from tests.worker.screen_stubs import start_stub, until_note

if TYPE_CHECKING:
    from tests.live_home import LiveHome

pytestmark = pytest.mark.timeout(60)


async def test_a_screen_is_explained_by_the_rule_that_decided_and_by_what_each_source_says_now(
    live_home: LiveHome,
) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "go", turn="ask")
        await until_note(services, execution, "permission: touch it")

        explanation = await services.explaining.explain(execution.task_id)
        task = await services.tasks.get(execution.task_id)

    said = {reading.source: reading for reading in explanation.readings}
    rules = str(live_home.paths.config_dir / "screens" / "stub.toml")
    assert (explanation.state, explanation.source) == ("needs you", "rule stub/permission")
    assert said["screen"].says == "permission: permission: touch it"
    assert said["screen"].where.startswith(f"{rules}:")
    assert said["signal"].says == "this agent gives none beside its screen"
    assert explanation.rule_files == (rules,)
    assert "May I run this?" in explanation.screen
    lines = explanation_lines(task, explanation)
    assert lines[0] == f"#{task.number} needs you: permission: touch it"
    assert any("rule stub/permission" in line for line in lines)


async def test_a_plain_command_is_explained_by_its_journal(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "sh", "-c", "exit 3")
        await run_to_end(services, task)

        explanation = await services.explaining.explain(task.id)

    assert explanation.state == "failed (exit 3)"
    assert explanation.source == "the journal of its host"
    assert any('"type": "ended"' in entry or '"type":"ended"' in entry for entry in explanation.entries)
    assert explanation.readings == ()


async def test_a_task_that_was_never_run_has_nothing_to_explain(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await services.tasks.add(workspace, TaskDraft(title="new"), actor=USER_ACTOR)

        with pytest.raises(ConflictError, match="never run"):
            await services.explaining.explain(task.id)


async def test_a_plain_program_that_asks_in_its_terminal_needs_a_person_and_says_what_tells(
    live_home: LiveHome,
) -> None:
    async with open_services() as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "python3", "-c", "import getpass; getpass.getpass('Password: ')")
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        await until_note(services, execution, "asks in its terminal: Password:")

        explanation = await services.explaining.explain(task.id)
        (counts,) = await services.workspaces.counts()
        await services.queue.stop(task.id, actor=USER_ACTOR)
        await services.queue.wait(execution.id)

    assert explanation.state == "needs you"
    assert "reads without echo" in explanation.source
    assert any("asks in its terminal" in entry for entry in explanation.entries)
    assert counts.needs_you == 1
