"""The days that a person names for costs and summaries, and the zone whose days they are."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import UsageError
from agentmon.schedule import local_zone_name
from agentmon.settings import SYSTEM_ZONE

if TYPE_CHECKING:
    from agentmon.domain.clock import Clock
    from agentmon.services.settings import SettingsService
    from agentmon.store.usage_days import UsageDayRepository

WEEK: Final = "week"
MONTH: Final = "month"
_MONTHS: Final = 12


async def settled_zone(days: UsageDayRepository, settings: SettingsService, clock: Clock) -> str:
    """Return the zone whose days are stored, moved to that of the settings first when that differs."""
    wanted = (await settings.costs()).timezone
    if wanted == SYSTEM_ZONE:
        stored = await days.zone()
        return await asyncio.to_thread(local_zone_name) if stored is None else stored
    await days.move_to(wanted, at=clock.now())
    return wanted


def parse_day(text: str | None) -> str | None:
    """Return a day that a person wrote, ``2026-03-01`` or ``20260301``, in the first form; None for None.

    Raises:
        UsageError: It is no day.
    """
    if text is None:
        return None
    written = text.strip()
    if len(written) == len("20260301") and written.isdecimal():
        written = f"{written[:4]}-{written[4:6]}-{written[6:]}"
    try:
        return date.fromisoformat(written).isoformat()
    except ValueError as error:
        raise UsageError(f"{text!r} is no day", hint="write it like 2026-03-01 or 20260301") from error


def chosen_days(
    since: str | None, until: str | None, last: int | None, *, period: str, today: str
) -> tuple[str | None, str | None]:
    """Return the first and the last day that a person means; None is without a limit.

    Args:
        since: The first day, as a person writes it.
        until: The last day.
        last: So many days, weeks or months up to the last day, which is today's when none is named.
        period: ``WEEK`` and ``MONTH``; anything else means days.
        today: The day of now.

    Raises:
        UsageError: A day cannot be read, or there is no such span of days.
    """
    since_day, until_day = parse_day(since), parse_day(until)
    if since_day is not None and last is not None:
        raise UsageError("--since and --last exclude each other", hint="--last ends with --until, or today")
    if last is not None:
        until_day = until_day or today
        since_day = _first_day(period, date.fromisoformat(until_day), last).isoformat()
    if since_day is not None and until_day is not None and since_day > until_day:
        raise UsageError(f"the first day, {since_day}, comes after the last, {until_day}", hint="change one")
    return since_day, until_day


def _first_day(period: str, today: date, last: int) -> date:
    """Return the first day of the last days, weeks or months, of which today's is one."""
    if period == MONTH:
        months = max(_MONTHS, today.year * _MONTHS + today.month - last)
        return date(months // _MONTHS, months % _MONTHS + 1, 1)
    days = today.weekday() + 7 * (last - 1) if period == WEEK else last - 1
    return date.fromordinal(max(1, today.toordinal() - days))
