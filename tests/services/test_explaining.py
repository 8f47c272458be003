from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from agentmon.bootstrap import open_services
from agentmon.cli.explain import explanation_lines
from agentmon.domain.errors import ConflictError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import TaskDraft
from agentmon.services.actors import USER_ACTOR
from agentmon.services.demo_agent import DEMO_AGENT_SLUG, make_demo_agent
from agentmon.store import tables
from tests.live_home import add_command, run_to_end
from tests.stored_runs import stored
from tests.worker.screen_stubs import start_stub, until_note

if TYPE_CHECKING:
    from pathlib import Path

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


LATER = datetime(2096, 1, 1, tzinfo=UTC)
ENDED = {"ended_at": datetime(2026, 1, 1, tzinfo=UTC)}


@pytest.mark.parametrize(
    ("state", "columns", "source"),
    [
        ("queued", {"status": "queued"}, "its turn in the queue"),
        ("queued · retry at", {"status": "queued", "wait_reason": "retry", "not_before": LATER}, "its last try"),
        ("queued · at", {"status": "queued", "wait_reason": "scheduled", "not_before": LATER}, "the time"),
        ("parked", {"status": "queued", "wait_reason": "usage_limit", "not_before": LATER}, "quota"),
        ("parked", {"status": "queued", "wait_reason": "rate_limit", "not_before": LATER}, "rate limit"),
        ("parked", {"status": "queued", "wait_reason": "failures", "not_before": LATER}, "failures in a row"),
        ("parked", {"status": "queued", "wait_reason": "budget", "not_before": LATER}, "budget"),
        ("needs you", {"status": "queued", "is_held": 1, "activity_source": "approval"}, "approval"),
        ("needs you", {"status": "queued", "activity": "waiting", "activity_source": "dependency"}, "dependency"),
        ("running", {"status": "running"}, "the journal of its host"),
        ("running", {"status": "running", "activity": "working", "activity_source": "rule a/b"}, "rule a/b"),
        ("needs you", {"status": "running", "activity": "waiting", "activity_source": "signal idle"}, "signal idle"),
        ("unknown", {"status": "running", "activity": "unknown", "activity_source": "screen"}, "screen"),
        ("paused", {"status": "running", "paused_at": LATER}, "halted its processes"),
        ("could not stop", {"status": "running", "error": "could not stop pid 7 (a)"}, "what is left of it"),
        ("stopping", {"status": "cancelling"}, "a stop that was asked for"),
        ("finalizing", {"status": "finalizing"}, "all its processes are gone"),
        ("done", {"status": "succeeded", "end_reason": "exited", **ENDED}, "the journal of its host"),
        ("done", {"status": "succeeded", "end_reason": "finished", **ENDED}, "nothing left to do"),
        ("failed", {"status": "failed", "end_reason": "exited", **ENDED}, "the journal of its host"),
        ("failed", {"status": "failed", "end_reason": "start_failed", **ENDED}, "its start"),
        ("failed", {"status": "failed", "end_reason": "terminated", **ENDED}, "a signal"),
        ("failed", {"status": "failed", "end_reason": "refused", **ENDED}, "what the vendor said"),
        ("lost", {"status": "failed", "end_reason": "lost", **ENDED}, "the lock of its host"),
        ("timed out", {"status": "timed_out", "end_reason": "timed_out", **ENDED}, "its time limit"),
        ("cancelled", {"status": "cancelled", "end_reason": "stopped", **ENDED}, "a stop that was asked for"),
    ],
)
async def test_every_state_is_explained_by_what_decides_it(
    tmp_path: Path, state: str, columns: dict[str, object], source: str
) -> None:
    async with stored(tmp_path) as place:
        task = await place.add_task("it")
        run = await place.add_run(task.id, ExecutionStatus.QUEUED)
        place.set_columns(run.id, **columns)

        explanation = await place.services.explaining.explain(task.id)

    assert explanation.state.startswith(state)
    assert source in explanation.source


async def test_what_holds_a_queued_run_is_explained(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        services, workspace = place.services, place.workspace
        explain = services.explaining.explain
        first, task = await place.add_task("first"), await place.add_task("it")
        await services.tasks.add_dependency(task.id, first.number, actor=USER_ACTOR)
        await place.add_run(task.id, ExecutionStatus.QUEUED, may_wait=True)
        waiting = await explain(task.id)
        await services.tasks.move(first.id, TaskStatus.CANCELLED, actor=USER_ACTOR)
        asking = await explain(task.id)
        await services.tasks.remove_dependency(task.id, first.number, actor=USER_ACTOR)
        await place.add_run(first.id, ExecutionStatus.RUNNING)
        await services.settings.set("workspace.max_running", "1", workspace=workspace, actor=services.actor)
        full = await explain(task.id)
        await services.settings.reset("workspace.max_running", workspace=workspace, actor=services.actor)
        await services.settings.set("worker.max_running", "1", actor=services.actor)
        full_machine = await explain(task.id)
        await services.settings.set("worker.max_running", "4", actor=services.actor)
        free = await explain(task.id)
        async with services.database.writing() as connection:
            await connection.execute(update(tables.agents).values(failure_streak=5))
        full_after_failures = await explain(task.id)
        await services.queue.pause(actor=USER_ACTOR)
        paused = await explain(task.id)

    number = first.number
    assert (waiting.source, waiting.note) == ("dependency", f"starts after #{number} (not queued)")
    assert (waiting.state, asking.state) == (f"queued · after #{number} (not queued)", "needs you")
    assert (asking.source, asking.note) == ("dependency", f"waits for #{number} (cancelled)")
    assert full.note == "its workspace has no place free"
    assert "worker.max_running" in full_machine.note
    assert free.source == "its turn in the queue"
    assert full_after_failures.note == "its agent has no place free"
    assert paused.source == "the pause of the queue"


async def test_an_agent_that_waits_for_its_folder_is_explained(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        services, workspace = place.services, place.workspace
        await services.agents.add(make_demo_agent())
        await services.settings.set("workspace.max_per_folder", "1", workspace=workspace, actor=services.actor)
        demo = await services.agents.by_slug(DEMO_AGENT_SLUG)
        runs = []
        for _ in range(2):
            task = await place.add_task("it")
            runs.append(await place.add_run(task.id, ExecutionStatus.QUEUED))
            place.set_columns(runs[-1].id, agent_id=demo.id)
        columns = {"status": "running", "started_at": datetime.now(UTC), "working_dir": workspace.root_path}
        place.set_columns(runs[0].id, **columns)

        explanation = await services.explaining.explain(runs[1].task_id)

    assert explanation.note.startswith("#1 works in its folder")


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
    assert "without echo" in explanation.source
    assert any("asks in its terminal" in entry for entry in explanation.entries)
    assert counts.needs_you == 1
