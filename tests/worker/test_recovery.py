from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import new_id
from agentmon.domain.tasks import Schedule, TaskDraft
from agentmon.screens.board.lost_runs import LostRunWatch
from agentmon.services.actors import USER_ACTOR
from agentmon.worker.loop_report import read_loop_report
from agentmon.worker.presence import read_presence
from tests.live_home import add_command, marked_processes, run_to_end, until_started
from tests.waiting import until, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.live_home import LiveHome

COUNT_TO_20 = 'for i in $(seq 20); do echo "line $i"; sleep 0.05; done; exit 7'
TWENTY_LINES = b"".join(b"line %d\n" % number for number in range(1, 21))


@pytest.mark.proof
@pytest.mark.usefixtures("workers_are_programs")
async def test_a_run_outlives_the_death_of_worker_and_client_and_is_recorded_whole(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "sh", "-c", COUNT_TO_20)
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        await until_started(services, execution)
        live_home.kill_worker()
    journal = live_home.paths.execution_dir(execution.id) / "journal.jsonl"
    wait_for(lambda: journal.read_text().rstrip().endswith("}") and '"ended"' in journal.read_text())

    async with open_services(live_home.paths) as services:
        before = await services.executions.get(execution.id)
        await services.workers.ensure_running()
        ended = await services.queue.wait(execution.id)
        events = await services.executions.events(execution.id)

    assert before.status is ExecutionStatus.RUNNING
    assert (ended.status, ended.exit_code) == (ExecutionStatus.FAILED, 7)
    assert services.executions.log_path(ended).read_bytes() == TWENTY_LINES
    assert ended.log_line_count == 20
    entries = [event.payload["entry"] for event in events]
    assert entries == ["host_started", "agent_started", "exited", "ended"]


async def test_a_run_outlives_the_death_of_the_tmux_server(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "sh", "-c", COUNT_TO_20)
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        await until_started(services, execution)

        live_home.kill_tmux()
        ended = await services.queue.wait(execution.id)

    assert (ended.status, ended.exit_code) == (ExecutionStatus.FAILED, 7)
    assert services.executions.log_path(ended).read_bytes() == TWENTY_LINES


@pytest.mark.proof
async def test_a_killed_host_loses_its_run_but_leaves_no_process(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        script = "trap '' HUP TERM; setsid sh -c \"trap '' HUP; sleep 300\" & echo ready; sleep 300"
        task = await add_command(services, workspace, "sh", "-c", script)
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        log = services.executions.log_path(execution)
        await until(lambda: _reads(log, b"ready\n"))

        os.kill(_host_pid(live_home, execution.id), signal.SIGKILL)
        ended = await services.queue.wait(execution.id)

    assert ended.status is ExecutionStatus.FAILED
    assert "lost" in (ended.error or "")
    assert marked_processes(execution.id) == []


async def test_a_run_whose_host_was_killed_while_no_worker_lived_is_settled_at_the_next_start(
    live_home: LiveHome,
) -> None:
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "sleep", "300")
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        await until_started(services, execution)
        live_home.kill_worker()
        os.kill(_host_pid(live_home, execution.id), signal.SIGKILL)

        await services.workers.ensure_running()
        ended = await services.queue.wait(execution.id)

    assert ended.status is ExecutionStatus.FAILED
    assert marked_processes(execution.id) == []


async def test_a_claim_that_died_before_its_host_began_is_started_once(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        await services.settings.set("worker.max_running", "1", actor=services.actor)
        holder = await add_command(services, workspace, "sleep", "300")
        held = await services.queue.run(holder.id, actor=USER_ACTOR)
        await until_started(services, held)
        task = await add_command(services, workspace, "sh", "-c", "echo x >> starts")
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        live_home.kill_worker()
        await _claim_by_hand(live_home.paths.database_path, execution.id)

        await services.workers.ensure_running()
        ended = await services.queue.wait(execution.id)
        await services.queue.stop(holder.id, actor=USER_ACTOR, kill=True)
        await services.queue.wait(held.id)

    assert ended.status is ExecutionStatus.SUCCEEDED
    assert (live_home.project / "starts").read_text() == "x\n"


async def test_a_stop_asked_while_no_worker_lived_is_carried_out_by_the_next(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "sleep", "300")
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        await until_started(services, execution)
        live_home.kill_worker()

        await services.queue.stop(task.id, actor=USER_ACTOR)
        ended = await services.queue.wait(execution.id)

    assert ended.status is ExecutionStatus.CANCELLED
    assert marked_processes(execution.id) == []


async def test_reading_a_journal_again_gives_the_same_rows(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "sh", "-c", "echo a; exit 4")
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        first = await services.queue.wait(execution.id)
        first_events = await services.executions.events(execution.id)
        live_home.kill_worker()
        await _forget_rows(live_home.paths.database_path, execution.id)

        await services.workers.ensure_running()
        second = await services.queue.wait(execution.id)
        second_events = await services.executions.events(execution.id)

    assert (second.status, second.exit_code, second.error) == (first.status, first.exit_code, first.error)
    assert (second.log_byte_size, second.last_line) == (first.log_byte_size, first.last_line)
    assert second.ended_at == first.ended_at
    assert [(event.type, event.timestamp_ms, event.payload) for event in second_events] == [
        (event.type, event.timestamp_ms, event.payload) for event in first_events
    ]


async def test_an_environment_that_a_dead_worker_left_is_removed_by_the_next(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "true")
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        await services.queue.wait(execution.id)
        live_home.kill_worker()
        left = live_home.paths.execution_dir(execution.id) / "environment.json"
        left.write_text("{}")
        os.utime(left, (0, 0))
        fresh = live_home.paths.executions_dir / "not-queued-yet" / "environment.json"
        others = live_home.paths.executions_dir / new_id() / "environment.json"
        for one in (fresh, others):
            one.parent.mkdir()
            one.write_text("{}")
        # Of a run that waits in another database of this folder.
        os.utime(others, (time.time() - 86_400,) * 2)

        await services.workers.ensure_running()
        wait_for(lambda: not left.exists())

    assert fresh.exists()
    assert others.exists()


async def test_a_run_that_a_copied_database_does_not_have_is_named(live_home: LiveHome) -> None:
    path = live_home.paths.database_path
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "sleep", "600")
        copy = path.with_name("copy")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("VACUUM INTO ?", (str(copy),))
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        await until_started(services, execution)
        before = await services.sightings.strays()
        live_home.kill_worker()
    for name in (path, *path.parent.glob(f"{path.name}-*")):
        name.unlink()
    copy.rename(path)
    async with open_services(live_home.paths) as services:
        strays = await services.sightings.strays()
        found = {finding.name: finding for finding in await services.doctor.check()}
        told = await LostRunWatch().find_news(services, workspace, datetime.now(UTC))
        again = await LostRunWatch().find_news(services, workspace, datetime.now(UTC))

    assert before == ()
    assert [stray.execution_id for stray in strays] == [execution.id]
    assert str(strays[0].output) in found["runs"].text
    assert str(strays[0].host_pid) in found["runs"].hint
    assert told == again != ""


async def test_a_second_start_of_the_worker_finds_the_first(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        started = await asyncio.gather(*(services.workers.ensure_running() for _ in range(4)))

    assert len({worker.pid for worker in started}) == 1


@pytest.mark.usefixtures("workers_are_programs")
async def test_the_worker_is_no_child_of_who_started_it_and_ends_when_told(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        worker = await services.workers.ensure_running()
        assert worker.pid is not None
        parent = _parent_of(worker.pid)

        was_there = await services.workers.stop(actor=services.actor)

        assert parent != os.getpid()
        assert was_there
        assert not read_presence(live_home.paths.worker_lock).is_running
        assert not await services.workers.stop(actor=services.actor)


def _host_pid(live_home: LiveHome, execution_id: str) -> int:
    journal = live_home.paths.execution_dir(execution_id) / "journal.jsonl"  # type: ignore[arg-type]  # an id is text
    first = json.loads(journal.read_text().splitlines()[0])
    pid = first["pid"]
    assert isinstance(pid, int)
    return pid


def _parent_of(pid: int) -> int:
    from pathlib import Path

    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def _claim_by_hand(database_path: Path, execution_id: str) -> None:
    await _write(database_path, "UPDATE executions SET status = 'running' WHERE id = ?", (execution_id,))


async def _forget_rows(database_path: Path, execution_id: str) -> None:
    await _write(database_path, "DELETE FROM events WHERE execution_id = ?", (execution_id,))
    await _write(
        database_path,
        "UPDATE executions SET status = 'running', exit_code = NULL, error = NULL, ended_at = NULL, pid = NULL,"
        " journal_offset = 0, log_byte_size = 0, last_line = NULL WHERE id = ?",
        (execution_id,),
    )


async def _write(database_path: Path, statement: str, parameters: tuple[str, ...]) -> None:
    import sqlite3

    connection = sqlite3.connect(database_path, timeout=10)
    with connection:
        connection.execute(statement, parameters)
    connection.close()


async def _reads(path: Path, content: bytes) -> bool:
    return path.exists() and path.read_bytes() == content


async def test_an_open_app_starts_the_worker_again_when_a_run_needs_it(live_home: LiveHome) -> None:
    from agentmon.app import AgentmonApp

    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "sleep", "300")
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        await until_started(services, execution)
        live_home.kill_worker()
        app = AgentmonApp(live_home.paths, live_home.project)

        async with app.run_test():
            await asyncio.to_thread(wait_for, lambda: read_presence(live_home.paths.worker_lock).pid is not None)

        await services.queue.stop(task.id, actor=USER_ACTOR, kill=True)
        await services.queue.wait(execution.id)

    assert not app.failures


@pytest.mark.proof
async def test_what_a_crash_cut_off_is_known_as_lost_before_it_is_asked_for(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "sleep", "300")
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        await until_started(services, execution)
        live_home.kill_worker()
        os.kill(_host_pid(live_home, execution.id), signal.SIGKILL)

        before = await services.queue.lost_tasks(workspace)
        await services.queue.settle()
        after = await services.queue.lost_tasks(workspace)

    assert before == ()
    assert [one.id for one in after] == [task.id]
    assert marked_processes(execution.id) == []


async def test_a_schedule_alone_keeps_a_worker_alive(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        await services.queue.look_after()
        without = read_presence(live_home.paths.worker_lock)
        schedule = Schedule(cron="0 7 * * *", zone="UTC")
        await services.tasks.add(workspace, TaskDraft(title="daily", schedule=schedule), actor=USER_ACTOR)
        await services.queue.look_after()

        assert not without.is_running
        assert read_presence(live_home.paths.worker_lock).is_running


@pytest.mark.parametrize("record", [b"{", b"[]", b'{"from": "a later release"}', b"\xff"])
async def test_what_a_broken_off_merge_left_unreadable_stays_and_stops_nothing(
    live_home: LiveHome, record: bytes
) -> None:
    left = live_home.paths.merges_dir / "worktree"
    left.mkdir(parents=True)
    (left / "merge.json").write_bytes(record)
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        first = await run_to_end(services, await add_command(services, workspace, "true"))
        pid = read_presence(live_home.paths.worker_lock).pid
        second = await run_to_end(services, await add_command(services, workspace, "true"))
        same = read_presence(live_home.paths.worker_lock).pid

    assert {first.status, second.status} == {ExecutionStatus.SUCCEEDED}
    assert pid is not None
    assert pid == same
    assert (left / "merge.json").read_bytes() == record


async def test_leftovers_that_cannot_be_settled_stop_no_worker(live_home: LiveHome) -> None:
    live_home.paths.merges_dir.mkdir(parents=True)
    (live_home.paths.merges_dir / "lock").mkdir()
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        ended = await run_to_end(services, await add_command(services, workspace, "true"))

        def is_told() -> bool:
            report = read_loop_report(live_home.paths.worker_loops)
            return report is not None and any(loop.name == "leftovers" and loop.problem for loop in report.loops)

        await asyncio.to_thread(wait_for, is_told)

    assert ended.status is ExecutionStatus.SUCCEEDED
