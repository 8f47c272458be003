"""Schedules: cron lines read in a named time zone, and the times at which they come."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import UsageError
from agentmon.domain.plain_text import plain_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

_WORDS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FIELDS: Final = (
    ("minute", "0 to 59, such as 30, 0,30 or */15"),
    ("hour", "0 to 23, such as 7, 9-17 or */2"),
    ("day of the month", "1 to 31, such as 1, 1,15 or L for the last"),
    ("month", "1 to 12 or JAN to DEC, such as */3 or JAN,JUL"),
    ("day of the week", "0 to 7 or SUN to SAT, such as 1-5, MON,WED or MON#1 for the first Monday"),
)
_EXAMPLE: Final = "minute hour day month weekday, such as `30 7 * * 1-5` for 07:30 from Monday to Friday, or @daily"
_ZONE_EXAMPLE: Final = "zones are named like Europe/Berlin or UTC"
_LINE_MAX_CHARACTERS: Final = 200
_SHOWN_MAX_CHARACTERS: Final = 60
_CHECKED_FROM: Final = datetime(2026, 1, 1, tzinfo=UTC)
_LOCALTIME: Final = Path("/etc/localtime")
_TIMEZONE: Final = Path("/etc/timezone")
# Files of the zone database that name no place.
_NO_ZONES: Final = frozenset({"localtime", "Factory", "posixrules"})
_WEEK_S: Final = 7 * 86400
_SAMPLES: Final = 106
"""Weeks looked at to tell whether a zone keeps the clock of this machine: two years."""


def check_cron(line: str) -> str:
    """Return the line with one blank between its fields; words such as ``@daily`` in small letters.

    A line has five fields or is one of cron's words. Names of months and days count, and so do ``L`` for the last day
    and ``MON#1`` for the first Monday.

    Raises:
        UsageError: It is no cron line, or its time never comes; the message names the wrong field, the hint shows a
            right one.
    """
    normal = _normal(line)
    next_time(normal, "UTC", _CHECKED_FROM)
    return normal


def check_zone(name: str) -> str:
    """Return the IANA name of a time zone; case does not matter.

    Raises:
        UsageError: There is no such zone; the hint names similar ones.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - most starts check no zone
    from zoneinfo import available_timezones  # noqa: PLC0415

    known = {zone.lower(): zone for zone in available_timezones() - _NO_ZONES}
    wanted = name.strip().lower().replace(" ", "_")
    if wanted in known:
        return known[wanted]
    cities = {zone.rpartition("/")[2]: zone for zone in sorted(known)}
    near = [*get_close_matches(wanted, known, n=3), *(cities[city] for city in get_close_matches(wanted, cities, n=3))]
    if wanted in cities:
        near = [cities[wanted]]
    hint = f"did you mean {' or '.join(known[zone] for zone in dict.fromkeys(near))}?" if near else _ZONE_EXAMPLE
    raise UsageError(f"there is no time zone {plain_line(name, max_characters=_SHOWN_MAX_CHARACTERS)!r}", hint=hint)


def local_zone_name() -> str:
    """Return the IANA name of a zone that keeps the clock of this machine.

    It is the one that ``TZ`` or the system names. Where they name none, since ``TZ`` holds a rule or the system a copy
    of the rules, it is a zone whose clock agreed for the present and the coming year; ``UTC`` when there is none.
    """
    from zoneinfo import available_timezones  # noqa: PLC0415 - only who sets a schedule needs zones

    known = available_timezones() - _NO_ZONES
    named = _named_local_zone()
    if named in known:
        return named
    return next((zone for zone in _likely_zones(known) if zone in known and _keeps_local_time(zone)), "UTC")


def next_time(line: str, zone: str, after: datetime) -> datetime:
    """Return the first time of a line after a moment, aware UTC; as ``next_times``."""
    return next_times(line, zone, after, 1)[0]


def next_times(line: str, zone: str, after: datetime, count: int) -> tuple[datetime, ...]:
    """Return the next times of a line in a zone, aware UTC, in order, all later than ``after``.

    The clocks' changes count as in cron: a time that they skip comes right after the gap, and one that they show twice
    comes once. A line whose minute or hour begins with a star goes by the time that really passes instead.

    Raises:
        UsageError: The line or the zone cannot be read, or the time does not come within 50 years.
    """
    from cronsim import CronSim, CronSimError  # noqa: PLC0415 - most starts need no schedule

    normal = _normal(line)
    times: list[datetime] = []
    latest = after
    try:
        candidates = CronSim(_WORDS.get(normal, normal), after.astimezone(_zone(zone)))
        while len(times) < count:
            candidate = next(candidates).astimezone(UTC)
            # In the second of two equal hours the next time by the clock can be one of the first.
            if candidate > latest:
                times.append(candidate)
                latest = candidate
    except (CronSimError, StopIteration, OverflowError) as error:
        raise UsageError(f"the time of the schedule {normal!r} never comes", hint=_EXAMPLE) from error
    return tuple(times)


def _normal(line: str) -> str:
    """Return the line as ``check_cron`` does, without a look at whether its time ever comes."""
    words = line.split()
    shown = repr(plain_line(" ".join(words), max_characters=_SHOWN_MAX_CHARACTERS))
    if not words:
        raise UsageError("the schedule is empty", hint=_EXAMPLE)
    if words[0].startswith("@"):
        word = words[0].lower()
        if len(words) > 1 or word not in _WORDS:
            raise UsageError(f"the schedule {shown} is none of {', '.join(_WORDS)}", hint=_EXAMPLE)
        return word
    if len(words) == len(_FIELDS) + 1:
        raise UsageError(f"the schedule {shown} has six fields; seconds are not known here", hint=_EXAMPLE)
    if len(words) != len(_FIELDS) or len(line) > _LINE_MAX_CHARACTERS:
        raise UsageError(f"the schedule {shown} has {len(words)} fields, not five short ones", hint=_EXAMPLE)
    for number, (name, example) in enumerate(_FIELDS):
        alone = ["*"] * len(_FIELDS)
        alone[number] = words[number]
        if not _is_readable(" ".join(alone)):
            word = repr(plain_line(words[number], max_characters=_SHOWN_MAX_CHARACTERS))
            raise UsageError(f"the {name} {word} of the schedule cannot be read", hint=f"{name}: {example}")
    return " ".join(words)


def _is_readable(line: str) -> bool:
    from cronsim import CronSim, CronSimError  # noqa: PLC0415 - most starts need no schedule

    try:
        CronSim(line, _CHECKED_FROM)
    except (CronSimError, ValueError):
        return False
    return True


def _zone(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - most starts need no zone

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return ZoneInfo(check_zone(name))


def _named_local_zone() -> str:
    """Return the name that ``TZ`` or the system's link has for the local zone; empty when there is none."""
    setting = os.environ.get("TZ")
    if setting is not None:
        path = setting.removeprefix(":")
    else:
        path = str(_LOCALTIME.resolve()) if _LOCALTIME.is_symlink() else ""
    return path.rpartition("zoneinfo/")[2].removeprefix("posix/")


def _likely_zones(known: set[str]) -> Iterator[str]:
    """Yield zones in the order in which a person would like to read them."""
    if "TZ" not in os.environ and _TIMEZONE.is_file():
        yield _TIMEZONE.read_text(encoding="utf-8", errors="replace").strip()
    yield "UTC"
    yield from time.tzname
    hours, rest = divmod(-time.timezone, 3600)
    if hours and not rest:
        yield f"Etc/GMT{-hours:+d}"
    yield from sorted(known)


def _keeps_local_time(name: str) -> bool:
    zone = _zone(name)
    start = int(time.time())
    return all(
        datetime.fromtimestamp(moment, zone).strftime("%z") == time.strftime("%z", time.localtime(moment))
        for moment in range(start, start + _SAMPLES * _WEEK_S, _WEEK_S)
    )
