"""Calls from within a sandbox: each is started outside, with the caller's files, and ends with whoever called."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.runners.sandbox.trial import find_sandbox_problem
from tests.runners.host.host_runs import find_processes_with
from tests.waiting import DEADLINE_S, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.runners.host.conftest import PrepareRun
    from tests.runners.host.host_runs import HostRun

pytestmark = pytest.mark.skipif(bool(find_sandbox_problem()), reason="this machine gives an ordinary user no sandbox")


@pytest.fixture
def sandboxed(prepare_run: PrepareRun, tmp_path: Path) -> Iterator[HostRun]:
    """Yield a run in a sandbox whose program waits; its calls are about a board of their own."""
    layout: dict[str, object] = {name: [] for name in ("hidden", "emptied", "copied", "kept")}
    run = prepare_run(
        *("sh", "-c", "echo ready; sleep 1000"),
        sandbox={**layout, "writable": None, "socket": None, "has_network": True},
        calls_environment={"AGENTMON_HOME": str(tmp_path / "home")},
    ).start()
    run.wait_for_output(b"ready")
    yield run
    if run.process is not None and run.process.poll() is None:
        run.command("kill")
        run.wait_for_end()


def dial(run: HostRun) -> socket.socket:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.connect(str(run.folder / "calls.sock"))
    line.settimeout(DEADLINE_S)
    return line


def ask(line: socket.socket, *words: str, files: tuple[int, ...], **more: object) -> None:
    asked = {"words": list(words), "folder": "/", "variables": {}} | more
    socket.send_fds(line, [json.dumps(asked).encode() + b"\n"], list(files))


def answer(line: socket.socket) -> bytes:
    told = b""
    while piece := line.recv(100):
        told += piece
    return told


def test_a_call_has_the_files_of_the_caller_and_its_exit_code_comes_back(sandboxed: HostRun, tmp_path: Path) -> None:
    with (tmp_path / "said").open("wb+") as said, dial(sandboxed) as line:
        ask(line, "--version", files=(said.fileno(),) * 3)

        assert answer(line) == b"0\n"
        assert (tmp_path / "said").read_text().startswith("agentmon ")
    with (tmp_path / "said").open("wb+") as said, dial(sandboxed) as line:
        ask(line, "no-such-command", files=(said.fileno(),) * 3)

        assert answer(line) == b"2\n"


def test_only_harmless_variables_of_the_caller_reach_a_call(sandboxed: HostRun, tmp_path: Path) -> None:
    probe = tmp_path / "usercustomize.py"
    probe.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    variables = {"PYTHONPATH": str(tmp_path), "AGENTMON_HOME": str(tmp_path / "other"), "LANG": "C", "COLUMNS": "1\0"}

    with (tmp_path / "said").open("wb+") as said, dial(sandboxed) as line:
        ask(line, "settings", "worker.max_running", "--json", files=(said.fileno(),) * 3, variables=variables)

        assert answer(line) == b"0\n", (tmp_path / "said").read_text()
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("content", "count"),
    [
        (b"no JSON\n", 3),
        (b"[]\n", 3),
        (b"\xff\n", 3),
        (b'{"words": ["--version"]}\n', 0),
        (b'{"words": ["--version"]}\n', 2),
        (b"[" * 100_000 + b"\n", 3),
        (b"x" * 2_000_000, 3),
    ],
)
def test_what_is_no_call_is_hung_up_on_and_others_are_served(sandboxed: HostRun, content: bytes, count: int) -> None:
    with dial(sandboxed) as line, Path(os.devnull).open("r+b") as nothing:
        try:
            sent = socket.send_fds(line, [content], [nothing.fileno()] * count)
            line.sendall(content[sent:])
            assert answer(line) == b""
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has hung up already

        with dial(sandboxed) as other:
            ask(other, "--version", files=(nothing.fileno(),) * 3)
            assert answer(other) == b"0\n"


def test_a_flood_of_files_is_hung_up_on_and_the_run_can_be_stopped(sandboxed: HostRun) -> None:
    with Path(os.devnull).open("r+b") as nothing, dial(sandboxed) as line:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(2000):
                socket.send_fds(line, [b"x"], [nothing.fileno()] * 3)

        with dial(sandboxed) as other:
            ask(other, "--version", files=(nothing.fileno(),) * 3)
            assert answer(other) == b"0\n"
        assert len(list(Path(f"/proc/{sandboxed.pid}/fd").iterdir())) < 50

    sandboxed.command("stop")
    assert sandboxed.wait_for_end()["outcome"] == "stopped"


def test_who_hangs_up_ends_the_call(sandboxed: HostRun) -> None:
    with Path(os.devnull).open("r+b") as nothing, dial(sandboxed) as line:
        ask(line, "worker", "--status", "--mark-of-this-call", files=(nothing.fileno(),) * 3)
        wait_for(lambda: find_processes_with("--mark-of-this-call"))

    wait_for(lambda: not find_processes_with("--mark-of-this-call"))
    assert not sandboxed.entries("ended")


def test_more_callers_than_are_served_at_once_are_all_answered(sandboxed: HostRun) -> None:
    with Path(os.devnull).open("r+b") as nothing, contextlib.ExitStack() as stack:
        lines = [stack.enter_context(dial(sandboxed)) for _ in range(40)]
        for line in lines:
            ask(line, "--version", files=(nothing.fileno(),) * 3)

        assert [answer(line) for line in lines] == [b"0\n"] * 40


def test_calls_end_with_the_run_and_leave_no_socket(sandboxed: HostRun) -> None:
    reader, writer = os.pipe()
    with Path(os.devnull).open("r+b") as nothing, dial(sandboxed) as line:
        # A task that is read from a standard input which nobody closes.
        ask(line, "add", "-", files=(reader, nothing.fileno(), nothing.fileno()))
        wait_for(lambda: find_processes_with("AGENTMON_CALLED=1") and sandboxed.entries("agent_started"))

        sandboxed.command("stop")

        assert sandboxed.wait_for_end()["outcome"] == "stopped"
        assert answer(line) == b""
    os.close(reader)
    os.close(writer)
    wait_for(lambda: not [pid for pid in find_processes_with(sandboxed.execution_id) if pid != os.getpid()])
    assert not (sandboxed.folder / "calls.sock").exists()


def test_a_run_whose_sandbox_cannot_be_had_does_not_start(prepare_run: PrepareRun, tmp_path: Path) -> None:
    layout: dict[str, object] = {name: [] for name in ("hidden", "emptied", "copied", "kept")}
    gone = [str(tmp_path / "gone"), str(tmp_path / "target")]
    mark = tmp_path / "ran"
    run = prepare_run(
        sys.executable,
        "-c",
        f"open({str(mark)!r}, 'w')",
        sandbox={**layout, "writable": None, "socket": gone, "has_network": True},
    ).start()

    assert run.wait_for_end()["outcome"] == "start_failed"
    assert "sandbox" in str(run.wait_for_entry("start_failed")["error"])
    assert not mark.exists()
