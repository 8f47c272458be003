"""Pausing: nothing of the run runs, nothing is lost, and the clock of its time limit stands still."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.runners.execution_folder import ExecutionFolder
from agentmon.runners.host.process_table import is_in_debugger
from tests.runners.host.host_runs import find_processes_with
from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.runners.host.conftest import PrepareRun
    from tests.runners.host.host_runs import HostRun

_ATTACH, _DETACH = 16, 17
# Of ptrace on Linux.
_COUNT = "i=0; while :; do i=$((i + 1)); echo $i; sleep 0.01; done"
# D: a shell that has started a program waits for it in the system until that has begun, which it does not while halted.
_HALTED = {"T", "D"}
# Forks without end, each child from another parent, so that one is always just being born.
_FORKING = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
# As many die as are born: a number that grows would take the machine away from all other tests.
os.fork(), os.fork(), os.fork()
while True:
    if os.fork():
        time.sleep(0.02)
        os._exit(0)
    os.write(1, b"born\\n")
    time.sleep(0.01)
"""


def _states(run: HostRun) -> dict[int, str]:
    states = {}
    for pid in find_processes_with(run.execution_id):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            continue
        states[pid] = stat.rpartition(")")[2].split()[0]
    return states


def _pass_time(prepare_run: PrepareRun, lines: int = 30) -> None:
    """Return when another run has printed so many lines, which takes it a hundredth of a second each."""
    prepare_run("sh", "-c", f"for i in $(seq {lines}); do echo $i; sleep 0.01; done").start().wait_for_end()


@pytest.mark.parametrize(
    "argv",
    [
        ("sh", "-c", _COUNT),
        ("bash", "-c", f"set -m; sh -c '{_COUNT}'"),
        ("sh", "-c", f"setsid sh -c '{_COUNT}' & wait"),
        ("sh", "-c", f"sh -c '{_COUNT}' | cat"),
    ],
    ids=["loop", "job", "background session", "pipe"],
)
def test_a_paused_program_prints_nothing_and_goes_on_without_a_gap(
    prepare_run: PrepareRun, argv: tuple[str, ...]
) -> None:
    run = prepare_run(*argv).start()
    run.wait_for_output(b"\n5\n")

    run.command("pause")
    paused = run.wait_for_entry("paused")
    printed = run.output
    states = _states(run)
    _pass_time(prepare_run)
    printed_meanwhile = run.output.removeprefix(printed)
    run.command("resume")

    newest = int(printed.split()[-1])
    run.wait_for_output(b"\n%d\n" % (newest + 20))
    run.command("stop")
    run.wait_for_end()
    assert (paused["command_id"], paused["still_running"]) == ("c1", [])
    assert set(states) == set(paused["pids"])
    assert set(states.values()) <= _HALTED
    # What it had written to its terminal before may still be on its way, and is one line at most.
    assert printed_meanwhile.count(b"\n") <= 1
    assert run.wait_for_entry("resumed")["command_id"] == "c2"
    numbers = [int(line) for line in run.output.split(b"\n")[:-1]]
    assert numbers == list(range(1, len(numbers) + 1))


def test_nothing_that_is_born_meanwhile_escapes_the_pause(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", '"$0" -c "$1" & exec sleep 1000', sys.executable, _FORKING).start()
    run.wait_for_output(b"born\nborn\nborn\n")

    run.command("pause")

    paused = run.wait_for_entry("paused")
    states = _states(run)
    _pass_time(prepare_run)
    assert (set(states.values()) - _HALTED, paused["still_running"]) == (set(), [])
    assert _states(run) == states
    run.command("resume")
    size = len(run.output)
    wait_for(lambda: len(run.output) > size, "more output")
    run.command("kill")
    assert run.wait_for_end()["outcome"] == "stopped"
    assert find_processes_with(run.execution_id) == []


def test_a_pause_asked_twice_is_one_pause(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", _COUNT).start()
    run.wait_for_output(b"\n5\n")
    run.command("pause")
    run.wait_for_entry("paused")

    run.command("pause")
    run.command("resume")

    size = len(run.output)
    wait_for(lambda: len(run.output) > size + 100, "more output")
    assert [entry["command_id"] for entry in run.entries() if "command_id" in entry] == ["c1", "c3"]


def test_a_resume_without_a_pause_is_passed_over(prepare_run: PrepareRun) -> None:
    run = prepare_run("cat").start()
    run.wait_for_entry("agent_started")

    run.command("resume")
    run.command("stop")

    run.wait_for_end()
    assert "resumed" not in run.types()


def test_a_pause_comes_through_the_fifo_too(prepare_run: PrepareRun) -> None:
    run = prepare_run("cat").start()
    run.wait_for_entry("agent_started")

    ExecutionFolder(run.folder).append_command({"id": "from the worker", "type": "pause"})

    assert run.wait_for_entry("paused")["command_id"] == "from the worker"


@pytest.mark.proof
def test_paused_time_does_not_count_for_the_time_limit(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", _COUNT, timeout_s=2.0).start()
    run.wait_for_output(b"1\n")
    run.command("pause")
    run.wait_for_entry("paused")

    prepare_run("sleep", "1000", timeout_s=2.2).start().wait_for_end()
    types_while_paused = run.types()
    run.command("resume")

    ended = run.wait_for_end()
    assert "time_limit_reached" not in types_while_paused
    assert ended["outcome"] == "timed_out"
    paused_ms = run.wait_for_entry("resumed")["at_ms"] - run.wait_for_entry("paused")["at_ms"]
    assert ended["duration_ms"] - paused_ms >= 1990


def test_the_death_of_a_paused_program_is_noticed(prepare_run: PrepareRun) -> None:
    run = prepare_run(
        "sh", "-c", "trap '' HUP; (until [ -e go ]; do sleep 0.02; done; echo late) & echo ready; exec sleep 1000"
    )
    run.start().wait_for_output(b"ready")
    pid = run.wait_for_entry("agent_started")["pid"]
    run.command("pause")
    run.wait_for_entry("paused")
    (run.folder.parent / "go").touch()

    os.kill(pid, signal.SIGKILL)

    ended = run.wait_for_end()
    assert (ended["outcome"], ended["exit_code"]) == ("exited", 137)
    assert run.output == b"ready\nlate\n"
    assert find_processes_with(run.execution_id) == []


def test_a_paused_program_may_tidy_up_when_it_is_stopped(prepare_run: PrepareRun) -> None:
    script = "trap 'echo tidy; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    run = prepare_run("sh", "-c", script, grace_s=1000).start()
    run.wait_for_output(b"ready")
    run.command("pause")
    run.wait_for_entry("paused")

    run.command("stop")

    ended = run.wait_for_end()
    assert (ended["outcome"], ended["exit_code"]) == ("stopped", 5)
    assert run.output.endswith(b"tidy\n")


def test_a_paused_program_can_be_killed(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", _COUNT).start()
    run.wait_for_output(b"\n5\n")
    run.command("pause")
    run.wait_for_entry("paused")

    run.command("kill")

    assert run.wait_for_end()["exit_code"] == 137
    assert find_processes_with(run.execution_id) == []


def test_a_host_that_is_asked_to_end_ends_a_paused_run(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", _COUNT).start()
    run.wait_for_output(b"\n5\n")
    run.command("pause")
    run.wait_for_entry("paused")

    os.kill(run.pid, signal.SIGTERM)

    assert run.wait_for_end()["outcome"] == "terminated"
    assert find_processes_with(run.execution_id) == []


def test_a_pause_of_a_run_that_is_ending_is_ignored(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", f"trap '' TERM; {_COUNT}", grace_s=1000).start()
    run.wait_for_output(b"\n5\n")
    run.command("stop")
    run.wait_for_entry("signal_sent")

    run.command("pause")

    newest = int(run.output.split()[-1])
    run.wait_for_output(b"\n%d\n" % (newest + 30))
    run.command("kill")
    assert run.wait_for_end()["outcome"] == "stopped"
    assert "paused" not in run.types()


def test_a_program_that_somebody_else_halts_is_not_paused(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "echo ready; kill -STOP $$", timeout_s=0.5).start()

    ended = run.wait_for_end()

    assert ended["outcome"] == "timed_out"
    assert "paused" not in run.types()


@pytest.mark.proof
def test_time_in_which_the_machine_was_halted_does_not_count_for_the_time_limit(prepare_run: PrepareRun) -> None:
    run = prepare_run("sleep", "1000", timeout_s=3.0).start()
    run.wait_for_entry("agent_started")
    began = time.monotonic()
    os.kill(run.pid, signal.SIGSTOP)
    prepare_run("sleep", "1000", timeout_s=5.5).start().wait_for_end()
    halted_s = time.monotonic() - began
    os.kill(run.pid, signal.SIGCONT)

    ended = run.wait_for_end()

    assert ended["outcome"] == "timed_out"
    assert ended["duration_ms"] / 1000 > halted_s + 1.5


@pytest.mark.proof
def test_time_in_a_debugger_does_not_count_for_the_time_limit(prepare_run: PrepareRun) -> None:
    run = prepare_run("sleep", "1000", timeout_s=3.0).start()
    pid = run.wait_for_entry("agent_started")["pid"]
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    if ptrace(_ATTACH, pid, 0, 0):
        pytest.skip(f"no debugger may be used here: {os.strerror(ctypes.get_errno())}")
    wait_for(lambda: is_in_debugger(pid))
    prepare_run("sleep", "1000", timeout_s=5.5).start().wait_for_end()
    types = run.types()
    ptrace(_DETACH, pid, 0, 0)

    ended = run.wait_for_end()

    assert "time_limit_reached" not in types
    assert ended["outcome"] == "timed_out"


def test_a_run_that_is_paused_before_its_start_waits(prepare_run: PrepareRun) -> None:
    run = prepare_run("touch", "started")
    run.command("pause", wakes=False)

    run.start()

    assert run.wait_for_entry("paused")["pids"] == []
    _pass_time(prepare_run)
    assert run.types() == ["host_started", "paused"]
    assert not (run.folder.parent / "started").exists()
    run.command("resume")
    assert run.wait_for_end()["outcome"] == "exited"
    assert (run.folder.parent / "started").exists()


@pytest.mark.parametrize("kind", ["stop", "kill", "signal"])
def test_a_run_that_waits_for_its_start_can_be_ended(prepare_run: PrepareRun, kind: str) -> None:
    run = prepare_run("touch", "started")
    run.command("pause", wakes=False)
    run.start().wait_for_entry("paused")

    if kind == "signal":
        os.kill(run.pid, signal.SIGTERM)
    else:
        run.command(kind)

    ended = run.wait_for_end()
    assert (ended["outcome"], ended["exit_code"]) == ("terminated" if kind == "signal" else "stopped", None)
    assert not (run.folder.parent / "started").exists()


def test_a_pause_that_was_over_before_the_start_is_none(prepare_run: PrepareRun) -> None:
    run = prepare_run("true")
    for kind in ("pause", "resume"):
        run.command(kind, wakes=False)

    run.start()

    assert run.wait_for_end()["exit_code"] == 0
    assert not {"paused", "resumed"} & set(run.types())


def test_a_run_can_be_paused_again_and_again(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "for i in $(seq 200); do echo $i; done; read line").start()
    run.wait_for_entry("agent_started")

    for count in range(1, 9):
        for kind, entry_type in (("pause", "paused"), ("resume", "resumed")):
            run.command(kind)
            wait_for(lambda: len(run.entries(entry_type)) == count, f"{entry_type}, {count} times")  # noqa: B023 - at once

    run.command("stop")
    run.wait_for_end()
    assert run.output == b"".join(b"%d\n" % number for number in range(1, 201))
