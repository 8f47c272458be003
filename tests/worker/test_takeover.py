from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import ExecutionId, WorkerId
from agentmon.domain.owners import Owner, ProcessIdentity
from agentmon.paths import find_paths
from agentmon.runners.host.process_table import find_boot_id, find_start_time
from agentmon.services.actors import USER_ACTOR
from agentmon.store.claims import ClaimRepository
from agentmon.store.live_executions import LiveExecutionRepository
from agentmon.worker.launch import ensure_worker
from agentmon.worker.owners import OwnerLife, Takeover, look_at, this_owner
from agentmon.worker.presence import read_presence
from tests.live_home import add_command, marked_processes, until_started
from tests.stored_runs import stored
from tests.waiting import until, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.live_home import LiveHome

COUNT = "for i in $(seq 150); do echo $i; done; while ! test -e followed; do sleep 0.05; done; echo end"


@pytest.fixture
def own(tmp_path: Path) -> Owner:
    return this_owner(WorkerId("own"), tmp_path / "run")


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "300"])
    yield process
    process.kill()
    process.wait()


def owner_of(process: subprocess.Popen[bytes], own: Owner, *, last_seen_at: datetime | None = None) -> Owner:
    identity = ProcessIdentity(pid=process.pid, start_time=find_start_time(process.pid) or "", boot_id=find_boot_id())
    return Owner(
        worker_id=WorkerId("other"),
        machine=own.machine,
        identity=identity,
        run_dir="/elsewhere",
        last_seen_at=last_seen_at,
    )


def test_an_owner_is_known_by_its_process_and_not_by_its_number(own: Owner, stranger: subprocess.Popen[bytes]) -> None:
    alive = owner_of(stranger, own)
    assert alive.identity is not None
    reused = Owner(
        worker_id=alive.worker_id,
        machine=own.machine,
        identity=ProcessIdentity(pid=stranger.pid, start_time="1", boot_id=alive.identity.boot_id),
        run_dir="/elsewhere",
    )
    rebooted = Owner(
        worker_id=alive.worker_id,
        machine=own.machine,
        identity=ProcessIdentity(pid=stranger.pid, start_time=alive.identity.start_time, boot_id="an earlier boot"),
        run_dir="/elsewhere",
    )

    assert look_at(alive, own) is OwnerLife.ALIVE
    assert look_at(reused, own) is OwnerLife.DEAD
    assert look_at(rebooted, own) is OwnerLife.DEAD


def test_nothing_is_known_of_an_owner_on_another_machine(own: Owner, stranger: subprocess.Popen[bytes]) -> None:
    identity = owner_of(stranger, own).identity
    far = Owner(worker_id=WorkerId("far"), machine="elsewhere", identity=identity, run_dir="/elsewhere")

    assert look_at(far, own) is OwnerLife.CANNOT_TELL


def test_a_dead_owner_of_another_folder_is_followed_only_after_two_looks_and_the_wait(
    own: Owner, stranger: subprocess.Popen[bytes]
) -> None:
    now = datetime.now(UTC)
    owner = owner_of(stranger, own, last_seen_at=now - timedelta(minutes=1))
    claims = [(ExecutionId("run"), owner)]
    takeover = Takeover(own)

    assert takeover.find_free(claims, after_s=30, at=now) == ()
    stranger.kill()
    stranger.wait()
    assert takeover.find_free(claims, after_s=30, at=now) == ()
    wait_for(lambda: takeover.find_free(claims, after_s=30, at=now) == (ExecutionId("run"),))
    assert takeover.find_free(claims, after_s=120, at=now) == ()


def test_a_dead_worker_that_was_seen_before_the_clock_was_set_back_is_free_in_the_end(
    own: Owner, stranger: subprocess.Popen[bytes]
) -> None:
    now = datetime.now(UTC)
    takeover = Takeover(own)
    owner = owner_of(stranger, own, last_seen_at=now + timedelta(days=365))
    claims = [(ExecutionId("run"), owner)]
    stranger.kill()
    stranger.wait()

    assert takeover.find_free(claims, after_s=1.5, at=now) == ()
    wait_for(lambda: takeover.find_free(claims, after_s=1.5, at=now) == (ExecutionId("run"),))
    assert takeover.find_free(claims, after_s=3600, at=now) == ()


@pytest.mark.proof
@pytest.mark.usefixtures("workers_are_programs")
async def test_a_second_worker_on_one_database_leaves_a_living_ones_runs_alone_and_follows_a_dead_one(
    live_home: LiveHome,
) -> None:
    first = live_home.paths
    elsewhere = {
        "AGENTMON_HOME": str(live_home.folder / "second"),
        "AGENTMON_DATABASE_URL": f"sqlite:///{first.database_path}",
    }
    second = find_paths(elsewhere)
    try:
        async with open_services(first) as services:
            await services.settings.set("worker.takeover_after_s", "1", actor=services.actor)
            await services.settings.set("worker.heartbeat_s", "1", actor=services.actor)
            workspace = await services.workspaces.open(live_home.project)
            task = await add_command(services, workspace, "sh", "-c", COUNT)
            run = await services.queue.run(task.id, actor=USER_ACTOR)
            await until_started(services, run)
            owner = (await services.executions.get(run.id)).worker_id
            await asyncio.to_thread(ensure_worker, second, environ={**os.environ, **elsewhere})
            async with open_services(second) as others:
                beside = await add_command(others, workspace, "sleep", "0.5")
                await others.queue.wait((await others.queue.run(beside.id, actor=USER_ACTOR)).id)
                assert (await services.executions.get(run.id)).worker_id == owner
                live_home.kill_worker()

                async def is_taken_over() -> bool:
                    present = await others.executions.get(run.id)
                    return present.worker_id != owner or not present.status.is_open

                await until(is_taken_over)
                (live_home.project / "followed").touch()
                ended = await others.queue.wait(run.id)
        assert ended.status is ExecutionStatus.SUCCEEDED
        assert ended.worker_id != owner
        assert (first.execution_dir(run.id) / "output.log").read_text().split() == [
            *(str(number) for number in range(1, 151)),
            "end",
        ]
        assert not second.execution_dir(run.id).exists()
        assert not marked_processes(run.id)
    finally:
        pid = read_presence(second.worker_lock).pid
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
        kill_server = ["tmux", "-S", str(second.tmux_socket), "kill-server"]
        await asyncio.to_thread(subprocess.run, kill_server, check=False, capture_output=True, timeout=10)


async def test_a_claim_that_its_own_worker_lost_sight_of_is_watched_again(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        task = await place.add_task()
        run = await place.add_run(task.id, ExecutionStatus.QUEUED)
        live = LiveExecutionRepository(place.services.database)
        own = this_owner(WorkerId("own"), tmp_path)
        now = datetime.now(UTC)
        await ClaimRepository(place.services.database).claim(
            worker_id=own.worker_id, max_running=4, park_after=5, limit=1, at=now
        )
        await live.beat([], worker_id=own.worker_id, particulars=own.particulars(version="1"), at=now)

        free = Takeover(own).find_free(await live.owners(), after_s=120, at=now)

        assert free == (run.id,)
