"""When a limit resets, read from the words of a vendor: clock times, dates, epochs and waits in all usual forms."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from agentmon.domain.moments import MONTHS, WEEKDAYS, local_moment
from agentmon.domain.refusals import RESET_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOON: Final = 12
_MAX_CHARACTERS: Final = 120
_FILLER: Final = re.compile(
    r"[\s\"'`:=(|]*(?:(?:at|in|on|after|about|approximately|around|until|be|is|~)[\s:]+)*"
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,\s+(?=\d|[A-Z][a-z]{2}))?",
    re.I,
)
_EPOCH: Final = re.compile(r"(?P<s>\d{10})(?P<ms>\d{3})?(?:\.\d{1,9})?(?![\d.]*\d)")
_ISO: Final = re.compile(
    r"(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)"
    r"(?:(?:[Tt]|,?\s+(?:at\s+)?)(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,]\d{1,9})?)?)?",
)
_WAIT_PART: Final = re.compile(
    r"(?P<count>\d{1,9}(?:\.\d{1,12})?)\s*(?P<unit>weeks?|w|days?|d|hours?|hrs?|hr|h|minutes?|mins?|min|m(?!s)"
    r"|milliseconds?|ms|seconds?|secs?|sec|s)(?![a-z])(?:\s*,)?(?:\s+and\b)?\s*",
    re.I,
)
_BARE_SECONDS: Final = re.compile(r"(?P<count>\d{1,8}(?:\.\d{1,9})?)(?![\d:.]*\d)")
_MONTH_NAME: Final = r"(?P<name>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_NAMED_DATES: Final = (
    re.compile(
        rf"{_MONTH_NAME}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<year>20\d\d)\b)?(?:,|\s+at\b)*\s*", re.I
    ),
    re.compile(
        rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.?\s+{_MONTH_NAME}\b(?:,?\s+(?P<year>20\d\d)\b)?(?:,|\s+at\b)*\s*", re.I
    ),
)
_DAY_WORD: Final = re.compile(
    r"(?P<word>today|tomorrow|(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?)\b(?:,|\s+at\b)*\s*",
    re.I,
)
_CLOCK: Final = re.compile(
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d)(?::(?P<second>\d\d))?)?\s*(?P<half>[ap]\.?m\b\.?)?(?![\w:/-]|\.\d)",
    re.I,
)
_ZONE_NAME: Final = re.compile(r"\s*\(?(?P<zone>[A-Z][A-Za-z_]+/[A-Za-z_+\-]+(?:/[A-Za-z_\-]+)?)\b\)?")
_ZONE_OFFSET: Final = re.compile(r"\s*\(?(?:(?:UTC|GMT)\s*)?(?P<sign>[+-])(?P<hours>\d\d?):?(?P<minutes>\d\d)?\b\)?")
_ZONE_WORD: Final = re.compile(r"\s*\(?(?P<word>[A-Z]{1,5})\b\)?")
# Abbreviations are not unique; these are read as the vendors' home market means them.
_HOURS_OF_ABBREVIATION: Final = {
    name: float(hours)
    for names, hours in (
        *(("UTC GMT Z WET", 0), ("WEST BST CET", 1), ("CEST EET", 2), ("EEST MSK", 3), ("IST", 5.5), ("JST KST", 9)),
        *(("AEST", 10), ("AEDT", 11), ("NZST", 12), ("NZDT", 13), ("EDT", -4), ("EST CDT", -5), ("CST MDT", -6)),
        *(("MST PDT", -7), ("PST AKDT", -8), ("AKST", -9), ("HST", -10)),
    )
    for name in names.split()
}
_ZONE_OF_ABBREVIATION: Final = {"PT": "America/Los_Angeles", "ET": "America/New_York", "CT": "America/Chicago"}
_SECONDS_OF_UNIT: Final = {"w": 7 * 86400.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def find_reset(
    text: str,
    *,
    words: Sequence[re.Pattern[str]],
    seconds_words: Sequence[re.Pattern[str]],
    now: datetime,
    zone: tzinfo,
) -> datetime | None:
    """Return the first believable reset that stands right behind one of the words, as aware UTC.

    A reset that is not later than ``now``, or further away than ``RESET_MAX``, counts as not said.

    Args:
        text: One line.
        words: What stands before a time in any form.
        seconds_words: What stands before a bare number of seconds.
        now: The present, aware; bare clock times and waits count from it.
        zone: The zone of times that name none.
    """
    for patterns, are_seconds in ((seconds_words, True), (words, False)):
        for pattern in patterns:
            for found in pattern.finditer(text):
                rest = text[found.end() : found.end() + _MAX_CHARACTERS]
                try:
                    moment = _read_seconds(rest, now) if are_seconds else _read_moment(rest, now, zone)
                except (ValueError, OverflowError):
                    continue
                if moment is not None and now < moment <= now + RESET_MAX:
                    return moment
    return None


def _read_seconds(text: str, now: datetime) -> datetime | None:
    found = _BARE_SECONDS.match(text)
    return None if found is None else now.astimezone(UTC) + timedelta(seconds=float(found["count"]))


def _read_moment(text: str, now: datetime, zone: tzinfo) -> datetime | None:
    filler = _FILLER.match(text)
    text = text[filler.end() :] if filler else text
    for read in (_read_epoch, _read_iso, _read_wait, _read_named_date, _read_day_word, _read_clock):
        moment = read(text, now, zone)
        if moment is not None:
            return moment
    return None


def _read_epoch(text: str, _now: datetime, _zone: tzinfo) -> datetime | None:
    found = _EPOCH.match(text)
    return None if found is None else datetime.fromtimestamp(int(found["s"]), UTC)


def _read_iso(text: str, _now: datetime, zone: tzinfo) -> datetime | None:
    found = _ISO.match(text)
    if found is None:
        return None
    day = date(int(found["year"]), int(found["month"]), int(found["day"]))
    clock = time(int(found["hour"] or 0), int(found["minute"] or 0), int(found["second"] or 0))
    return local_moment(day, clock, _read_zone(text[found.end() :], zone))


def _read_wait(text: str, now: datetime, _zone: tzinfo) -> datetime | None:
    at, seconds = 0, 0.0
    while (part := _WAIT_PART.match(text, at)) is not None:
        unit = part["unit"].lower()
        scale = 0.001 if unit.startswith(("ms", "milli")) else _SECONDS_OF_UNIT[unit[0]]
        seconds += float(part["count"]) * scale
        at = part.end()
    return now.astimezone(UTC) + timedelta(seconds=seconds) if at else None


def _read_named_date(text: str, now: datetime, zone: tzinfo) -> datetime | None:
    for pattern in _NAMED_DATES:
        found = pattern.match(text)
        if found is None:
            continue
        rest = text[found.end() :]
        clock, rest = _read_clock_parts(rest) or (time(0), rest)
        zone = _read_zone(rest, zone)
        month = [name.lower() for name in MONTHS].index(found["name"].lower()) + 1
        this_year = now.astimezone(zone).year
        for year in [int(found["year"])] if found["year"] else [this_year, this_year + 1]:
            moment = local_moment(date(year, month, int(found["day"])), clock, zone)
            if moment > now:
                return moment
    return None


def _read_day_word(text: str, now: datetime, zone: tzinfo) -> datetime | None:
    found = _DAY_WORD.match(text)
    if found is None:
        return None
    rest = text[found.end() :]
    clock, rest = _read_clock_parts(rest) or (time(0), rest)
    zone = _read_zone(rest, zone)
    today = now.astimezone(zone).date()
    word = found["word"].lower()
    if word in {"today", "tomorrow"}:
        return local_moment(today + timedelta(days=word == "tomorrow"), clock, zone)
    number = [name.lower() for name in WEEKDAYS].index(word[:3])
    nearest = today + timedelta(days=(number - today.weekday()) % 7)
    moment = local_moment(nearest, clock, zone)
    return moment if moment > now else local_moment(nearest + timedelta(days=7), clock, zone)


def _read_clock(text: str, now: datetime, zone: tzinfo) -> datetime | None:
    parts = _read_clock_parts(text)
    if parts is None:
        return None
    clock, rest = parts
    zone = _read_zone(rest, zone)
    today = now.astimezone(zone).date()
    candidates = [local_moment(today + timedelta(days=days), clock, zone) for days in range(3)]
    return next((moment for moment in candidates if moment > now), None)


def _read_clock_parts(text: str) -> tuple[time, str] | None:
    """Return the time of the day that a text begins with, and what follows it."""
    found = _CLOCK.match(text)
    if found is None or not (found["half"] or found["minute"]):
        return None
    hour = int(found["hour"])
    if found["half"]:
        if not 1 <= hour <= _NOON:
            return None
        hour = hour % _NOON + (_NOON if found["half"][0] in "pP" else 0)
    return time(hour, int(found["minute"] or 0), int(found["second"] or 0)), text[found.end() :]


def _read_zone(text: str, default: tzinfo) -> tzinfo:
    """Return the zone that a text begins with: an IANA name, an offset or a known abbreviation; else the default."""
    name = _ZONE_NAME.match(text)
    if name is not None:
        return _named_zone(name["zone"]) or default
    offset = _ZONE_OFFSET.match(text)
    if offset is not None:
        distance = timedelta(hours=int(offset["hours"]), minutes=int(offset["minutes"] or 0))
        return timezone(-distance if offset["sign"] == "-" else distance)
    word = _ZONE_WORD.match(text)
    if word is None:
        return default
    if word["word"] in _ZONE_OF_ABBREVIATION:
        return _named_zone(_ZONE_OF_ABBREVIATION[word["word"]]) or default
    hours = _HOURS_OF_ABBREVIATION.get(word["word"])
    return default if hours is None else timezone(timedelta(hours=hours))


def _named_zone(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None
