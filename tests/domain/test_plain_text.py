from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.plain_text import plain_line, plain_lines

ANY_TEXT = st.text(st.characters(codec=None), max_size=200)


@given(text=ANY_TEXT)
def test_no_control_code_or_direction_override_is_left(text: str) -> None:
    line = plain_line(text)

    assert not [character for character in line if unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}]
    assert not set(line) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")


@given(text=ANY_TEXT, most=st.integers(1, 50))
def test_a_line_is_never_longer_than_asked(text: str, most: int) -> None:
    assert len(plain_line(text, max_characters=most)) <= most


@given(text=st.text(st.characters(exclude_categories=["C", "Z"]), max_size=100))
def test_ordinary_text_stays_letter_for_letter(text: str) -> None:
    assert plain_line(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("fix [/] bug", "fix [/] bug"),
        ("a\x1b]52;c;ZXZpbA==\x07b", "ab"),
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("\x1b]0;title\x1b\\x", "x"),
        ("unfinished \x1b]8;;http://x", "unfinished "),
        ("\x9b2Jgone\x90q\x9c", "gone"),
        ("two\r\nlines\tand tabs", "two lines and tabs"),
        ("nul\x00bell\x07", "nul␀bell␇"),
        ("abc\u202egpj.exe", "abc�gpj.exe"),
        ("\ud800", "�"),
        ("漢字 e\u0301 🙂 שלום", "漢字 e\u0301 🙂 שלום"),
    ],
)
def test_each_kind_of_trick_is_made_harmless(text: str, shown: str) -> None:
    assert plain_line(text) == shown


def test_line_breaks_are_kept_where_lines_are_wanted() -> None:
    assert plain_lines("a\r\nb\rc\x1b[2K\nd") == "a\nb\nc\nd"


def test_a_cut_line_ends_with_an_ellipsis() -> None:
    assert plain_line("0123456789", max_characters=5) == "0123…"
