"""Stopping: nothing of a run is alive once the host says that it ended."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.runners.host import process_table
from agentmon.runners.host.ending import Ending
from agentmon.runners.host.family import Family
from agentmon.runners.host.journal import Journal
from tests.runners.host.host_runs import find_processes_with
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.runners.host.conftest import PrepareRun
    from tests.runners.host.host_runs import HostRun

# Two forks and a session of its own, so that nothing but its parent, the subreaper, leads to it.
_DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        if sys.argv[1] == "unmarked":
            os.execve("/bin/sleep", ["sleep", sys.argv[2]], {})
        os.execv("/bin/sleep", ["sleep", sys.argv[2]])
    os._exit(0)
os.wait()
print("ready", flush=True)
time.sleep(1000)
"""


def _unique_sleep(run: HostRun) -> str:
    return str(100_000 + int(run.execution_id[-6:], 16) / 1e9)


def test_a_stopped_run_is_over_with_nothing_alive(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "sleep 1000 & echo ready; wait").start()
    run.wait_for_output(b"ready")

    run.command("stop")

    ended = run.wait_for_end()
    assert (ended["outcome"], ended["exit_code"], ended["error"]) == ("stopped", 143, None)
    requested = run.wait_for_entry("stop_requested")
    assert (requested["command_id"], requested["kind"]) == ("c1", "stop")
    assert run.entries("signal_sent")[0]["signal"] == "TERM"
    assert len(run.entries("signal_sent")[0]["pids"]) == 2
    assert find_processes_with(run.execution_id) == []


def test_a_program_that_ignores_the_request_is_killed_after_the_grace(prepare_run: PrepareRun) -> None:
    # One process: what is forked while the killing goes on is killed, and told, once more.
    run = prepare_run("sh", "-c", "trap '' TERM HUP INT; echo ready; exec sleep 60", grace_s=0.3).start()
    run.wait_for_output(b"ready")

    run.command("stop")

    ended = run.wait_for_end()
    asked, killed = run.entries("signal_sent")
    assert (asked["signal"], killed["signal"]) == ("TERM", "KILL")
    assert killed["at_ms"] - asked["at_ms"] >= 290
    assert (ended["outcome"], ended["exit_code"]) == ("stopped", 137)
    assert find_processes_with(run.execution_id) == []


def test_a_program_may_use_the_grace_to_tidy_up(prepare_run: PrepareRun) -> None:
    script = "trap 'echo tidy; sleep 0.2; echo done; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    run = prepare_run("sh", "-c", script).start()
    run.wait_for_output(b"ready")

    run.command("stop")

    ended = run.wait_for_end()
    assert (ended["outcome"], ended["exit_code"]) == ("stopped", 5)
    assert run.output.endswith(b"tidy\ndone\n")


def test_the_ways_to_ask_come_one_after_another_and_share_the_grace(prepare_run: PrepareRun) -> None:
    script = "trap '' INT TERM HUP QUIT; echo ready; while :; do sleep 0.1; done"
    run = prepare_run("sh", "-c", script, grace_s=0.9, interrupt=["INT", "INT", "TERM"]).start()
    run.wait_for_output(b"ready")

    run.command("stop")

    assert run.wait_for_end()["outcome"] == "stopped"
    sent = run.entries("signal_sent")
    assert [entry["signal"] for entry in sent] == ["INT", "INT", "TERM", "KILL"]
    assert all(later["at_ms"] - earlier["at_ms"] >= 290 for earlier, later in itertools.pairwise(sent))


def test_the_ways_to_ask_share_the_grace(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    family = _Powerless("AGENTMON_EXECUTION_ID=powerless", is_subreaper=False)
    family.agent_pid = os.getpid()
    ending = Ending(family, journal, grace_s=900.0, interrupt=["INT", "INT", "TERM"])

    ending.stop("stopped")

    assert 0 < ending.next_step - time.monotonic() <= 300
    journal.close()


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT"])
def test_a_program_that_heeds_its_way_to_be_asked_hears_nothing_else(prepare_run: PrepareRun, name: str) -> None:
    script = f"trap 'echo heard; exit 5' {name}; echo ready; while :; do sleep 0.05; done"
    run = prepare_run("sh", "-c", script, grace_s=1000, interrupt=[name, "TERM"]).start()
    run.wait_for_output(b"ready")

    run.command("stop")

    ended = run.wait_for_end()
    assert (ended["outcome"], ended["exit_code"]) == ("stopped", 5)
    assert b"heard\n" in run.output
    assert [entry["signal"] for entry in run.entries("signal_sent")] == [name]


def test_a_kill_ends_the_asking(prepare_run: PrepareRun) -> None:
    script = "trap '' INT TERM; echo ready; while :; do sleep 0.1; done"
    run = prepare_run("sh", "-c", script, grace_s=1000, interrupt=["INT", "TERM"]).start()
    run.wait_for_output(b"ready")
    run.command("stop")
    run.wait_for_entry("signal_sent")

    run.command("kill")

    assert run.wait_for_end()["exit_code"] == 137
    assert [entry["signal"] for entry in run.entries("signal_sent")] == ["INT", "KILL"]


def test_a_kill_does_not_wait_for_the_grace(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done", grace_s=1000).start()
    run.wait_for_output(b"ready")

    run.command("kill")

    assert run.wait_for_end()["exit_code"] == 137
    assert [entry["signal"] for entry in run.entries("signal_sent")] == ["KILL"]


def test_a_stop_may_become_a_kill(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done", grace_s=1000).start()
    run.wait_for_output(b"ready")
    run.command("stop")
    run.wait_for_entry("signal_sent")

    run.command("kill")

    assert run.wait_for_end()["outcome"] == "stopped"
    assert [entry["kind"] for entry in run.entries("stop_requested")] == ["stop", "kill"]


@pytest.mark.parametrize("kind", ["marked", "unmarked"])
def test_a_stop_reaches_a_daemon_that_left_family_and_session(prepare_run: PrepareRun, kind: str) -> None:
    run = prepare_run("placeholder")
    sleep = _unique_sleep(run)
    run = prepare_run(sys.executable, "-c", _DAEMON, kind, sleep).start()
    run.wait_for_output(b"ready")
    wait_for(lambda: len(find_processes_with(f"sleep\0{sleep}")) == 1, "the daemon's program")

    run.command("stop")

    assert run.wait_for_end()["outcome"] == "stopped"
    assert find_processes_with(f"sleep\0{sleep}") == []


def test_a_stop_reaches_a_process_that_carries_only_the_marker(prepare_run: PrepareRun) -> None:
    run = prepare_run("cat").start()
    run.wait_for_entry("agent_started")
    carrier = subprocess.Popen(["sleep", "1000"], env={"AGENTMON_EXECUTION_ID": run.execution_id})
    other = subprocess.Popen(["sleep", "1000"], env={"AGENTMON_EXECUTION_ID": f"{run.execution_id}0"})

    run.command("stop")

    try:
        assert carrier.wait(20) == -signal.SIGTERM
        assert run.wait_for_end()["outcome"] == "stopped"
        assert other.poll() is None
    finally:
        for process in (carrier, other):
            process.kill()
            process.wait()


def test_a_suspended_program_hears_the_request(prepare_run: PrepareRun) -> None:
    script = "trap 'echo heard; exit 0' TERM; echo ready; kill -STOP $$; sleep 1000"
    run = prepare_run("sh", "-c", script, grace_s=1000).start()
    run.wait_for_output(b"ready")
    pid = run.wait_for_entry("agent_started")["pid"]
    wait_for(lambda: ") T " in Path(f"/proc/{pid}/stat").read_text(), "the program to be suspended")

    run.command("stop")

    assert run.wait_for_end()["exit_code"] == 0
    assert run.output.endswith(b"heard\n")


def test_a_command_whose_wake_up_was_missed_is_obeyed(prepare_run: PrepareRun) -> None:
    run = prepare_run("cat").start()
    run.wait_for_entry("agent_started")

    run.command("stop", wakes=False)

    assert run.wait_for_end()["outcome"] == "stopped"


def test_a_file_in_the_place_of_the_fifo_is_in_nobodys_way(prepare_run: PrepareRun) -> None:
    run = prepare_run("cat")
    (run.folder / "wake").write_text("no FIFO")
    run.start().wait_for_entry("agent_started")

    run.command("stop")

    assert run.wait_for_end()["outcome"] == "stopped"


def test_a_stop_before_the_start_starts_nothing(prepare_run: PrepareRun) -> None:
    run = prepare_run("touch", "started")
    run.command("stop", wakes=False)

    run.start()

    ended = run.wait_for_end()
    assert (ended["outcome"], ended["exit_code"]) == ("stopped", None)
    assert run.types() == ["host_started", "stop_requested", "ended"]
    assert not (run.folder.parent / "started").exists()


def test_rubbish_among_the_commands_is_passed_over(prepare_run: PrepareRun) -> None:
    run = prepare_run("cat").start()
    run.wait_for_entry("agent_started")
    with (run.folder / "control.jsonl").open("ab") as file:
        file.write(b'\0\xff\n{"id": 1, "type": "stop"}\n[]\n\n{"id": "z", "type": "dance"}\n{"id": "half')
        file.flush()
        os.truncate(file.fileno(), file.tell() - len('{"id": "half'))

    run.command("stop")
    run.command("stop", wakes=False, command_id="c1")

    assert run.wait_for_end()["outcome"] == "stopped"
    assert [entry["command_id"] for entry in run.entries("stop_requested")] == ["c1"]


def test_the_time_limit_ends_a_run_without_anybody(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "echo ready; sleep 1000", timeout_s=0.3).start()

    ended = run.wait_for_end()

    assert (ended["outcome"], ended["exit_code"]) == ("timed_out", 143)
    assert ended["error"] == "the time limit of 0.3 s was reached"
    assert run.wait_for_entry("time_limit_reached")["timeout_s"] == 0.3
    assert ended["duration_ms"] >= 290
    assert find_processes_with(run.execution_id) == []


@pytest.mark.proof
def test_what_outlives_the_program_is_ended_and_named(prepare_run: PrepareRun) -> None:
    script = "trap '' HUP TERM; sh -c 'echo ready; while :; do sleep 0.1; done' & sleep 0.3; exit 6"
    run = prepare_run("sh", "-c", script).start()

    ended = run.wait_for_end()

    assert (ended["outcome"], ended["exit_code"]) == ("exited", 6)
    commands = [process["command"] for process in run.wait_for_entry("stragglers")["processes"]]
    assert "sh -c echo ready; while :; do sleep 0.1; done" in commands
    assert [entry["signal"] for entry in run.entries("signal_sent")][:3] == ["HUP", "TERM", "KILL"]
    assert find_processes_with(run.execution_id) == []


def test_what_outlives_the_program_shortly_is_recorded_and_left_in_peace(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "(trap '' HUP; sleep 0.3; echo late) & sleep 0.1; echo early").start()

    ended = run.wait_for_end()

    assert run.output == b"early\nlate\n"
    assert (ended["outcome"], ended["exit_code"]) == ("exited", 0)
    assert "stragglers" not in run.types()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_host_that_is_asked_to_end_ends_the_run_properly(prepare_run: PrepareRun, number: int) -> None:
    run = prepare_run("sh", "-c", "echo ready; sleep 1000").start()
    run.wait_for_output(b"ready")

    os.kill(run.pid, number)

    ended = run.wait_for_end()
    assert (ended["outcome"], ended["exit_code"]) == ("terminated", 143)
    assert ended["error"] == f"the host was asked to end by signal {int(number)}"
    assert find_processes_with(run.execution_id) == []


def test_a_second_signal_to_the_host_kills_the_run(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done", grace_s=1000).start()
    run.wait_for_output(b"ready")
    os.kill(run.pid, signal.SIGTERM)
    run.wait_for_entry("signal_sent")

    os.kill(run.pid, signal.SIGTERM)

    assert run.wait_for_end()["outcome"] == "terminated"


def test_a_hang_up_does_not_end_the_host(prepare_run: PrepareRun) -> None:
    run = prepare_run("cat").start()
    run.wait_for_entry("agent_started")

    for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGTSTP, signal.SIGUSR1):
        os.kill(run.pid, number)
    run.command("stop")

    assert run.wait_for_end()["outcome"] == "stopped"


def test_a_host_that_fails_leaves_nothing_alive(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "sleep 1000 & trap '' TERM; echo ready; while :; do sleep 0.1; done")
    broken = (
        "import sys; sys.path.append(sys.argv[1]); from agentmon.runners.host import host, pump\n"
        "move = pump.Pump.move_rest\n"
        "def fail(self, now):\n    move(self, now)\n    raise MemoryError\n"
        "pump.Pump.move_rest = fail\n"
        "sys.exit(host.main(sys.argv[2:]))"
    )
    command = [sys.executable, "-I", "-S", "-c", broken, str(Path(__file__).parents[3]), str(run.folder)]

    answer = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    assert "MemoryError" in answer.stderr
    ended = run.wait_for_entry("ended")
    assert (ended["outcome"], ended["error"]) == ("terminated", "the host failed; what it said stands in its pane")
    assert find_processes_with(run.execution_id) == []


def test_no_zombie_stays_while_the_program_runs(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "for i in $(seq 50); do (true & ); done; echo ready; exec sleep 1000").start()
    run.wait_for_output(b"ready")

    def children() -> list[str]:
        text = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text()
        return text.split()

    wait_for(lambda: len(children()) == 1, "only the program to be left")


class _Powerless(Family):
    """A family whose members the system does not let the host signal."""

    def send(self, number: int, members: Sequence[process_table.Process]) -> list[int]:
        del number, members
        return []


def test_a_stop_that_fails_is_reported_and_goes_on(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    journal = Journal(str(tmp_path))
    family = _Powerless("AGENTMON_EXECUTION_ID=powerless", is_subreaper=False)
    family.agent_pid = process.pid
    ending = Ending(family, journal, grace_s=5.0)

    ending.kill(0.0, "stopped")
    for now in range(1, 13):
        ending.advance(float(now))

    (entry,) = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert entry["type"] == "could_not_stop"
    assert entry["processes"] == [{"pid": process.pid, "command": "sleep 1000"}]
    was_over = ending.is_over
    process.kill()
    family.agent_status = process.wait()
    ending.advance(13.0)
    assert (was_over, ending.is_over) == (False, True)
    journal.close()


def test_the_exit_of_a_program_stands_even_if_a_straggler_cannot_be_ended(tmp_path: Path) -> None:
    straggler = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    journal = Journal(str(tmp_path))
    family = _Powerless("AGENTMON_EXECUTION_ID=powerless", is_subreaper=False)
    family.agent_pid, family.agent_status = straggler.pid, 0
    ending = Ending(family, journal, grace_s=5.0)

    ending.note_program_end(0.0)
    # The grace of stragglers runs on the real clock, so the steps lie far behind it.
    start = time.monotonic()
    for step in range(20):
        ending.advance(start + 100.0 + step)

    types = [json.loads(line)["type"] for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert types == ["stragglers", "could_not_stop"]
    assert (ending.is_over, ending.outcome) == (True, "exited")
    straggler.kill()
    straggler.wait()
    journal.close()


def test_a_process_that_took_over_a_pid_is_never_signalled() -> None:
    process = subprocess.Popen(["sleep", "1000"], env={"AGENTMON_EXECUTION_ID": "taken-over"})
    try:
        family = Family("AGENTMON_EXECUTION_ID=taken-over", is_subreaper=False)
        family.agent_pid, family.agent_status = process.pid, 0
        (member,) = [found for found in family.find_members() if found.pid == process.pid]
        member.start_time += "1"

        assert family.send(signal.SIGKILL, [member]) == []
        member.start_time = member.start_time[:-1]
        assert process.poll() is None
        assert family.send(signal.SIGKILL, [member]) == [process.pid]
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(shutil.which("ps") is None, reason="this machine has no ps, and needs none where there is /proc")
def test_ps_tells_the_same_as_proc() -> None:
    process = subprocess.Popen(["sleep", "1000"], env={"AGENTMON_EXECUTION_ID": "seen-by-ps"})
    marker = b"AGENTMON_EXECUTION_ID=seen-by-ps"

    def find() -> list[process_table.Process]:
        return [found for found in process_table.read_processes(marker) if found.has_marker]

    try:
        wait_for(find, "the process to have its environment")
        process.send_signal(signal.SIGSTOP)  # nothing changes between the two looks
        wait_for(lambda: [found.state for found in find()] == ["T"], "the process to stand still")
        (by_proc,) = [found for found in process_table.read_processes(marker) if found.pid == process.pid]
        (by_ps,) = [found for found in process_table.read_with_ps(marker) if found.pid == process.pid]

        assert (by_ps.parent, by_ps.group, by_ps.session) == (by_proc.parent, by_proc.group, by_proc.session)
        assert by_ps.has_marker
        assert by_ps.state == by_proc.state
        assert by_ps.command.startswith("sleep 1000")
        assert len(by_ps.start_time.split()) == 5
    finally:
        process.kill()
        process.wait()
