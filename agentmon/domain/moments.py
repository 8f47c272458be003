"""Moments as people type and read them: ``tomorrow 7:00``, ``in 90 minutes``, ``Fri 07:00``; English in any locale."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Final

from agentmon.domain.clock import in_zone
from agentmon.domain.errors import UsageError
from agentmon.domain.plain_text import plain_line

MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
"""The first is number 0, as ``date.weekday`` counts."""

_EXAMPLES: Final = "write for example '2026-12-01 07:00', 'tomorrow 7:00' or 'in 90 minutes'"
_SHOWN_MAX_CHARACTERS: Final = 60
_SPAN_MAX: Final = timedelta(days=3660)
_YEARLESS_MAX_DAYS: Final = 180
_WEEKDAY_MAX_DAYS: Final = 6
_NOON: Final = 12

_DATE: Final = r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
_MONTH_NAME: Final = r"(?P<name>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_NAMED_DATE: Final = (
    rf"(?:{_MONTH_NAME}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?(?:\s+(?P<year>\d{{4}}),?)?(?=\s|$))",
    rf"(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.?\s+{_MONTH_NAME},?(?:\s+(?P<year>\d{{4}}),?)?(?=\s|$))",
)
_CLOCK: Final = re.compile(
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d{1,9})?)?)?"
    r"\s*(?P<half>am|pm|a\.m\.|p\.m\.)?",
)
_OFFSET: Final = re.compile(
    r"(?P<clock>.*?[\dm.])\s*(?:(?P<utc>z|utc)|(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d{2})?)"
)
_DAY_WORD: Final = re.compile(
    r"(?P<word>today|tomorrow|mon(?:day)?|tue(?:s|sday)?|wed(?:nesday)?|thu(?:r|rs|rsday)?|fri(?:day)?|sat(?:urday)?"
    r"|sun(?:day)?)\b,?",
)
_SPAN_PART: Final = re.compile(
    r"(?P<count>\d{1,7}(?:\.\d{1,3})?|an?(?=\s))\s*(?P<unit>weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)"
    r"(?![a-z])\s*(?:,|and\b)?\s*",
)
_SECONDS_OF_UNIT: Final = {"w": 7 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1}


def parse_moment_text(text: str, *, now: datetime, zone: tzinfo) -> datetime:
    """Return the moment that a person means, as aware UTC and not before ``now``.

    Understood are dates with a time (``2026-12-01 07:00``, ISO 8601 with or without an offset, ``Dec 1 07:00``), a time
    of the day (``07:30``, ``7pm``: the next one), a day with a time (``tomorrow 7:00``, ``fri 18:00``), and a span from
    now (``in 90 minutes``, ``+2h``, ``2h30m``, ``in 3 days``). Whole days and weeks keep the time of the day when the
    clocks change in between. A local time that a change of the clocks skips counts as that much later; one that comes
    twice is the first.

    Args:
        text: What was typed; case and extra blanks do not matter.
        now: The present, aware.
        zone: The zone of every time that names no offset.

    Raises:
        UsageError: The text is not understood, names a day without a time, is in the past, or is ten years away.
    """
    words = " ".join(text.lower().split())
    shown = repr(plain_line(text.strip(), max_characters=_SHOWN_MAX_CHARACTERS))
    try:
        moment = _read_span(words, now, zone) or _read_dated(words, shown, now, zone) or _read_clock(words, now, zone)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{shown} is no moment that exists", hint=_EXAMPLES) from error
    if moment is None:
        raise UsageError(f"{shown} is not understood as a moment", hint=_EXAMPLES)
    if moment < now:
        raise UsageError(f"{shown} is in the past", hint=_EXAMPLES)
    if moment - now > _SPAN_MAX:
        raise UsageError(f"{shown} is more than ten years away", hint=_EXAMPLES)
    return moment


def moment_words(moment: datetime, *, now: datetime, zone: tzinfo, with_zone: bool = False) -> str:
    """Return a moment in short words, to the minute, as they read in the zone.

    Today is ``15:04``, the next day ``tomorrow 07:00``, the five days after it ``Fri 07:00``, others within half a year
    ``Dec 1 07:00``, all others ``2027-12-01 07:00``. What ``parse_moment_text`` makes of the words is the same minute,
    when it is still to come and did not come twice.

    Args:
        moment: An aware time.
        now: The present, aware.
        zone: Where the reader is.
        with_zone: Whether the zone's abbreviation follows, such as ``CET``.
    """
    there, here = in_zone(moment, zone), now.astimezone(zone)
    days = (there.date() - here.date()).days
    if days == 0:
        day = ""
    elif days == 1:
        day = "tomorrow "
    elif 1 < days <= _WEEKDAY_MAX_DAYS:
        day = f"{WEEKDAYS[there.weekday()]} "
    elif abs(days) <= _YEARLESS_MAX_DAYS:
        day = f"{MONTHS[there.month - 1]} {there.day} "
    else:
        day = f"{there.year:04d}-{there.month:02d}-{there.day:02d} "
    words = f"{day}{there.hour:02d}:{there.minute:02d}"
    return f"{words} {there.tzname()}" if with_zone else words


def local_moment(day: date, clock: time, zone: tzinfo) -> datetime:
    """Return the aware UTC time at which the clocks of a zone show this; the first one where they show it twice.

    A time that a change of the clocks skips counts as that much later: 02:30 becomes 03:30.

    Raises:
        OverflowError: The moment is outside of what ``datetime`` can hold.
    """
    return datetime.combine(day, clock.replace(fold=0), zone).astimezone(UTC)


def _read_span(words: str, now: datetime, zone: tzinfo) -> datetime | None:
    rest = re.sub(r"^(?:in\s+|\+\s*)|\s+from now$", "", words)
    days = seconds = 0.0
    at = 0
    while at < len(rest):
        part = _SPAN_PART.match(rest, at)
        if part is None:
            return None
        count = 1.0 if part["count"].startswith("a") else float(part["count"])
        unit = part["unit"][0]
        if unit in "dw" and count.is_integer():
            days += count * _SECONDS_OF_UNIT[unit] / _SECONDS_OF_UNIT["d"]
        else:
            seconds += count * _SECONDS_OF_UNIT[unit]
        at = part.end()
    if not rest:
        return None
    if days:
        here = now.astimezone(zone)
        now = local_moment(here.date() + timedelta(days=days), here.time(), zone)
    return now.astimezone(UTC) + timedelta(seconds=seconds)


def _read_dated(words: str, shown: str, now: datetime, zone: tzinfo) -> datetime | None:
    compact = re.fullmatch(r"(\d{4})(\d\d)(\d\d)t(\d\d)(\d\d)(\d\d)?(z|[+-]\d{2}:?(?:\d{2})?)?", words)
    if compact:
        year, month, day_of_month, hour, minute, second, offset = compact.groups(default="")
        words = f"{year}-{month}-{day_of_month}t{hour}:{minute}{':' if second else ''}{second}{offset}"
    today = now.astimezone(zone).date()
    for pattern in (_DATE, *_NAMED_DATE, _DAY_WORD):
        found = re.match(pattern, words)
        if found is None:
            continue
        clock_words = re.sub(r"^(?:t(?=\d)|,?\s*(?:at\s+)?)", "", words[found.end() :])
        if not clock_words:
            raise UsageError(f"{shown} names a day without a time", hint=_EXAMPLES)
        if clock_words == words[found.end() :]:
            return None
        read = _read_time(clock_words, zone)
        if read is None:
            return None
        clock, clock_zone = read
        for day in _days_meant(found, today):
            moment = local_moment(day, clock, clock_zone)
            if moment > now:
                return moment
        return moment
    return None


def _days_meant(found: re.Match[str], today: date) -> tuple[date, ...]:
    """Return the days that a match may mean, the nearest first; the last one counts when none is still to come."""
    parts = found.groupdict()
    word = parts.get("word")
    if word == "today":
        return (today,)
    if word == "tomorrow":
        return (today + timedelta(days=1),)
    if word:
        number = [name.lower() for name in WEEKDAYS].index(word[:3])
        nearest = today + timedelta(days=(number - today.weekday()) % 7)
        return (nearest, nearest + timedelta(days=7))
    name = parts.get("name")
    month = [known.lower() for known in MONTHS].index(name) + 1 if name else int(parts["month"] or 0)
    if parts["year"]:
        return (date(int(parts["year"]), month, int(parts["day"] or 0)),)
    day_number = int(parts["day"] or 0)
    date(2000, month, day_number)  # the 29th of February is a day, the 30th is none in any year
    days = []
    for year in range(today.year, today.year + 9):
        try:
            days.append(date(year, month, day_number))
        except ValueError:
            continue
    return tuple(days)


def _read_time(words: str, zone: tzinfo) -> tuple[time, tzinfo] | None:
    clock_zone = zone
    offset = _OFFSET.fullmatch(words)
    if offset is not None:
        words = offset["clock"]
        clock_zone = UTC
        if offset["sign"]:
            distance = timedelta(hours=int(offset["hours"]), minutes=int(offset["minutes"] or 0))
            clock_zone = timezone(-distance if offset["sign"] == "-" else distance)
    clock = _clock_of(words)
    return None if clock is None else (clock, clock_zone)


def _read_clock(words: str, now: datetime, zone: tzinfo) -> datetime | None:
    clock = _clock_of(words.removeprefix("at "))
    if clock is None:
        return None
    today = now.astimezone(zone).date()
    candidates = [local_moment(today + timedelta(days=days), clock, zone) for days in range(3)]
    return next((moment for moment in candidates if moment > now), None)


def _clock_of(words: str) -> time | None:
    found = _CLOCK.fullmatch(words)
    if found is None or not (found["half"] or found["minute"]):
        return None
    hour = int(found["hour"])
    if found["half"]:
        if not 1 <= hour <= _NOON:
            raise ValueError(words)
        hour = hour % _NOON + (_NOON if found["half"][0] == "p" else 0)
    return time(hour, int(found["minute"] or 0), int(found["second"] or 0))
