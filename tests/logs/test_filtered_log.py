from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentmon.logs.filtered_log import FilteredLog
from agentmon.logs.line_text import plain_text
from agentmon.logs.log_file import INDEX_BLOCK_BYTES, LogFile
from agentmon.logs.pattern import LogPattern

if TYPE_CHECKING:
    from pathlib import Path


PROGRESS = (b"yes".ljust(500) + b"\r") * 700


def search_all(filtered: FilteredLog) -> None:
    while not filtered.search_more(0.0, near=0, backwards=False):
        pass


def contents(filtered: FilteredLog, start: int = 0, count: int = 1_000_000) -> list[bytes]:
    return [line.content for line in filtered.lines_from(start, count)]


def numbered(count: int) -> bytes:
    return b"".join(b"%07d a line of the log\n" % number for number in range(count))


def test_only_lines_that_match_are_walked_in_both_directions(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(numbered(60_000))
    with LogFile(path) as log:
        filtered = FilteredLog(log, LogPattern("^00[0-9]+7777"))
        search_all(filtered)

        expected = [b"%07d a line of the log" % number for number in range(7777, 60_000, 10_000)]
        assert filtered.match_count == len(expected)
        assert contents(filtered) == expected
        assert [line.content for line in filtered.lines_before(log.size, 3)] == expected[-3:]
        third = filtered.lines_from(0, 3)[-1]
        assert [line.content for line in filtered.lines_before(third.start, 1)] == expected[1:2]
        assert contents(filtered, third.end, 1) == expected[3:4]


def test_what_lies_at_the_end_is_found_first_when_the_tail_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(numbered(60_000))
    with LogFile(path) as log:
        filtered = FilteredLog(log, LogPattern("line"))
        assert not filtered.search_more(0.0, near=log.size - 1, backwards=True)

        assert filtered.is_searched_after(log.size - 1)
        assert not filtered.is_searched_after(0)
        assert 0 < filtered.searched_share < 1
        assert filtered.lines_before(log.size, 1)[0].content == b"0059999 a line of the log"


def test_a_line_that_was_not_finished_is_looked_at_again(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(b"x" * (INDEX_BLOCK_BYTES - 20) + b"\nbeginning of a li")
    with LogFile(path) as log:
        filtered = FilteredLog(log, LogPattern("whole line"))
        search_all(filtered)
        assert filtered.match_count == 0

        with path.open("ab") as file:
            file.write(b"ne, now a whole line\nanother whole line\nnothing\n")
        log.refresh()
        filtered.take_growth()
        search_all(filtered)

        assert filtered.match_count == 2
        assert contents(filtered) == [b"beginning of a line, now a whole line", b"another whole line"]


def test_a_log_that_was_replaced_is_searched_anew(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(numbered(1000))
    with LogFile(path) as log:
        filtered = FilteredLog(log, LogPattern("line"))
        search_all(filtered)
        path.write_bytes(b"one line\n")
        log.refresh()
        filtered.take_growth()
        search_all(filtered)

        assert (filtered.match_count, contents(filtered)) == (1, [b"one line"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from([b"yes", b"no", b"\x1b[31myes\x1b[0m", b"y" * 40_000, (b"yes".ljust(500) + b"\r") * 700, b""]),
        max_size=60,
    )
)
def test_every_matching_line_is_there_and_no_other(tmp_path: Path, lines: list[bytes]) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(b"\n".join(lines))
    with LogFile(path) as log:
        filtered = FilteredLog(log, LogPattern("yes|yyy"))
        search_all(filtered)
        display = log.lines_from(0, 1_000_000)
        expected = [line.start for line in display if re.search("yes|yyy", plain_text(line.content))]

        assert [line.start for line in filtered.lines_from(0, 1_000_000)] == expected
        assert [line.start for line in filtered.lines_before(log.size, 1_000_000)] == expected
        assert filtered.match_count == len(expected)
