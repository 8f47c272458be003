from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentmon.domain.errors import UsageError
from agentmon.logs.line_text import plain_text
from agentmon.logs.log_file import LogFile
from agentmon.logs.pattern import LogPattern
from agentmon.logs.search import STEP_BYTES, Direction, find_next, search_log

if TYPE_CHECKING:
    from pathlib import Path


PIECES = [
    b"ab",
    b"AB",
    b"a",
    b"b",
    b" ",
    b"\t",
    b"\r",
    b"\r\r",
    b"\b",
    b"\xff",
    "é漢ı".encode(),
    b"\x1b[1m",
    b"\x1b[2C",
    b"\x1b[K",
    b"\x1b]0;ab\x07",
    b"\x1b]ab",
    b"\xc2\x9b1C",
]
"""What lines are made of: text, tabs, moves of the cursor, escape sequences whole and broken, bytes of no letter."""


def matching_starts(log: LogFile, expression: str, direction: Direction = Direction.FORWARDS) -> list[int]:
    start = 0 if direction is Direction.FORWARDS else log.size
    steps = search_log(log, LogPattern(expression), start=start, direction=direction)
    return [match for step in steps for match in step.matches]


def found_by(log: LogFile, expression: str, origin: int, direction: Direction) -> tuple[int, bool] | None:
    for step in find_next(log, LogPattern(expression), origin=origin, direction=direction):
        if step.matches:
            return step.matches[0], step.has_wrapped
    return None


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_case_matters_once_the_expression_has_a_capital(tmp_path: Path) -> None:
    with LogFile(write(tmp_path / "log", "error\nError\nERROR\nÉtat\n".encode())) as log:
        assert matching_starts(log, "error") == [0, 6, 12]
        assert matching_starts(log, "Error") == [6]
        assert matching_starts(log, "é") == [18]
        assert matching_starts(log, "err.r$") == [0, 6, 12]
        assert matching_starts(log, r"^\Serror|\Srror") == [0, 6, 12]


def test_a_broken_expression_is_explained() -> None:
    with pytest.raises(UsageError, match="not a regular expression") as caught:
        LogPattern("a(b")

    assert caught.value.hint


def test_what_python_may_read_otherwise_one_day_is_no_matter_of_who_searches() -> None:
    pattern = LogPattern("[[a]")

    assert list(pattern.matching_lines(b"x\n[\na")) == [(2, 3), (4, 5)]


def test_what_is_seen_is_what_matches(tmp_path: Path) -> None:
    content = b"\x1b[31mer\x1b[1mror\x1b[0m here\nhidden error\rvisible text\nfine\n\x1b]0;error\x07title\na\tb error\n"
    with LogFile(write(tmp_path / "log", content)) as log:
        expected = [0, content.index(b"a\tb")]

        assert matching_starts(log, "error") == expected
        assert matching_starts(log, "err[o]r") == expected
        assert matching_starts(log, "a   +b") == expected[1:]
        assert matching_starts(log, "a    ") == expected[1:]


def test_next_and_previous_go_around_the_end(tmp_path: Path) -> None:
    with LogFile(write(tmp_path / "log", b"x one\nplain\nx two\nplain\n")) as log:
        assert found_by(log, "x", 0, Direction.FORWARDS) == (12, False)
        assert found_by(log, "x", 12, Direction.FORWARDS) == (0, True)
        assert found_by(log, "x", 12, Direction.BACKWARDS) == (0, False)
        assert found_by(log, "x", 0, Direction.BACKWARDS) == (12, True)
        assert found_by(log, "two", 12, Direction.FORWARDS) == (12, True)
        assert found_by(log, "nowhere", 6, Direction.FORWARDS) is None


def test_an_empty_log_has_no_match(tmp_path: Path) -> None:
    with LogFile(tmp_path / "missing") as log:
        assert found_by(log, "x", 0, Direction.FORWARDS) is None
        assert matching_starts(log, "") == []


def test_a_match_deep_in_a_huge_line_is_found_in_its_part(tmp_path: Path) -> None:
    content = b"a" * 3_000_000 + b"needle" + b"b" * 2_000_000
    with LogFile(write(tmp_path / "log", content)) as log:
        (start,) = matching_starts(log, "needle")

        assert start <= 3_000_000 < log.lines_from(start, 1)[0].end
        assert matching_starts(log, "need.e", Direction.BACKWARDS) == [start]


def test_of_a_rewritten_line_the_last_state_is_found(tmp_path: Path) -> None:
    states = b"".join(b"\rstep %d" % count for count in range(150_000))
    with LogFile(write(tmp_path / "log", b"first\n" + states + b"\nlast\n")) as log:
        assert matching_starts(log, "step 149999") == [6]
        assert matching_starts(log, "step 149998") == matching_starts(log, "step 7$", Direction.BACKWARDS) == []
        assert matching_starts(log, "s", Direction.BACKWARDS) == [log.size - 5, 6, 0]
        assert found_by(log, "step", 0, Direction.FORWARDS) == (6, False)


def test_a_search_goes_in_bounded_steps(tmp_path: Path) -> None:
    with LogFile(write(tmp_path / "log", b"some line of text\n" * 300_000)) as log:
        steps = list(search_log(log, LogPattern("absent"), start=0))
        size = log.size

    assert len(steps) >= 5
    assert steps[0].scanned_bytes <= STEP_BYTES
    assert steps[-1].scanned_bytes == size
    assert not any(step.matches for step in steps)


@pytest.mark.proof
@settings(max_examples=200, deadline=None)
@example(lines=[b"\x1b]0;ab\x07"], expression="")
@example(lines=[b"a", b"\x1b]0;ab\x07"], expression="(x)*$")
@given(
    lines=st.lists(
        st.lists(st.sampled_from([*PIECES, b"x" * 40_000]), max_size=5).map(b"".join),
    ),
    expression=st.sampled_from(["ab", "Ab", "AB", "b +a", "^ab", "ab$", "a|x", "", "b a", "a(?!b)", r"\Bb", r"b\s+a"]),
)
def test_both_directions_find_every_line_that_matches(
    lines: list[bytes], expression: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with LogFile(write(tmp_path_factory.mktemp("log") / "log", b"\n".join(lines))) as log:
        pattern = LogPattern(expression)
        expected = [
            line.start
            for line in log.lines_from(0, 10**6)
            if pattern.regex.search(plain_text(line.content)) is not None
        ]

        assert matching_starts(log, expression) == expected
        assert matching_starts(log, expression, Direction.BACKWARDS) == expected[::-1]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "in",
                " ab",
                "A",
                "k",
                "s",
                ".",
                ".*",
                "x?",
                "x*",
                "[0-9]",
                "[]ab]",
                r"\d+",
                "^",
                "$",
                "b{0,2}",
                "ab+",
                "a{0}",
                "a{0,12}",
                "b{10,}",
                r"\x61nn",
                r"\.",
                "{nn}",
            ]
        ),
        min_size=1,
        max_size=5,
    ),
    st.lists(st.text("inabAxks0],12{}K\u017f\u212a ", max_size=12), max_size=6),
)
def test_an_expression_finds_the_lines_that_a_look_at_each_finds(pieces: list[str], lines: list[str]) -> None:
    pattern = LogPattern("".join(pieces) + "[0-9]*")
    encoded = [line.encode() for line in lines]
    block = b"".join(line + b"\n" for line in encoded)

    found = [block[start:end] for start, end in pattern.matching_lines(block)]

    assert found == [line for line in encoded if pattern.matches(line)]
