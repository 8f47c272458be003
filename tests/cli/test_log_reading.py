from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.cli.log_reading import Wanted, print_followed
from agentmon.logs.pattern import LogPattern
from tests.logs.test_log_text import append, steps

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def followed(log: Path, wanted: Wanted, capsys: pytest.CaptureFixture[str], *pieces: bytes) -> list[str]:
    """Return what is printed by each look at a log that grows by one piece before it, and at its end."""
    printed: list[str] = []

    def grow(piece: bytes) -> Callable[[], object]:
        def act() -> None:
            printed.append(capsys.readouterr().out)
            append(log, piece)

        return act

    print_followed(wanted, steps(*map(grow, pieces)), lambda: False)
    return [*printed[1:], capsys.readouterr().out]


@pytest.mark.parametrize(
    ("pieces", "printed"),
    [
        ((b"pass", b"word: ", b"\nok\n"), ["pass", "word: ", "\nok\n"]),
        ((b"10 %", b"\r\x1b[K90 %", b"\r\x1b[Kdone\n"), ["10 %", "", "\ndone\n"]),
        ((b"\r10 %", b"\r90 %", b"\rdone\n"), ["", "", "done\n"]),
        ((b"\r10 %\rname: ", *[b""] * 10, b"me\n"), [*[""] * 10, "name: ", "me\n"]),
        ((b"one\ntw", b""), ["one\ntw", "\n"]),
    ],
    ids=["a prompt", "written over", "a bar", "a prompt in a bar's place", "never finished"],
)
def test_a_followed_line_is_printed_as_it_comes(
    pieces: tuple[bytes, ...], printed: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "output.log"

    assert followed(log, Wanted(path=log), capsys, *pieces) == printed


def test_the_rest_of_a_line_keeps_its_colours_and_grep_its_choice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, other = tmp_path / "output.log", tmp_path / "other.log"

    coloured = followed(log, Wanted(path=log, is_coloured=True), capsys, b"\x1b[31mre", b"d\x1b[0m.\n")
    chosen = followed(other, Wanted(path=other, pattern=LogPattern("ab")), capsys, b"a", b"b", b"c\nx\n")

    assert coloured == ["\x1b[31mre\x1b[0m", "\x1b[31md\x1b[0m.\n"]
    assert chosen == ["", "ab", "c\n"]
