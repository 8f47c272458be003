"""The time: an injected clock, so that tests decide what now is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Protocol

CLOCK_JITTER: Final = timedelta(minutes=1)
"""A time that was written down further ahead of now than this is from before the clock was set back."""
_LATEST: Final = datetime(9999, 12, 30, tzinfo=UTC)


def in_zone(moment: datetime, zone: tzinfo | None = None) -> datetime:
    """Return the moment in the zone, or in that of this machine.

    The last day of the year 9999, which only damage names, has no clock time everywhere; it becomes the one before.
    """
    return min(moment, _LATEST).astimezone(zone)


class Clock(Protocol):
    """Tells the wall-clock time."""

    def now(self) -> datetime:
        """Return the present as an aware UTC time, cut to whole milliseconds."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """Return the machine's time as aware UTC, cut to whole milliseconds."""
        present = datetime.now(UTC)
        return present.replace(microsecond=present.microsecond // 1000 * 1000)


class FakeClock:
    """A clock that stands still until it is moved."""

    def __init__(self, present: datetime = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)) -> None:
        self.present = present

    def now(self) -> datetime:
        """Return the time that was set last."""
        return self.present

    def move(self, step: timedelta) -> None:
        """Move the clock by the step; a negative step moves it back."""
        self.present += step
