"""kill -9 at any step, or a disk that is full from there on, leaves nothing half done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.waiting import wait_for
from tests.workspaces.folders import files_of, fingerprint, held, make_repository, write

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.workspaces.snapshots import SnapshotStore


def _killed_times(what: str, stride: int) -> int:
    command = [sys.executable, "-m", "tests.workspaces.kills", what, str(stride)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.proof
@pytest.mark.parametrize(("what", "stride"), [("snapshots", 13), ("undoing", 29), ("full", 5)])
def test_a_kill_at_some_steps_is_made_good(what: str, stride: int) -> None:
    assert _killed_times(what, stride) >= 3


@pytest.mark.proof
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(("what", "least"), [("snapshots", 30), ("pruning", 30), ("undoing", 30), ("full", 15)])
def test_a_kill_at_every_step_is_made_good(what: str, least: int) -> None:
    assert _killed_times(what, 1) >= least


_TAKE = """
import sys
from pathlib import Path
from agentmon.workspaces.snapshots import SnapshotStore
store = SnapshotStore(Path(sys.argv[1]))
print("begun", flush=True)
store.take(Path(sys.argv[2]))
"""


@pytest.mark.proof
@pytest.mark.parametrize("with_its_children", [True, False])
def test_a_kill_while_git_works_is_made_good(tmp_path: Path, store: SnapshotStore, with_its_children: bool) -> None:
    root = make_repository(tmp_path / "repo")
    for round_number in range(4):
        for number in range(300):
            write(root / f"d{number % 7}/f{number}", os.urandom(3_000))
        repository = fingerprint(root / ".git")
        command = [sys.executable, "-c", _TAKE, str(store.folder), str(root)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, process_group=0) as process:
            assert process.stdout is not None
            process.stdout.readline()
            # Later in each round, by the number of objects that are written; or when it is over.
            objects, enough = store.folder / "objects-sha1", 380 * round_number
            wait_for(lambda: process.poll() is not None or len(list(objects.glob("??/*"))) >= enough)  # noqa: B023 - called here
            if process.poll() is None:
                (os.killpg if with_its_children else os.kill)(process.pid, signal.SIGKILL)

        assert held(store, store.take(root)) == files_of(root)
        assert fingerprint(root / ".git") == repository
        assert not [*store.folder.rglob("*.lock"), *store.folder.rglob("tmp_*")]
