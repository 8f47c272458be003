"""What the program writes arrives in the log byte for byte, whatever it is."""

from __future__ import annotations

import hashlib
import os
import sys
from typing import TYPE_CHECKING

import pytest

from agentmon.runners.host.progress import Progress, visible_text
from agentmon.runners.host.terminal import NewlineUndo

if TYPE_CHECKING:
    from pathlib import Path

    from tests.runners.host.conftest import PrepareRun

_LINE_ENDS = b"a\r\nb\n\r\n\r\r\nc\r" + b"\r\n" * 5000 + b"\n" * 5000 + b"50 %\r100 %\r"


@pytest.mark.parametrize(
    "content",
    [
        os.urandom(1_000_000),
        _LINE_ENDS,
        b"x" * 1_000_000 + b"\n",
        b"y" * 1_000_000,
        b"\0" * 70_000,
        b"\xff\xfe\xed\xa0\x80 caf\xe9\n" * 1000,
        b"",
    ],
    ids=["random", "line-ends", "long-line", "long-unfinished-line", "nul", "invalid-utf-8", "nothing"],
)
def test_the_log_equals_what_the_program_wrote(prepare_run: PrepareRun, tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "content"
    source.write_bytes(content)
    run = prepare_run("cat", str(source)).start()

    ended = run.wait_for_end()

    assert hashlib.sha256(run.output).digest() == hashlib.sha256(content).digest()
    assert ended["output_bytes"] == len(content)
    assert ended["output_lines"] == content.count(b"\n") + (not content.endswith(b"\n") and content != b"")


def test_a_line_of_20_mb_is_recorded_whole(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' z; echo; echo end").start()

    ended = run.wait_for_end()

    assert (ended["output_bytes"], ended["output_lines"]) == (20_000_005, 2)
    assert run.output == b"z" * 20_000_000 + b"\nend\n"
    assert run.entries("output")[-1]["last_line"] == "end"


def test_output_written_right_before_the_exit_is_recorded(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "seq 10000; exit 3").start()

    ended = run.wait_for_end()

    assert run.output == b"".join(b"%d\n" % number for number in range(1, 10_001))
    assert ended["exit_code"] == 3


def test_a_silent_program_gets_no_output_entry(prepare_run: PrepareRun) -> None:
    run = prepare_run("true").start()

    run.wait_for_end()

    assert run.types() == ["host_started", "agent_started", "exited", "ended"]


def test_progress_is_journaled_at_most_twice_a_second(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "for i in $(seq 60); do echo line $i; sleep 0.02; done").start()

    ended = run.wait_for_end()

    reports = run.entries("output")
    # One at once, one for each half second begun, one at the end.
    assert 2 <= len(reports) <= ended["duration_ms"] // 500 + 2
    assert (reports[-1]["bytes"], reports[-1]["lines"], reports[-1]["last_line"]) == (len(run.output), 60, "line 60")


def test_a_progress_bar_shows_its_newest_state_as_the_last_line(prepare_run: PrepareRun) -> None:
    script = "import sys\nfor i in range(500): sys.stdout.write(f'\\r\\x1b[2K\\x1b[32mstep {i}\\x1b[0m')"
    run = prepare_run(sys.executable, "-c", script).start()

    ended = run.wait_for_end()

    assert run.entries("output")[-1]["last_line"] == "step 499"
    assert ended["output_lines"] == 1


def test_a_program_that_turns_line_end_mapping_off_is_recorded_as_it_writes(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "stty raw; printf 'a\\r\\nb\\n'").start()

    run.wait_for_end()

    assert run.output == b"a\r\nb\n"


def test_the_files_of_a_run_are_for_the_owner_only(prepare_run: PrepareRun) -> None:
    run = prepare_run("cat").start(umask=0)
    run.wait_for_entry("agent_started")

    names = ("output.log", "journal.jsonl", "host.lock", "wake", "reserve")
    modes = {name: oct((run.folder / name).stat().st_mode & 0o777) for name in names}

    assert modes == dict.fromkeys(names, "0o600")


def test_line_ends_are_restored_wherever_the_reads_fall() -> None:
    written = b"a\r\nb\n\r\r\n\n\rc\r"
    mapped = written.replace(b"\n", b"\r\n")

    for first in range(len(mapped)):
        for second in range(first, len(mapped)):
            newlines = NewlineUndo()
            pieces = (mapped[:first], mapped[first:second], mapped[second:])
            restored = b"".join(newlines.undo(piece, is_mapped=True) for piece in pieces) + newlines.flush()
            assert restored == written, (first, second)


@pytest.mark.parametrize(
    ("written", "last_line"),
    [
        (b"one\ntwo\n", "two"),
        (b"one\ntwo", "two"),
        (b"one\n\n  \n\x1b[0m\n", "one"),
        (b"10 %\r20 %\r30 %", "30 %"),
        (b"10 %\r20 %\r", "20 %"),
        (b"dos\r\n", "dos"),
        (b"\x1b]0;title\x07\x1b(B\x1b[1;31mred\x1b[m\x1b[K\n", "red"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"caf\xe9\0 \x07ok\n", "caf� ok"),
        ("ü漢🙂\n".encode(), "ü漢🙂"),
        (b"a\tb\n", "a b"),
        (b"first\n" + b"x" * 10_000, "x" * 200),
        (b"kept\n" + b"\n" * 10_000, "kept"),
        (b"", ""),
        (b"10 % of a lot\r\x1b[K20 %", "20 %"),
        (b"100 %\r 90", "90 %"),
        (b"kept\nspins\r\x1b[2K", "kept"),
        (b"secret\b\b\b\x1b[Kond", "second"),
        (b"one\n\x1b[1A\x1b[2K\x1b[Gbar 3\n\x1b[1A\x1b[2Kbar 4", "bar 4"),
        (b"old text\x1b[12;3Hnew", "new"),
        (b"a\x1b[3Cb\x1b[1Gc", "c   b"),
        (b"x\x1b[99999999999999999999Cy", "x y"),
    ],
    ids=[f"case{number}" for number in range(22)],
)
def test_the_last_line_is_the_newest_with_visible_text(written: bytes, last_line: str) -> None:
    progress = Progress()

    step = 7 if len(written) < 1000 else 1000
    for start in range(0, len(written), step):
        progress.add(written[start : start + step])
        progress.last_line()

    assert progress.last_line() == last_line


def test_an_unfinished_escape_sequence_shows_nothing() -> None:
    assert visible_text("a\x1b[38;5") == "a"
    assert visible_text("b\x1b") == "b"
    assert visible_text("c\x1b]0;title") == "c"
