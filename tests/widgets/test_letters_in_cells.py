"""What a cell, a row or a card leaves out, it leaves out letter by letter."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import accumulate

from hypothesis import given, settings
from hypothesis import strategies as st

from agentmon.domain.board import Card
from agentmon.domain.ids import TaskId
from agentmon.domain.task_status import TaskStatus
from agentmon.logs.log_file import LogLine
from agentmon.widgets.card_text import card_lines
from agentmon.widgets.cells import cells, cut, even_line, pad
from agentmon.widgets.log_rows import DisplayLine
from agentmon.widgets.text_rows import wrapped

# Joiners and skin tones are not drawn: each person of a family is a letter of its own here.
HARD = ("a", "b", "é", "o\u0302\u0323", "🇩🇪", "🇫🇷", "कि", "क्षि", "กำ", "\u1112\u1161\u11ab", "한", "漢", "🎉", "👩")
PARTS = st.lists(st.sampled_from(HARD), min_size=1, max_size=20)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def evened(parts: list[str]) -> list[str]:
    return [even_line(part) for part in parts]


def ends_of(parts: list[str]) -> set[int]:
    return set(accumulate(map(len, parts), initial=0))


@settings(deadline=None)
@given(drawn=PARTS)
def test_a_cell_is_cut_between_letters_and_keeps_its_width(drawn: list[str]) -> None:
    parts = evened(drawn)
    text = even_line("".join(drawn))

    assert text == "".join(parts)
    for width in range(cells(text) + 3):
        kept = cut(text, width)
        assert cells(kept) <= width
        assert cells(pad(text, width)) == width
        assert kept == text if cells(text) <= width else not kept or len(kept) - 1 in ends_of(parts)


@settings(deadline=None)
@given(drawn=PARTS, width=st.integers(4, 30))
def test_rows_break_between_letters(drawn: list[str], width: int) -> None:
    parts = evened(drawn)

    for at_words in (True, False):
        rows = wrapped("".join(drawn), width, at_words=at_words)
        assert max(map(cells, rows)) <= width
        assert set(accumulate(map(len, rows))) <= ends_of(parts)


@settings(deadline=None)
@given(drawn=PARTS, width=st.integers(4, 30), left=st.integers(0, 20))
def test_rows_of_a_log_break_and_scroll_between_letters(drawn: list[str], width: int, left: int) -> None:
    content = "".join(drawn).encode()
    line = DisplayLine(LogLine(start=0, end=len(content), content=content, is_whole=False))
    ends = ends_of(evened(drawn))

    for row in range(line.row_count(width)):
        begin, end = line.wrapped_row(width, row)
        assert {begin, end} <= ends
        assert cells(line.text[begin:end]) <= width
    begin, end, blanks = line.cropped(left, width)
    assert {begin, end} <= ends
    assert cells(line.text[begin:end]) + blanks <= width or begin == end


@settings(deadline=None)
@given(name=PARTS, title=PARTS, width=st.integers(10, 40))
def test_a_card_keeps_its_width_whatever_its_title_and_workspace_are_made_of(
    name: list[str], title: list[str], width: int
) -> None:
    card = Card(
        task_id=TaskId("t"),
        number=5,
        title="".join(title),
        status=TaskStatus.TODO,
        priority=2,
        workspace_name="".join(name),
    )

    (head, *_) = card_lines(card, width=width, now=NOW)

    assert sum(cells(part.text) for part in head) == width
    shown = head[0].text.partition("#")[0]
    whole = "".join(evened(name))
    assert shown in {"", whole} or len(whole) - len(shown.removeprefix("…")) in ends_of(evened(name))
    drawn = head[2].text.rstrip().removesuffix("…")
    assert len(drawn) in ends_of(evened(title))
