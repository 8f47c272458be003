from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from agentmon.domain.due_dates import due_text, due_words, parse_due
from agentmon.domain.errors import UsageError

NOW = datetime(2026, 11, 25, 11, tzinfo=UTC)  # a Wednesday
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("typed", "day", "words"),
    [
        ("fri", "2026-11-27", "due fri"),
        ("today", "2026-11-25", "due today"),
        ("tomorrow 18:00", "2026-11-26 18:00", "due tomorrow"),
        ("in 2 days", "2026-11-27 12:00", "due fri"),
        ("Dec 24", "2026-12-24", "due Dec 24"),
        ("2027-12-01", "2027-12-01", "due 2027-12-01"),
    ],
)
def test_a_due_date_is_read_and_told_in_the_zone_of_the_person(typed: str, day: str, words: str) -> None:
    due_at = parse_due(typed, now=NOW, zone=BERLIN)

    assert due_text(due_at, zone=BERLIN) == day
    assert due_words(due_at, now=NOW, zone=BERLIN) == words
    assert parse_due(day, now=NOW, zone=BERLIN) == due_at


@pytest.mark.parametrize("typed", ["", "soon", "2020-01-01", "feb 30"])
def test_what_is_no_due_date_is_refused(typed: str) -> None:
    with pytest.raises(UsageError, match="no due date"):
        parse_due(typed, now=NOW, zone=BERLIN)


def test_what_is_over_is_overdue_in_words_too() -> None:
    due_at = parse_due("fri", now=NOW, zone=BERLIN)

    assert due_words(due_at, now=datetime(2026, 11, 28, 11, tzinfo=UTC), zone=BERLIN) == "overdue yesterday"
    assert due_words(due_at, now=datetime(2026, 11, 30, 11, tzinfo=UTC), zone=BERLIN) == "overdue Nov 27"
