from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.clock import SystemClock
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.ids import WorkerId, new_id
from agentmon.domain.live_state import LiveState
from agentmon.runners.execution_folder import ExecutionFolder
from agentmon.runners.tmux import Tmux
from agentmon.services.actors import USER_ACTOR
from agentmon.store.claims import ClaimRepository
from agentmon.store.ingest import IngestRepository, Recorded
from agentmon.worker.loop import WorkerLoop
from agentmon.worker.preparation import prepare
from agentmon.worker.repositories import Repositories
from agentmon.worker.settings_in_force import read_settings
from agentmon.worker.wake import WakeSocket, wake_worker
from tests.endings import finish, watch_of
from tests.live_home import add_command, run_to_end
from tests.stored_runs import stored
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from agentmon.domain.executions import ClaimedExecution, ExecutionProgress
    from agentmon.domain.ids import ExecutionId
    from agentmon.store.database import Database
    from agentmon.worker.watching import Watch
    from tests.live_home import LiveHome
    from tests.stored_runs import Stored

STARTED = {"type": "host_started", "pid": 1, "start_time": "1", "boot_id": "", "python": "3"}
FAILED = {
    "type": "ended",
    "outcome": "exited",
    "exit_code": 1,
    "output_bytes": 0,
    "output_lines": 0,
    "left_out_bytes": 0,
    "duration_ms": 5,
    "error": None,
}


def write_journal(folder: ExecutionFolder, *entries: dict[str, object]) -> None:
    folder.make()
    with folder.journal.open("a") as journal:
        for number, entry in enumerate(entries, 1):
            journal.write(json.dumps({"n": number, "at_ms": 1_767_268_800_000, **entry}) + "\n")


async def claim(place: Stored, *, max_retries: int = 0) -> tuple[ClaimedExecution, ExecutionFolder]:
    """Queue an execution of a new task and claim it as a worker does."""
    task = await place.add_task("a task", "true", max_retries=max_retries)
    await place.add_run(task.id, ExecutionStatus.QUEUED, max_retries=max_retries)
    return await claim_next(place)


async def claim_next(place: Stored) -> tuple[ClaimedExecution, ExecutionFolder]:
    claims = ClaimRepository(place.services.database)
    late = SystemClock().now().replace(year=2099)
    (claimed,) = await claims.claim(worker_id=WorkerId(new_id()), max_running=100, park_after=5, limit=1, at=late)
    return claimed, ExecutionFolder(place.services.paths.execution_dir(claimed.execution.id))


def new_watch(place: Stored) -> Watch:
    return watch_of(place.services.database, place.services.paths)


async def read_to_the_end(watch: Watch, place: Stored) -> None:
    """Read the journals, and let the ends that they tell of count."""
    await watch.read_journals()
    await finish(watch, place.services.database)


@contextmanager
def living_host(folder: ExecutionFolder) -> Iterator[None]:
    """Hold the lock of a host."""
    folder.make()
    descriptor = os.open(folder.host_lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


@asynccontextmanager
async def running_loop(place: Stored) -> AsyncIterator[WorkerLoop]:
    """Let a worker's loop work in this process; it must be asked to start nothing."""
    services, paths = place.services, place.services.paths
    paths.run_dir.mkdir(parents=True, exist_ok=True)
    wake, tmux = WakeSocket.bind(paths.worker_socket), Tmux(paths.tmux_socket)
    loop = WorkerLoop(
        repositories=Repositories.over(services.database),
        tmux=tmux,
        wake=wake,
        paths=paths,
        clock=SystemClock(),
    )
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(loop.run(), name="worker")
            try:
                yield loop
            finally:
                loop.stop()
    finally:
        wake.close()
        tmux.close()


def start_stubborn_process(execution_id: ExecutionId) -> subprocess.Popen[bytes]:
    """Start a process that carries the marker of the execution and does not end when asked."""
    environ = {**os.environ, "AGENTMON_EXECUTION_ID": execution_id}
    return subprocess.Popen(["sh", "-c", "trap '' TERM; read line"], stdin=subprocess.PIPE, env=environ)


async def entries_of(place: Stored, execution_id: ExecutionId) -> list[object]:
    return [event.payload["entry"] for event in await place.services.executions.events(execution_id)]


async def test_the_journal_of_an_earlier_try_is_never_read_as_that_of_the_next(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        claimed, folder = await claim(place, max_retries=1)
        watch = new_watch(place)
        await watch.add(claimed)
        write_journal(folder, STARTED, FAILED)
        await read_to_the_end(watch, place)
        again, _ = await claim_next(place)

        after_a_crash = new_watch(place)
        await after_a_crash.add(again)
        await after_a_crash.read_journals()

        execution = await place.services.executions.get(claimed.execution.id)
        assert (execution.status, execution.retry_count) == (ExecutionStatus.RUNNING, 1)
        assert await entries_of(place, execution.id) == ["host_started", "ended"]
        assert (folder.path / "try-1" / "journal.jsonl").exists()


@pytest.mark.proof
async def test_a_program_that_makes_the_folder_of_its_own_try_is_tried_again_all_the_same(live_home: LiveHome) -> None:
    tried = live_home.folder / "tried"
    script = f'echo once >> {tried}; mkdir -p "{live_home.paths.executions_dir}/$AGENTMON_EXECUTION_ID/try-1"; exit 1'
    async with open_services() as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "sh", "-c", script, max_retries=1)
        execution = await run_to_end(services, task)
        told = [event.payload["entry"] for event in await services.executions.events(execution.id)]

    assert tried.read_text().split() == ["once", "once"]
    assert (execution.status, execution.retry_count, told.count("ended")) == (ExecutionStatus.FAILED, 1, 2)
    assert (live_home.paths.execution_dir(execution.id) / "try-1" / "journal.jsonl").exists()


async def test_a_try_is_neither_begun_nor_read_before_the_earlier_ones_are_set_aside(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        claimed, folder = await claim(place, max_retries=1)
        watch = new_watch(place)
        await watch.add(claimed)
        write_journal(folder, STARTED, FAILED)
        await read_to_the_end(watch, place)
        again, _ = await claim_next(place)
        in_the_way = folder.path / "try-1.partial"
        in_the_way.touch()

        watched = await watch.add(again)
        await watch.read_journals()
        paths = place.services.paths
        settings = read_settings(paths.settings_file, {})
        with pytest.raises(OSError, match="exists"):
            prepare(again, paths=paths, settings=settings.worker, sandbox_settings=settings.sandbox)

        assert not watched.has_begun
        execution = await place.services.executions.get(claimed.execution.id)
        assert (execution.status, execution.retry_count) == (ExecutionStatus.RUNNING, 1)
        in_the_way.unlink()
        folder.drafts.touch()
        folder.set_tries_aside(again.execution.attempt)
        write_journal(folder, STARTED, FAILED)
        await watch.read_journals()
        assert watched.journal_offset > 0
        assert await entries_of(place, execution.id) == ["host_started", "ended"] * 2
        assert (folder.path / "try-1" / "journal.jsonl").exists()
        assert (folder.path / "try-1" / "drafts.jsonl").exists()


async def test_a_stop_that_comes_before_the_next_try_is_prepared_reaches_its_host(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        claimed, folder = await claim(place, max_retries=1)
        watch = new_watch(place)
        await watch.add(claimed)
        write_journal(folder, STARTED, FAILED)
        await read_to_the_end(watch, place)
        again, _ = await claim_next(place)
        folder.append_command({"id": "1", "type": "stop"})

        await new_watch(place).add(again)

        assert json.loads(folder.control.read_text()) == {"id": "1", "type": "stop"}


async def test_the_environment_of_a_run_that_is_queued_again_survives_a_late_failure(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        claimed, folder = await claim(place, max_retries=1)
        first, late = new_watch(place), new_watch(place)
        await first.add(claimed)
        watched = await late.add(claimed)
        folder.write_environment({"TOKEN": "kept for the next try"})
        write_journal(folder, STARTED, FAILED)
        await read_to_the_end(first, place)

        await late.fail(watched, "its host did not start")

        assert (await place.services.executions.get(claimed.execution.id)).status is ExecutionStatus.QUEUED
        assert folder.read_environment() == {"TOKEN": "kept for the next try"}
        assert claimed.execution.id not in late


class Gate(IngestRepository):
    """Holds the first transaction of two up until the second has had its turn, or cannot have it."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.is_held = asyncio.Event()
        self.opens = asyncio.Event()

    async def record(self, stretches: Sequence[ExecutionProgress], *, at: datetime) -> Recorded:
        if not self.is_held.is_set():
            self.is_held.set()
            await self.opens.wait()
        return await super().record(stretches, at=at)


async def test_two_readers_of_one_journal_lose_nothing_of_it(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        claimed, folder = await claim(place)
        gate = Gate(place.services.database)
        watch = watch_of(place.services.database, place.services.paths, ingest=gate)
        await watch.add(claimed)
        write_journal(folder, STARTED)

        async with asyncio.TaskGroup() as readers:
            readers.create_task(watch.read_journals(), name="first")
            await gate.is_held.wait()
            write_journal(folder, STARTED)
            second = readers.create_task(watch.read_journals(), name="second")
            await asyncio.wait([second], timeout=0.3)
            gate.opens.set()
        write_journal(folder, FAILED)
        await read_to_the_end(watch, place)

        assert (await place.services.executions.get(claimed.execution.id)).status is ExecutionStatus.FAILED
        assert await entries_of(place, claimed.execution.id) == ["host_started", "host_started", "ended"]


async def test_a_journal_of_many_megabytes_is_read_in_pieces(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        claimed, folder = await claim(place)
        watch = new_watch(place)
        watched = await watch.add(claimed)
        line = json.dumps({"n": 1, "at_ms": 1, "type": "someday", "text": "x" * 200_000}) + "\n"
        folder.journal.write_text(line * 60)

        await watch.read_journals()
        first_piece = watched.journal_offset
        await watch.read_journals()

        assert 0 < first_piece < folder.journal.stat().st_size
        assert watched.journal_offset == folder.journal.stat().st_size


async def test_a_lost_message_costs_one_poll_also_while_another_run_keeps_the_worker_awake(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        noisy, noisy_folder = await claim(place)
        quiet, quiet_folder = await claim(place)
        for folder in (noisy_folder, quiet_folder):
            write_journal(folder, STARTED)
        with living_host(noisy_folder), living_host(quiet_folder):
            async with running_loop(place):
                await until(lambda: _has_entries(place, quiet.execution.id, 1))
                write_journal(quiet_folder, FAILED)

                async def is_recorded() -> bool:
                    wake_worker(place.services.paths.worker_socket, noisy.execution.id)
                    return await _has_entries(place, quiet.execution.id, 2)

                await until(is_recorded)


@pytest.mark.proof
async def test_a_dead_host_that_left_a_stubborn_process_holds_no_other_run_up(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        dead, dead_folder = await claim(place)
        other, other_folder = await claim(place)
        for folder in (dead_folder, other_folder):
            write_journal(folder, STARTED)
        stubborn = start_stubborn_process(dead.execution.id)
        try:
            with living_host(other_folder):
                async with running_loop(place) as loop:

                    async def is_settling() -> bool:
                        watched = loop._watch.find(dead.execution.id)
                        return watched is not None and watched.is_being_settled

                    await until(is_settling)
                    write_journal(other_folder, FAILED)
                    wake_worker(place.services.paths.worker_socket, other.execution.id)
                    await until(lambda: _is_over(place, other.execution.id))
                    was_first = (await place.services.executions.get(dead.execution.id)).status.is_open
                    await until(lambda: _is_over(place, dead.execution.id))
            assert was_first
            assert stubborn.wait(10) == -signal.SIGKILL
        finally:
            stubborn.kill()
            stubborn.communicate()


async def test_a_dead_host_whose_process_cannot_be_ended_stays_open_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [(4242,), ()]

    async def end_strays(execution_id: ExecutionId, *, grace_s: float) -> tuple[int, ...]:
        del execution_id, grace_s
        return answers.pop(0)

    # Nothing that root runs resists SIGKILL for long, so what a stubborn kernel would answer is given.
    monkeypatch.setattr("agentmon.worker.watching.end_strays", end_strays)
    async with stored(tmp_path) as place:
        claimed, folder = await claim(place)
        write_journal(folder, STARTED)
        watch = new_watch(place)
        watched = await watch.add(claimed)
        watched.found_dead_at = 0.0
        await watch.read_journals()
        watched.found_dead_at = 0.0

        await watch.settle(watched)
        stuck = await place.services.executions.get(claimed.execution.id)
        await watch.settle(watched)
        await finish(watch, place.services.database)
        ended = await place.services.executions.get(claimed.execution.id)

    assert (stuck.status, stuck.live_state) == (ExecutionStatus.RUNNING, LiveState.STUCK)
    assert "could not stop pid 4242" in (stuck.error or "")
    assert (ended.live_state, ended.end_reason) == (LiveState.LOST, EndReason.LOST)


async def test_an_end_that_a_program_wrote_itself_counts_only_once_nothing_of_the_run_lives(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        claimed, folder = await claim(place)
        watch = new_watch(place)
        watched = await watch.add(claimed)
        program = start_stubborn_process(claimed.execution.id)
        try:
            with living_host(folder):
                write_journal(folder, STARTED, {**FAILED, "exit_code": 0})
                for _ in range(2):
                    await watch.read_journals()
                    await watch.look_at_hosts()
                between = await place.services.executions.get(claimed.execution.id)
                told_by_then = await entries_of(place, claimed.execution.id)
                program.kill()
                program.wait()
                write_journal(folder, FAILED)
            await read_to_the_end(watch, place)
        finally:
            program.kill()
            program.communicate()
        ended = await place.services.executions.get(claimed.execution.id)

    assert (between.status, told_by_then, watched.found_dead_at) == (ExecutionStatus.RUNNING, ["host_started"], None)
    assert (ended.status, ended.exit_code) == (ExecutionStatus.FAILED, 1)


@pytest.mark.proof
async def test_an_end_counts_when_its_host_is_gone_and_what_that_left_behind_is_ended(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        claimed, folder = await claim(place)
        write_journal(folder, STARTED, {**FAILED, "exit_code": 0})
        program = start_stubborn_process(claimed.execution.id)
        try:
            async with running_loop(place):
                await until(lambda: _is_over(place, claimed.execution.id))
            assert program.wait(10) == -signal.SIGKILL
        finally:
            program.kill()
            program.communicate()
        ended = await place.services.executions.get(claimed.execution.id)

    assert (ended.status, ended.end_reason) == (ExecutionStatus.SUCCEEDED, EndReason.EXITED)


async def test_a_run_that_was_stopped_on_a_full_disk_is_cancelled_and_not_tried_again(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        claimed, folder = await claim(place, max_retries=1)
        write_journal(folder, STARTED)
        (folder.path / "stopped").touch()
        watch = new_watch(place)
        watched = await watch.add(claimed)
        await watch.read_journals()
        watched.found_dead_at = 0.0

        await watch.settle(watched)
        await finish(watch, place.services.database)
        ended = await place.services.executions.get(claimed.execution.id)

    assert (ended.status, ended.end_reason, ended.retry_count) == (ExecutionStatus.CANCELLED, EndReason.STOPPED, 0)


async def _has_entries(place: Stored, execution_id: ExecutionId, count: int) -> bool:
    return len(await entries_of(place, execution_id)) >= count


async def _is_over(place: Stored, execution_id: ExecutionId) -> bool:
    return not (await place.services.executions.get(execution_id)).status.is_open


@pytest.mark.proof
async def test_the_second_try_can_be_stopped(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        script = "echo x >> tries; test $(wc -l < tries) -ge 2 || exit 1; sleep 300"
        task = await add_command(services, workspace, "sh", "-c", script, max_retries=3)
        execution = await services.queue.run(task.id, actor=USER_ACTOR)

        async def is_second_try_running() -> bool:
            present = await services.executions.get(execution.id)
            return present.retry_count == 1 and present.pid is not None

        await until(is_second_try_running)
        running = await services.executions.get(execution.id)
        await services.queue.stop(task.id, actor=USER_ACTOR)
        ended = await services.queue.wait(execution.id)

    assert (running.exit_code, running.error) == (None, None)
    assert (ended.status, ended.retry_count) == (ExecutionStatus.CANCELLED, 1)
    assert (live_home.project / "tries").read_text() == "x\nx\n"
