"""Where in a log a person wants to go: a line, a share of the bytes, or a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final, TypeAlias

from agentmon.domain.errors import UsageError

if TYPE_CHECKING:
    from datetime import tzinfo

_LINE: Final = re.compile(r"\d[\d,_]*")
_SHARE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_SPAN: Final = re.compile(r"([+-])\s*((?:\d+\s*[dhms]\s*)+)")
_SPAN_PART: Final = re.compile(r"(\d+)\s*([dhms])")
_CLOCK: Final = re.compile(r"(?:(\d{4}-\d{2}-\d{2})[T ])?(\d{1,2}:\d{2}(?::\d{2})?)")
_SECONDS: Final = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_WHOLE: Final = 100.0
_LONGEST_NUMBER: Final = 15
_HINT: Final = "1200 is a line, 50% a share, 14:02 a time, -5m before the newest output, +5m after the beginning"


@dataclass(frozen=True, slots=True)
class LinePlace:
    """A line, counted from 1."""

    number: int


@dataclass(frozen=True, slots=True)
class SharePlace:
    """A share of the bytes, from 0.0 for the beginning to 1.0 for the end."""

    share: float


@dataclass(frozen=True, slots=True)
class ClockPlace:
    """A time of day, of the day that is named or else of any day of the log."""

    clock: timedelta
    """The time since midnight."""
    day: str
    """The day as ``2026-03-04``; empty for the newest one of the log that has the time."""

    def moment_near(self, newest: datetime, zone: tzinfo | None = None) -> datetime:
        """Return the moment that is meant in a log whose newest output came at ``newest``.

        Args:
            newest: When the newest output came.
            zone: The zone of the clock; None for that of this computer.
        """
        local = newest.astimezone(zone).replace(tzinfo=None)
        day = date.fromisoformat(self.day) if self.day else local.date()
        moment = datetime.combine(day, time()) + self.clock
        if not self.day and moment > local:
            moment -= timedelta(days=1)
        return moment.astimezone() if zone is None else moment.replace(tzinfo=zone)


@dataclass(frozen=True, slots=True)
class SpanPlace:
    """So long after the beginning, or before the newest output when negative."""

    span: timedelta
    from_end: bool


LogPlace: TypeAlias = LinePlace | SharePlace | ClockPlace | SpanPlace


def parse_place(text: str) -> LogPlace:
    """Return the place that was typed: ``1200``, ``50%``, ``14:02``, ``2026-03-04 14:02``, ``-5m`` or ``+1h30m``.

    Raises:
        UsageError: It is none of these.
    """
    text = text.strip()
    if (match := _SHARE.fullmatch(text)) and float(match[1]) <= _WHOLE:
        return SharePlace(float(match[1]) / _WHOLE)
    if _LINE.fullmatch(text):
        digits = re.sub(r"\D", "", text)
        if len(digits) <= _LONGEST_NUMBER:
            return LinePlace(max(1, int(digits)))
    if match := _SPAN.fullmatch(text):
        try:
            seconds = sum(int(count) * _SECONDS[unit] for count, unit in _SPAN_PART.findall(match[2]))
            return SpanPlace(timedelta(seconds=seconds), from_end=match[1] == "-")
        except (OverflowError, ValueError):
            pass
    if match := _CLOCK.fullmatch(text):
        return _clock_place(match[1] or "", match[2], text)
    raise _not_a_place(text)


def _clock_place(day: str, clock: str, text: str) -> ClockPlace:
    try:
        of_day = time.fromisoformat(f"0{clock}" if clock[1] == ":" else clock)
        if day:
            date.fromisoformat(day)
    except ValueError as error:
        raise _not_a_place(text) from error
    return ClockPlace(timedelta(hours=of_day.hour, minutes=of_day.minute, seconds=of_day.second), day)


def _not_a_place(text: str) -> UsageError:
    return UsageError(f"not a place in a log: {text}", hint=_HINT)
