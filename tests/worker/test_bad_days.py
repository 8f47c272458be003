"""What the worker and the queue make of files that vanish, disks that are full and workers that die."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.errors import DatabaseBusyError, DatabaseFullError, RunnerError, StoreError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.runners.execution_folder import ExecutionFolder
from agentmon.services.actors import USER_ACTOR
from agentmon.store.executions import ExecutionRepository
from agentmon.worker import main
from agentmon.worker.launch import ensure_worker
from agentmon.worker.presence import WorkerLock, read_presence
from tests.live_home import add_command, marked_processes, run_to_end, until_started
from tests.waiting import DEADLINE_S, until, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.live_home import LiveHome

STAND_IN_WORKER = """
import signal, sys
from pathlib import Path
from agentmon.worker.presence import WorkerLock
lock = WorkerLock.take(Path(sys.argv[1]))
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
lock.announce(version="0.0.0", started_at="2026-01-01T00:00:00+00:00")
print("ready", flush=True)
signal.sigwait({signal.SIGTERM})
"""


async def test_who_waits_for_a_run_starts_the_worker_that_died_meanwhile(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "sleep", "1")
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        await until_started(services, execution)

        live_home.kill_worker()
        async with asyncio.timeout(DEADLINE_S):
            ended = await services.queue.wait(execution.id)

    assert ended.status is ExecutionStatus.SUCCEEDED


async def test_the_worker_goes_on_with_a_database_that_took_the_place_of_its_own(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        before = await services.workers.ensure_running()
    for file in live_home.paths.data_dir.glob("agentmon.db*"):
        # Without the file that they lock, this process and the worker would both make the new database.
        if file.suffix != ".lock":
            file.unlink()

    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "true")
        ended = await run_to_end(services, task)
        after = await services.workers.status()

    assert ended.status is ExecutionStatus.SUCCEEDED
    assert after.pid == before.pid
    # One for the file that is gone and one for the file in its place, when the worker saw both.
    assert live_home.paths.worker_log.read_text().count("WARNING") <= 2


async def test_the_worker_is_found_again_after_its_run_folder_was_cleaned_away(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        before = await services.workers.ensure_running()
        for file in (live_home.paths.worker_lock, live_home.paths.worker_socket):
            file.unlink()

        async def is_found() -> bool:
            return (await services.workers.status()).pid is not None

        await until(is_found)
        workspace = await services.workspaces.open(live_home.project)
        ended = await run_to_end(services, await add_command(services, workspace, "true"))
        after = await services.workers.status()

    assert ended.status is ExecutionStatus.SUCCEEDED
    assert after.pid == before.pid


@pytest.fixture
def hang_up_as_before() -> Iterator[None]:
    """A worker in this process ignores the signal, and so would all that later tests start."""
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hang_up_as_before")
async def test_a_worker_whose_folder_was_deleted_for_good_ends(
    live_home: LiveHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "_WITHOUT_FOLDER_S", 0.3)
    paths = live_home.paths
    async with open_services(paths):
        lock = WorkerLock.take(paths.worker_lock)
        assert lock is not None
        worker = asyncio.create_task(main._serve(paths, lock))
        await asyncio.to_thread(wait_for, lambda: read_presence(paths.worker_lock).pid == os.getpid())

    shutil.rmtree(paths.data_dir)

    async with asyncio.timeout(DEADLINE_S):
        await worker
    assert not paths.data_dir.exists()


async def test_a_worker_of_another_release_is_replaced(live_home: LiveHome) -> None:
    lock = live_home.paths.worker_lock
    async with open_services(live_home.paths) as services:
        stand_in = await asyncio.create_subprocess_exec(
            sys.executable, "-c", STAND_IN_WORKER, str(lock), stdout=asyncio.subprocess.PIPE
        )
        assert stand_in.stdout is not None
        await stand_in.stdout.readline()

        worker = await services.workers.ensure_running()
        async with asyncio.timeout(DEADLINE_S):
            code = await stand_in.wait()

    assert code == 0
    assert worker.pid not in {None, stand_in.pid}
    assert worker.version != "0.0.0"


async def test_what_an_ended_worker_left_in_the_lock_is_not_taken_for_the_next_one(live_home: LiveHome) -> None:
    lock = WorkerLock.take(live_home.paths.worker_lock)
    assert lock is not None
    lock.announce(version="0.0.0", started_at="2026-01-01T00:00:00+00:00")
    ended = read_presence(live_home.paths.worker_lock)

    waiting = asyncio.create_task(asyncio.to_thread(ensure_worker, live_home.paths, after=ended))
    done, _ = await asyncio.wait([waiting], timeout=0.1)
    lock.announce(version="0.0.1", started_at="2026-01-02T00:00:00+00:00")
    next_one = await waiting
    lock.release()

    assert not done
    assert next_one.version == "0.0.1"


async def test_a_run_whose_folder_cannot_be_written_is_refused_and_leaves_nothing(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "true")
        live_home.paths.executions_dir.write_text("a file where the folder should be")

        with pytest.raises(RunnerError, match="the folder of the run cannot be written"):
            await services.queue.run(task.id, actor=USER_ACTOR)

        assert await services.executions.of_task(task.id) == ()


@pytest.mark.parametrize("refusal", [DatabaseFullError, DatabaseBusyError])
async def test_a_program_can_be_stopped_while_the_database_takes_nothing(
    live_home: LiveHome, monkeypatch: pytest.MonkeyPatch, refusal: type[StoreError]
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise refusal("it takes nothing")

    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "sleep", "300")
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        await until_started(services, execution)
        monkeypatch.setattr(ExecutionRepository, "request_stop", refuse)
        # Stands for a disk without space: nothing can be appended to a folder.
        ExecutionFolder(live_home.paths.execution_dir(execution.id)).control.mkdir()

        stopping = await services.queue.stop(task.id, actor=USER_ACTOR)
        async with asyncio.timeout(DEADLINE_S):
            ended = await services.queue.wait(execution.id)

    assert stopping.status is ExecutionStatus.CANCELLING
    assert ended.status is ExecutionStatus.CANCELLED
    assert marked_processes(execution.id) == []


@pytest.mark.proof
async def test_stopping_a_run_whose_folder_was_removed_ends_its_processes_without_noise(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "sleep", "300")
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        await until_started(services, execution)
        shutil.rmtree(live_home.paths.execution_dir(execution.id))

        await services.queue.stop(task.id, actor=USER_ACTOR)
        async with asyncio.timeout(DEADLINE_S):
            ended = await services.queue.wait(execution.id)

    assert ended.status is ExecutionStatus.CANCELLED
    assert marked_processes(execution.id) == []
    assert "Traceback" not in live_home.paths.worker_log.read_text()


@pytest.mark.proof
@pytest.mark.usefixtures("workers_are_programs")
async def test_a_worker_that_is_killed_while_it_starts_is_started_again(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        starting = asyncio.create_task(services.workers.ensure_running())

        async def is_starting() -> bool:
            return read_presence(live_home.paths.worker_lock).is_running

        await until(is_starting)
        for pid in _holders(str(live_home.paths.worker_lock)):
            os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(DEADLINE_S):
            worker = await starting

    assert worker.pid is not None


def _holders(path: str) -> list[int]:
    from pathlib import Path

    holders = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                links = [file.readlink() for file in (entry / "fd").iterdir()]
            except OSError:
                continue
            if Path(path) in links:
                holders.append(int(entry.name))
    return holders


@pytest.mark.proof
async def test_a_tmux_that_vanishes_for_a_moment_fails_no_run(
    live_home: LiveHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "sleep", "true", "tmux"):
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(programs))
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        await services.settings.set("worker.max_running", "1", actor=services.actor)
        holder = await add_command(services, workspace, "sleep", "300")
        held = await services.queue.run(holder.id, actor=USER_ACTOR)
        await until_started(services, held)
        task = await add_command(services, workspace, "true")
        execution = await services.queue.run(task.id, actor=USER_ACTOR)

        (programs / "tmux").rename(programs / "away")
        await services.queue.stop(holder.id, actor=USER_ACTOR, kill=True)

        async def is_missed() -> bool:
            return f"execution {execution.id}: tmux" in live_home.paths.worker_log.read_text()

        await until(is_missed)
        meanwhile = await services.executions.get(execution.id)
        (programs / "away").rename(programs / "tmux")
        ended = await services.queue.wait(execution.id)

    assert (meanwhile.status, meanwhile.error) == (ExecutionStatus.RUNNING, None)
    assert ended.status is ExecutionStatus.SUCCEEDED
