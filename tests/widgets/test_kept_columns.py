"""A line on terminals that each have widths of their own."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from agentmon.widgets.kept_columns import give_marks_a_cell, keep_columns

TEXTS = st.text(max_size=40) | st.text(alphabet="a कि\u0301\u200d\ufe0f👩🏽🇩🇪🫩ªשل中ｱ\u00ad", max_size=30)
DRAWN = re.compile(r"\x1b\[(\d+)G|\x1b\[\d+;(\d+)H|(\x1b\[[\d;]*m)|(.)", re.DOTALL)


def draw(data: str, seed: int) -> dict[int, str]:
    """Return what stands in which column of a terminal that makes up the widths on which not all agree."""
    shown: dict[int, str] = {}
    column = 1
    for to, place, style, letter in DRAWN.findall(data):
        if to or place:
            column = int(to or place)
        elif not style:
            is_agreed = keep_columns(f"\x1b[1;1H{letter}") == f"\x1b[1;1H{letter}"
            width = cell_len(letter) if is_agreed else Random(f"{seed}{letter}").randrange(3)
            for cell in range(width):
                shown[column + cell] = letter
            column += width
    return shown


@given(TEXTS.filter(lambda text: not re.search("[\x00-\x1f\x7f-\x9f]", text)), st.integers(0, 5))
@settings(deadline=None)
def test_what_stands_behind_it_stays_in_its_column(text: str, seed: int) -> None:
    rest = f"│end│{' ' * 90}"
    line = f"\x1b[3;7H\x1b[1m│{text}\x1b[0m{rest}"
    behind = 7 + 1 + cell_len(text)

    shown = draw(keep_columns(line), seed)

    assert all(column in shown for column in range(7, behind))
    assert "".join(shown[column] for column in sorted(shown) if column >= behind) == rest


@pytest.mark.parametrize("text", ["plain │ text", "漢字 かな 한글", "äöü Привет …"])
def test_what_all_agree_on_is_drawn_as_it_was(text: str) -> None:
    assert keep_columns(f"\x1b[1;1H{text}\n\x1b[2;1H{text}") == f"\x1b[1;1H{text}\n\x1b[2;1H{text}"


def test_a_sign_that_takes_a_cell_somewhere_has_one() -> None:
    give_marks_a_cell()

    assert [cell_len(text) for text in ("कि", "த\u0bc6", "e\u0301", "ไ\u0e31")] == [2, 2, 1, 1]
