from __future__ import annotations

import pytest

from agentmon.domain.errors import UsageError
from agentmon.domain.labels import labels_text, parse_label, parse_labels


@pytest.mark.parametrize(
    ("typed", "label"),
    [
        ("auth", "auth"),
        ("#Auth", "auth"),
        (" area/web-ui_2.0 ", "area/web-ui_2.0"),
        ("Übung", "übung"),
        ("हिन्दी", "हिन्दी"),
        ("漢字", "漢字"),
        ("42", "42"),
        ("a" * 40, "a" * 40),
    ],
)
def test_a_label_is_a_short_word_in_lower_case(typed: str, label: str) -> None:
    assert parse_label(typed) == label


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", "empty"),
        ("#", "empty"),
        ("two words", "cannot have ' '"),
        ("a,b", "cannot have ','"),
        ("a\x1b", r"cannot have '\\x1b'"),
        ("🚀", "cannot have"),
        ("##a", "cannot have '#'"),
        ("a" * 41, "41 characters"),
    ],
)
def test_what_is_no_label_is_refused_with_the_reason(typed: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_label(typed)


def test_labels_are_sorted_and_each_is_there_once() -> None:
    assert labels_text(parse_labels(["web", "#auth", "AUTH"])) == "#auth #web"


def test_too_many_labels_are_refused() -> None:
    with pytest.raises(UsageError, match="21 labels"):
        parse_labels(f"label-{number}" for number in range(21))
