from __future__ import annotations

from functools import _lru_cache_wrapper

import pytest
from rich.segment import Segment

from agentmon.widgets.library_caches import bound_caches


@pytest.fixture(autouse=True)
def bounded() -> None:
    bound_caches()


def test_few_of_the_texts_that_were_cut_are_kept() -> None:
    for number in range(3000):
        Segment(f"› line {number}").split_cells(4)

    kept = Segment._split_cells
    assert isinstance(kept, _lru_cache_wrapper)
    assert kept.cache_info().currsize <= 1024


@pytest.mark.parametrize(
    ("text", "cut", "parts"),
    [("› line", 2, ("› ", "line")), ("日本", 2, ("日", "本")), ("日本", 1, (" ", " 本")), ("日本", 3, ("日 ", " "))],
)
def test_texts_are_cut_between_and_within_characters(text: str, cut: int, parts: tuple[str, str]) -> None:
    before, after = Segment(text).split_cells(cut)

    assert (before.text, after.text) == parts
