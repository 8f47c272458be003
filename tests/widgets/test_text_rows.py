from __future__ import annotations

import pytest

from agentmon.widgets import cells, text_rows


@pytest.mark.parametrize("character", ["é", "漢"])
def test_each_character_of_a_long_line_is_measured_a_few_times_at_most(
    monkeypatch: pytest.MonkeyPatch, character: str
) -> None:
    measured: list[str] = []

    def measure(one: str) -> int:
        measured.append(one)
        return 1

    for module in (cells, text_rows):
        monkeypatch.setattr(module, "get_character_cell_size", measure)

    rows = text_rows.wrapped(character * 20_000, 40)

    assert len(rows) == 500
    assert len(measured) < 5 * 20_000
