"""What is typed is found in a text exactly where it stands, and never missed by the words of an index."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.search import TextMatcher, distinct_words, fold, indexed_words, parse_query

LETTERS = st.sampled_from(
    [
        "a",
        "B",
        "é",
        "e\u0301",
        "ß",
        "İ",
        "ſ",
        "_",
        "-",
        "'",
        " ",
        "\n",
        "\t",
        "1",
        "²",
        "割",
        "引",
        "한",
        "ก",
        "🎉",
        "[",
        "x",
        "\0",
    ]
)
TEXTS = st.lists(LETTERS, max_size=40).map("".join) | st.text(max_size=40)


@given(TEXTS, TEXTS)
def test_lines_that_match_are_those_that_match_alone(text: str, typed: str) -> None:
    matcher = TextMatcher(parse_query(typed))
    lines = text.split("\n")

    expected = [at for at, line in enumerate(lines) if parse_query(typed).words and matcher.matches(line)]

    assert matcher.matching_lines(text) == expected


@given(TEXTS, TEXTS)
def test_an_index_knows_every_word_of_what_matches(text: str, typed: str) -> None:
    query = parse_query(typed)
    if not TextMatcher(query).matches(text):
        return
    known = indexed_words(text).split(" ")

    assert set(known) == set(distinct_words(text).split(" "))
    for word in query.words:
        *whole, last = word.parts or ("",)
        assert all(part in known for part in whole)
        assert last in known or not last or (word.is_prefix and any(one.startswith(last) for one in known))


@given(TEXTS, TEXTS)
def test_snippets_are_one_safe_line_with_their_marks_inside(text: str, typed: str) -> None:
    snippet = TextMatcher(parse_query(typed)).snippet(text)

    assert len(fold(text)) == len(text)
    assert len(snippet.text) <= 160
    assert snippet.text.isprintable() or not snippet.text.isascii()
    ends = [0, *(end for mark in snippet.marks for end in mark), len(snippet.text)]
    assert ends == sorted(ends)
