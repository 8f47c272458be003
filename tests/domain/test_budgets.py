from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agentmon.domain.budgets import (
    Budget,
    BudgetLevel,
    BudgetPeriod,
    BudgetScope,
    BudgetSpan,
    BudgetState,
    BudgetUse,
    span_of,
)
from agentmon.domain.ids import BudgetId


def a_state(spent: int, *, told_percent: int = 0, told_day: str = "2026-03-01") -> BudgetState:
    budget = Budget(
        id=BudgetId("b"),
        scope=BudgetScope.AGENT,
        label="claude",
        period=BudgetPeriod.DAY,
        limit=1000,
        told_percent=told_percent,
        told_day=told_day,
        created_at=datetime(2026, 3, 1, tzinfo=UTC),
    )
    span = BudgetSpan(first_day="2026-03-01", last_day="2026-03-01")
    return BudgetState(budget=budget, use=BudgetUse(spent=spent), span=span)


@pytest.mark.parametrize(
    ("period", "day", "first", "last"),
    [
        (BudgetPeriod.DAY, "2026-02-28", "2026-02-28", "2026-02-28"),
        (BudgetPeriod.WEEK, "2026-03-01", "2026-02-23", "2026-03-01"),
        (BudgetPeriod.WEEK, "2026-12-28", "2026-12-28", "2027-01-03"),
        (BudgetPeriod.MONTH, "2028-02-10", "2028-02-01", "2028-02-29"),
        (BudgetPeriod.MONTH, "2026-12-31", "2026-12-01", "2026-12-31"),
    ],
)
def test_a_period_has_the_days_of_the_calendar(period: BudgetPeriod, day: str, first: str, last: str) -> None:
    assert span_of(period, day) == BudgetSpan(first_day=first, last_day=last)
    assert span_of(BudgetPeriod.TOTAL, day) is None


@pytest.mark.parametrize(
    ("spent", "percent", "due", "level"),
    [
        (0, 0, 0, BudgetLevel.FINE),
        (499, 49, 0, BudgetLevel.FINE),
        (500, 50, 50, BudgetLevel.WARNED),
        (949, 94, 80, BudgetLevel.WARNED),
        (999, 99, 95, BudgetLevel.WARNED),
        (1000, 100, 100, BudgetLevel.SPENT),
        (5000, 500, 100, BudgetLevel.SPENT),
    ],
)
def test_a_share_is_reached_when_all_of_it_is_used(spent: int, percent: int, due: int, level: BudgetLevel) -> None:
    state = a_state(spent)

    assert (state.percent, state.due_percent, state.level) == (percent, due, level)
    assert state.left == max(0, 1000 - spent)


def test_a_share_is_news_once_in_its_period() -> None:
    assert a_state(600).has_news
    assert not a_state(600, told_percent=50).has_news
    assert a_state(800, told_percent=50).has_news
    assert a_state(600, told_percent=100, told_day="2026-02-28").has_news


@pytest.mark.parametrize(
    ("limit", "spent", "words"),
    [
        (20_000_000_000, 4_210_000_000, "$4.21 of $20.00"),
        (100_000_000, 42_000_000, "$0.04 of $0.10"),
        (5_000_000, 3_050_000, "$0.0030 of $0.0050"),
        (5_000_000, 2_000_000_000, "$2.00 of $0.0050"),
    ],
)
def test_a_budget_of_a_few_cents_is_told_with_all_its_digits(limit: int, spent: int, words: str) -> None:
    budget = replace(a_state(0).budget, limit=limit)

    assert f"{budget.amount_text(spent)} of {budget.limit_text}" == words
