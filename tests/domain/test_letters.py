"""No cut goes through a letter, whatever it is made of."""

from __future__ import annotations

import subprocess
import sys
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentmon
from agentmon.domain.letters import columns_of, cut, cut_before, fitting, letter_before, letter_behind, letters
from agentmon.domain.plain_text import plain_line
from agentmon.domain.search import TextMatcher, parse_query

if TYPE_CHECKING:
    from collections.abc import Callable

HARD = (
    "a",
    " ",
    "é",
    "e\u0301",
    "o\u0302\u0323",
    "🇩🇪",
    "🇫🇷",
    "👩\u200d👩\u200d👧\u200d👦",
    "🏳\ufe0f\u200d🌈",
    "👍🏽",
    "❤\ufe0f",
    "1\ufe0f\u20e3",
    "कि",
    "क्षि",
    "กำ",
    "\u1112\u1161\u11ab",
    "한",
    "漢",
    "🎉",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
)
TEXTS = st.lists(st.sampled_from(HARD), max_size=12)


def is_of_whole_letters(kept: str, parts: list[str]) -> bool:
    return kept in {beginning.rstrip() for beginning in accumulate(parts, initial="")}


@settings(deadline=None)
@given(parts=TEXTS)
def test_the_letters_of_a_text_are_those_that_it_was_made_of(parts: list[str]) -> None:
    text = "".join(parts)

    assert list(letters(text)) == parts
    assert columns_of(text) == sum(map(columns_of, parts))
    ends = list(accumulate(map(len, parts)))
    for begin, end in zip([0, *ends], ends, strict=False):
        assert (letter_before(text, end), letter_behind(text, begin)) == (begin, end)


@pytest.mark.parametrize("size_of", [len, columns_of])
@settings(deadline=None)
@given(parts=TEXTS)
def test_a_cut_leaves_each_letter_whole_and_keeps_to_the_room(size_of: Callable[[str], int], parts: list[str]) -> None:
    text = "".join(parts)
    size = size_of(text)

    for room in range(-1, size + 3):
        kept, end = cut(text, room, size_of), cut_before(text, room, size_of)
        assert size_of(kept) <= max(0, room) >= size_of(end)
        if size <= room:
            assert kept == end == text
        elif room > 0:
            assert kept.endswith("…")
            assert is_of_whole_letters(kept.removesuffix("…"), parts)
            assert end.startswith("…")
            assert any("".join(parts[at:]) == end[1:] for at in range(len(parts) + 1))
            assert size_of(text[: fitting(text, room, size_of)]) <= room


@settings(deadline=None)
@given(parts=TEXTS, room=st.integers(1, 40))
def test_a_line_of_so_many_characters_ends_with_a_whole_letter(parts: list[str], room: int) -> None:
    line = plain_line("".join(parts), max_characters=room)

    assert len(line) <= room
    assert line == "".join(parts) or is_of_whole_letters(line.removesuffix("…"), parts)


def test_as_many_letters_are_kept_as_fit() -> None:
    assert cut("ab🇩🇪cd", 5, columns_of) == "ab🇩🇪…"
    assert cut("ab🇩🇪cd", 4, columns_of) == "ab…"
    assert cut("漢字漢字", 6, columns_of) == "漢字…"
    assert cut("plain words", 6) == "plain…"


@pytest.mark.parametrize("letter", [letter for letter in HARD if letter != " "])
def test_a_snippet_begins_and_ends_with_whole_letters(letter: str) -> None:
    matcher = TextMatcher(parse_query("needle"))
    for shift in range(len(letter)):
        snippet = matcher.snippet(f"{'x' * shift}{letter * 400}needle{letter * 400}").text
        before, _, behind = snippet.partition("needle")
        assert set(letters(before.strip("…x"))) | set(letters(behind.strip("…"))) <= set(letters(letter * 2))


def test_texts_of_plain_letters_import_no_tables() -> None:
    code = (
        "import sys; from agentmon.domain.letters import *; "
        "[(cut(text, 4, size), cut_before(text, 4, size)) for text in ('plain words', 'Größe × Maß', '漢字 🎉 한국어')"
        " for size in (len, columns_of)]; sys.exit('wcwidth' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_host_of_a_run_cuts_with_the_standard_library_alone() -> None:
    root = str(Path(agentmon.__file__).parent.parent)
    script = (
        f"import sys; sys.path.append({root!r})\n"
        "from agentmon.domain.json_values import one_line\n"
        "from agentmon.domain.letters import columns_of, cut, letter_before\n"
        "text = 'x\\U0001f469\\u200d\\U0001f467e\\u0301' * 20\n"
        "assert 'wcwidth' not in sys.modules and len(one_line(text, 9)) <= 9\n"
        "assert len(cut(text, 7)) <= 7 and columns_of(text) > 0 and letter_before(text, 3) < 3\n"
    )
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")
