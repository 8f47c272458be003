from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agentmon.domain.errors import UsageError
from agentmon.logs.log_times import LogTimes
from agentmon.logs.places import ClockPlace, LinePlace, SharePlace, SpanPlace, parse_place

NEWEST = datetime(2026, 3, 4, 14, 30, tzinfo=UTC)


def milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


@pytest.mark.parametrize(
    ("typed", "place"),
    [
        ("1200", LinePlace(1200)),
        (" 1,200 ", LinePlace(1200)),
        ("0", LinePlace(1)),
        ("50%", SharePlace(0.5)),
        ("12.5 %", SharePlace(0.125)),
        ("100%", SharePlace(1.0)),
        ("-5m", SpanPlace(timedelta(minutes=5), from_end=True)),
        ("+1h 30m", SpanPlace(timedelta(minutes=90), from_end=False)),
        ("9:05", ClockPlace(timedelta(hours=9, minutes=5), "")),
        ("14:02:33", ClockPlace(timedelta(hours=14, minutes=2, seconds=33), "")),
        ("2026-03-01 14:02", ClockPlace(timedelta(hours=14, minutes=2), "2026-03-01")),
    ],
)
def test_a_line_a_share_and_a_time_are_understood(typed: str, place: object) -> None:
    assert parse_place(typed) == place


@pytest.mark.parametrize(
    "typed", ["", "half", "101%", "25:00", "1:2", "2026-13-01 10:00", "9" * 30, "+" + "9" * 30 + "d", "5m", "-"]
)
def test_anything_else_is_refused_with_what_can_be_typed(typed: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_place(typed)
    assert "50%" in raised.value.hint


@pytest.mark.parametrize(
    ("typed", "moment"),
    [
        ("14:02", datetime(2026, 3, 4, 14, 2, tzinfo=UTC)),
        ("23:00", datetime(2026, 3, 3, 23, 0, tzinfo=UTC)),
        ("2026-03-01 09:00", datetime(2026, 3, 1, 9, 0, tzinfo=UTC)),
    ],
)
def test_a_time_without_a_day_is_the_newest_one_of_the_log(typed: str, moment: datetime) -> None:
    place = parse_place(typed)
    assert isinstance(place, ClockPlace)
    assert place.moment_near(NEWEST, UTC) == moment


def test_a_moment_leads_to_the_output_that_came_then() -> None:
    begin = milliseconds(NEWEST) - 10_000
    times = LogTimes([(begin, 100), (begin + 2_000, 100), (begin + 4_000, 500), (begin + 10_000, 900)])

    assert times.first == NEWEST - timedelta(seconds=10)
    assert times.newest == NEWEST
    offsets = [times.offset_at(NEWEST - timedelta(seconds=back), size=900) for back in (60, 10, 7, 6, 3, 0)]
    assert offsets == [0, 0, 100, 100, 500, 500]
    moments = [times.moment_at(offset, size=1000) for offset in (0, 99, 100, 499, 899, 900)]
    expected = [NEWEST - timedelta(seconds=back) for back in (10, 10, 6, 6, 0)]
    assert moments == [*expected, None]


def test_behind_what_a_capped_log_left_out_moments_are_counted_from_the_end() -> None:
    begin = milliseconds(NEWEST) - 10_000
    times = LogTimes([(begin + 1_000 * step, 100 * (step + 1)) for step in range(11)])

    assert times.offset_at(NEWEST - timedelta(seconds=8.5), size=800) == 200
    assert times.offset_at(NEWEST - timedelta(seconds=0.5), size=800) == 700
    assert times.moment_at(200, size=800) == NEWEST - timedelta(seconds=8)
    assert times.moment_at(700, size=800) == NEWEST


def test_a_log_that_nobody_reported_has_no_times() -> None:
    times = LogTimes([(5, 0)])
    assert times.first is None
    assert times.newest is None
    assert times.offset_at(NEWEST, size=10) == 0
    assert times.moment_at(0, size=10) is None
