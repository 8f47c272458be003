from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from agentmon.domain.local_days import LocalDays


def days_in(zone: str) -> LocalDays:
    return LocalDays(ZoneInfo(zone))


def ms_of(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("zone", "moment", "day"),
    [
        ("UTC", "2026-03-01T00:00:00Z", "2026-03-01"),
        ("Asia/Kolkata", "2026-03-01T18:29:59.999Z", "2026-03-01"),
        ("Asia/Kolkata", "2026-03-01T18:30:00Z", "2026-03-02"),
        ("Asia/Kathmandu", "2026-03-01T18:15:00Z", "2026-03-02"),
        ("Pacific/Pago_Pago", "2026-03-02T10:59:59Z", "2026-03-01"),
        ("Pacific/Kiritimati", "2026-03-01T10:00:00Z", "2026-03-02"),
        ("Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25"),
        ("Europe/Berlin", "2026-10-25T22:59:59Z", "2026-10-25"),
        ("Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31"),
        ("Africa/Monrovia", "1971-06-01T00:44:29Z", "1971-05-31"),
        ("America/St_Johns", "2009-11-01T02:30:30Z", "2009-11-01"),
        ("America/St_Johns", "2009-11-01T02:31:00Z", "2009-10-31"),
        ("Asia/Kolkata", "9999-12-31T23:59:59Z", "9999-12-31"),
    ],
)
def test_a_moment_is_on_the_day_that_the_clock_of_its_zone_shows(zone: str, moment: str, day: str) -> None:
    assert days_in(zone).day_of(ms_of(moment)) == day


@pytest.mark.parametrize("zone", ["America/Havana", "America/Sao_Paulo", "Asia/Beirut", "Europe/Berlin", "Asia/Tehran"])
def test_a_day_begins_where_the_one_before_ends(zone: str) -> None:
    days = days_in(zone)
    day = date(2015, 1, 1)
    while day < date(2020, 1, 1):
        begin_ms = days.begin_ms(day.isoformat())
        assert days.day_of(begin_ms) == day.isoformat()
        assert days.day_of(begin_ms - 1) == (day - timedelta(days=1)).isoformat()
        day += timedelta(days=1)


def test_days_are_as_long_as_they_really_were() -> None:
    days = days_in("America/New_York")

    hours = [
        (days.begin_ms(after) - days.begin_ms(day)) / 3_600_000
        for day, after in (("2026-03-08", "2026-03-09"), ("2026-11-01", "2026-11-02"), ("2026-06-01", "2026-06-02"))
    ]

    assert hours == [23, 25, 24]
    assert datetime.fromtimestamp(days.begin_ms("2026-03-09") / 1000, UTC).hour == 4
