"""Worker, host and program killed or halted in every combination: what a reader is shown of the run."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.cli.pausing import silence_note
from agentmon.domain.board import ColumnRequest
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.live_state import LiveState
from agentmon.domain.sightings import NO_SIGHTING
from agentmon.domain.task_status import TaskStatus
from agentmon.runners.host.process_table import is_halted, read_processes
from agentmon.runners.locks import is_locked
from agentmon.services.actors import USER_ACTOR
from agentmon.store.moments import moment_text
from agentmon.worker.at_work import find_last_beat
from agentmon.worker.loop_report import write_loop_report
from agentmon.worker.presence import read_presence
from tests.idle_worker import idle_worker
from tests.live_home import add_command, marked_processes, until_started
from tests.stored_runs import stored
from tests.waiting import until, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.bootstrap import Services
    from agentmon.domain.board import Card
    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Workspace
    from agentmon.paths import Paths
    from tests.live_home import LiveHome

AGO = timedelta(minutes=10)
PARTS = ("worker", "host", "program")


async def begin(services: Services, workspace: Workspace) -> Execution:
    # What a killed host leaves behind of its program lives on: nothing but a worker ends that.
    task = await add_command(services, workspace, "sh", "-c", "trap '' HUP; echo ready; while :; do sleep 1; done")
    execution = await until_started(services, await services.queue.run(task.id, actor=USER_ACTOR))
    folder = services.executions.log_path(execution).parent
    await until(lambda: _reads(folder / "output.log"))
    return execution


async def _reads(log: Path) -> bool:
    return log.exists() and log.read_bytes() == b"ready\n"


def pid_of(part: str, services: Services, execution: Execution) -> int:
    if part == "worker":
        pid = read_presence(services.paths.worker_lock).pid
        assert pid is not None
        return pid
    journal = services.executions.log_path(execution).parent / "journal.jsonl"
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    wanted = {"host": "host_started", "program": "agent_started"}[part]
    return int(next(entry["pid"] for entry in entries if entry["type"] == wanted))


def halt_worker(paths: Paths) -> int:
    """Halt the worker between two of its transactions, and return its number."""
    pid = read_presence(paths.worker_lock).pid
    assert pid is not None

    def is_halted_at_rest() -> bool:
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: is_halted(pid))
        with closing(sqlite3.connect(paths.database_path, timeout=0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                os.kill(pid, signal.SIGCONT)
                return False
        return True

    wait_for(is_halted_at_rest)
    return pid


def let_time_pass(paths: Paths, execution: Execution, time: timedelta = AGO) -> None:
    """Make what was said of the run and by the worker older, or of a time to come."""
    then = (datetime.now(UTC) - time).timestamp()
    folder = paths.execution_dir(execution.id)
    for file in (paths.worker_loops, paths.worker_lock, folder / "journal.jsonl", folder / "output.log"):
        os.utime(file, (then, then))
    moments = {"started_at": 2 * time, "heartbeat_at": time, "log_updated_at": time}
    with closing(sqlite3.connect(paths.database_path)) as connection, connection:
        for name, age in moments.items():
            written = moment_text(datetime.now(UTC) - age)
            connection.execute(f"UPDATE executions SET {name} = ? WHERE id = ?", (written, execution.id))
        connection.execute("UPDATE execution_commands SET created_at = ?", (moment_text(datetime.now(UTC) - time),))


def dump(paths: Paths) -> list[list[object]]:
    tables = ("executions", "tasks", "task_events", "sessions", "execution_commands", "approvals", "worker_heartbeats")
    with closing(sqlite3.connect(paths.database_path)) as connection:
        return [connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables]


async def card_of(services: Services, workspace: Workspace) -> Card:
    page = await services.board.page(workspace, [ColumnRequest(status=status) for status in TaskStatus])
    (card,) = [card for column in page.columns.values() for card in column.cards]
    return card


@pytest.mark.proof
@pytest.mark.parametrize(
    "killed", [chosen for count in range(4) for chosen in itertools.combinations(PARTS, count)], ids="+".join
)
async def test_a_run_is_shown_as_last_seen_once_neither_worker_nor_host_lives(
    services: Services, workspace: Workspace, killed: tuple[str, ...]
) -> None:
    execution = await begin(services, workspace)
    lock = services.paths.execution_dir(execution.id) / "host.lock"
    for pid in [pid_of(part, services, execution) for part in killed]:
        os.kill(pid, signal.SIGKILL)
    if "worker" in killed:
        wait_for(lambda: not read_presence(services.paths.worker_lock).is_running)
        if set(killed) & {"host", "program"}:
            # A host whose program ended says so and ends.
            wait_for(lambda: not is_locked(lock))
        let_time_pass(services.paths, execution)
    before = dump(services.paths)

    seen, card = await services.executions.get(execution.id), await card_of(services, workspace)
    later = datetime.now(UTC) + timedelta(minutes=3)

    if "worker" not in killed:
        assert (seen.sighting, card.sighting) == (NO_SIGHTING, NO_SIGHTING)
        assert services.sightings.worker_seen_at() is None
    elif killed == ("worker",):
        assert (seen.live_state, card.state) == (LiveState.RUNNING, LiveState.RUNNING)
        assert seen.elapsed_s(later) == pytest.approx((2 * AGO).total_seconds() + 180, abs=60)
    else:
        assert (seen.live_state, card.state, seen.sighting) == (LiveState.UNKNOWN, LiveState.UNKNOWN, card.sighting)
        assert seen.sighting.last_seen_at is not None
        assert seen.elapsed_s(later) == pytest.approx(AGO.total_seconds(), abs=5)
        assert seen.elapsed_text(later) == card.elapsed_text(later)
        assert seen.state_label(later) == card.state_label(later)
        assert seen.state_label(later)[1].startswith("unknown · last seen 1")
        assert "lock of its host" in (await services.explaining.explain(execution.task_id)).source
        assert dump(services.paths) == before

    # Whoever comes finds all as it always was.
    await services.workers.ensure_running()
    if not set(killed) & {"host", "program"}:
        await services.queue.stop(execution.task_id, actor=USER_ACTOR, kill=True)
    ended = await services.queue.wait(execution.id)
    assert ended.status in {ExecutionStatus.FAILED, ExecutionStatus.CANCELLED}
    assert (await services.executions.get(execution.id)).sighting == NO_SIGHTING
    assert marked_processes(execution.id) == []


async def test_a_halted_host_counts_as_none_and_one_that_goes_on_as_alive(
    services: Services, workspace: Workspace, live_home: LiveHome
) -> None:
    execution = await begin(services, workspace)
    host = pid_of("host", services, execution)
    live_home.kill_worker()
    # tmux lets go on whatever of its panes is halted.
    tmux = next(process.parent for process in read_processes(b"") if process.pid == host)
    os.kill(tmux, signal.SIGKILL)
    wait_for(lambda: next(process.parent for process in read_processes(b"") if process.pid == host) != tmux)
    os.kill(host, signal.SIGSTOP)
    wait_for(lambda: is_halted(host))
    let_time_pass(services.paths, execution)
    halted = await services.executions.get(execution.id)
    os.kill(host, signal.SIGCONT)
    wait_for(lambda: not is_halted(host))
    going_on = await services.executions.get(execution.id)

    assert (halted.live_state, going_on.live_state) == (LiveState.UNKNOWN, LiveState.RUNNING)


@pytest.mark.proof
async def test_a_halted_worker_counts_as_none_and_one_that_is_slow_as_at_work(
    services: Services, workspace: Workspace
) -> None:
    execution = await begin(services, workspace)
    worker = halt_worker(services.paths)
    try:
        os.kill(pid_of("host", services, execution), signal.SIGKILL)
        wait_for(lambda: not is_locked(services.paths.execution_dir(execution.id) / "host.lock"))
        let_time_pass(services.paths, execution)
        halted = await services.executions.get(execution.id)
    finally:
        os.kill(worker, signal.SIGCONT)
    ended = await services.queue.wait(execution.id)
    # A beat that is 20 s late on a busy machine makes nobody dead.
    slow = (datetime.now(UTC) - timedelta(seconds=20)).timestamp()
    os.utime(services.paths.worker_loops, (slow, slow))

    assert (halted.live_state, ended.live_state) == (LiveState.UNKNOWN, LiveState.LOST)
    assert services.sightings.worker_seen_at() is None


@pytest.mark.parametrize("set_back", [timedelta(hours=1), timedelta(days=400)], ids=["an hour", "days"])
async def test_a_clock_that_was_set_back_hides_no_dead_worker(
    services: Services, workspace: Workspace, live_home: LiveHome, set_back: timedelta
) -> None:
    execution = await begin(services, workspace)
    host = pid_of("host", services, execution)
    live_home.kill_worker()
    os.kill(host, signal.SIGKILL)
    wait_for(lambda: not is_locked(services.paths.execution_dir(execution.id) / "host.lock"))
    let_time_pass(services.paths, execution, AGO - set_back)

    seen_at = services.sightings.worker_seen_at()
    seen = await services.executions.get(execution.id)
    now = datetime.now(UTC)

    assert seen_at is not None
    assert seen.live_state is LiveState.UNKNOWN
    assert seen.sighting.last_seen_at is not None
    assert max(seen_at, seen.sighting.last_seen_at) <= now


async def test_a_worker_that_hangs_counts_as_none(live_home: LiveHome, services: Services) -> None:
    await services.workers.ensure_running()
    paths = services.paths
    places = (str(paths.worker_lock), str(paths.worker_loops), str(paths.database_path))
    await until(lambda: asyncio.to_thread(paths.worker_loops.exists))
    live_home.kill_worker()
    old = (datetime.now(UTC) - AGO).timestamp()

    with idle_worker(paths):
        os.utime(paths.worker_loops, (old, old))
        of_an_earlier_one = find_last_beat(*places)
        write_loop_report(paths.worker_loops, (), at=datetime.now(UTC))
        present = find_last_beat(*places)
        os.utime(paths.worker_loops, (old, old))
        hanging = find_last_beat(*places)
        os.utime(paths.worker_loops, (old + 3600, old + 3600))
        hanging_since_the_clock_was_set_back = find_last_beat(*places)

    # One that has only begun has not said a word yet.
    assert (of_an_earlier_one, present) == (None, None)
    assert hanging == pytest.approx(old)
    assert hanging_since_the_clock_was_set_back == pytest.approx(datetime.now(UTC).timestamp(), abs=60)


async def test_a_run_of_another_machine_is_known_by_its_heartbeat_alone(
    services: Services, workspace: Workspace, live_home: LiveHome
) -> None:
    execution = await begin(services, workspace)
    live_home.kill_worker()
    let_time_pass(services.paths, execution)
    with closing(sqlite3.connect(services.paths.database_path)) as connection, connection:
        connection.execute("UPDATE executions SET log_file_path = '/elsewhere/x/output.log'")
    old = await services.executions.get(execution.id)
    with closing(sqlite3.connect(services.paths.database_path)) as connection, connection:
        beat_at = moment_text(datetime.now(UTC) - timedelta(seconds=50))
        connection.execute("UPDATE executions SET heartbeat_at = ?", (beat_at,))
    fresh = await services.executions.get(execution.id)

    assert (old.live_state, fresh.live_state) == (LiveState.UNKNOWN, LiveState.RUNNING)


@pytest.mark.parametrize(
    ("waits_for", "is_missed"),
    [
        ("nothing", True),
        ("a time", True),
        ("a queued task", True),
        ("a task that nobody queued", False),
        ("a cancelled task", False),
        ("leave to start", False),
        ("the end of a pause", False),
        ("an agent that is off", False),
    ],
)
async def test_a_worker_is_missed_only_by_what_needs_nothing_else(
    tmp_path: Path, waits_for: str, is_missed: bool
) -> None:
    async with stored(tmp_path, has_worker=False) as place:
        services = place.services
        other, task = await place.add_task("the other"), await place.add_task()
        if "task" in waits_for:
            await services.tasks.add_dependency(task.id, other.number, actor=USER_ACTOR)
        run = await place.add_run(task.id, ExecutionStatus.QUEUED, may_wait=True)
        match waits_for:
            case "a time":
                later = datetime.now(UTC) + timedelta(days=3)
                place.set_columns(run.id, not_before=later, wait_reason="scheduled")
            case "a queued task":
                await place.add_run(other.id, ExecutionStatus.QUEUED)
            case "a cancelled task":
                await services.tasks.move(other.id, TaskStatus.CANCELLED, actor=USER_ACTOR)
            case "leave to start":
                place.set_columns(run.id, is_held=1)
            case "the end of a pause":
                await services.queue.pause(actor=USER_ACTOR)
            case "an agent that is off":
                with closing(sqlite3.connect(services.paths.database_path)) as connection, connection:
                    connection.execute("UPDATE agents SET is_active = 0 WHERE slug = 'command'")
        old = (datetime.now(UTC) - AGO).timestamp()
        os.utime(services.paths.database_path, (old, old))

        seen_at = await services.sightings.worker_missed_since(is_running=False)
        page = await services.board.page(place.workspace, ())
        note = await silence_note(services)
        explained = (await services.explaining.explain(task.id)).source

        assert (seen_at is not None) == (page.status_line.worker_seen_at is not None) == bool(note) == is_missed
        assert ("worker" in explained) == (waits_for == "nothing")
        assert await services.sightings.worker_missed_since(is_running=True) is not None
