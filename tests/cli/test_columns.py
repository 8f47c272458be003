from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmon.cli.columns import fill, fit, table
from agentmon.domain.letters import columns_of
from tests.domain.test_letters import HARD, is_of_whole_letters

PARTS = st.lists(st.sampled_from(HARD), max_size=12)


@settings(deadline=None)
@given(parts=PARTS, columns=st.integers(0, 30))
def test_a_column_is_as_wide_as_asked_and_ends_with_a_whole_letter(parts: list[str], columns: int) -> None:
    text = "".join(parts)
    shown = fit(text, columns)

    assert columns_of(fill(text, columns)) == columns
    assert shown == text or is_of_whole_letters(shown.removesuffix("…"), parts)


@pytest.mark.parametrize("letter", HARD)
def test_what_stands_behind_a_cell_stays_in_its_column(letter: str) -> None:
    lines = table(("first", "second"), [(letter * 4, "x"), ("plain", "x")], 80)

    assert len({columns_of(line[: line.rindex("x")]) for line in lines[1:]}) == 1
