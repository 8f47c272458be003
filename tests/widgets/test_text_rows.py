from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.widgets.text_rows import wrapped
from tests.call_counts import calls_of

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_line_of_twice_the_length_is_not_more_than_twice_the_work() -> None:
    def wrapping(characters: int) -> Callable[[], object]:
        return lambda: wrapped("é" * characters, 40)

    assert calls_of(wrapping(20_000)) < 3 * calls_of(wrapping(10_000))
