from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.quick_add import QuickLine, parse_quick, quick_words
from agentmon.domain.task_status import Priority

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


def read(text: str) -> QuickLine:
    return parse_quick(text, now=NOW, zone=UTC)


def test_signs_are_understood_and_the_rest_is_the_title() -> None:
    line = read(
        "fix login !1 @Claude #auth #Web after:38,#39 due:fri parent:12 in:'~/my x' retry:2 verify:'make test' page"
    )

    assert line == QuickLine(
        title="fix login page",
        priority=Priority.URGENT,
        agent_slug="claude",
        labels=("auth", "web"),
        after=(38, 39),
        due_at=datetime(2026, 3, 6, 23, 59, tzinfo=UTC),
        parent=12,
        folder="~/my x",
        retries=2,
        verify="make test",
    )
    assert read("fix it verify:none").verify == ""


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("see #12 and #13", "see #12 and #13"),
        (r"style \@media and \#hot", "style @media and #hot"),
        ("say '!1 now' \"due:fri\"", "say !1 now due:fri"),
        ("it's 5\" wide, 'tis", "it's 5\" wide, 'tis"),
        ("wow !! @ # ! a@b http://x :after", "wow !! @ # ! a@b http://x :after"),
        ("!important css", "!important css"),
        (r"a \ b", r"a \ b"),
    ],
)
def test_what_only_looks_like_a_sign_stays_text(text: str, title: str) -> None:
    line = read(text)

    assert line.title == title
    assert not line.problems


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("!9", "priorities are"),
        ("#a+b", "cannot have"),
        ("after:", "number of a task"),
        ("after:38,x", "not the number"),
        ("after:0", "not the number"),
        ("due:", "a day belongs"),
        ("due:someday", "no due date"),
        ("parent:x", "not the number"),
        ("in:", "a folder belongs"),
        ("verify:", "a command belongs"),
        ("retry:100", "retries are"),
        ("retry:²", "retries are"),
        ("retry:" + "9" * 40, "retries are"),
    ],
)
def test_a_wrong_sign_is_told_and_neither_dropped_nor_taken_for_text(word: str, message: str) -> None:
    line = read(f"fix {word} it")

    (problem,) = line.problems
    assert problem.word == word
    assert message in problem.message
    assert problem.hint
    assert line.title == "fix it"


def test_what_is_said_twice_is_wrong_but_labels_and_tasks_to_wait_for_add_up() -> None:
    assert [one.word for one in read("a !1 !2 @x @y retry:1 retry:1").problems] == ["!2", "@y", "retry:1"]
    assert read("a #x #y after:1 after:2 after:1") == QuickLine(title="a", labels=("x", "y"), after=(1, 2))


def test_a_line_without_a_title_says_so() -> None:
    assert "needs a title" in read("!1 @claude").problems[0].message
    assert "needs a title" in read("").problems[0].message


def test_long_lines_are_read_at_once() -> None:
    begun_at = time.process_time()

    assert read("'a " * 20_000).title == " ".join(["'a"] * 20_000)
    assert read("fix retry:" + "0" * 5_000).problems[0].message == "retries are 0 to 99"
    assert time.process_time() - begun_at < 2


@given(st.text(max_size=80))
def test_any_line_is_read_and_no_word_of_it_is_lost(text: str) -> None:
    words = list(quick_words(text))

    read(text)

    assert "".join(word.text for word in words).split() == text.split() or "".join(
        "".join(word.text.split()) for word in words
    ) == "".join(text.split())
    assert all(text[word.at :].startswith(word.text) for word in words)
