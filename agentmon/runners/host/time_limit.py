"""For how long the program may run: a clock that stands still while anything holds the program up."""

from __future__ import annotations

PAUSE = "pause"
PERSON = "person"


class TimeLimit:
    """When the program will have run for as long as it may, on the monotonic clock.

    What holds it up at the same time as something else counts once.
    """

    __slots__ = ("_at", "_held_by", "_held_since", "_timeout_s")

    def __init__(self, timeout_s: float) -> None:
        """``timeout_s`` 0 means no limit."""
        self._timeout_s = timeout_s
        self._held_by: set[str] = set()
        self._held_since = 0.0
        self._at = float("inf")

    @property
    def reached_at(self) -> float:
        """When it is reached if nothing holds the program up until then; never while something does."""
        return float("inf") if self._held_by else self._at

    def begin(self, now: float) -> None:
        """Take note that the program has started."""
        if self._timeout_s:
            self._at = now + self._timeout_s
        self._held_since = now

    def hold(self, cause: str, now: float) -> None:
        """Let the clock stand still until ``let_go`` is told of the same cause."""
        if not self._held_by:
            self._held_since = now
        self._held_by.add(cause)

    def let_go(self, cause: str, now: float) -> None:
        """Let the clock go on, unless something else holds the program up; a cause that does not is fine."""
        if cause in self._held_by:
            self._held_by.discard(cause)
            if not self._held_by:
                self._at += now - self._held_since
