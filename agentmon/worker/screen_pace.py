"""How often the files and the screen of one agent are looked at: often while something moves, seldom while it rests."""

from __future__ import annotations

from typing import Final

TICK_S: Final = 0.08
"""How often the files of an agent that moves are looked at: cheap, and no process is started for it."""
RESTING_TICK_S: Final = 0.2
_LIVELY_FOR_S: Final = 2.0
"""For so long after something new an agent's files are looked at often."""
_GROWTH_LOOK_EVERY_S: Final = 0.25
_URGENT_LOOK_EVERY_S: Final = 0.1
_MOST_VAIN_LOOKS: Final = 3
"""Each doubles the time until the next one."""
_RESTING_LOOK_EVERY_S: Final = 5.0
"""A screen does not change without output; this is for what tmux did not tell."""
_UNUSUAL_TIMES: Final = 2
"""So much more output at once than what told nothing before may tell something."""


class LookPace:
    """The times of the looks at one agent, all on the monotonic clock.

    An agent that rests may go on to write: a bullet blinks, a title alternates. Output that told nothing is looked at
    ever less often, down to every 2 s, until a look finds something new or the agent writes more at once than before.
    """

    def __init__(self) -> None:
        self.looked_at = float("-inf")
        self.has_grown = True
        """Whether there was output since the last look."""
        self._most_bytes = 0
        """Most output at one glance at its file since the last look."""
        self._usual_bytes = 0
        self._vain_looks = 0
        self._new_at = float("-inf")

    def note_growth(self, byte_count: int) -> None:
        """Take note of output since the last glance at its file."""
        self.has_grown = True
        self._most_bytes = max(self._most_bytes, byte_count)

    def note_look(self, at: float, *, is_new: bool) -> None:
        """Take note of a look at the screen, and of whether it read anything that the one before did not."""
        if is_new:
            self._vain_looks = self._usual_bytes = 0
            self._new_at = at
        elif self.has_grown:
            self._vain_looks = min(self._vain_looks + 1, _MOST_VAIN_LOOKS)
            self._usual_bytes = max(self._usual_bytes, self._most_bytes)
        self.looked_at, self.has_grown, self._most_bytes = at, False, 0

    def look_at_once(self) -> None:
        """Let the next look be due now."""
        self.looked_at = float("-inf")

    def next_look_at(self, due_at: float, *, is_resting: bool, is_urgent: bool) -> float:
        """Return when the screen is to be looked at next.

        Args:
            due_at: When a look finds something also without output; one that is not later than the last look means as
                soon as possible.
            is_resting: Whether the agent does nothing by itself.
            is_urgent: Whether somebody waits for what it shows.
        """
        soonest = self.looked_at + _URGENT_LOOK_EVERY_S
        latest = self.looked_at + _RESTING_LOOK_EVERY_S
        if self.has_grown:
            latest = soonest if is_urgent else self.looked_at + self._growth_wait_s(is_resting=is_resting)
        return max(soonest, min(due_at, latest))

    def tick_s(self, at: float, *, is_resting: bool) -> float:
        """Return how long the agent's files need not be looked at."""
        return RESTING_TICK_S if is_resting and at - self._new_at > _LIVELY_FOR_S else TICK_S

    def _growth_wait_s(self, *, is_resting: bool) -> float:
        if not is_resting or not self._vain_looks or self._most_bytes > _UNUSUAL_TIMES * self._usual_bytes:
            return _GROWTH_LOOK_EVERY_S
        return float(_GROWTH_LOOK_EVERY_S * 2**self._vain_looks)
