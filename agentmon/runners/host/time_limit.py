"""For how long the program may run: a clock that stands still while anything holds the program up."""

from __future__ import annotations

PAUSE = "pause"
PERSON = "person"
DEBUGGER = "debugger"

_MISSED_S = 2.0
"""A loop that wakes up so much later than it meant to was halted itself: by a signal, or with its whole machine."""


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

    def is_held_by(self, cause: str) -> bool:
        """Whether the cause holds the program up."""
        return cause in self._held_by

    def begin(self, now: float) -> None:
        """Take note that the program has started."""
        if self._timeout_s:
            self._at = now + self._timeout_s
        self._held_since = now

    def note_wait(self, until: float, now: float) -> None:
        """Leave out the time by which a wait took longer than it was to, unless it is left out already."""
        if now - until > _MISSED_S and not self._held_by:
            self._at += now - until

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
