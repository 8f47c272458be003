from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmon.widgets import cells, text_rows

if TYPE_CHECKING:
    from agentmon.widgets.text_rows import Row


@pytest.mark.parametrize("character", ["é", "漢"])
def test_each_character_of_a_long_line_is_measured_a_few_times_at_most(
    monkeypatch: pytest.MonkeyPatch, character: str
) -> None:
    measured: list[str] = []

    def measure(one: str) -> int:
        measured.append(one)
        return 1

    monkeypatch.setattr(cells, "get_character_cell_size", measure)

    rows = text_rows.wrapped(character * 20_000, 40)

    assert len(rows) == 500
    assert len(measured) < 5 * 20_000


@settings(deadline=None)
@given(pieces=st.lists(st.text("ab\n\r\t 世", max_size=12), max_size=20), width=st.integers(1, 12))
def test_a_text_that_grows_has_the_rows_of_the_text(pieces: list[str], width: int) -> None:
    growing, text = text_rows.GrowingRows(), ""

    for piece in pieces:
        text += piece
        assert growing.rows(text, width, indent=" ") == text_rows.text_rows(text, width, indent=" ")
    assert growing.rows("other", width + 1) == text_rows.text_rows("other", width + 1)
    assert growing.rows("another", width + 1) == text_rows.text_rows("another", width + 1)


def test_lines_that_are_whole_are_wrapped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    made = text_rows.text_rows

    def counted(text: str, width: int, style: str = "text", **options: str) -> list[Row]:
        sizes.append(len(text))
        return made(text, width, style, indent=options.get("indent", ""))

    monkeypatch.setattr(text_rows, "text_rows", counted)
    growing, text = text_rows.GrowingRows(), ""
    for number in range(500):
        text += f"line {number} of the text\n"
        growing.rows(text, 40)

    assert sum(sizes) < 2 * len(text)


def test_a_line_that_is_too_long_to_be_shown_whole_stays_as_it_is() -> None:
    growing = text_rows.GrowingRows()

    for size in (39_990, 40_010, 50_000, 50_010):
        assert growing.rows("x" * size, 40) == text_rows.text_rows("x" * size, 40)
    text = "x" * 50_010 + "\nafter"
    assert growing.rows(text, 40) == text_rows.text_rows(text, 40)
