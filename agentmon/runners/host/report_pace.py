"""When the progress of the output is reported: soon after a silence, seldom while it keeps coming."""

from __future__ import annotations

_FIRST_INTERVAL_S = 0.5
_LONGEST_INTERVAL_S = 2.0
_SILENCE_S = 1.0


class ReportPace:
    """The time of the next report, on the monotonic clock.

    The first output after a silence of a second is reported within 0.5 s; while output keeps coming the interval
    doubles up to 2 s, and the last output before a silence waits a second at most.
    """

    __slots__ = ("_earliest", "_interval_s", "_last_output")

    def __init__(self, now: float) -> None:
        self._interval_s = _FIRST_INTERVAL_S
        self._earliest = now
        self._last_output = float("-inf")

    @property
    def next_report(self) -> float:
        """When what has come since the last report is due."""
        return min(self._earliest, self._last_output + _SILENCE_S)

    def note_output(self, now: float) -> None:
        """Take note of output."""
        if now - self._last_output >= _SILENCE_S:
            self._interval_s = _FIRST_INTERVAL_S
            self._earliest = min(self._earliest, now + _FIRST_INTERVAL_S)
        self._last_output = now

    def note_report(self, now: float) -> None:
        """Take note of a report."""
        self._earliest = now + self._interval_s
        self._interval_s = min(2 * self._interval_s, _LONGEST_INTERVAL_S)
