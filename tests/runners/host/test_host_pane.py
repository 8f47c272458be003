"""The pane: a real tmux server or a bare pseudo-terminal in front of the host."""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import sys
import termios
import threading
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.runners.host.host_runs import host_command
from tests.runners.tmux_servers import RawTmux, short_folder
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.runners.host.conftest import PrepareRun
    from tests.runners.host.host_runs import HostRun


@pytest.fixture
def tmux() -> Iterator[RawTmux]:
    """Give a tmux server whose first pane waits; dead panes stay, so that they can be looked at."""
    with short_folder() as folder:
        server = RawTmux(folder / "s")
        server("new-session", "-d", "-s", "first", "-x", "80", "-y", "24", "sleep 1000")
        server("set-option", "-g", "remain-on-exit", "on")
        server("set-option", "-g", "history-limit", "100000")
        server("set-option", "-g", "status", "off")
        yield server


def _is_dead(tmux: RawTmux, session: str) -> bool:
    return tmux("display-message", "-p", "-t", session, "#{pane_dead}") == "1"


def _start_in_pane(tmux: RawTmux, run: HostRun) -> None:
    command = shlex.join(host_command(run.folder))
    tmux("new-session", "-d", "-s", "run", "-x", "100", "-y", "30", command)


@contextmanager
def _attached(tmux: RawTmux) -> Iterator[None]:
    """Attach a client, in a terminal whose output is read and thrown away."""
    outer, inner = os.openpty()
    termios.tcsetwinsize(inner, (30, 100))
    environ = {"TERM": "xterm-256color", "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    command = ["tmux", "-S", str(tmux.socket_path), "attach-session", "-t", "run"]
    client = subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner, env=environ, start_new_session=True)
    os.close(inner)
    reader = threading.Thread(target=_read_all, args=(outer, bytearray()))
    reader.start()
    try:
        wait_for(lambda: tmux("display-message", "-p", "-t", "run", "#{session_attached}") == "1", "the client")
        yield
    finally:
        client.kill()
        client.wait()
        reader.join()
        os.close(outer)


def _read_all(file: int, into: bytearray) -> None:
    while True:
        try:
            piece = os.read(file, 65536)
        except OSError:
            return
        if not piece:
            return
        into += piece


def test_what_the_program_writes_is_seen_in_the_pane(prepare_run: PrepareRun, tmux: RawTmux) -> None:
    run = prepare_run("sh", "-c", "tput cup 4 6; echo here; tput cols; echo $TERM; sleep 1000")

    _start_in_pane(tmux, run)

    wait_for(lambda: "100" in tmux.screen("run").splitlines(), "the width of the pane")
    lines = tmux.screen("run").splitlines()
    assert lines[4:7] == ["      here", "100", tmux("show-options", "-gv", "default-terminal")]


def test_what_the_person_types_reaches_the_program(prepare_run: PrepareRun, tmux: RawTmux) -> None:
    # A shell that gets the signal just before it starts a program waits for that program's end first.
    script = "trap 'echo interrupted; exit 7' INT; read line; echo got $line; while :; do sleep 0.05; done"
    run = prepare_run("sh", "-c", script)
    _start_in_pane(tmux, run)
    run.wait_for_entry("agent_started")

    tmux("send-keys", "-t", "run", "hello", "Enter")
    run.wait_for_output(b"got hello\n")
    tmux("send-keys", "-t", "run", "C-c")

    assert run.wait_for_end()["exit_code"] == 7
    assert b"interrupted\n" in run.output


def test_the_program_follows_the_size_of_the_pane(prepare_run: PrepareRun, tmux: RawTmux) -> None:
    run = prepare_run("sh", "-c", "trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done")
    _start_in_pane(tmux, run)
    run.wait_for_output(b"30 100\n")

    tmux("resize-window", "-t", "run", "-x", "90", "-y", "20")

    run.wait_for_output(b"20 90\n")


@pytest.mark.parametrize("end", ["kill-server", "kill -9"])
def test_the_death_of_tmux_costs_no_byte(prepare_run: PrepareRun, tmux: RawTmux, end: str) -> None:
    run = prepare_run("sh", "-c", "for i in $(seq 20); do seq 1000; sleep 0.03; done; exit 9")
    _start_in_pane(tmux, run)
    run.wait_for_output(b"1000\n1\n")

    if end == "kill-server":
        tmux("kill-server")
    else:
        os.kill(int(tmux("display-message", "-p", "#{pid}")), 9)

    ended = run.wait_for_end()
    assert (ended["outcome"], ended["exit_code"]) == ("exited", 9)
    assert run.output == b"".join(b"%d\n" % number for number in range(1, 1001)) * 20


def test_heavy_output_that_nobody_looks_at_is_shown_in_samples(prepare_run: PrepareRun, tmux: RawTmux) -> None:
    run = prepare_run("sh", "-c", "seq -f 'line %09.0f of a long listing' 300000; echo finished")
    _start_in_pane(tmux, run)

    ended = run.wait_for_end()

    wait_for(lambda: "finished" in tmux.screen("run"), f"the newest lines in {tmux.screen('run')}")
    history = tmux("capture-pane", "-p", "-S", "-", "-t", "run")
    assert "not shown here, all of it is in the log]" in history
    assert len(history.splitlines()) < 200_000
    assert "line 000300000 of a long listing" in history
    assert ended["output_lines"] == 300_001
    assert run.output.endswith(b"line 000300000 of a long listing\nfinished\n")


def test_a_program_that_ends_at_once_is_seen_whole(prepare_run: PrepareRun, tmux: RawTmux) -> None:
    runs = [prepare_run("seq", "5000") for _ in range(6)]

    for number, run in enumerate(runs):
        tmux("new-session", "-d", "-s", f"run{number}", "-x", "80", "-y", "24", shlex.join(host_command(run.folder)))

    for number, run in enumerate(runs):
        run.wait_for_end()
        wait_for(partial(_is_dead, tmux, f"run{number}"), "the pane to be dead")
        history = tmux("capture-pane", "-p", "-S", "-", "-t", f"run{number}").splitlines()
        assert history[:5000] == [str(line) for line in range(1, 5001)]


def test_somebody_who_looks_sees_every_line(prepare_run: PrepareRun, tmux: RawTmux) -> None:
    run = prepare_run("sh", "-c", "read line; seq -f 'line %09.0f of a long listing' 80000; echo finished")
    _start_in_pane(tmux, run)
    run.wait_for_entry("agent_started")

    with _attached(tmux):
        tmux("send-keys", "-t", "run", "Enter")
        run.wait_for_end()
        wait_for(lambda: "finished" in tmux.screen("run"), "the last line")
        history = tmux("capture-pane", "-p", "-S", "-", "-t", "run").splitlines()

    listing = [line for line in history if line.startswith("line ")]
    assert listing == [f"line {number:09d} of a long listing" for number in range(1, 80_001)]


class _Terminal:
    """A pseudo-terminal with the host in it and nothing else."""

    def __init__(self, run: HostRun, *, is_read: bool = True) -> None:
        self.outer, self.inner = os.openpty()
        self.seen = bytearray()
        self.attributes = termios.tcgetattr(self.inner)
        run.start(stdin=self.inner, stdout=self.inner)
        if is_read:
            self._reader = threading.Thread(target=_read_all, args=(self.outer, self.seen), daemon=True)
            self._reader.start()

    def close(self) -> None:
        os.close(self.inner)


def test_the_pane_gets_the_very_bytes_of_the_terminal(prepare_run: PrepareRun, tmp_path: Path) -> None:
    content = os.urandom(100_000)
    (tmp_path / "content").write_bytes(content)
    run = prepare_run("cat", str(tmp_path / "content"))

    terminal = _Terminal(run)

    run.wait_for_end()
    shown = content.replace(b"\n", b"\r\n")
    wait_for(lambda: len(terminal.seen) >= len(shown), "all bytes in the pane")
    assert terminal.seen == shown
    assert run.output == content
    terminal.close()


def test_the_terminal_gets_its_modes_back(prepare_run: PrepareRun) -> None:
    run = prepare_run("cat")
    terminal = _Terminal(run)
    run.wait_for_entry("agent_started")
    assert termios.tcgetattr(terminal.inner) != terminal.attributes

    run.command("stop")

    run.wait_for_end()
    assert termios.tcgetattr(terminal.inner) == terminal.attributes
    terminal.close()


def test_a_program_that_draws_its_screen_is_never_cut(prepare_run: PrepareRun) -> None:
    script = "import sys, tty; tty.setraw(0)\nfor n in range(40): sys.stdout.write(f'\\x1b[{n};1H' + 'w' * 100_000)"
    run = prepare_run(sys.executable, "-c", script)

    terminal = _Terminal(run)

    run.wait_for_end()
    wait_for(lambda: len(terminal.seen) >= len(run.output), "all bytes in the pane")
    assert terminal.seen == run.output
    assert len(run.output) > 4_000_000
    terminal.close()


@pytest.mark.proof
@pytest.mark.parametrize("mode", ["cooked", "raw"])
def test_a_pane_that_takes_nothing_holds_nobody_up(prepare_run: PrepareRun, mode: str) -> None:
    script = ("stty raw; " if mode == "raw" else "") + "head -c 3000000 /dev/zero"
    run = prepare_run("sh", "-c", script)

    terminal = _Terminal(run, is_read=False)

    run.wait_for_end()
    assert run.output == bytes(3_000_000)
    os.close(terminal.outer)
    terminal.close()


def test_typing_that_the_program_does_not_take_is_bounded_and_harmless(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "stty raw; echo ready; sleep 1000")
    terminal = _Terminal(run)
    run.wait_for_output(b"ready")
    os.set_blocking(terminal.outer, False)
    typed = 0
    end = time.monotonic() + 2

    while time.monotonic() < end and select.select((), (terminal.outer,), (), 0.3)[1]:
        typed += os.write(terminal.outer, b"k" * 4096)

    assert typed < 1_000_000
    run.command("stop")
    assert run.wait_for_end()["outcome"] == "stopped"
    terminal.close()


def test_a_person_sees_the_pause_and_what_they_type_waits_for_its_end(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "echo ready; read line; echo got $line")
    terminal = _Terminal(run)
    run.wait_for_output(b"ready")

    run.command("pause")
    run.wait_for_entry("paused")
    wait_for(lambda: b"[agentmon: paused; what is typed now waits until the run goes on]" in terminal.seen, "the line")
    os.write(terminal.outer, b"hello\n")
    prepare_run("sh", "-c", "for i in $(seq 20); do sleep 0.01; done").start().wait_for_end()
    logged_while_paused = run.output
    run.command("resume")

    run.wait_for_end()
    wait_for(lambda: b"[agentmon: resumed]" in terminal.seen, "the line of the end")
    assert logged_while_paused == b"ready\n"
    assert run.output == b"ready\nhello\ngot hello\n"
    terminal.close()


def test_what_is_typed_after_the_end_of_the_program_is_not_recorded(prepare_run: PrepareRun, tmp_path: Path) -> None:
    go = tmp_path / "go"
    run = prepare_run("sh", "-c", f"trap '' HUP; echo ready; (while [ ! -e {go} ]; do sleep 0.01; done; echo late) &")
    terminal = _Terminal(run)
    run.wait_for_entry("exited")

    os.write(terminal.outer, b"\x1b[?1;2c")
    go.touch()

    run.wait_for_end()
    assert run.output == b"ready\nlate\n"
    terminal.close()
