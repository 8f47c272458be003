"""Due dates as people type and read them: ``fri``, ``dec 1``, ``in 2 days``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import UsageError
from agentmon.domain.moments import MONTHS, WEEKDAYS, parse_moment_text
from agentmon.domain.plain_text import plain_line

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

END_OF_DAY: Final = "23:59"
_WEEKDAY_MAX_DAYS: Final = 6
_YEARLESS_MAX_DAYS: Final = 180
_SHOWN_MAX_CHARACTERS: Final = 60


def parse_due(text: str, *, now: datetime, zone: tzinfo) -> datetime:
    """Return the moment that a person means, as aware UTC; a day without a time lasts until its end.

    Raises:
        UsageError: It is not understood, or is in the past.
    """
    for words in (text, f"{text} {END_OF_DAY}") if text.strip() else ():
        try:
            return parse_moment_text(words, now=now, zone=zone)
        except UsageError:
            continue
    shown = repr(plain_line(text.strip(), max_characters=_SHOWN_MAX_CHARACTERS))
    raise UsageError(
        f"{shown} is no due date that is to come", hint="write for example fri, dec 1, 'tomorrow 18:00' or 'in 2 days'"
    )


def due_words(due_at: datetime, *, now: datetime, zone: tzinfo) -> str:
    """Return a due date in short words: ``due fri``, ``due Dec 1``, ``overdue yesterday``."""
    there, here = due_at.astimezone(zone), now.astimezone(zone)
    days = (there.date() - here.date()).days
    near = {-1: "yesterday", 0: "today", 1: "tomorrow"}.get(days)
    if near is not None:
        day = near
    elif 1 < days <= _WEEKDAY_MAX_DAYS:
        day = WEEKDAYS[there.weekday()].lower()
    elif abs(days) <= _YEARLESS_MAX_DAYS:
        day = f"{MONTHS[there.month - 1]} {there.day}"
    else:
        day = f"{there.year:04d}-{there.month:02d}-{there.day:02d}"
    return f"overdue {day}" if due_at < now else f"due {day}"


def due_text(due_at: datetime, *, zone: tzinfo) -> str:
    """Return a due date as it can be typed again: ``2026-12-01``, ``2026-12-01 18:00``."""
    there = due_at.astimezone(zone)
    clock = f"{there.hour:02d}:{there.minute:02d}"
    day = f"{there.year:04d}-{there.month:02d}-{there.day:02d}"
    return day if clock == END_OF_DAY else f"{day} {clock}"
