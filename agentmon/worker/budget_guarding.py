"""The worker's look at budgets: answers that were just told get their prices, and what is spent has its effect."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from agentmon.domain.budgets import BudgetLevel, BudgetState, BudgetUnit, span_of
from agentmon.schedule import local_zone_name
from agentmon.store.budget_enforcing import NEVER
from agentmon.store.usage_days import days_of_zone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.budgets import Budget, BudgetSpan
    from agentmon.domain.clock import Clock
    from agentmon.domain.local_days import LocalDays
    from agentmon.paths import Paths
    from agentmon.store.budget_enforcing import BudgetEnforcement
    from agentmon.store.budgets import BudgetRepository
    from agentmon.store.usage_days import UsageDayRepository
    from agentmon.store.usage_prices import UsagePriceRepository
    from agentmon.worker.usage_importing import UsageImporter

_LOOK_AGAIN_AFTER: Final = timedelta(seconds=1)
"""While something that was interrupted has not obeyed."""


class BudgetGuard:
    """Looks at the budgets whenever the database has changed, and when a period turns."""

    def __init__(
        self,
        *,
        budgets: BudgetRepository,
        enforcement: BudgetEnforcement,
        days: UsageDayRepository,
        prices: UsagePriceRepository,
        paths: Paths,
        clock: Clock,
    ) -> None:
        self._budgets = budgets
        self._enforcement = enforcement
        self._days = days
        self._prices = prices
        self._paths = paths
        self._clock = clock
        self._pricer: UsageImporter | None = None
        """Only prices; it imports nothing and has no connection."""
        self._seen_version: int | None = None
        self._look_at = NEVER
        self._looked_at = clock.now()

    async def look(self, version: int) -> bool:
        """Bring what budgets hold back and stop up to what is spent.

        Args:
            version: Of the data; a look at one that was seen already costs nothing until a period turns or the clock is
                set back.

        Returns:
            Whether there are commands that hosts have to get.

        Raises:
            StoreError: The next look does the same again.
        """
        now = self._clock.now()
        # A clock that was set back may have come into a period in which less is spent.
        if version == self._seen_version and self._looked_at <= now < self._look_at:
            return False
        self._looked_at = now
        self._seen_version, self._look_at = None, NEVER
        budgets = await self._budgets.list()
        has_commands = await self._enforce(budgets, now)
        self._seen_version = version
        return has_commands

    async def _enforce(self, budgets: Sequence[Budget], now: datetime) -> bool:
        if any(budget.unit is BudgetUnit.MONEY for budget in budgets):
            await self._price_live(now)
        zone_name = await self._days.zone()
        if zone_name is None:
            zone_name = await asyncio.to_thread(local_zone_name)
        days = days_of_zone(zone_name)
        states = await read_states(self._budgets, budgets, days, now) if budgets else ()
        for state in states:
            end = _end_of(state.span, days)
            self._look_at = min(self._look_at, end)
            spent_until = end if state.level is BudgetLevel.SPENT else None
            if state.has_news or spent_until != state.budget.spent_until:
                await self._enforcement.note(state, spent_until=spent_until, at=now)
        if budgets:
            await self._enforcement.hold_back(at=now)
        has_commands = await self._enforcement.hold_up(states, at=now)
        if has_commands or (budgets and await self._enforcement.is_interrupting()):
            self._look_at = min(self._look_at, now + _LOOK_AGAIN_AFTER)
        return has_commands

    async def _price_live(self, now: datetime) -> None:
        places = await self._prices.find_unlooked(until_ms=round(now.timestamp() * 1000))
        if places:
            pricer = await asyncio.to_thread(self._make_ready)
            await self._prices.price(places, pricer.priced)

    def _make_ready(self) -> UsageImporter:
        if self._pricer is None:
            from agentmon.worker.usage_importing import UsageImporter  # noqa: PLC0415 - the worker's start need not wait

            self._pricer = UsageImporter(paths=self._paths, environ={}, zone_name="", clock=self._clock)
        self._pricer.warm_prices()
        return self._pricer


async def read_states(
    repository: BudgetRepository, budgets: Sequence[Budget], days: LocalDays, now: datetime
) -> tuple[BudgetState, ...]:
    """Return what is used of the budgets in the periods in which the time lies, in their order."""
    today = days.day_of(round(now.timestamp() * 1000))
    spans = [(budget, span_of(budget.period, today)) for budget in budgets]
    uses = await repository.uses(spans)
    return tuple(
        BudgetState(budget=budget, use=use, span=span) for (budget, span), use in zip(spans, uses, strict=True)
    )


def _end_of(span: BudgetSpan | None, days: LocalDays) -> datetime:
    if span is None:
        return NEVER
    next_day = date.fromisoformat(span.last_day) + timedelta(days=1)
    return datetime.fromtimestamp(days.begin_ms(next_day.isoformat()) // 1000, UTC)
