from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.domain.any_command import ANY_COMMAND_KEY
from agentmon.domain.errors import AgentmonError, ConflictError, UsageError, WaitsForTasksError
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import TaskStatus
from agentmon.services.actors import USER_ACTOR
from tests.live_home import add_command, marked_processes, run_to_end, until_started
from tests.waiting import until

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Workspace
    from tests.live_home import LiveHome


async def test_a_card_queued_after_another_starts_by_itself_when_that_is_done(
    services: Services, workspace: Workspace
) -> None:
    first = await add_command(services, workspace, "true")
    then = await add_command(services, workspace, "true")
    await services.tasks.add_dependency(then.id, first.number, actor=USER_ACTOR)

    with pytest.raises(WaitsForTasksError, match=f"#{then.number} waits for #{first.number}"):
        await services.queue.run(then.id, actor=USER_ACTOR)
    queued = await services.queue.run(then.id, actor=USER_ACTOR, when_ready=True)
    present = await services.tasks.get(then.id)
    await run_to_end(services, first)
    ended = await services.queue.wait(queued.id)

    assert (queued.status, present.status) == (ExecutionStatus.QUEUED, TaskStatus.BLOCKED)
    assert ended.status is ExecutionStatus.SUCCEEDED
    first_run = await services.executions.newest(first.id)
    assert first_run is not None
    assert first_run.ended_at is not None
    assert ended.started_at is not None
    assert ended.started_at >= first_run.ended_at


@pytest.mark.proof
async def test_a_run_with_a_time_starts_no_earlier(services: Services, workspace: Workspace) -> None:
    task = await add_command(services, workspace, "true")
    start = datetime.now(UTC) + timedelta(seconds=1.5)

    queued = await services.queue.run(task.id, actor=USER_ACTOR, not_before=start)
    ended = await services.queue.wait(queued.id)

    assert queued.status is ExecutionStatus.QUEUED
    assert ended.started_at is not None
    assert ended.started_at >= start


async def test_a_workspace_keeps_within_its_own_limit(services: Services, workspace: Workspace) -> None:
    await services.settings.set("workspace.max_running", "1", workspace=workspace, actor=services.actor)
    tasks = [await add_command(services, workspace, "sleep", "300") for _ in range(2)]
    runs = [await services.queue.run(task.id, actor=USER_ACTOR) for task in tasks]
    await until_started(services, runs[0])
    probe = await add_command(services, await services.workspaces.open(Path(workspace.root_path).parent), "true")

    await run_to_end(services, probe)

    assert (await services.executions.get(runs[1].id)).status is ExecutionStatus.QUEUED
    with pytest.raises(UsageError, match="whole number"):
        await services.settings.set("workspace.max_running", "-1", workspace=workspace, actor=services.actor)


async def test_nothing_starts_while_the_queue_is_paused_also_after_a_crash(
    services: Services, workspace: Workspace, live_home: LiveHome
) -> None:
    warm_up = await add_command(services, workspace, "true")
    await run_to_end(services, warm_up)
    await services.queue.pause(actor=USER_ACTOR)
    task = await add_command(services, workspace, "true")
    queued = await services.queue.run(task.id, actor=USER_ACTOR)
    live_home.kill_worker()
    await services.workers.ensure_running()

    with pytest.raises(ConflictError, match="paused already"):
        await services.queue.pause(actor=USER_ACTOR)
    await until(lambda: _has_beaten(services))
    while_paused = await services.executions.get(queued.id)
    await services.queue.resume(actor=USER_ACTOR)
    ended = await services.queue.wait(queued.id)

    assert while_paused.status is ExecutionStatus.QUEUED
    assert ended.status is ExecutionStatus.SUCCEEDED
    trail = [line.event.event_type for line in await services.audit.all(None)]
    assert [one for one in trail if "queue_" in one] == [TaskEventType.QUEUE_PAUSED, TaskEventType.QUEUE_RESUMED]


@pytest.mark.proof
async def test_a_halted_run_stands_still_and_goes_on_where_it_was(services: Services, workspace: Workspace) -> None:
    script = "i=0; while [ $i -lt 250 ]; do i=$((i+1)); echo $i; sleep 0.01; done"
    task = await add_command(services, workspace, "sh", "-c", script)
    run = await services.queue.run(task.id, actor=USER_ACTOR)
    await until_started(services, run)

    await services.queue.pause(actor=USER_ACTOR, halts_running=True)

    async def is_paused() -> bool:
        return (await services.executions.get(run.id)).live_state is LiveState.PAUSED

    await until(is_paused)
    # A parent that waits for its halted child's exec is in an uninterruptible sleep.
    assert {_state_of(pid) for pid in marked_processes(run.id)} <= {"T", "D"}
    await services.queue.resume(actor=USER_ACTOR)
    ended = await services.queue.wait(run.id)

    assert ended.status is ExecutionStatus.SUCCEEDED
    assert services.executions.log_path(ended).read_text().split() == [str(number) for number in range(1, 251)]


async def test_a_running_card_is_cancelled_only_when_nothing_of_it_is_alive(
    services: Services, workspace: Workspace
) -> None:
    await services.settings.set("worker.grace_s", "0.3", actor=services.actor)
    task = await add_command(services, workspace, "sh", "-c", "trap '' TERM; sleep 300")
    run = await services.queue.run(task.id, actor=USER_ACTOR)
    await until_started(services, run)

    asked = await services.tasks.move(task.id, TaskStatus.CANCELLED, actor=USER_ACTOR)
    assert asked.status is TaskStatus.IN_PROGRESS
    ended = await services.queue.wait(run.id)

    assert ended.status is ExecutionStatus.CANCELLED
    assert not marked_processes(run.id)
    assert (await services.tasks.get(task.id)).status is TaskStatus.CANCELLED


async def test_closing_a_queued_card_takes_its_run_out_of_the_queue(services: Services, workspace: Workspace) -> None:
    await services.queue.pause(actor=USER_ACTOR)
    task = await add_command(services, workspace, "touch", "started")
    run = await services.queue.run(task.id, actor=USER_ACTOR)

    await services.tasks.move(task.id, TaskStatus.DONE, actor=USER_ACTOR)

    assert (await services.executions.get(run.id)).status is ExecutionStatus.CANCELLED
    assert (await services.tasks.get(task.id)).status is TaskStatus.DONE


async def test_a_closed_card_that_runs_again_comes_back_to_the_board(services: Services, workspace: Workspace) -> None:
    task = await add_command(services, workspace, "false")
    await services.tasks.move(task.id, TaskStatus.DONE, actor=USER_ACTOR)

    await run_to_end(services, task)

    assert (await services.tasks.get(task.id)).status is TaskStatus.BLOCKED


async def _has_beaten(services: Services) -> bool:
    return (await services.workers.status()).pid is not None


def _state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


async def test_dependencies_are_changed_all_or_not_at_all(services: Services, workspace: Workspace) -> None:
    first, second, third = [await add_command(services, workspace, "true") for _ in range(3)]
    await services.tasks.add_dependency(second.id, third.number, actor=USER_ACTOR)

    with pytest.raises(ConflictError, match=f"#{third.number} → #{second.number} → #{third.number}"):
        await services.tasks.change_dependencies(third.id, added=[first.number, second.number], actor=USER_ACTOR)
    assert await services.tasks.dependencies(third.id) == ()

    await services.tasks.change_dependencies(second.id, added=[first.number], removed=[third.number], actor=USER_ACTOR)
    assert [task.number for task in await services.tasks.dependencies(second.id)] == [first.number]


@pytest.mark.parametrize(
    "chosen",
    [
        {"agent_slug": "command"},
        {"capability_key": ANY_COMMAND_KEY},
        {"args": {"argv": ["touch", "other"]}},
        {"not_before": datetime.now(UTC) + timedelta(days=1)},
        {"message": "something else"},
        {"model": "m"},
        {"permission_mode": "plan"},
        {"own_screen": True},
    ],
    ids=lambda chosen: next(iter(chosen)),
)
@pytest.mark.parametrize("waits_for_time", [False, True], ids=["", "later"])
async def test_what_is_queued_is_not_started_anyway_as_something_else(
    services: Services, workspace: Workspace, chosen: dict[str, Any], waits_for_time: bool
) -> None:
    first, then = [await add_command(services, workspace, "true") for _ in range(2)]
    await services.tasks.add_dependency(then.id, first.number, actor=USER_ACTOR)
    time = datetime.now(UTC) + timedelta(days=1) if waits_for_time else None
    queued = await services.queue.run(then.id, actor=USER_ACTOR, when_ready=True, not_before=time)

    with pytest.raises(AgentmonError) as caught:
        await services.queue.run(then.id, actor=USER_ACTOR, anyway=True, **chosen)
    refused = await services.executions.get(queued.id)
    awaited = [one.number for one in await services.tasks.dependencies(then.id)]
    started = await services.queue.run(then.id, actor=USER_ACTOR, anyway=True)

    # A command takes neither model nor mode.
    assert isinstance(caught.value, ConflictError) or set(chosen) <= {"model", "permission_mode"}
    assert (refused.status, refused.not_before, awaited) == (ExecutionStatus.QUEUED, queued.not_before, [first.number])
    assert started.id == queued.id
    assert await services.tasks.dependencies(then.id) == ()


async def test_only_what_is_queued_behind_others_is_let_start_anyway(services: Services, workspace: Workspace) -> None:
    first, then = [await add_command(services, workspace, "true") for _ in range(2)]
    await services.tasks.add_dependency(then.id, first.number, actor=USER_ACTOR)
    stopped = await services.queue.run(then.id, actor=USER_ACTOR, when_ready=True)
    await services.queue.stop(then.id, actor=USER_ACTOR)

    with pytest.raises(ConflictError, match="nothing of this task waits"):
        await services.queue.start_anyway(then.id, actor=USER_ACTOR)
    after_stop = await services.executions.newest(then.id)
    queued = await services.queue.run(then.id, actor=USER_ACTOR, when_ready=True)
    await services.queue.start_anyway(then.id, actor=USER_ACTOR)
    ended = await services.queue.wait(queued.id)

    assert after_stop is not None
    assert (after_stop.id, after_stop.status) == (stopped.id, ExecutionStatus.CANCELLED)
    assert ended.status is ExecutionStatus.SUCCEEDED


async def test_asking_again_for_what_is_queued_brings_its_worker_back(
    services: Services, workspace: Workspace, live_home: LiveHome
) -> None:
    await services.queue.pause(actor=USER_ACTOR)
    task = await add_command(services, workspace, "true")
    await services.queue.run(task.id, actor=USER_ACTOR)
    live_home.kill_worker()

    with pytest.raises(ConflictError, match="open run already"):
        await services.queue.run(task.id, actor=USER_ACTOR)

    assert (await services.workers.status()).is_running
