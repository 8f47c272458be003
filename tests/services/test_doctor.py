from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.agents import DangerLevel
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import WorkerId
from agentmon.domain.owners import Owner
from agentmon.runners.danger import danger_rules_in_force
from agentmon.services.actors import USER_ACTOR
from agentmon.services.findings import FindingLevel
from agentmon.store.live_executions import LiveExecutionRepository
from agentmon.worker.owners import this_owner
from agentmon.worker.presence import WorkerLock
from tests.stored_runs import Stored, stored
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from agentmon.services.findings import Finding


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Stored]:
    async with stored(tmp_path, has_worker=False) as opened:
        yield opened


async def _finding(place: Stored, name: str) -> Finding:
    return next(finding for finding in await place.services.doctor.check() if finding.name == name)


async def _beat(place: Stored, owner: Owner, *, age: timedelta) -> None:
    live = LiveExecutionRepository(place.services.database)
    await live.beat(
        [], worker_id=owner.worker_id, particulars=owner.particulars(version="1"), at=datetime.now(UTC) - age
    )


def _change(place: Stored, statement: str, *parameters: object) -> None:
    with closing(sqlite3.connect(place.services.paths.database_path)) as connection, connection:
        connection.execute(statement, parameters)


async def test_danger_rules_that_cannot_be_used_are_told_and_the_others_count(place: Stored) -> None:
    own = place.services.paths.danger_rules_file
    own.write_text('[[rule]]\nprograms = ["pytest"]\nlevel = 2\nreason = "slow"\nlowers = true\n')
    usable = await _finding(place, "danger rules")
    own.write_text("[[rule]]\nlevel = 9\n")
    broken = await _finding(place, "danger rules")

    assert usable.level is FindingLevel.OK
    assert "1 of yours, 1 of which lower" in usable.text
    assert broken.level is FindingLevel.WARN
    assert "yours do not count" in broken.text
    assert danger_rules_in_force(own).judge(["git", "push", "-f"]).level is DangerLevel.DESTRUCTIVE


async def test_a_preset_that_cannot_be_used_is_told_by_name_and_the_others_count(place: Stored) -> None:
    own = place.services.paths.presets_dir
    without = await _finding(place, "presets")
    own.mkdir()
    (own / "mine.toml").write_text(
        '[[agent]]\nslug = "mine"\nname = "Mine"\nbinary = "mine"\n'
        '[[agent.capability]]\nkey = "k"\nlabel = "K"\ncommand_tokens = []\n'
    )
    (own / "a.toml").write_text("[[agent")
    (own / "b.toml").write_text("")
    broken = await _finding(place, "presets")

    assert (without.level, broken.level) == (FindingLevel.OK, FindingLevel.WARN)
    assert f"1 of yours; one of yours cannot be used: the preset file {own}/a.toml cannot be read" in broken.text
    assert broken.text.endswith("; 1 more of yours cannot")
    assert broken.hint == "mend that file, or move it out of the folder; all other presets are used meanwhile"


async def test_everything_of_a_new_place_is_well(place: Stored) -> None:
    findings = {finding.name: finding for finding in await place.services.doctor.check()}

    assert findings["runs"].level is findings["dependencies"].level is findings["worker"].level is FindingLevel.OK
    assert findings["worker"].text.startswith("not running")


async def test_tasks_that_wait_for_each_other_are_named(place: Stored) -> None:
    first, second = await place.add_task("first"), await place.add_task("second")
    await place.services.tasks.add_dependency(first.id, second.number, actor=USER_ACTOR)
    _change(
        place,
        "INSERT INTO task_dependencies (task_id, depends_on_task_id, created_at) "
        "SELECT depends_on_task_id, task_id, created_at FROM task_dependencies",
    )

    finding = await _finding(place, "dependencies")

    assert finding.level is FindingLevel.WARN
    assert f"#{first.number}, #{second.number}" in finding.text
    assert "--remove" in finding.hint


async def test_a_worker_that_has_been_silent_for_long_is_a_warning(place: Stored) -> None:
    paths = place.services.paths
    lock = WorkerLock.take(paths.worker_lock)
    assert lock is not None
    lock.announce(version="1", started_at="")
    owner = this_owner(WorkerId("w"), paths.run_dir)

    await _beat(place, owner, age=timedelta(seconds=90))
    early = await _finding(place, "worker")
    await _beat(place, owner, age=timedelta(minutes=5))
    late = await _finding(place, "worker")
    lock.release()

    assert "does not work" not in early.text
    assert late.level is FindingLevel.WARN
    assert f"pid {os.getpid()} lives but does not work; its last sign of life was 5m00s ago" in late.text
    assert "kill -KILL" in late.hint


async def test_a_halted_worker_is_a_warning_with_what_to_do(place: Stored) -> None:
    with _halted_worker(place.services.paths.worker_lock) as pid:
        finding = await _finding(place, "worker")

    assert finding.level is FindingLevel.WARN
    assert f"pid {pid} is halted" in finding.text
    assert f"kill -CONT {pid}" in finding.hint


@contextmanager
def _halted_worker(lock_path: Path) -> Iterator[int]:
    """Give the process number of a stopped process that holds the lock; it is gone afterwards."""
    script = (
        "import pathlib, signal, sys\n"
        "from agentmon.worker.presence import WorkerLock\n"
        "lock = WorkerLock.take(pathlib.Path(sys.argv[1]))\n"
        "lock.announce(version='1', started_at='')\n"
        "print('ready', flush=True)\n"
        "signal.pause()\n"
    )
    words = [sys.executable, "-P", "-c", script, str(lock_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            process.send_signal(signal.SIGSTOP)
            wait_for(lambda: os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT))
            yield process.pid
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("machine", "run_dir", "words"),
    [("elsewhere", "/x", "1 of a worker on the machine elsewhere"), ("", "/x", "1 of a worker of the folder /x")],
)
async def test_runs_of_another_folder_or_machine_are_a_warning(
    place: Stored, machine: str, run_dir: str, words: str
) -> None:
    task = await place.add_task()
    execution = await place.add_run(task.id, ExecutionStatus.RUNNING)
    await _beat(place, Owner(worker_id=WorkerId("other"), machine=machine, run_dir=run_dir), age=timedelta(0))
    _change(place, "UPDATE executions SET worker_id = 'other' WHERE id = ?", execution.id)

    finding = await _finding(place, "runs")

    assert finding.level is FindingLevel.WARN
    assert words in finding.text


async def test_logs_that_may_outgrow_the_disk_are_a_warning_with_a_limit_that_fits(place: Stored) -> None:
    await place.services.settings.set("worker.keep_logs_mb", "100000000", actor=place.services.actor)

    finding = await _finding(place, "disk")
    await place.services.settings.set("worker.keep_logs_mb", "1", actor=place.services.actor)
    enough = await _finding(place, "disk")

    assert finding.level is FindingLevel.WARN
    assert "may still grow by" in finding.text
    assert "agentmon settings worker.keep_logs_mb " in finding.hint
    assert "may still grow" not in enough.text
