"""A full disk: the program waits, commands are obeyed, and the end is recorded."""

from __future__ import annotations

import resource
import subprocess
from typing import TYPE_CHECKING

import pytest

from agentmon.runners.host.journal import Journal
from agentmon.runners.host.output_log import OutputLog
from tests.runners.host.host_runs import HostRun, find_processes_with, impatient_host_command
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.runners.host.conftest import PrepareRun

_SMALL_DISK_BYTES = 2 * 1024 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path | None]:
    """Give a file system of 2 MB, or ``None`` where mounting is not allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={_SMALL_DISK_BYTES}", "none", str(folder)]
    try:
        is_mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        is_mounted = False
    yield folder if is_mounted else None
    if is_mounted:
        subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


def _fill(run: HostRun) -> None:
    """Make the disk of the run full for its output, by a device that always is."""
    (run.folder / "output.log").symlink_to("/dev/full")


def test_a_full_disk_makes_the_program_wait_and_loses_nothing(prepare_run: PrepareRun) -> None:
    run = prepare_run("seq", "200000").start(
        # The program's own files are its terminal, so the limit is the host's alone.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    )
    run.wait_for_entry("storage_full")
    assert len(run.output) == 200_000
    assert "exited" not in run.types()

    resource.prlimit(run.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    ended = run.wait_for_end()
    written = b"".join(b"%d\n" % number for number in range(1, 200_001))
    assert run.output == written
    assert (ended["outcome"], ended["output_bytes"], ended["left_out_bytes"]) == ("exited", len(written), 0)
    assert run.types().index("storage_full") < run.types().index("storage_ok")


def test_a_run_can_be_stopped_while_the_disk_is_full(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "while :; do echo fill; done")
    _fill(run)
    run.start()
    run.wait_for_entry("storage_full")

    run.command("stop")

    # The processes go at once; only then does the wait for space have an end.
    wait_for(lambda: not find_processes_with(run.execution_id), "the program to be gone")
    assert "ended" not in run.types()


def test_the_time_limit_holds_while_the_disk_is_full(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "while :; do echo fill; done", timeout_s=0.5)
    _fill(run)

    run.start()

    run.wait_for_entry("time_limit_reached")
    wait_for(lambda: not find_processes_with(run.execution_id), "the program to be gone")


@pytest.mark.proof
def test_a_disk_that_is_really_full_gets_the_whole_journal(prepare_run: PrepareRun, small_disk: Path | None) -> None:
    program = ("yes", "a line of text")
    if small_disk is None:
        run = prepare_run(*program, timeout_s=1.5)
        _fill(run)
    else:
        run = HostRun.prepare(small_disk / "run", *program, timeout_s=1.5)

    run.start(impatient_host_command(run.folder))

    ended = run.wait_for_end()
    entries = run.entries()
    assert [entry["n"] for entry in entries] == list(range(1, len(entries) + 1))
    assert ended["outcome"] == "timed_out"
    assert ended["error"] is not None
    assert ended["output_bytes"] >= ended["left_out_bytes"] > 0
    assert {"storage_full", "time_limit_reached", "signal_sent", "exited"} <= set(run.types())
    if small_disk is not None:
        assert len(run.output) + ended["left_out_bytes"] == ended["output_bytes"]
        assert len(run.output) > _SMALL_DISK_BYTES / 2
        assert run.output.startswith(b"a line of text\na line of text\n")


def test_space_made_on_a_full_disk_is_noticed(prepare_run: PrepareRun, small_disk: Path | None) -> None:
    folder = small_disk or prepare_run("placeholder").folder.parent
    ballast = folder / "ballast"
    run = HostRun.prepare(folder / "run", "sh", "-c", "head -c 1500000 /dev/zero; echo end")
    if small_disk is not None:
        ballast.write_bytes(bytes(_SMALL_DISK_BYTES // 2))
        run.start()
    else:
        run.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY)))
    run.wait_for_entry("storage_full")

    if small_disk is not None:
        ballast.unlink()
    else:
        resource.prlimit(run.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    ended = run.wait_for_end()
    assert (ended["outcome"], ended["left_out_bytes"]) == ("exited", 0)
    assert run.output == bytes(1_500_000) + b"end\n"


def test_bytes_that_the_disk_refused_are_kept_in_order(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to("/dev/full")
    log = OutputLog(str(tmp_path / "log"), 0)

    assert not log.append(b"first ")
    assert not log.append(b"second")
    log.give_up(4)

    assert log.retry()
    assert log.left_out_bytes == len(b"first second") + 4


def test_the_reserve_is_given_up_in_pieces_and_taken_again(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))

    assert journal.reserve.fill()
    assert (tmp_path / "reserve").stat().st_size == 64 * 1024
    assert journal.reserve.release_piece()
    assert (tmp_path / "reserve").stat().st_size == 56 * 1024
    assert journal.reserve.fill()
    assert (tmp_path / "reserve").stat().st_size == 64 * 1024
    while journal.reserve.release_piece():
        pass
    journal.close()
    assert (tmp_path / "reserve").stat().st_size == 0


def test_journal_lines_wait_in_order_for_space(tmp_path: Path) -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    journal = Journal(str(tmp_path))
    journal.add("first")
    size_bytes = (tmp_path / "journal.jsonl").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes + 5, limit[1]))
    try:
        journal.add("second")
        journal.add("third")
        assert (tmp_path / "journal.jsonl").read_text().count("\n") == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)

    journal.retry()
    journal.close()

    lines = (tmp_path / "journal.jsonl").read_text().splitlines()
    assert [line.split('"type": ')[1] for line in lines] == ['"first"}', '"second"}', '"third"}']
