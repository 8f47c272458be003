"""Budgets: how much may be spent on something in a period, what is told on the way, and what happens at the end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.domain.amounts import DOLLARS, NANO, MoneyFormat, count_text
from agentmon.domain.limits import WARN_PERCENTS

if TYPE_CHECKING:
    from datetime import datetime

    from agentmon.domain.ids import BudgetId

ALL_PERCENT: Final = 100
_DECEMBER: Final = 12
_FEW_CENTS_NANO: Final = NANO // 10


class BudgetScope(StrEnum):
    """What a budget is about."""

    TASK = "task"
    """All runs of a task, with their retries and what goes on with their conversations."""
    EXECUTION = "execution"
    AGENT = "agent"
    WORKSPACE = "workspace"
    """Its folder and all below it, also what agentmon did not start there."""
    ALL = "all"


class BudgetPeriod(StrEnum):
    """For how long a budget is."""

    DAY = "day"
    WEEK = "week"
    """From Monday to Sunday."""
    MONTH = "month"
    TOTAL = "total"
    """All that is known counts, and nothing begins anew."""


class BudgetUnit(StrEnum):
    """What is counted."""

    MONEY = "money"
    """Nano-USD; an answer without a known price is unknown, and in no sum."""
    TOKENS = "tokens"


class BudgetAction(StrEnum):
    """What happens when a budget is spent."""

    WARN = "warn"
    """It is told, and nothing else."""
    BLOCK = "block"
    """Nothing starts any more; what runs may finish."""
    STOP = "stop"
    """What runs is stopped as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBudget:
    """What all runs of a task together may cost from now on."""

    limit: int | None
    """Nano-USD; None for no budget."""
    action: BudgetAction = BudgetAction.STOP


class BudgetLevel(StrEnum):
    """How far a budget is used."""

    FINE = "fine"
    WARNED = "warned"
    """At least the first of ``WARN_PERCENTS`` is used."""
    SPENT = "spent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much may be spent on something in a period."""

    id: BudgetId
    scope: BudgetScope
    scope_id: str = ""
    """The id of the task, execution, agent or workspace; empty for all."""
    period: BudgetPeriod
    unit: BudgetUnit = BudgetUnit.MONEY
    limit: int
    """Nano-USD or tokens, at least 1; reached is spent."""
    counts_cached: bool = True
    """Whether tokens that were read from a cache count; of no meaning for money."""
    action: BudgetAction = BudgetAction.STOP
    money: MoneyFormat = DOLLARS
    """How its amounts are shown."""
    label: str = ""
    """What people call that which it is about; empty when that is gone."""
    told_percent: int = 0
    """Up to which share a person was warned in the period that ``told_day`` begins."""
    told_day: str = ""
    """The first day of the period that ``told_percent`` is about; empty for a total, and before the first warning."""
    spent_until: datetime | None = None
    """Until when it is known to be spent; None when it is not."""
    created_at: datetime

    def amount_text(self, amount: int) -> str:
        """Return an amount of its unit: ``$4.21``, ``1.2 M tokens``; ``$0.0042`` where all of it is a few cents."""
        if self.unit is BudgetUnit.MONEY:
            return self._money_text(self.money, amount)
        noun = "token" if amount == 1 else "tokens"
        return f"{count_text(amount)} {noun if self.counts_cached else f'{noun} without cached ones'}"

    @property
    def about(self) -> str:
        """What it is about, in words: ``everything``, ``claude``, ``task #12``."""
        match self.scope:
            case BudgetScope.ALL:
                return "everything"
            case BudgetScope.TASK:
                return f"task {self.label}" if self.label else "a task that is gone"
            case BudgetScope.EXECUTION:
                return f"a run of {self.label}" if self.label else "a run that is gone"
            case _:
                return self.label or f"a {self.scope.value} that is gone"

    @property
    def words(self) -> str:
        """The budget in words: ``the budget of claude, $20.00 a day``."""
        return f"the budget of {self.about}, {self.limit_text} {self.period_words}"

    @property
    def limit_text(self) -> str:
        """What may be spent, in words: ``$20.00``, ``€20.00 ($21.74)``: it is kept in dollars."""
        text = self.amount_text(self.limit)
        if self.unit is BudgetUnit.MONEY and self.money.is_converted:
            return f"{text} ({self._money_text(DOLLARS, self.limit)})"
        return text

    def _money_text(self, money: MoneyFormat, amount: int) -> str:
        return money.fine_text(amount) if 0 < self.limit < _FEW_CENTS_NANO else money.text(amount)

    @property
    def period_words(self) -> str:
        """For how long it is, in words: ``a day``, ``in all``."""
        return _PERIOD_WORDS[self.period]

    @property
    def spent_words(self) -> str:
        """Why something is held back or stopped; the same for as long as the budget stays."""
        return f"{self.words}, is spent"


_PERIOD_WORDS: Final = {
    BudgetPeriod.DAY: "a day",
    BudgetPeriod.WEEK: "a week",
    BudgetPeriod.MONTH: "a month",
    BudgetPeriod.TOTAL: "in all",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSpan:
    """The days of one period."""

    first_day: str
    """``2026-03-01``."""
    last_day: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse:
    """What was spent in a period."""

    spent: int = 0
    """In the unit of the budget; of money only answers with a known price."""
    unpriced_answers: int = 0
    """Answers of the period that have no known price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """A budget with what is used of it now."""

    budget: Budget
    use: BudgetUse
    span: BudgetSpan | None
    """The days that count; None for a total."""

    @property
    def percent(self) -> int:
        """The share that is used, rounded down, so that 100 means spent."""
        return self.use.spent * ALL_PERCENT // self.budget.limit

    @property
    def left(self) -> int:
        """What is left, in the unit of the budget; never less than nothing."""
        return max(0, self.budget.limit - self.use.spent)

    @property
    def level(self) -> BudgetLevel:
        """How far it is used."""
        if self.percent >= ALL_PERCENT:
            return BudgetLevel.SPENT
        return BudgetLevel.WARNED if self.percent >= WARN_PERCENTS[0] else BudgetLevel.FINE

    @property
    def due_percent(self) -> int:
        """The highest share that is told and is reached: one of ``WARN_PERCENTS``, 100, or 0 for none."""
        return max((step for step in (*WARN_PERCENTS, ALL_PERCENT) if self.percent >= step), default=0)

    @property
    def has_news(self) -> bool:
        """Whether a share is reached that nobody was told of in this period."""
        is_same_period = self.budget.told_day == self.first_day
        return self.due_percent > (self.budget.told_percent if is_same_period else 0)

    @property
    def first_day(self) -> str:
        """The first day of the period; empty for a total."""
        return "" if self.span is None else self.span.first_day

    @property
    def words(self) -> str:
        """How far it is used, in words: ``$16.20 of $20.00 (81 %)``, with what is not known."""
        budget = self.budget
        used = f"{budget.amount_text(self.use.spent)} of {budget.amount_text(budget.limit)} ({self.percent} %)"
        return f"{used}, {self.unknown_words}" if self.unknown_words else used

    @property
    def unknown_words(self) -> str:
        """What is not in the sum; empty when all is."""
        count = self.use.unpriced_answers if self.budget.unit is BudgetUnit.MONEY else 0
        return f"{count:,} answer{'' if count == 1 else 's'} without a known price not counted" if count else ""


def span_of(period: BudgetPeriod, day: str) -> BudgetSpan | None:
    """Return the days of the period in which a day lies; None for a total.

    Raises:
        ValueError: The text is no day such as ``2026-03-01``.
    """
    found = date.fromisoformat(day)
    match period:
        case BudgetPeriod.DAY:
            first = last = found
        case BudgetPeriod.WEEK:
            first = found - timedelta(days=found.weekday())
            last = first + timedelta(days=6)
        case BudgetPeriod.MONTH:
            first = found.replace(day=1)
            is_december = first.month == _DECEMBER
            next_first = date(first.year + is_december, 1 if is_december else first.month + 1, 1)
            last = next_first - timedelta(days=1)
        case BudgetPeriod.TOTAL:
            return None
    return BudgetSpan(first_day=first.isoformat(), last_day=last.isoformat())
