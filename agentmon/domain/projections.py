"""What will have been used at the end of a usage window and of a month, when it goes on like this."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from agentmon.domain.burn_rate import HOUR_MS, MINUTE_MS, Rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.burn_rate import BurnRate
    from agentmon.domain.usage_windows import UsageWindow, WindowOrigin

LOOK_BACK_DAYS: Final = 56
"""Eight weeks of each weekday make its mean."""
_LONGEST_MINUTES: Final = 24 * 60
"""A rate of an hour says nothing of the end of a longer window."""
_ALL_PERCENT: Final = 100.0
_DECEMBER: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowProjection:
    """What a usage window will have taken at its end, at the present rate."""

    agent_slug: str
    account: str = ""
    name: str
    ends_at_ms: int
    used_percent: float | None
    """May be above 100; None when no percentage is known."""
    cost_nano: int
    """Of answers with a known cost."""
    tokens: int
    exhausted_at_ms: int | None
    """When 100 % are reached; None when that is not before the end, or not known."""
    origin: WindowOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthProjection:
    """What the month will have cost at its end: the days so far, and for each to come the mean of its weekday."""

    month: str
    """``2026-11``."""
    spent_nano: int
    projected_nano: int
    days_left: int
    """After today."""
    known_days: int
    """Days before today that the means are made of; 0 means that nothing can be said of the days left."""
    unpriced_answers: int
    """Of the month; they have no known cost and are in no sum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """What comes of the present use."""

    windows: tuple[WindowProjection, ...]
    """Of those of a day at most that run now."""
    month: MonthProjection


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySum:
    """What one day cost."""

    cost_nano: int
    unpriced_answers: int = 0


def project_windows(windows: Sequence[UsageWindow], burn: BurnRate) -> tuple[WindowProjection, ...]:
    """Return what the windows that run now come to at the rate of their agent over the last hour."""
    return tuple(
        _project_window(window, window.resets_at_ms, burn.hour_by_agent.get(window.agent_slug, Rate()), burn.at_ms)
        for window in windows
        if window.resets_at_ms is not None
        and window.resets_at_ms > burn.at_ms
        and not window.is_stale
        and window.minutes is not None
        and window.minutes <= _LONGEST_MINUTES
    )


def project_month(days: Mapping[str, DaySum], today: date) -> MonthProjection:
    """Return what the month of a day comes to.

    A day without an answer counts as nothing, from the first known day on. Where a weekday has not been seen yet, the
    mean of all known days stands for it.

    Args:
        days: What each day cost, by its name such as ``2026-03-01``: this month, and ``LOOK_BACK_DAYS`` before today.
        today: The day that it is in the zone of the days.
    """
    month = today.isoformat()[:7]
    of_month = [one for day, one in days.items() if day[:7] == month and day <= today.isoformat()]
    spent = sum(one.cost_nano for one in of_month)
    first = max(today - timedelta(days=LOOK_BACK_DAYS), min(map(date.fromisoformat, days), default=today))
    past = [first + timedelta(days=number) for number in range((today - first).days)]
    by_weekday: dict[int, list[int]] = {}
    for day in past:
        by_weekday.setdefault(day.weekday(), []).append(days.get(day.isoformat(), DaySum(cost_nano=0)).cost_nano)
    all_costs = [cost for costs in by_weekday.values() for cost in costs]
    left = _days_left(today)
    ahead = 0.0
    for day in left:
        costs = by_weekday.get(day.weekday()) or all_costs
        ahead += sum(costs) / len(costs) if costs else 0
    return MonthProjection(
        month=month,
        spent_nano=spent,
        projected_nano=spent + round(ahead),
        days_left=len(left),
        known_days=len(past),
        unpriced_answers=sum(one.unpriced_answers for one in of_month),
    )


def _project_window(window: UsageWindow, ends_at_ms: int, rate: Rate, now_ms: int) -> WindowProjection:
    left_ms = ends_at_ms - now_ms
    more_nano = rate.cost_nano_per_hour * left_ms / HOUR_MS
    more_tokens = rate.tokens_per_minute * left_ms / MINUTE_MS
    percent, exhausted_at_ms = window.used_percent, None
    if percent is not None:
        # Vendors weigh models much as their prices do, so money tells more than tokens where it is known.
        share = (
            more_nano / window.spent.cost_nano
            if window.spent.cost_nano
            else more_tokens / window.spent.total_tokens
            if window.spent.total_tokens
            else None
        )
        if percent >= _ALL_PERCENT:
            exhausted_at_ms = now_ms
        elif share is not None and (grown := percent * share) > 0:
            at_ms = now_ms + round(left_ms * (_ALL_PERCENT - percent) / grown)
            exhausted_at_ms = at_ms if at_ms < ends_at_ms else None
        percent = None if share is None and (more_nano or more_tokens) else percent + percent * (share or 0.0)
    return WindowProjection(
        agent_slug=window.agent_slug,
        account=window.account,
        name=window.name,
        ends_at_ms=ends_at_ms,
        used_percent=percent,
        cost_nano=window.spent.cost_nano + round(more_nano),
        tokens=window.spent.total_tokens + round(more_tokens),
        exhausted_at_ms=exhausted_at_ms,
        origin=window.origin,
    )


def _days_left(today: date) -> list[date]:
    next_month = date(today.year + today.month // _DECEMBER, today.month % _DECEMBER + 1, 1)
    return [today + timedelta(days=number) for number in range(1, (next_month - today).days)]
