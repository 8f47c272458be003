"""How the loops fare that work in the background: what each last did well, and what fails or hangs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

LONGEST_PROBLEM: Final = 300
"""Characters of a problem that are kept."""


class LoopCondition(StrEnum):
    """How a loop fares."""

    WAITING = "not run yet"
    FINE = "well"
    FAILING = "failing"
    HANGING = "hanging"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopState:
    """One loop of a process; times are aware UTC."""

    name: str
    """In words, such as ``usage import``."""
    ok_at: datetime | None = None
    """When a turn last ended well."""
    failures: int = 0
    """Failed turns since then."""
    failed_at: datetime | None = None
    problem: str = ""
    """Why the last turn failed, in one line; empty when it did not."""
    hint: str = ""
    """What the person can do about it."""
    next_try_at: datetime | None = None
    busy_since: datetime | None = None
    """When the turn began that goes on now."""
    hangs_after_s: float = 60.0
    """A turn that takes longer hangs."""

    def condition(self, now: datetime) -> LoopCondition:
        """Return how it fares."""
        if self.busy_since is not None and (now - self.busy_since).total_seconds() > self.hangs_after_s:
            return LoopCondition.HANGING
        if self.failures:
            return LoopCondition.FAILING
        return LoopCondition.WAITING if self.ok_at is None else LoopCondition.FINE
