"""Texts are cut behind whole letters, in cells of tables and on the command line."""

from __future__ import annotations

import pytest

from agentmon.cli.columns import columns_of, fit
from agentmon.domain.letters import clip
from agentmon.domain.plain_text import plain_line
from agentmon.widgets.cells import cells, cut, even_line

LETTERS = (
    *(
        "a",
        "e\u0301",
        "🇩🇪",
        "👩\u200d👩\u200d👧",
        "👍🏽",
        "❤\ufe0f",
        "1\ufe0f\u20e3",
        "कि",
        "क्ष",
        "漢",
        "각",
        "\u1100\u1161\u11a8",
    ),
    *("นี้", "ك\u064e"),
)
TEXTS = [before + letter * 3 + behind for letter in LETTERS for before in ("", "x", "🇫🇷") for behind in ("", "y")]


def letters_of(text: str) -> list[str]:
    """Return the parts between which it may be cut: those that it was put together from."""
    parts, rest = [], text
    while rest:
        part = next((one for one in (*LETTERS, "x", "y", "🇫🇷") if rest.startswith(one)), rest[0])
        parts.append(part)
        rest = rest[len(part) :]
    return parts


@pytest.mark.parametrize("text", TEXTS)
def test_no_letter_is_cut_in_two(text: str) -> None:
    parts = letters_of(text)
    begins = {"".join(parts[:count]) for count in range(len(parts) + 1)}
    for most in range(1, len(text) + 2):
        for shown in (clip(text, most), plain_line(text, max_characters=most)):
            assert len(shown) <= most
            assert shown == text or shown.removesuffix("…") in begins
    for columns in range(1, columns_of(text) + 2):
        shown = fit(text, columns)
        assert columns_of(shown) <= columns
        assert shown == text or shown.removesuffix("…") in begins


@pytest.mark.parametrize("text", TEXTS)
def test_a_cell_is_cut_behind_a_whole_letter(text: str) -> None:
    line = even_line(text)
    begins = {"".join(letters_of(line)[:count]) for count in range(len(line) + 1)}
    for width in range(1, cells(line) + 2):
        shown = cut(line, width)
        assert cells(shown) <= width
        assert shown == line or shown.removesuffix("…") in begins
