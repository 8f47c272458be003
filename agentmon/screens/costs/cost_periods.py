"""The times that costs are shown of, and the bars that each has."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.costs import CostGroup

if TYPE_CHECKING:
    from collections.abc import Sequence

_MONTHS: Final = 12
_MOST_MONTHS: Final = 120


class Period(NamedTuple):
    """A time up to today."""

    name: str
    group: CostGroup
    """What each bar stands for: a day, a week or a month."""
    last: int | None
    """So many of these count; None for all that is known."""
    bars: int | None
    """So many bars are drawn; None for all that is known. A single day has those before it beside it."""


PERIODS: Final = (
    Period("today", CostGroup.DAY, 1, 7),
    Period("7 days", CostGroup.DAY, 7, 7),
    Period("30 days", CostGroup.DAY, 30, 30),
    Period("26 weeks", CostGroup.WEEK, 26, 26),
    Period("12 months", CostGroup.MONTH, 12, 12),
    Period("all time", CostGroup.MONTH, None, None),
)
FIRST_PERIOD: Final = 2
"""Which of them is shown at first."""


def begins_of(period: Period, since_day: str | None, today: date, known: Sequence[str]) -> list[date]:
    """Return the first day of each bar, the oldest first.

    Args:
        period: Whose bars.
        since_day: The first day of the first bar; None for all that is known.
        today: The day up to which they go.
        known: The names of the groups that have something, the oldest first.
    """
    if period.group is CostGroup.MONTH:
        first = _month_of(since_day or (known[0] if known else today.isoformat()))
        count = min(_MOST_MONTHS, today.year * _MONTHS + today.month - first)
        return [_day_of_month(today.year * _MONTHS + today.month - count + number) for number in range(count)]
    first_day = date.fromisoformat(since_day or today.isoformat())
    days = 7 if period.group is CostGroup.WEEK else 1
    return [first_day + timedelta(days=days * number) for number in range(period.bars or 1)]


def group_name(group: CostGroup, begin: date) -> str:
    """Return what the report calls the group that begins so."""
    return f"{begin:%Y-%m}" if group is CostGroup.MONTH else begin.isoformat()


def bar_label(group: CostGroup, begin: date) -> str:
    """Return what stands below a bar, as short as it can be."""
    if group is CostGroup.MONTH:
        return f"{begin:%b}" if begin.month > 1 else f"{begin:%Y}"
    return f"{begin:%b} {begin.day}" if begin.day == 1 or group is CostGroup.WEEK else str(begin.day)


def _month_of(day: str) -> int:
    """Return the months before the month of a day or of a name such as ``2026-03``."""
    return int(day[:4]) * _MONTHS + int(day[5:7]) - 1


def _day_of_month(months: int) -> date:
    return date(months // _MONTHS, months % _MONTHS + 1, 1)
