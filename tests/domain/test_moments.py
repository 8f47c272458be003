from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentmon.domain.errors import UsageError
from agentmon.domain.moments import moment_words, parse_moment_text

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
SATURDAY_NOON = datetime(2026, 11, 28, 12, 0, tzinfo=BERLIN)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type] # the parts are year, month, day, hour and so on


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2026-12-01 07:00", utc(2026, 12, 1, 6)),
        ("2026-12-01T07:00", utc(2026, 12, 1, 6)),
        ("  2026-12-01   at 7:00  ", utc(2026, 12, 1, 6)),
        ("2026-12-01 7pm", utc(2026, 12, 1, 18)),
        ("2026-12-01T07:00Z", utc(2026, 12, 1, 7)),
        ("2026-12-01T07:00:30.5Z", utc(2026, 12, 1, 7, 0, 30)),
        ("2026-12-01t07:00:00+05:30", utc(2026, 12, 1, 1, 30)),
        ("2026-12-01 07:00 -0800", utc(2026, 12, 1, 15)),
        ("2026-12-01 07:00 UTC", utc(2026, 12, 1, 7)),
        ("2026-12-01 7pm utc", utc(2026, 12, 1, 19)),
        ("20261201T070000Z", utc(2026, 12, 1, 7)),
        ("20261201T0700", utc(2026, 12, 1, 6)),
        ("Dec 1 07:00", utc(2026, 12, 1, 6)),
        ("1 December 2026, 7:00", utc(2026, 12, 1, 6)),
        ("December 1st, 2026 at 7 a.m.", utc(2026, 12, 1, 6)),
        ("Nov 1 07:00", utc(2027, 11, 1, 6)),
        ("feb 29 07:00", utc(2028, 2, 29, 6)),
        ("07:30", utc(2026, 11, 29, 6, 30)),
        ("12:00", utc(2026, 11, 29, 11)),
        ("12:01", utc(2026, 11, 28, 11, 1)),
        ("at 19:30:15", utc(2026, 11, 28, 18, 30, 15)),
        ("7:30pm", utc(2026, 11, 28, 18, 30)),
        ("7 PM", utc(2026, 11, 28, 18)),
        ("12am", utc(2026, 11, 28, 23)),
        ("12pm", utc(2026, 11, 29, 11)),
        ("today 18:00", utc(2026, 11, 28, 17)),
        ("tomorrow 7:00", utc(2026, 11, 29, 6)),
        ("Tomorrow at 7am", utc(2026, 11, 29, 6)),
        ("fri 18:00", utc(2026, 12, 4, 17)),
        ("Friday, 6pm", utc(2026, 12, 4, 17)),
        ("sat 18:00", utc(2026, 11, 28, 17)),
        ("saturday 11:00", utc(2026, 12, 5, 10)),
        ("sat 12:00", utc(2026, 12, 5, 11)),
        ("in 90 minutes", utc(2026, 11, 28, 12, 30)),
        ("90 min", utc(2026, 11, 28, 12, 30)),
        ("+2h", utc(2026, 11, 28, 13)),
        ("2h30m", utc(2026, 11, 28, 13, 30)),
        ("2 hours and 30 minutes from now", utc(2026, 11, 28, 13, 30)),
        ("in an hour", utc(2026, 11, 28, 12)),
        ("1.5h", utc(2026, 11, 28, 12, 30)),
        ("in 3 days", utc(2026, 12, 1, 11)),
        ("in 2 weeks", utc(2026, 12, 12, 11)),
        ("in 1 day, 4 hours", utc(2026, 11, 29, 15)),
        ("+0m", utc(2026, 11, 28, 11)),
        ("45s", utc(2026, 11, 28, 11, 0, 45)),
    ],
)
def test_people_may_say_when_in_many_ways(text: str, meant: datetime) -> None:
    assert parse_moment_text(text, now=SATURDAY_NOON, zone=BERLIN) == meant


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "soon",
            "7",
            "noonish",
            "2026-12-01T",
            "25:00",
            "7:60",
            "13pm",
            "0am",
            "2026-02-30 07:00",
            "feb 30 07:00",
        ),
        *(
            "2026-13-01 07:00",
            "in",
            "+",
            "in 3 fortnights",
            "2h30",
            "2026-12-01x07:00",
            "fri 18:00 19:00",
            "-2h",
            "3pmm",
        ),
        *("9999-12-31 23:59 -05:00", "2026-12-01 07:00 +99:00", "in 9999999 weeks", "07:30 Mars/Base", "\x1b[31m"),
    ],
)
def test_what_is_not_understood_is_refused_with_three_examples(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_moment_text(text, now=SATURDAY_NOON, zone=BERLIN)

    assert refused.value.hint.count("'") == 6
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize("text", ["2026-12-01", "tomorrow", "fri", "Dec 1"])
def test_a_day_needs_a_time(text: str) -> None:
    with pytest.raises(UsageError, match="a day without a time"):
        parse_moment_text(text, now=SATURDAY_NOON, zone=BERLIN)


@pytest.mark.parametrize("text", ["2026-11-28 11:59", "2025-12-01 07:00", "today 07:00", "Nov 1 2026 07:00"])
def test_a_full_date_in_the_past_is_refused_as_such(text: str) -> None:
    with pytest.raises(UsageError, match="is in the past"):
        parse_moment_text(text, now=SATURDAY_NOON, zone=BERLIN)


def test_a_moment_more_than_ten_years_away_is_refused() -> None:
    with pytest.raises(UsageError, match="ten years"):
        parse_moment_text("2126-12-01 07:00", now=SATURDAY_NOON, zone=BERLIN)


@pytest.mark.parametrize(
    ("zone", "now", "text", "meant"),
    [
        (BERLIN, utc(2026, 3, 28, 12), "2026-03-29 02:30", utc(2026, 3, 29, 1, 30)),
        (BERLIN, utc(2026, 3, 28, 12), "02:30", utc(2026, 3, 29, 1, 30)),
        (BERLIN, utc(2026, 10, 24, 12), "02:30", utc(2026, 10, 25, 0, 30)),
        (BERLIN, utc(2026, 10, 25, 0, 45), "02:30", utc(2026, 10, 26, 1, 30)),
        (BERLIN, utc(2026, 3, 28, 12), "in 1 day", utc(2026, 3, 29, 11)),
        (BERLIN, utc(2026, 3, 28, 12), "in 24 hours", utc(2026, 3, 29, 12)),
        (NEW_YORK, utc(2026, 3, 7, 12), "tomorrow 2:30", utc(2026, 3, 8, 7, 30)),
        (NEW_YORK, utc(2026, 11, 1, 3), "sun 1:30", utc(2026, 11, 1, 5, 30)),
    ],
)
def test_days_on_which_the_clocks_change_are_right(zone: ZoneInfo, now: datetime, text: str, meant: datetime) -> None:
    assert parse_moment_text(text, now=now, zone=zone) == meant


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (utc(2026, 11, 28, 14, 4), "15:04"),
        (utc(2026, 11, 28, 5, 0), "06:00"),
        (utc(2026, 11, 28, 23, 0), "tomorrow 00:00"),
        (utc(2026, 11, 29, 6), "tomorrow 07:00"),
        (utc(2026, 12, 4, 6), "Fri 07:00"),
        (utc(2026, 12, 5, 6), "Dec 5 07:00"),
        (utc(2027, 1, 5, 6), "Jan 5 07:00"),
        (utc(2026, 11, 27, 6), "Nov 27 07:00"),
        (utc(2027, 12, 1, 6), "2027-12-01 07:00"),
        (utc(2025, 12, 1, 6), "2025-12-01 07:00"),
    ],
)
def test_a_moment_is_told_in_short_words(moment: datetime, words: str) -> None:
    assert moment_words(moment, now=SATURDAY_NOON, zone=BERLIN) == words


def test_the_abbreviation_of_the_zone_follows_when_asked() -> None:
    summer = utc(2026, 7, 1, 12)

    assert moment_words(summer, now=summer, zone=BERLIN, with_zone=True) == "14:00 CEST"
    assert moment_words(SATURDAY_NOON, now=SATURDAY_NOON, zone=NEW_YORK, with_zone=True) == "06:00 EST"


@given(
    minutes=st.integers(1, 400 * 24 * 60),
    seconds=st.integers(0, 6 * 365 * 86400),
    zone=st.sampled_from([BERLIN, NEW_YORK, ZoneInfo("Australia/Lord_Howe"), UTC, timezone(timedelta(hours=-9.5))]),
)
def test_words_told_mean_the_same_when_typed(minutes: int, seconds: int, zone: ZoneInfo) -> None:
    now = utc(2024, 1, 1) + timedelta(seconds=seconds)
    moment = now.replace(second=0) + timedelta(minutes=minutes)
    assume(moment.astimezone(zone).fold == 0)

    assert parse_moment_text(moment_words(moment, now=now, zone=zone), now=now, zone=zone) == moment


@given(text=st.one_of(st.text(max_size=40), st.text("0123456789:+-.apmhdwtz finovr", max_size=24)))
def test_any_text_is_a_moment_to_come_or_a_usage_error(text: str) -> None:
    try:
        moment = parse_moment_text(text, now=SATURDAY_NOON, zone=BERLIN)
    except UsageError:
        return

    assert moment >= SATURDAY_NOON
    assert moment.utcoffset() == timedelta(0)
