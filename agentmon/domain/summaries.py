"""What was done in a time: by day and user, and by project."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from agentmon.domain.operations import OperationType

MOST_MODELS: Final = 5
"""How many of the dearest models a summary of a project names."""
_ALL_PERCENT: Final = 100


class SummaryPeriod(StrEnum):
    """How much time one summary is about."""

    DAY = "day"
    WEEK = "week"
    """From Monday to Sunday, named by its Monday."""
    MONTH = "month"
    """Named like ``2026-03``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """How many sessions and tool calls began in a time, and how the calls ended."""

    session_count: int = 0
    operation_count: int = 0
    successful_operations: int = 0
    failed_operations: int = 0
    blocked_operations: int = 0
    """Refused by a person or a rule. What waits, was cancelled or blocked neither succeeded nor failed."""

    @property
    def success_rate(self) -> float | None:
        """From 0 to 1, of the calls that succeeded or failed; None when there are none."""
        ended = self.successful_operations + self.failed_operations
        return self.successful_operations / ended if ended else None

    @property
    def success_percent(self) -> int | None:
        """The rate in whole percent: 100 only when none failed, 0 only when none succeeded."""
        rate = self.success_rate
        if rate is None:
            return None
        lowest = 1 if self.successful_operations else 0
        highest = _ALL_PERCENT - 1 if self.failed_operations else _ALL_PERCENT
        return min(highest, max(lowest, round(rate * _ALL_PERCENT)))

    @classmethod
    def of_all(cls, parts: Iterable[Activity]) -> Self:
        """Return the sum."""
        totals = dict.fromkeys(_COUNTS, 0)
        for part in parts:
            for name, count in zip(_COUNTS, _counts(part), strict=True):
                totals[name] += count
        return cls(**totals)


_COUNTS: Final = (
    "session_count",
    "operation_count",
    "successful_operations",
    "failed_operations",
    "blocked_operations",
)
_counts: Final = attrgetter(*_COUNTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What the answers of a time took and cost."""

    answers: int = 0
    total_tokens: int = 0
    """With those from and for a cache."""
    cost_nano: int = 0
    """Of the answers with a known cost, in nano-USD."""
    unpriced_answers: int = 0

    @property
    def total_cost_nano(self) -> int | None:
        """The cost, or None when there are answers and none of them has a known cost."""
        return None if self.answers and self.unpriced_answers == self.answers else self.cost_nano

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            answers=self.answers + other.answers,
            total_tokens=self.total_tokens + other.total_tokens,
            cost_nano=self.cost_nano + other.cost_nano,
            unpriced_answers=self.unpriced_answers + other.unpriced_answers,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DailySummary:
    """What a user's agents did in a day, a week or a month."""

    date: str
    """The day, the Monday of the week, or the month: ``2026-03``."""
    user_id: str
    user: str
    """The user's name."""
    activity: Activity
    spending: Spending


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCost:
    """What the answers of one model cost."""

    model: str
    cost_nano: int | None
    """None when no answer of it has a known cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCount:
    """How many tool calls of one type began."""

    type: OperationType
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSummary:
    """What was done in a project in a day, a week or a month."""

    workspace: str
    """The absolute path of the repository or folder; empty when it is not known."""
    period: SummaryPeriod
    date: str
    """The day, the Monday of the week, or the month: ``2026-03``."""
    active_users: int
    """Users with a session that began, a tool call or an answer in that time."""
    spending: Spending
    top_models: tuple[ModelCost, ...]
    """At most ``MOST_MODELS``, the dearest first; those without a known cost come last."""
    top_operations: tuple[OperationCount, ...]
    """Every type that was used, the most frequent first."""
