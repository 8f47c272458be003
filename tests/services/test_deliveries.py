"""Every action sees to it that somebody carries it out, and says when nobody does."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.approvals import ApprovalStatus, RuleDecision
from agentmon.domain.budgets import BudgetPeriod, BudgetScope
from agentmon.domain.errors import ConflictError, UndeliveredError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.idempotency import idempotency_key
from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import TaskStatus
from agentmon.paths import find_paths
from agentmon.runners.locks import is_locked
from agentmon.services.actors import USER_ACTOR
from agentmon.worker.loop_report import write_loop_report
from agentmon.worker.presence import read_presence
from tests.idle_worker import idle_worker
from tests.live_home import add_command, marked_processes, until_started
from tests.services.test_live_decisions import add_conversation, waiting
from tests.services.test_sightings import card_of, halt_worker, let_time_pass
from tests.waiting import until, wait_for

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from agentmon.bootstrap import Services
    from agentmon.domain.approvals import Approval
    from agentmon.domain.ids import ExecutionId, TaskId
    from agentmon.domain.tasks import Workspace
    from agentmon.paths import Paths
    from tests.live_home import LiveHome

    Action = Callable[[Services, TaskId, Approval], Awaitable[object]]


async def _allow(services: Services, _: TaskId, asked: Approval) -> object:
    return await services.approvals.allow(asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest)


async def _deny(services: Services, _: TaskId, asked: Approval) -> object:
    return await services.approvals.deny(asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest, reason="no")


async def _add_rule(services: Services, _: TaskId, __: Approval) -> object:
    return await services.approvals.add_rule(decision=RuleDecision.ALLOW, tool="Edit", actor=USER_ACTOR)


async def _budget(services: Services, task_id: TaskId, _: Approval) -> object:
    return await services.budgets.set(
        scope=BudgetScope.TASK, scope_id=task_id, period=BudgetPeriod.TOTAL, limit=1, actor=USER_ACTOR
    )


async def _pause(services: Services, _: TaskId, __: Approval) -> object:
    return await services.queue.pause(actor=USER_ACTOR, halts_running=True)


ACTIONS: dict[str, Action] = {
    "allow": _allow,
    "deny": _deny,
    "rule": _add_rule,
    "message": lambda services, task_id, _: services.conversations.send(task_id, "and?", actor=USER_ACTOR),
    "interrupt": lambda services, task_id, _: services.conversations.interrupt(task_id, actor=USER_ACTOR),
    "finish": lambda services, task_id, _: services.conversations.finish(task_id, actor=USER_ACTOR),
    "switch": lambda services, task_id, _: services.conversations.switch(task_id, model="x", actor=USER_ACTOR),
    "budget": _budget,
    "pause": _pause,
}


@contextmanager
def no_worker_can_start(paths: Paths) -> Iterator[None]:
    """Put a folder in the place of the worker's log."""
    kept = paths.worker_log.with_suffix(".kept")
    paths.worker_log.rename(kept)
    paths.worker_log.mkdir()
    try:
        yield
    finally:
        paths.worker_log.rmdir()
        kept.rename(paths.worker_log)


async def is_delivered(services: Services) -> bool:
    return not await services.database.read(
        lambda connection: connection.execute(
            "SELECT count(*) FROM execution_commands WHERE delivered_at IS NULL"
        ).fetchone()[0]
    )


@pytest.mark.proof
async def test_an_answer_given_while_the_worker_is_dead_reaches_the_agent(
    services: Services, workspace: Workspace, live_home: LiveHome
) -> None:
    task = await add_conversation(services, workspace)
    execution = await services.queue.run(task.id, actor=USER_ACTOR)
    await services.approvals.add_rule(decision=RuleDecision.ALLOW, tool="Bash", actor=USER_ACTOR)
    asked = (await waiting(services, task.id)).approval
    live_home.kill_worker()

    await _allow(services, task.id, asked)
    was_running = read_presence(services.paths.worker_lock).is_running
    ended = await services.queue.wait(execution.id)

    assert was_running
    assert ended.status is ExecutionStatus.SUCCEEDED, ended.error


@pytest.mark.proof
@pytest.mark.parametrize("name", ACTIONS)
async def test_each_action_is_kept_and_told_as_undelivered_until_a_worker_comes(
    services: Services, workspace: Workspace, live_home: LiveHome, name: str
) -> None:
    task = await add_conversation(services, workspace)
    execution = await services.queue.run(task.id, actor=USER_ACTOR)
    asked = (await waiting(services, task.id)).approval
    live_home.kill_worker()

    with no_worker_can_start(services.paths):
        with pytest.raises(UndeliveredError) as told:
            await ACTIONS[name](services, task.id, asked)
        let_time_pass(services.paths, execution)
        card = await card_of(services, workspace)
        seen = await services.executions.get(execution.id)
        is_waiting_there = not await is_delivered(services)

    assert "worker.log" in str(told.value)
    assert "agentmon worker" in told.value.hint
    assert is_waiting_there == bool(seen.sighting.undelivered) == (name not in {"rule", "budget"})
    assert (card.sighting, card.state) == (seen.sighting, seen.live_state)
    assert seen.sighting.last_seen_at is None
    if name == "allow":
        assert seen.sighting.undelivered == ("answer",)
        assert seen.live_state is LiveState.RUNNING
        assert card.state_label(datetime.now(UTC)) == (LiveState.RUNNING, "running · undelivered: answer")
        assert (await services.approvals.get(asked.id)).approval.status is ApprovalStatus.ALLOWED

    await services.queue.look_after()
    await until(lambda: is_delivered(services), "the delivery of what was kept")
    assert (await services.executions.get(execution.id)).sighting.undelivered == ()


async def _cancel_its_card(services: Services, task_id: TaskId) -> None:
    await services.tasks.move(task_id, TaskStatus.CANCELLED, actor=USER_ACTOR)
    await services.queue.deliver()


async def _stop_from_another_data_folder(services: Services, task_id: TaskId) -> None:
    elsewhere = {
        "AGENTMON_HOME": str(services.paths.data_dir / "2"),
        "AGENTMON_DATABASE_URL": f"sqlite:///{services.paths.database_path}",
    }
    paths = find_paths(elsewhere)
    paths.worker_log.mkdir(parents=True)
    async with open_services(paths) as others:
        await others.queue.stop(task_id, actor=USER_ACTOR)


STOPS: dict[str, Callable[[Services, TaskId], Awaitable[object]]] = {
    "stop": lambda services, task_id: services.queue.stop(task_id, actor=USER_ACTOR),
    "kill": lambda services, task_id: services.queue.stop(task_id, actor=USER_ACTOR, kill=True),
    "cancel its card": _cancel_its_card,
    "stop from another data folder": _stop_from_another_data_folder,
}


@pytest.mark.proof
@pytest.mark.parametrize("way", STOPS)
async def test_a_stop_reaches_the_host_when_no_worker_can_be_had(
    services: Services, workspace: Workspace, live_home: LiveHome, way: str
) -> None:
    task = await add_conversation(services, workspace)
    execution = await services.queue.run(task.id, actor=USER_ACTOR)
    await waiting(services, task.id)
    live_home.kill_worker()

    with no_worker_can_start(services.paths):
        await STOPS[way](services, task.id)
        wait_for(lambda: not marked_processes(execution.id), "the end of its processes")
        wait_for(lambda: not is_locked(services.paths.execution_dir(execution.id) / "host.lock"))
        let_time_pass(services.paths, execution)
        unrecorded = await services.executions.get(execution.id)
    ended = await services.queue.wait(execution.id)

    assert (unrecorded.status, unrecorded.live_state) == (ExecutionStatus.CANCELLING, LiveState.UNKNOWN)
    assert ended.status is ExecutionStatus.CANCELLED


async def test_a_halted_worker_is_told_of_by_who_decides_and_delivers_when_it_goes_on(
    services: Services, workspace: Workspace
) -> None:
    task = await add_conversation(services, workspace)
    execution = await services.queue.run(task.id, actor=USER_ACTOR)
    asked = (await waiting(services, task.id)).approval
    worker = halt_worker(services.paths)
    try:
        with pytest.raises(UndeliveredError) as told:
            await _deny(services, task.id, asked)
        let_time_pass(services.paths, execution)
        halted = await services.executions.get(execution.id)
    finally:
        os.kill(worker, signal.SIGCONT)
    ended = await services.queue.wait(execution.id)

    assert f"kill -CONT {worker}" in told.value.hint
    assert halted.sighting.undelivered == ("answer",)
    assert (await services.approvals.get(asked.id)).approval.status is ApprovalStatus.DENIED
    assert ended.status is ExecutionStatus.SUCCEEDED, ended.error


@pytest.mark.parametrize("way", ["the same request again", "start anyway"])
async def test_a_run_that_is_queued_already_is_told_as_undelivered_too(
    services: Services, workspace: Workspace, live_home: LiveHome, way: str
) -> None:
    first, then = [await add_command(services, workspace, "true") for _ in range(2)]
    await services.tasks.add_dependency(then.id, first.number, actor=USER_ACTOR)
    key = idempotency_key("once", "run", {})
    queued = await services.queue.run(then.id, actor=USER_ACTOR, when_ready=True, key=key)
    live_home.kill_worker()

    with no_worker_can_start(services.paths), pytest.raises(UndeliveredError):
        await (
            services.queue.start_anyway(then.id, actor=USER_ACTOR)
            if way == "start anyway"
            else services.queue.run(then.id, actor=USER_ACTOR, when_ready=True, key=key)
        )
    await services.queue.run(then.id, actor=USER_ACTOR, when_ready=True, key=key)

    assert read_presence(services.paths.worker_lock).is_running
    assert (way == "start anyway") == ((await services.tasks.dependencies(then.id)) == ())
    assert (await services.executions.get(queued.id)).created_at == queued.created_at


@pytest.mark.proof
@pytest.mark.parametrize("jump", [timedelta(hours=8), -timedelta(hours=8)], ids=["it slept", "the clock was set back"])
async def test_a_worker_that_is_about_to_beat_is_given_the_time(
    services: Services, live_home: LiveHome, jump: timedelta
) -> None:
    loops = services.paths.worker_loops
    await services.workers.ensure_running()
    wait_for(loops.exists)
    live_home.kill_worker()
    with idle_worker(services.paths):
        write_loop_report(loops, (), at=datetime.now(UTC) - jump)
        before = (await services.background.worker()).silent_s
        handing_over = asyncio.create_task(services.workers.hand_over())
        given_up, _ = await asyncio.wait({handing_over}, timeout=0.5)
        write_loop_report(loops, (), at=datetime.now(UTC))
        await handing_over
        write_loop_report(loops, (), at=datetime.now(UTC) - jump)
        with pytest.raises(UndeliveredError, match="has said nothing"):
            await services.workers.hand_over()

    assert given_up == set()
    assert before == pytest.approx(abs(jump.total_seconds()), abs=60)


async def test_a_queue_that_is_let_go_on_has_somebody_who_lets_it(
    services: Services, workspace: Workspace, live_home: LiveHome
) -> None:
    task = await add_conversation(services, workspace)
    await services.queue.run(task.id, actor=USER_ACTOR)
    await waiting(services, task.id)
    await services.queue.pause(actor=USER_ACTOR)
    live_home.kill_worker()

    await services.queue.resume(actor=USER_ACTOR)

    assert read_presence(services.paths.worker_lock).is_running


async def test_nobody_is_needed_for_a_rule_or_a_budget_while_nothing_runs(
    services: Services, workspace: Workspace
) -> None:
    await services.approvals.add_rule(decision=RuleDecision.ALLOW, tool="Edit", actor=USER_ACTOR)
    await services.budgets.set(
        scope=BudgetScope.WORKSPACE, scope_id=workspace.id, period=BudgetPeriod.DAY, limit=1, actor=USER_ACTOR
    )

    assert not read_presence(services.paths.worker_lock).is_running


async def test_a_stop_past_the_worker_is_handed_over_once_and_is_no_kill(
    services: Services, workspace: Workspace, live_home: LiveHome
) -> None:
    await services.settings.set("worker.grace_s", "300", actor=services.actor)
    script = "trap 'echo asked' TERM; echo ready; while :; do sleep 0.1; done"
    task = await add_command(services, workspace, "sh", "-c", script)
    execution = await until_started(services, await services.queue.run(task.id, actor=USER_ACTOR))
    folder = services.paths.execution_dir(execution.id)
    wait_for(lambda: (folder / "output.log").read_bytes() == b"ready\n")
    live_home.kill_worker()

    with no_worker_can_start(services.paths):
        for _ in range(2):
            await services.queue.stop(task.id, actor=USER_ACTOR)
        wait_for(lambda: b"asked" in (folder / "output.log").read_bytes())
        let_time_pass(services.paths, execution)
        unrecorded = await services.executions.get(execution.id)
        assert not await is_read_up(services, execution.id, folder)
    await services.workers.ensure_running()
    await until(lambda: is_read_up(services, execution.id, folder), "a worker that looks after it")
    await until(lambda: is_delivered(services), "the delivery of what was kept")
    handed_over = [json.loads(line)["type"] for line in (folder / "control.jsonl").read_text().split("\n") if line]
    still_alive = marked_processes(execution.id)
    await services.queue.stop(task.id, actor=USER_ACTOR, kill=True)
    ended = await services.queue.wait(execution.id)

    assert unrecorded.sighting.undelivered == ()
    assert handed_over == ["stop"]
    assert still_alive
    assert ended.status is ExecutionStatus.CANCELLED


async def is_read_up(services: Services, execution_id: ExecutionId, folder: Path) -> bool:
    present = await services.executions.get(execution_id)
    size = (folder / "journal.jsonl").stat().st_size
    return present.journal_offset == size


@pytest.mark.parametrize(("said", "is_taken"), [("and?", False), ("later", True), (None, True)])
async def test_what_waits_for_a_time_starts_at_once_only_for_what_it_will_be_told(
    services: Services, workspace: Workspace, said: str | None, is_taken: bool
) -> None:
    task = await add_conversation(services, workspace)
    at = datetime.now(UTC) + timedelta(days=1)
    waiting_run = await services.queue.run(task.id, actor=USER_ACTOR, not_before=at, message="later")

    if is_taken:
        await services.queue.run(task.id, actor=USER_ACTOR, message=said)
    else:
        with pytest.raises(ConflictError):
            await services.queue.run(task.id, actor=USER_ACTOR, message=said)
    now = await services.executions.get(waiting_run.id)

    assert now.prompt == waiting_run.prompt
    assert (now.not_before is None) == is_taken
