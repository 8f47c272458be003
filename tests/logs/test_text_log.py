from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.logs.saving import save_log
from agentmon.logs.streams import LogStream, find_repaint, repaints, streams_of
from agentmon.logs.text_log import TextLog
from agentmon.runners.execution_folder import ExecutionFolder

if TYPE_CHECKING:
    from pathlib import Path


def lines_of(log: TextLog) -> list[bytes]:
    return [line.content for line in log.lines_from(0, 100)]


def test_a_text_is_read_like_a_log_from_both_ends() -> None:
    with TextLog(b"one\ntwo\nthree\n") as log:
        assert lines_of(log) == [b"one", b"two", b"three"]
        assert [line.content for line in log.lines_before(log.size, 2)] == [b"two", b"three"]
        assert log.index_more()
        assert (log.line_count, log.line_offset(2), log.line_number(8)) == (3, 4, 3)


def test_a_text_that_goes_on_has_grown_and_another_one_is_another_log() -> None:
    with TextLog(b"one\n") as log:
        generation = log.generation
        log.replace(b"one\ntwo\n")
        assert lines_of(log) == [b"one"]
        assert log.refresh()
        assert (lines_of(log), log.generation) == ([b"one", b"two"], generation)
        log.replace(b"other\n")
        assert log.refresh()
        assert (lines_of(log), log.generation) == ([b"other"], generation + 1)
        assert not log.refresh()


def test_a_twin_keeps_the_text_of_its_time() -> None:
    with TextLog(b"one\n") as log:
        twin = log.twin()
        log.replace(b"other\n")
        log.refresh()
        assert (twin.read(0, 9), twin.generation) == (b"one\n", log.generation - 1)


@pytest.mark.parametrize(
    ("output", "is_painted"),
    [
        (b"plain\nlines\n", False),
        (b"\x1b[31mred\x1b[0m\n", False),
        (b"\r\x1b[K10 %\r\x1b[K20 %", False),
        (b"a\nb\n\x1b[1A\x1b[2Kc", True),
        (b"\x1b[?1049h", True),
        (b"\x1b[H\x1b[2Jmenu", True),
        (b"\x1b[3;7Hx", True),
        (b"\x1b[A" + b"since then only lines\n" * 10_000, True),
        (b"\x1b[A" + b"since then only lines\n" * 500_000, False),
    ],
)
def test_a_program_repaints_that_leaves_its_line(output: bytes, is_painted: bool, tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    log.write_bytes(output)

    assert repaints(log) is is_painted
    assert streams_of(log) == ((LogStream.SCREEN, LogStream.OUTPUT) if is_painted else (LogStream.OUTPUT,))


def test_a_log_that_grows_is_known_to_have_been_repainted_and_where(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    log.write_bytes(b"plain\n")
    places = []
    for added in (b"\x1b[", b"2Apainted\n", b"line\n" * 100_000, b"\x1b[1Aagain\n"):
        places.append(find_repaint(log))
        with log.open("ab") as file:
            file.write(added)

    assert places == [None, None, 10, 10]
    assert find_repaint(log) == log.stat().st_size - len(b"again\n")
    log.write_bytes(b"anew\n")
    assert find_repaint(log) is None


def test_a_missing_log_repaints_nothing(tmp_path: Path) -> None:
    assert streams_of(tmp_path / "output.log") == (LogStream.OUTPUT,)


def test_a_text_is_saved_without_its_colours(tmp_path: Path) -> None:
    size = save_log(tmp_path / "output.log", tmp_path / "saved", text=b"\x1b[31mred\x1b[0m\nplain\n")

    assert (tmp_path / "saved").read_bytes() == b"red\nplain\n"
    assert size == 10


def test_the_stream_of_verifications_is_the_newest_one(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    log.write_bytes(b"")
    for attempt in (1, 2, 10):
        (tmp_path / f"verification-{attempt}.log").write_text(f"{attempt}\n")

    assert streams_of(log) == (LogStream.OUTPUT, LogStream.VERIFICATION)
    assert LogStream.VERIFICATION.path(log).read_text() == "10\n"

    ExecutionFolder(tmp_path).remove_logs()

    assert streams_of(log) == (LogStream.OUTPUT,)
