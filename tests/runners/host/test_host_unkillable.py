"""Processes that the host may not signal: programs of another user, as ``sudo`` starts them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.runners.host.host_runs import HostRun
from tests.runners.tmux_servers import short_folder
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

_SETPRIV = shutil.which("setpriv")
_ORDINARY_USER = 65534
_REPOSITORY = Path(__file__).parents[3]
# The modules come first: an ordinary user may not be allowed into the folder of this Python.
_ORDINARY_HOST = f"""
import sys
sys.path.append({str(_REPOSITORY)!r})
import os, _ctypes
from agentmon.runners.host import ending, host, pausing
ending._KILL_FOR_S = pausing._LOOK_FOR_S = 0.3
ending._STUCK_INTERVAL_S = pausing._LATE_LOOK_INTERVAL_S = 0.1
os.setgroups([])
os.setgid({_ORDINARY_USER})
os.setuid({_ORDINARY_USER})
os._exit(host.main(sys.argv[1:]))
"""

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not sys.platform.startswith("linux") or _SETPRIV is None,
    reason="only root can make processes that an ordinary user may not signal",
)


class _OrdinaryRun:
    """A run of an ordinary user, with two processes of root in it."""

    def __init__(self, run: HostRun) -> None:
        self.run = run

    def roots_pids(self) -> list[int]:
        """Return the pids of root's processes once they are root's."""
        pids = wait_for(lambda: self._printed() if len(self._printed()) == 2 else [], "both to tell their pids")
        wait_for(lambda: all(_is_roots(pid) for pid in pids), "both to be root's")
        return sorted(pids)

    def _printed(self) -> list[int]:
        log = self.run.folder / "output.log"
        return [int(line) for line in log.read_bytes().split(b"\n")[:-1]] if log.exists() else []


def _is_roots(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    (user_ids,) = [line.split()[1:] for line in status if line.startswith("Uid:")]
    return set(user_ids) == {"0"}


@pytest.fixture
def ordinary() -> Iterator[_OrdinaryRun]:
    """Give a started run of an ordinary user; nothing of it is left afterwards."""
    assert _SETPRIV is not None
    with short_folder() as folder:
        folder.chmod(0o755)
        become_root = folder / "become-root"
        shutil.copy(_SETPRIV, become_root)
        become_root.chmod(0o4755)
        # The hang-up of the terminal comes from the system itself, which may signal everybody.
        one = f"echo $$; exec {become_root} --reuid 0 --clear-groups sleep 1000"
        script = f"trap '' HUP; sh -c '{one}' & sh -c '{one}' & wait"
        run = HostRun.prepare(folder / "run", "sh", "-c", script, grace_s=0.1, working_dir="/")
        for path in (run.folder, *run.folder.iterdir()):
            os.chown(path, _ORDINARY_USER, _ORDINARY_USER)
        run.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _ORDINARY_HOST, str(run.folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        try:
            yield _OrdinaryRun(run)
        finally:
            run.end()


def test_a_stop_that_the_system_refuses_is_reported_until_nothing_is_left(ordinary: _OrdinaryRun) -> None:
    run, (first, second) = ordinary.run, ordinary.roots_pids()

    run.command("stop")

    refused = run.wait_for_entry("could_not_stop")
    assert refused["processes"] == [{"pid": pid, "command": "sleep 1000"} for pid in (first, second)]
    assert not {first, second} & {pid for entry in run.entries("signal_sent") for pid in entry["pids"]}
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: len(run.entries("could_not_stop")) == 2, "the change to be reported")
    assert run.entries("could_not_stop")[1]["processes"] == [{"pid": second, "command": "sleep 1000"}]
    assert run.process is not None
    assert run.process.poll() is None
    os.kill(second, signal.SIGKILL)
    assert (run.wait_for_end()["outcome"], run.types()[-1]) == ("stopped", "ended")
    assert len(run.entries("could_not_stop")) == 2


def test_a_pause_names_what_the_system_does_not_let_it_halt(ordinary: _OrdinaryRun) -> None:
    run, roots_pids = ordinary.run, ordinary.roots_pids()
    program = run.wait_for_entry("agent_started")["pid"]

    run.command("pause")

    paused = run.wait_for_entry("paused")
    assert (paused["pids"], paused["still_running"]) == ([program], roots_pids)
    for pid in roots_pids:
        os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: len(run.entries("paused")) == 2, "the pause to be whole")
    whole = run.entries("paused")[1]
    assert (whole["command_id"], whole["pids"], whole["still_running"]) == ("c1", [program, *roots_pids], [])
