from __future__ import annotations

import pytest

from agentmon.logs.line_marks import Level, find_level, find_links


@pytest.mark.parametrize(
    ("line", "level", "word"),
    [
        ("ERROR cannot connect", Level.ERROR, "ERROR"),
        ("2026-03-04 14:02:00,123 WARNING slow", Level.WARNING, "WARNING"),
        ("[info] ready", Level.INFO, "info"),
        ("error: no such file", Level.ERROR, "error"),
        ('time=x level=warn msg="no error"', Level.WARNING, "warn"),
        ('{"level":"debug","msg":"x"}', Level.DEBUG, "debug"),
    ],
)
def test_levels_are_found_in_their_usual_forms(line: str, level: Level, word: str) -> None:
    mark = find_level(line)
    assert mark is not None
    assert (mark.level, line[mark.start : mark.end]) == (level, word)


@pytest.mark.parametrize(
    "line", ["no errors found", "an error in prose", "src/ERROR/file", "information", "x" * 200 + " ERROR"]
)
def test_words_that_are_no_level_stay_as_they_are(line: str) -> None:
    assert find_level(line) is None


def test_links_end_before_the_punctuation_of_the_sentence() -> None:
    line = "see (https://a.example/b_(c)). Or http://localhost:8000/x?y=1, or <https://d.example>!"
    assert [line[start:end] for start, end in find_links(line)] == [
        "https://a.example/b_(c)",
        "http://localhost:8000/x?y=1",
        "https://d.example",
    ]
