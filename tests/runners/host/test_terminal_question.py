"""Plain programs that wait for a person at their terminal, and those that only think."""

from __future__ import annotations

import json
import os
import pty
import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from agentmon.runners.host.progress import Progress
from agentmon.runners.host.terminal_question import TerminalQuestion
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.runners.host.conftest import PrepareRun
    from tests.runners.host.host_runs import Document, HostRun

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process waits for")
CONFIRM = ("sh", "-c", "printf 'Proceed? [y/N] '; read answer; sleep 600")
PASSWORD = (sys.executable, "-c", "import getpass; getpass.getpass('Password: ')")
SINGLE_KEY = ("bash", "-c", "read -p 'any key ' -n1 answer; sleep 600")
PYTHON = (sys.executable, "-c")
OPENS = "import os, select, sys, threading, tty; print({text}, end='', flush=True); "
READLINE = (*PYTHON, "import readline; input('Proceed? ')")
DEBUGGER = (*PYTHON, "import pdb; pdb.set_trace(); x = 1")
EDITED = ("bash", "-c", "read -e -p 'Proceed? ' answer; sleep 600")
ASKS = OPENS.format(text="'Proceed? '")
SELECTS = (*PYTHON, f"{ASKS} select.select([0], [], [])")
POLLS = (*PYTHON, f"{ASKS} p = select.poll(); p.register(0, 1); p.poll()")
THREAD = (*PYTHON, f"{ASKS} t = threading.Thread(target=sys.stdin.readline); t.start(); t.join()")
EPOLL = "e = select.epoll(); e.register(0, 1); e.register(os.pipe()[0], 1); e.poll()"
RAW_EPOLL = (*PYTHON, f"import tty; tty.setraw(0); {ASKS} {EPOLL}")
"""As Node.js waits for a line."""
COMPILES = OPENS.format(text="'compiling... '")
ON_OTHER_SCREEN = "import tty; tty.setraw(0); " + OPENS.format(text="'\\x1b[?1049hcompiling... '")
THINKS = ("sh", "-c", "printf 'compiling... '; sleep 600")
THINKS_AFTER_A_LINE = ("sh", "-c", "echo done; read answer")


class Asked:
    """A question of a program in a real terminal, looked at by a clock of the test."""

    def __init__(self, pid: int, outer: int) -> None:
        self.pid = pid
        self.outer = outer
        self.events: list[Document] = []
        self.now = 0.0
        self.progress = Progress()
        inner = os.open(os.ptsname(outer), os.O_RDWR | os.O_NOCTTY) if hasattr(os, "ptsname") else outer
        agent = SimpleNamespace(outer_end=outer, inner_terminal=inner)
        journal = SimpleNamespace(add=lambda _type, *, event: self.events.append(event))
        self.question = TerminalQuestion(cast("Any", agent), cast("Any", journal), self.progress)

    def read(self, text: bytes) -> None:
        output = b""
        while text not in output:
            output += os.read(self.outer, 4096)
        self.progress.add(output)
        self.question.note_output(self.now)

    def look(self) -> list[str]:
        """Return the activities that were told by the time of the next look."""
        self.now = max(self.now + 0.5, self.question.next_look) if self.question.next_look < 1e9 else self.now + 60
        self.question.look(self.now)
        return [event["activity"] for event in self.events]


@contextmanager
def asked(*argv: str) -> Iterator[Asked]:
    pid, outer = pty.fork()
    if not pid:
        os.execvp(argv[0], argv)
    try:
        yield Asked(pid, outer)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(outer)


@pytest.mark.parametrize(
    ("argv", "text", "how"),
    [
        pytest.param(CONFIRM, "Proceed? [y/N]", "whole lines", marks=needs_proc),
        pytest.param(SINGLE_KEY, "any key", "single keys", marks=needs_proc),
        (PASSWORD, "Password:", "without echo"),
    ],
    ids=["a line", "a key", "a password"],
)
def test_a_program_that_reads_its_terminal_on_an_open_line_asks(argv: tuple[str, ...], text: str, how: str) -> None:
    with asked(*argv) as program:
        program.read(text.encode())

        wait_for(lambda: program.look() == ["waiting"])

        assert program.events[0]["note"] == f"asks in its terminal: {text}"
        assert how in program.events[0]["source"]
        os.write(program.outer, b"y\n")
        program.question.note_output(program.now)
        assert program.events[-1]["activity"] == "working"


@pytest.mark.parametrize(
    ("argv", "is_guess"),
    [
        (READLINE, True),
        (DEBUGGER, True),
        (EDITED, True),
        (SELECTS, True),
        (POLLS, True),
        (THREAD, False),
        (RAW_EPOLL, True),
    ],
    ids=["readline", "debugger", "edited line", "select", "poll", "thread", "epoll"],
)
@needs_proc
def test_a_program_that_waits_otherwise_than_by_reading_asks(argv: tuple[str, ...], is_guess: bool) -> None:
    with asked(*argv) as program:
        program.read(b"(Pdb) " if argv is DEBUGGER else b"Proceed? ")

        wait_for(lambda: program.look() == ["waiting"])

        assert ("a guess" in program.events[0]["source"]) is is_guess


@pytest.mark.parametrize(
    "argv",
    [
        ("sh", "-c", "stty -echo; printf 'compiling... '; sleep 600"),
        (*PYTHON, f"{COMPILES} select.select([os.pipe()[0]], [], [])"),
        (*PYTHON, f"{COMPILES} {EPOLL}"),
        (*PYTHON, f"{ON_OTHER_SCREEN} {EPOLL}"),
    ],
    ids=["without echo", "another file", "line mode", "another screen"],
)
@needs_proc
def test_a_program_that_does_not_wait_for_a_person_alone_never_asks(argv: tuple[str, ...]) -> None:
    with asked(*argv) as program:
        program.read(b"compiling... ")
        wait_for(lambda: Path(f"/proc/{program.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S")

        assert [program.look() for _ in range(10)] == [[]] * 10


@needs_proc
def test_an_answer_that_shows_nothing_is_noticed() -> None:
    with asked("bash", "-c", "read -s -p 'Token: ' answer; sleep 600") as program:
        program.read(b"Token:")
        wait_for(lambda: program.look() == ["waiting"])

        os.write(program.outer, b"secret\n")

        wait_for(lambda: program.look() == ["waiting", "working"])


@pytest.mark.parametrize("argv", [THINKS, THINKS_AFTER_A_LINE], ids=["thinks", "finished line"])
def test_a_program_that_only_thinks_never_asks(argv: tuple[str, ...]) -> None:
    with asked(*argv) as program:
        program.read(b"compiling..." if argv is THINKS else b"done\r\n")

        assert [program.look() for _ in range(10)] == [[]] * 10


@needs_proc
def test_a_host_tells_that_its_program_asks_and_that_it_goes_on(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "printf 'Proceed? [y/N] '; read answer; echo got $answer").start()

    wait_for(lambda: activities(run) == ["waiting"])
    with (run.folder / "control.jsonl").open("a") as control:
        control.write(json.dumps({"id": "t", "type": "type", "text": "yes\n", "is_paste": False}) + "\n")
    run.wait_for_end()

    assert activities(run) == ["waiting", "working"]
    assert b"got yes" in run.output


@pytest.mark.proof
@needs_proc
def test_an_agent_in_its_own_screen_is_left_to_the_rules(prepare_run: PrepareRun) -> None:
    run = prepare_run(*CONFIRM, mode="tmux", timeout_s=3).start()

    run.wait_for_end()

    assert activities(run) == []


def activities(run: HostRun) -> list[str]:
    events = [entry["event"] for entry in run.entries("agent_event")]
    return [event["activity"] for event in events if event["kind"] == "activity"]
