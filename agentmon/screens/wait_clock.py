"""Wakes a screen when a time that its words name is over, although nothing in the database changes then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from textual.screen import Screen
    from textual.timer import Timer

_LONGEST_S: Final = 60.0
"""Words such as ``tomorrow 07:00`` change on the way; a machine that slept comes back within this time."""
_SLACK_S: Final = 0.05


class WaitClock:
    """One timer of a screen; it runs only while there is a time to wait for."""

    def __init__(self, screen: Screen[None], ring: Callable[[], None]) -> None:
        """Begin without a time.

        Args:
            screen: Owns the timer.
            ring: Draws what names times anew, and calls ``plan`` again.
        """
        self._screen = screen
        self._ring = ring
        self._timer: Timer | None = None

    def plan(self, times: Iterable[datetime | None], now: datetime) -> None:
        """Ring when the next of the times that are to come is over, at the latest in a minute; else not at all."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        to_come = [time for time in times if time is not None and time > now]
        if to_come:
            delay_s = min((min(to_come) - now).total_seconds(), _LONGEST_S) + _SLACK_S
            self._timer = self._screen.set_timer(delay_s, self._ring, name="wait")
