from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from agentmon.domain.burn_rate import HOUR_MS, BurnRate, Rate
from agentmon.domain.costs import CostSums
from agentmon.domain.projections import DaySum, project_month, project_windows
from agentmon.domain.usage_windows import UsageWindow, WindowOrigin

NOW_MS = 1_795_802_400_000
WINDOW = UsageWindow(
    agent_slug="claude",
    name="five_hour",
    minutes=300,
    used_percent=20.0,
    resets_at_ms=NOW_MS + 4 * HOUR_MS,
    begun_at_ms=NOW_MS - HOUR_MS,
    spent=CostSums(answers=1, prompt_tokens=1000, cost_nano=1_000),
    origin=WindowOrigin.OFFICIAL,
)


def burning(cost_nano: int, tokens: float = 10.0, slug: str = "claude") -> BurnRate:
    rate = Rate(tokens_per_minute=tokens, cost_nano_per_hour=cost_nano)
    return BurnRate(at_ms=NOW_MS, quarter_hour=rate, hour=rate, hour_by_agent={slug: rate})


def test_a_window_grows_with_the_money_that_goes_into_it() -> None:
    (projected,) = project_windows([WINDOW], burning(500))

    assert projected.cost_nano == 3_000
    assert projected.tokens == 1000 + 4 * 60 * 10
    assert projected.used_percent == pytest.approx(60)
    assert projected.exhausted_at_ms is None


def test_a_window_that_will_not_last_says_when_it_is_exhausted() -> None:
    (projected,) = project_windows([WINDOW], burning(2_000))

    assert projected.used_percent == pytest.approx(180)
    assert projected.exhausted_at_ms == NOW_MS + 2 * HOUR_MS


def test_tokens_tell_where_no_price_is_known() -> None:
    unpriced = replace(WINDOW, spent=CostSums(answers=1, prompt_tokens=2_400, unpriced_answers=1))

    (projected,) = project_windows([unpriced], burning(0))

    assert projected.used_percent == pytest.approx(40)


def test_a_window_that_is_used_up_is_so_now() -> None:
    (projected,) = project_windows([replace(WINDOW, used_percent=104.0)], burning(0, 0))

    assert (projected.exhausted_at_ms, projected.used_percent) == (NOW_MS, 104.0)


def test_an_agent_that_rests_stays_where_it_is() -> None:
    (projected,) = project_windows([WINDOW], burning(500, slug="codex"))

    assert (projected.used_percent, projected.cost_nano) == (20.0, 1_000)


def test_no_percentage_is_made_up() -> None:
    unknown = replace(WINDOW, spent=CostSums())
    estimate = replace(WINDOW, used_percent=None, origin=WindowOrigin.ESTIMATE)

    assert [one.used_percent for one in project_windows([unknown, estimate], burning(500))] == [None, None]


@pytest.mark.parametrize(
    "window",
    [
        replace(WINDOW, resets_at_ms=None),
        replace(WINDOW, resets_at_ms=NOW_MS),
        replace(WINDOW, is_stale=True),
        replace(WINDOW, name="seven_day", minutes=10_080),
    ],
)
def test_nothing_is_said_of_windows_that_do_not_run_or_are_too_long(window: UsageWindow) -> None:
    assert project_windows([window], burning(500)) == ()


def test_the_month_is_what_was_spent_and_the_mean_of_each_weekday_to_come() -> None:
    # 2026-11-27 is a Friday; Saturday, Sunday and Monday are left.
    costs = {date(2026, 11, 21): 10, date(2026, 11, 14): 30, date(2026, 11, 22): 8, date(2026, 11, 27): 5}
    costs |= {date(2026, 10, 10): 20}
    days = {day.isoformat(): DaySum(cost_nano=cost) for day, cost in costs.items()}

    month = project_month(days, date(2026, 11, 27))

    # Since 10 October: seven Saturdays with 60, seven Sundays with 8, no cost on a Monday.
    assert month.spent_nano == 10 + 30 + 8 + 5
    assert month.projected_nano == month.spent_nano + round(60 / 7 + 8 / 7)
    assert (month.month, month.days_left) == ("2026-11", 3)


def test_a_weekday_that_was_not_seen_yet_gets_the_mean_of_the_others() -> None:
    days = {"2026-11-25": DaySum(cost_nano=100), "2026-11-26": DaySum(cost_nano=300, unpriced_answers=2)}

    month = project_month(days, date(2026, 11, 27))

    assert month.projected_nano == 400 + 3 * 200
    assert (month.known_days, month.unpriced_answers) == (2, 2)


def test_the_first_day_says_nothing_of_those_to_come() -> None:
    month = project_month({"2026-11-01": DaySum(cost_nano=7)}, date(2026, 11, 1))

    assert (month.projected_nano, month.known_days, month.days_left) == (7, 0, 29)


@pytest.mark.parametrize(
    ("today", "left"),
    [(date(2026, 12, 31), 0), (date(2026, 12, 1), 30), (date(2028, 2, 28), 1), (date(2027, 2, 28), 0)],
)
def test_the_days_left_are_those_of_the_calendar(today: date, left: int) -> None:
    assert project_month({}, today).days_left == left


def test_only_the_last_eight_weeks_count() -> None:
    today = date(2026, 11, 27)
    old = (today - timedelta(days=57)).isoformat()

    month = project_month({old: DaySum(cost_nano=10**9)}, today)

    assert (month.projected_nano, month.known_days) == (0, 56)
