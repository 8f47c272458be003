"""kill -9 of ``agentmon undo`` over thousands of files: finished or never begun, and the next start says so."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.events import TaskEventType
from tests.live_home import add_command, run_to_end
from tests.waiting import until, wait_for
from tests.workspaces.folders import files_of, fingerprint, git, make_repository

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Task
    from tests.live_home import LiveHome

FILES = 3_000
KILLS = 8
_CHANGED = 2_902
_LONGEST_S = 600.0
_SCRIPT = """
for n in $(seq 0 5 2995); do rm d/$n; done
for n in $(seq 1 5 2996) $(seq 2 5 2997) $(seq 3 5 2998); do echo changed >>d/$n; done
mkdir new; for n in $(seq 500); do echo new >new/$n; done
chmod +x d/4; ln -s 4 d/link
"""


def _undo(root: Path, task: Task, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "agentmon", "undo", str(task.number), "-C", str(root), *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, process_group=0)


def _done(root: Path, task: Task, *options: str) -> str:
    """Run the command to its end, and return what it said beside its answer."""
    with _undo(root, task, *options) as process:
        _, said = process.communicate()
    assert process.returncode == 0, said
    return said.decode()


def _kill(process: subprocess.Popen[bytes], chance: random.Random, root: Path, took_s: float) -> None:
    """Kill the command at any moment of its time, or when it has come to any of the files; or let it end before."""
    if chance.random() < 0.5:
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=chance.uniform(0, took_s))
    else:
        mark = root / f"d/{5 * chance.randrange(600)}"
        wait_for(lambda: mark.exists() or process.poll() is not None, deadline_s=_LONGEST_S)
    # Half of the times its children live on.
    with process, suppress(ProcessLookupError):
        (os.killpg if chance.random() < 0.5 else os.kill)(process.pid, signal.SIGKILL)


async def _undos(services: Services, task: Task) -> list[bool]:
    """Return of each undo on the audit trail whether it was written there after a kill."""
    events = await services.audit.of_task(task.id)
    undone = [event.payload for event in events if event.event_type is TaskEventType.CHANGES_UNDONE]
    return [bool(payload.get("is_late")) for payload in undone]


@pytest.mark.proof
@pytest.mark.timeout(7_200)
async def test_a_killed_undo_of_many_files_is_finished_or_was_never_begun(live_home: LiveHome) -> None:
    chance = random.Random(17)
    root = make_repository(live_home.folder / "repo", {f"d/{number}": b"%d\n" % number for number in range(FILES)})
    before = files_of(root)
    said = 0
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(root)
        task = await add_command(services, workspace, "sh", "-c", _SCRIPT)
        ended = await run_to_end(services, task)
        assert ended.changed_files == _CHANGED
        after, repository = files_of(root), fingerprint(root / ".git")
        began = time.monotonic()
        assert _done(root, task) == ""
        took_s = time.monotonic() - began
        _done(root, task, "--redo")
        for turn in range(KILLS):
            undos = await _undos(services, task)
            await asyncio.to_thread(_kill, _undo(root, task), chance, root, took_s)

            if turn % 2:
                live_home.kill_worker()
                await services.workers.ensure_running()

                async def is_finished() -> bool:
                    return not list(live_home.paths.snapshots_dir.glob("roots/*/undo"))

                await until(is_finished, "the end of the undo", deadline_s=_LONGEST_S)
            else:
                said += bool(_done(root, task, "--dry-run"))

            now = files_of(root)
            assert now in (before, after), turn
            assert len(await _undos(services, task)) - len(undos) == (now == before), turn
            assert fingerprint(root / ".git") == repository
            if now == before:
                _done(root, task, "--redo")
                assert files_of(root) == after, turn
        late = sum(await _undos(services, task))
    assert late >= 3
    assert said >= 1
    git(root, "fsck", "--strict")
