from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from agentmon.logs.log_text import MAX_TEXT_LINE_BYTES, iter_clean_lines, tail_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def replace_by_capped(path: Path, cap: int, left_out: int) -> None:
    content = path.read_bytes()
    marker = f"\n[agentmon: {left_out:,} bytes left out here]\n".encode()
    capped = path.with_name("capped")
    capped.write_bytes(content[: cap // 2] + marker + content[-(cap // 4) :])
    capped.rename(path)


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def steps(*actions: Callable[[], object]) -> Callable[[], bool]:
    """Return what a follower waits with: one action a call, then the end."""
    left = list(actions)

    def wait_for_more() -> bool:
        if left:
            left.pop(0)()
            return True
        return False

    return wait_for_more


def test_a_whole_log_is_read_as_clean_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"\x1b[31mred\x1b[0m\r\n10%\r100%\n\nunfinished")

    assert list(iter_clean_lines(path)) == ["red", "100%", "", "unfinished"]
    assert list(iter_clean_lines(path, first_offset=path.stat().st_size - 10)) == ["unfinished"]


def test_a_missing_log_has_no_lines(tmp_path: Path) -> None:
    assert list(iter_clean_lines(tmp_path / "missing")) == []
    assert tail_lines(tmp_path / "missing", 3) == []


def test_the_last_lines_come_first_to_last(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(10_000)))

    assert tail_lines(path, 3) == ["line 9997", "line 9998", "line 9999"]


def test_following_joins_a_line_that_comes_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "log"
    wait = steps(
        lambda: append(path, b"fir"), lambda: append(path, b"st\nsec"), lambda: None, lambda: append(path, b"ond\n")
    )

    assert list(iter_clean_lines(path, wait_for_more=wait)) == ["first", "second"]


def test_following_across_a_capped_file_loses_and_repeats_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = [b"line %d\n" % number for number in range(6000)]
    first, second, third = b"".join(lines[:3000]), b"".join(lines[3000:4000]), b"".join(lines[4000:])
    path.write_bytes(first)

    def grow_and_cap() -> None:
        append(path, second)
        replace_by_capped(path, len(first + second), 1234)
        append(path, third)

    followed = list(iter_clean_lines(path, wait_for_more=steps(grow_and_cap)))

    assert followed == [line.decode().rstrip("\n") for line in lines]


def test_following_across_an_unknown_file_repeats_rather_than_loses(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\n")

    def replace() -> None:
        other = tmp_path / "other"
        other.write_bytes(b"three\n")
        other.rename(path)

    assert list(iter_clean_lines(path, wait_for_more=steps(replace))) == ["one", "two", "three"]


def test_a_million_bytes_stay_one_line_and_more_come_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 1_000_000 + b"\n" + b"y" * (2 * MAX_TEXT_LINE_BYTES + 5) + b"\n")

    assert [len(line) for line in iter_clean_lines(path)] == [1_000_000, MAX_TEXT_LINE_BYTES, MAX_TEXT_LINE_BYTES, 5]


def test_progress_of_megabytes_is_one_line_with_its_last_state(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    states = b"".join(b"\r%d%%" % (count // 2000) for count in range(200_000)) * 3
    path.write_bytes(b"before\n" + states + b"\r100%\nlong\r" + b"x" * 2 * MAX_TEXT_LINE_BYTES + b"\n" + states)

    lines = list(iter_clean_lines(path))

    assert lines == ["before", "100%", "x" * MAX_TEXT_LINE_BYTES, "x" * MAX_TEXT_LINE_BYTES, "99%"]
    assert tail_lines(path, 1) == ["99%"]


@pytest.mark.proof
def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"0123456789 some words in a line\n" * 1_000_000)

    tracemalloc.start()
    try:
        count = sum(1 for _ in iter_clean_lines(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert count == 1_000_000
    assert peak < 4_000_000
