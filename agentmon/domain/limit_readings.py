"""What agents say of their vendors' usage windows and of how full their context is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

FIVE_HOUR: Final = "five_hour"
SEVEN_DAY: Final = "seven_day"
FIVE_HOUR_MINUTES: Final = 300
SEVEN_DAY_MINUTES: Final = 10_080
_NAMES: Final = ((FIVE_HOUR, FIVE_HOUR_MINUTES), (SEVEN_DAY, SEVEN_DAY_MINUTES))
_NEAR: Final = 50
"""A window that differs from its usual length by less than one in so many parts is the same one: Codex says 299."""


class LimitSource(StrEnum):
    """Where a figure of a vendor was read."""

    TRANSCRIPT = "transcript"
    """The agent's own file."""
    STATUSLINE = "statusline"
    """What the agent hands to its status line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReading:
    """How much of one window an agent said was taken, at one time."""

    account: str = ""
    """What the agent calls the plan or limit; empty when it says nothing."""
    window: str
    """``five_hour``, ``seven_day``, or what else the agent calls it."""
    window_minutes: int | None
    """None when the agent does not say how long it is."""
    used_percent: float
    """0 and more; some vendors go beyond 100."""
    resets_at_ms: int | None
    """UTC, as the time below; None when the agent does not say it."""
    captured_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSnapshot:
    """A reading as it is kept."""

    agent_slug: str
    account: str
    window: str
    window_minutes: int | None
    used_percent: float
    resets_at_ms: int | None
    captured_at_ms: int
    """When this was said first."""
    seen_at_ms: int
    """When the same was said last."""
    source: LimitSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReading:
    """How full the context of a conversation was after an answer."""

    session_ref: str
    """The agent's own id of the conversation."""
    tokens: int
    limit_tokens: int | None
    """How many it can hold; None when that is not known."""
    at_ms: int


def window_name(minutes: int | None, otherwise: str) -> str:
    """Return what a window of this length is called here; ``otherwise`` when its length is no usual one."""
    for name, usual in _NAMES:
        if minutes is not None and abs(minutes - usual) * _NEAR < usual:
            return name
    return otherwise


def window_minutes(name: str) -> int | None:
    """Return how long a window of this name is, also of ``seven_day_…``; None when the name does not tell."""
    return next((minutes for usual, minutes in _NAMES if name == usual or name.startswith(f"{usual}_")), None)
