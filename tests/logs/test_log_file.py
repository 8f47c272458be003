from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmon.logs.line_text import plain_text
from agentmon.logs.log_file import (
    CUT_GRID_BYTES,
    INDEX_BLOCK_BYTES,
    MAX_LINE_BYTES,
    REWRITTEN_GRID_BYTES,
    LogFile,
    LogLine,
)
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def all_lines(log: LogFile) -> list[LogLine]:
    return log.lines_from(0, 10**9)


def test_a_missing_file_is_empty_and_may_appear_later(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "output.log")
    assert not log.refresh()
    assert (log.size, log.lines_before(0, 5), log.lines_from(0, 5), log.line_count) == (0, [], [], 0)

    write(log.path, b"one\ntwo")

    assert log.refresh()
    assert [line.content for line in all_lines(log)] == [b"one", b"two"]
    assert not log.refresh()


def test_a_growing_file_keeps_its_generation(tmp_path: Path) -> None:
    with LogFile(write(tmp_path / "log", b"one\ntw")) as log:
        generation = log.generation

        with log.path.open("ab") as file:
            file.write(b"o\nthree\n")

        assert log.refresh()
        assert log.generation == generation
        assert [line.content for line in log.lines_before(log.size, 2)] == [b"two", b"three"]


def test_a_replaced_file_and_a_shorter_one_begin_a_generation(tmp_path: Path) -> None:
    with LogFile(write(tmp_path / "log", b"old text\n" * 10)) as log:
        first = log.generation
        write(tmp_path / "new", b"new\n" * 100).rename(log.path)
        assert log.refresh()
        second = log.generation
        os.truncate(log.path, 4)
        assert log.refresh()

        assert first < second < log.generation
        assert [line.content for line in all_lines(log)] == [b"new"]


def test_a_deleted_file_stays_readable_and_a_new_one_takes_its_place(tmp_path: Path) -> None:
    with LogFile(write(tmp_path / "log", b"before\n")) as log:
        log.path.unlink()
        assert not log.refresh()
        assert log.is_detached
        assert [line.content for line in all_lines(log)] == [b"before"]
        with closing(log.twin()) as twin:
            assert [line.content for line in all_lines(twin)] == [b"before"]
        log.path.symlink_to(log.path)
        assert log.refresh()
        assert (log.is_detached, log.problem) == (True, "too many levels of symbolic links")
        assert [line.content for line in all_lines(log)] == [b"before"]
        log.path.unlink()

        write(log.path, b"after\n")

        assert log.refresh()
        assert (log.is_detached, log.problem) == (False, "")
        assert [line.content for line in all_lines(log)] == [b"after"]


def test_a_file_cut_short_under_a_reader_is_no_error(tmp_path: Path) -> None:
    with LogFile(write(tmp_path / "log", b"line\n" * 100_000)) as log:
        os.truncate(log.path, 7)

        assert log.lines_before(log.size, 3) == []
        assert log.line_start(400_000) >= 0
        wait_for(log.index_more)
        assert log.refresh()
        assert [line.content for line in log.lines_before(log.size, 3)] == [b"line", b"li"]


def test_a_folder_and_an_unreadable_path_are_problems_not_errors(tmp_path: Path) -> None:
    log = LogFile(tmp_path)
    log.refresh()
    assert log.problem == "it is not a file"
    assert log.lines_before(log.size, 1) == []

    os.mkfifo(tmp_path / "pipe")
    pipe = LogFile(tmp_path / "pipe")
    pipe.refresh()
    assert pipe.problem


def progress(size: int, code: bytes = b"\r") -> bytes:
    states = b"".join(code + b"%3d%% of a file" % (count * 100 // 999) for count in range(1000))
    return states * (size // len(states)) + states


@pytest.mark.parametrize("size", [40_000, 1_100_000])
@pytest.mark.parametrize("before", [0, 5000, REWRITTEN_GRID_BYTES - 70_000])
@pytest.mark.parametrize("end", [b"\n", b"", b"\r\n"])
def test_a_line_that_is_rewritten_is_one_line_with_its_last_state(
    tmp_path: Path, size: int, before: int, end: bytes
) -> None:
    content = b"x" * max(0, before - 1) + b"\n" * (before > 0) + progress(size) + end + b"after\n" * bool(end)

    with LogFile(write(tmp_path / "log", content)) as log:
        lines = [line for line in all_lines(log) if line.start >= before]
        backwards = [line for line in log.lines_before(log.size, 50) if line.start >= before]
        middle = log.line_start(before + size // 2)

    assert [plain_text(line.content) for line in lines] == ["100% of a file", "after"][: 1 + bool(end)]
    assert backwards == lines
    assert middle == before
    assert max(len(line.content) for line in lines) <= MAX_LINE_BYTES


def test_a_line_whose_cursor_is_sent_back_by_its_column_is_one_line(tmp_path: Path) -> None:
    with LogFile(write(tmp_path / "log", progress(900_000, b"\x1b[2K\x1b[1G"))) as log:
        assert [plain_text(line.content) for line in all_lines(log)] == ["100% of a file"]


def test_a_file_of_nothing_but_returns_is_read_from_everywhere_at_once(tmp_path: Path) -> None:
    returns = b"\r" * (4 * REWRITTEN_GRID_BYTES + 10)
    with LogFile(write(tmp_path / "log", returns)) as log:
        lines = all_lines(log)

        assert log.lines_before(log.size, 10) == lines
        assert [line.start for line in lines] == [at * REWRITTEN_GRID_BYTES for at in range(5)]
        assert log.line_start(3 * REWRITTEN_GRID_BYTES + 5) == 3 * REWRITTEN_GRID_BYTES


content_parts = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.just(b"\n"),
        st.integers(1, 5 * CUT_GRID_BYTES).map(lambda count: b"x" * count),
        st.integers(1, CUT_GRID_BYTES).map(lambda count: b"ab\r\xc3\xa9" * count),
        st.integers(1, CUT_GRID_BYTES).map(lambda count: "é漢".encode() * count),
        st.integers(1, 9000).map(lambda count: b"ab\n" * count),
        st.sampled_from([b"x" * (CUT_GRID_BYTES - 1), b"y" * CUT_GRID_BYTES, b"z" * (CUT_GRID_BYTES + 1)]),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(parts=content_parts)
def test_display_lines_cover_the_file_and_are_the_same_from_everywhere(
    parts: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = b"".join(parts)
    with LogFile(write(tmp_path_factory.mktemp("log") / "log", content)) as log:
        lines = all_lines(log)
        from_the_end = log.lines_before(log.size, 10**9)
        probes = {0, len(content) // 2, len(content) - 1, *(line.start for line in lines[:50])} | {
            line.end - 1 for line in lines[-50:]
        }
        found = {offset: log.line_start(offset) for offset in probes if 0 <= offset < len(content)}

    assert [line.start for line in lines] == [0, *(line.end for line in lines)][: len(lines)]
    assert all(content[line.start : line.end - line.is_whole].endswith(line.content) for line in lines)
    assert all(
        len(line.content) == line.end - line.start - line.is_whole or b"\r" in content[line.start : line.end]
        for line in lines
    )
    assert from_the_end == lines
    assert all(len(line.content) <= MAX_LINE_BYTES for line in lines)
    assert {line for line in content.split(b"\n")[:-1] if len(line) < CUT_GRID_BYTES} <= {
        line.content for line in lines
    }
    assert all(
        line.start <= offset < line.end for offset, start in found.items() for line in lines if line.start == start
    )
    assert set(found.values()) <= {line.start for line in lines}


@settings(max_examples=40, deadline=None)
@given(parts=content_parts)
def test_line_numbers_and_offsets_agree_with_the_text(
    parts: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = b"".join(parts) * 3
    with LogFile(write(tmp_path_factory.mktemp("log") / "log", content)) as log:
        while not log.index_more(0):
            pass
        starts = [0, *(position + 1 for position, byte in enumerate(content) if byte == 10)]

        assert log.line_count == content.count(b"\n") + (0 if not content or content.endswith(b"\n") else 1)
        for number in {1, 2, len(starts) // 2 + 1, len(starts)} & set(range(1, len(starts) + 1)):
            assert log.line_offset(number) == starts[number - 1]
            assert log.line_number(starts[number - 1]) == number
        assert log.line_offset(len(starts) + 1) is None


def test_multibyte_characters_are_never_cut(tmp_path: Path) -> None:
    text = "a" + "漢" * CUT_GRID_BYTES

    with LogFile(write(tmp_path / "log", text.encode())) as log:
        lines = all_lines(log)

    assert len(lines) > 2
    assert "".join(line.content.decode() for line in lines) == text


def test_the_index_is_built_in_slices_and_follows_growth(tmp_path: Path) -> None:
    with LogFile(write(tmp_path / "log", b"0123456789abcde\n" * (INDEX_BLOCK_BYTES // 4))) as log:
        assert not log.index_more(0)
        count_meanwhile = log.line_count
        assert count_meanwhile is None
        assert log.line_number(log.size) is None
        while not log.index_more(0):
            pass
        with log.path.open("ab") as file:
            file.write(b"one more\n")
        log.refresh()
        count_meanwhile = log.line_count
        assert count_meanwhile is None
        while not log.index_more():
            pass

        assert log.line_count == INDEX_BLOCK_BYTES // 4 + 1
        assert log.line_number(log.size - 1) == log.line_count


def test_a_huge_line_is_reached_everywhere_without_reading_it_whole(tmp_path: Path) -> None:
    path = write(tmp_path / "log", b"first\n")
    os.truncate(path, 2**30)

    with LogFile(path) as log:
        tail = log.lines_before(log.size, 10)
        middle = log.lines_from(log.line_start(2**29 + 12345), 2)

    assert tail[-1].end == 2**30
    assert all(0 < line.end - line.start <= MAX_LINE_BYTES for line in tail + middle)
    assert middle[0].start <= 2**29 + 12345 < middle[0].end
    assert middle[1].start == middle[0].end


@pytest.mark.parametrize("content", [b"", b"\n", b"\n\n", b"x", b"x\n", b"\nx"])
def test_small_files_have_the_lines_one_expects(content: bytes, tmp_path: Path) -> None:
    with LogFile(write(tmp_path / "log", content)) as log:
        assert [line.content for line in all_lines(log)] == content.splitlines()
