"""Usage windows of vendors: official where an agent recorded the figures, else estimated from the answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.domain.costs import CostSums
from agentmon.domain.limit_readings import FIVE_HOUR, FIVE_HOUR_MINUTES, SEVEN_DAY, SEVEN_DAY_MINUTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.limit_readings import LimitSnapshot

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
SLICE_MS: Final = 15 * MINUTE_MS
"""Answers are summed up by such slices of UTC; every block begins and ends with one."""
BLOCK_MS: Final = FIVE_HOUR_MINUTES * MINUTE_MS
_WEEK_MS: Final = SEVEN_DAY_MINUTES * MINUTE_MS
_NO_LENGTH_STALE_MS: Final = 31 * 24 * HOUR_MS
_RESET_MARGIN_MS: Final = HOUR_MS
"""A reset may be this much farther away than the window is long."""
_LABELS: Final = {FIVE_HOUR: "5 hours", SEVEN_DAY: "week"}


class WindowOrigin(StrEnum):
    """How sure the figures of a window are."""

    OFFICIAL = "official"
    """The agent recorded what the vendor says."""
    ESTIMATE = "estimate"
    """Worked out here from the answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageWindow:
    """One usage window of a vendor as it is now."""

    agent_slug: str
    account: str = ""
    """What the agent calls the plan or limit; empty when it says nothing."""
    name: str
    """``five_hour``, ``seven_day``, or what else the agent calls it."""
    minutes: int | None
    """How long it is; None when that is not known."""
    used_percent: float | None
    """None when nobody says it; an estimate never has one."""
    resets_at_ms: int | None
    """UTC; of an estimate the end of its block. None when nothing runs, or when it is not known."""
    begun_at_ms: int | None
    """None when nothing runs, or when it is not known."""
    spent: CostSums = field(default_factory=CostSums)
    """What the answers that are known took since it began."""
    origin: WindowOrigin
    captured_at_ms: int | None = None
    """When the agent said the percentage last; None for an estimate."""
    is_stale: bool = False
    """Whether what the agent said is too old to say anything of now."""
    is_over: bool = False
    """Whether the official window has been reset, and nothing was used since."""

    @property
    def label(self) -> str:
        """What people call it: ``5 hours``, ``week``, ``seven day opus``."""
        return window_label(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSlice:
    """What the answers of an agent took in one slice of time."""

    begun_at_ms: int
    """Of the slice, a multiple of its length."""
    first_at_ms: int
    """Of its first answer."""
    last_at_ms: int
    sums: CostSums


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageBlock:
    """Five hours from the full hour of the first answer after a pause."""

    begun_at_ms: int
    spent: CostSums

    @property
    def ends_at_ms(self) -> int:
        """The first moment that is no longer in it."""
        return self.begun_at_ms + BLOCK_MS


def window_label(name: str) -> str:
    """Return what people call a window of this name."""
    return _LABELS.get(name, name.replace("_", " "))


def find_block(slices: Sequence[UsageSlice], now_ms: int) -> UsageBlock | None:
    """Return the block in which it is now; None when the last one is over.

    A block ends five hours after it began, or after five hours without an answer. The next one begins with the full
    hour of the next answer. Source: ccusage 20.0.24.

    Args:
        slices: Of one agent, oldest first; the first of them has to come after a pause.
        now_ms: UTC.
    """
    begun_ms, last_ms, spent = None, 0, CostSums()
    for one in slices:
        if begun_ms is None or one.first_at_ms >= begun_ms + BLOCK_MS or one.first_at_ms - last_ms > BLOCK_MS:
            begun_ms, spent = one.first_at_ms // HOUR_MS * HOUR_MS, CostSums()
        last_ms = one.last_at_ms
        spent += one.sums
    if begun_ms is None or now_ms >= begun_ms + BLOCK_MS or now_ms - last_ms > BLOCK_MS:
        return None
    return UsageBlock(begun_at_ms=begun_ms, spent=spent)


def is_stale(snapshot: LimitSnapshot, now_ms: int) -> bool:
    """Return whether what was said is older than the window that it is about."""
    length_ms = _NO_LENGTH_STALE_MS if snapshot.window_minutes is None else snapshot.window_minutes * MINUTE_MS
    if snapshot.resets_at_ms is not None and snapshot.window_minutes is not None:
        is_beyond = snapshot.resets_at_ms > snapshot.seen_at_ms + length_ms + _RESET_MARGIN_MS
        return is_beyond or now_ms - snapshot.seen_at_ms > length_ms + _RESET_MARGIN_MS
    return now_ms - snapshot.seen_at_ms > length_ms


def begin_of(snapshot: LimitSnapshot, now_ms: int) -> int | None:
    """Return when the window that runs now began, by what was said of it; None when that is not known."""
    if snapshot.window_minutes is None:
        return None
    if snapshot.resets_at_ms is None:
        return now_ms - snapshot.window_minutes * MINUTE_MS
    return snapshot.resets_at_ms - snapshot.window_minutes * MINUTE_MS


def official_window(snapshot: LimitSnapshot, spent: CostSums, now_ms: int) -> UsageWindow | None:
    """Return the window that a vendor's figures tell; None when answers came after its reset, which begin another.

    Args:
        snapshot: The newest figures.
        spent: What the answers took since ``begin_of``, or since the reset when that has passed.
        now_ms: UTC.
    """
    has_passed = snapshot.resets_at_ms is not None and snapshot.resets_at_ms <= now_ms
    if has_passed and spent.answers:
        return None
    return UsageWindow(
        agent_slug=snapshot.agent_slug,
        account=snapshot.account,
        name=snapshot.window,
        minutes=snapshot.window_minutes,
        used_percent=0.0 if has_passed else snapshot.used_percent,
        resets_at_ms=None if has_passed else snapshot.resets_at_ms,
        begun_at_ms=None if has_passed else begin_of(snapshot, now_ms),
        spent=spent,
        origin=WindowOrigin.OFFICIAL,
        captured_at_ms=snapshot.seen_at_ms,
        is_stale=not has_passed and is_stale(snapshot, now_ms),
        is_over=has_passed,
    )


def estimated_window(agent_slug: str, block: UsageBlock | None) -> UsageWindow:
    """Return the five hours that the answers tell; without a block nothing runs."""
    return UsageWindow(
        agent_slug=agent_slug,
        name=FIVE_HOUR,
        minutes=FIVE_HOUR_MINUTES,
        used_percent=None,
        resets_at_ms=None if block is None else block.ends_at_ms,
        begun_at_ms=None if block is None else block.begun_at_ms,
        spent=CostSums() if block is None else block.spent,
        origin=WindowOrigin.ESTIMATE,
    )


def estimated_week(agent_slug: str, spent: CostSums, now_ms: int) -> UsageWindow:
    """Return the last seven days up to now, for an agent that says nothing of its week."""
    return UsageWindow(
        agent_slug=agent_slug,
        name=SEVEN_DAY,
        minutes=SEVEN_DAY_MINUTES,
        used_percent=None,
        resets_at_ms=None,
        begun_at_ms=now_ms - _WEEK_MS,
        spent=spent,
        origin=WindowOrigin.ESTIMATE,
    )
