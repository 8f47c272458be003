"""The last word of a run on a full disk: its host stays until how the run ended stands in the journal."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import shutil
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from agentmon.runners.execution_folder import ExecutionFolder
from agentmon.runners.host import journal as journal_module
from agentmon.runners.host.journal import Journal
from tests.runners.host.conversations import Conversation
from tests.runners.host.host_runs import find_processes_with, impatient_host_command
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.runners.host.conftest import PrepareRun
    from tests.runners.host.host_runs import Document, HostRun
    from tests.runners.host.scripted_agent import Act

_WAITS = b"the result is saved as soon as there is space"


class Disk:
    """What a journal is written to: takes everything, nothing, or with a generator a part now and then."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        self.generator: random.Random | None = None
        monkeypatch.setattr(journal_module, "os", SimpleNamespace(**{**vars(os), "write": self._write}))
        self.journal = Journal(str(folder))

    def _write(self, file: int, line: bytes) -> int:
        if self.is_full or (self.generator is not None and self.generator.random() < 0.5):
            raise OSError(errno.ENOSPC, "no space")
        if self.generator is not None:
            line = line[: self.generator.randint(1, len(line))]
        return os.write(file, line)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk(tmp_path, monkeypatch)
    yield disk
    disk.journal.close()


def _lines(folder: Path) -> list[Document]:
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]


def test_nothing_that_counts_is_dropped_however_much_waits(tmp_path: Path, disk: Disk) -> None:
    journal = disk.journal
    disk.is_full = True

    for number in range(3000):
        journal.add("agent_event", event={"kind": "ask", "request_id": str(number)})
    journal.add("exited", exit_code=0, signal=None)
    journal.add("ended", outcome="exited")
    disk.is_full = False
    journal.retry()

    lines = _lines(tmp_path)
    assert [line["n"] for line in lines] == list(range(1, 3003))
    assert [line["event"]["request_id"] for line in lines[:3000]] == [str(number) for number in range(3000)]
    assert [line["type"] for line in lines[3000:]] == ["exited", "ended"]
    assert not journal.is_behind


def test_decoration_is_left_out_when_much_waits_and_the_journal_says_how_much(tmp_path: Path, disk: Disk) -> None:
    journal = disk.journal
    disk.is_full = True

    for _ in range(100):
        journal.add("agent_event", event={"kind": "message", "text": "x" * 100_000})
        journal.add("output", bytes=1)
    journal.add("agent_event", event={"kind": "turn_ended"})
    journal.add("ended", outcome="exited")
    disk.is_full = False
    journal.retry()

    lines = _lines(tmp_path)
    (left_out,) = [line for line in lines if line["type"] == "left_out"]
    assert [line["n"] for line in lines] == list(range(1, len(lines) + 1))
    assert [line["type"] for line in lines[-3:]] == ["left_out", "agent_event", "ended"]
    assert left_out["entries"] + len(lines) - 3 == 200
    assert (tmp_path / "journal.jsonl").stat().st_size < 5_000_000


@pytest.mark.parametrize("seed", range(5))
def test_lines_that_a_disk_takes_in_pieces_are_whole(tmp_path: Path, disk: Disk, seed: int) -> None:
    journal = disk.journal
    disk.generator = random.Random(seed)

    for number in range(200):
        journal.add("agent_event", event={"kind": "ask", "number": number})
    while journal.is_behind:
        journal.retry()

    assert [line["event"]["number"] for line in _lines(tmp_path)] == list(range(200))


@contextmanager
def _without_space(run: HostRun, limit: int = 250) -> Iterator[Callable[[], bytes]]:
    """Start a host whose files cannot grow over the limit; give what its pane has shown so far."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    shown = b""

    def read() -> bytes:
        nonlocal shown
        with suppress(BlockingIOError):
            shown += os.read(reader, 1_000_000)
        return shown

    python, *arguments = impatient_host_command(run.folder)
    try:
        run.start(
            [python, "-B", *arguments],  # half a file of bytecode would be left for every later host
            stdout=writer,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY)),
        )
        os.close(writer)
        yield read
    finally:
        os.close(reader)


def _make_space(run: HostRun) -> None:
    resource.prlimit(run.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def test_a_host_stays_until_it_has_told_how_its_run_ended(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "exit 3")
    with _without_space(run) as shown:
        wait_for(lambda: _WAITS in shown(), "the wait for space")
        assert "ended" not in run.types()

        _make_space(run)

        assert run.wait_for_end()["exit_code"] == 3
        assert [entry["n"] for entry in run.entries()] == list(range(1, len(run.entries()) + 1))


def test_a_folder_that_cannot_be_run_is_told_once_there_is_space(prepare_run: PrepareRun) -> None:
    run = prepare_run("true")
    (run.folder / "spec.json").write_text("{}")
    with _without_space(run, limit=10):
        wait_for((run.folder / "wake").exists, "the wait for space")

        _make_space(run)

        ended = wait_for(lambda: run.entries("ended"), "the end")[0]
        assert ended["outcome"] == "start_failed"


def test_a_kill_ends_the_wait_for_space(prepare_run: PrepareRun) -> None:
    run = prepare_run("true")
    with _without_space(run) as shown:
        wait_for(lambda: _WAITS in shown(), "the wait for space")

        run.command("kill")

        assert run.process is not None
        assert run.process.wait(20.0) == 0
        assert "ended" not in run.types()
        assert ExecutionFolder(run.folder).was_stopped


def test_a_stop_that_the_full_disk_lets_nobody_write_leaves_a_mark(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "echo there; read line")
    with _without_space(run) as shown:
        wait_for(lambda: b"there" in shown(), "the program")

        run.command("stop")

        assert run.process is not None
        assert run.process.wait(60.0) == 0
        assert "ended" not in run.types()
        assert ExecutionFolder(run.folder).was_stopped


def test_an_end_that_could_be_written_leaves_no_mark(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "echo there; read line")
    run.start()
    wait_for(lambda: "agent_started" in run.types(), "the program")

    run.command("stop")

    assert run.wait_for_end()["outcome"] == "stopped"
    assert run.process is not None
    assert run.process.wait(20.0) == 0
    assert not ExecutionFolder(run.folder).was_stopped


def test_a_folder_that_is_gone_ends_the_wait_for_space(prepare_run: PrepareRun) -> None:
    run = prepare_run("true")
    with _without_space(run) as shown:
        wait_for(lambda: _WAITS in shown(), "the wait for space")

        shutil.rmtree(run.folder)

        assert run.process is not None
        assert run.process.wait(20.0) == 0


def test_the_outcome_that_an_agent_told_over_a_full_disk_is_heard(prepare_run: PrepareRun) -> None:
    acts: list[Act] = [["prompt"], *([["say", "0123456789 ", 100]] * 30), ["result"]]
    talk = Conversation(prepare_run, acts)
    with _without_space(talk.run, limit=20_000) as shown:
        wait_for(lambda: _WAITS in shown(), "the wait for space")
        assert find_processes_with(talk.run.execution_id) == []

        _make_space(talk.run)

        ended = talk.run.wait_for_end()
        assert (ended["outcome"], ended["agent_outcome"]) == ("exited", "completed")
        assert len(talk.events("message")) == 31
        assert talk.run.entries("protocol_log_full")


def _start_patched(run: HostRun, *lines: str) -> None:
    """Start a host in which something is not as it should be."""
    *command, script, folder = impatient_host_command(run.folder)
    run.start([*command, script.replace("os._exit(", "\n".join([*lines, "os._exit("])), folder])


def test_a_lock_whose_time_cannot_be_set_ends_no_run(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "echo there; read line")
    _start_patched(
        run,
        "def refuse(*_): raise OSError(30, 'read-only')",
        "os.utime = refuse",
        "supervisor._SIGN_OF_LIFE_INTERVAL_S = 0.0",
    )
    run.wait_for_output(b"there")

    run.command("stop")

    assert run.wait_for_end()["outcome"] == "stopped"


def test_a_host_that_fails_and_cannot_see_its_processes_still_tells_the_end(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "echo there; read line")
    _start_patched(
        run,
        "def refuse(*_): raise OSError(23, 'too many open files')",
        "supervisor.Family.find_members = supervisor.Supervisor._wait = refuse",
    )

    ended = wait_for(lambda: run.entries("ended"), "the end")[0]

    assert (ended["outcome"], run.types()[-1]) == ("terminated", "ended")
