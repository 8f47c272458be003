"""Budgets: how much may be spent on something, and how far that is used."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agentmon.domain.budgets import Budget, BudgetAction, BudgetPeriod, BudgetScope, BudgetUnit
from agentmon.domain.errors import NotFoundError, UsageError
from agentmon.domain.ids import BudgetId, new_id
from agentmon.schedule import local_zone_name
from agentmon.store.usage_days import days_of_zone
from agentmon.worker.budget_guarding import read_states

if TYPE_CHECKING:
    from agentmon.domain.budgets import BudgetState
    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.executions import Execution
    from agentmon.services.queue import QueueService
    from agentmon.store.budgets import BudgetRepository
    from agentmon.store.executions import ExecutionRepository
    from agentmon.store.usage_days import UsageDayRepository


class BudgetService:
    """Sets, lists and removes budgets; the worker sees to it that they hold."""

    def __init__(
        self,
        *,
        budgets: BudgetRepository,
        days: UsageDayRepository,
        executions: ExecutionRepository,
        queue: QueueService,
        clock: Clock,
    ) -> None:
        self._budgets = budgets
        self._days = days
        self._executions = executions
        self._queue = queue
        self._clock = clock

    async def states(self) -> tuple[BudgetState, ...]:
        """Return all budgets with what is used of them now, oldest first."""
        budgets = await self._budgets.list()
        if not budgets:
            return ()
        zone_name = await self._days.zone()
        if zone_name is None:
            zone_name = await asyncio.to_thread(local_zone_name)
        return await read_states(self._budgets, budgets, days_of_zone(zone_name), self._clock.now())

    async def set(
        self,
        *,
        scope: BudgetScope,
        scope_id: str = "",
        period: BudgetPeriod,
        limit: int,
        unit: BudgetUnit = BudgetUnit.MONEY,
        counts_cached: bool = True,
        action: BudgetAction = BudgetAction.STOP,
        actor: Actor,
    ) -> BudgetState:
        """Set a budget, in place of the one of the same scope, period and unit; what that one held back goes on.

        Args:
            scope: What it is about.
            scope_id: The id of the task, execution, agent or workspace; empty for all.
            period: For how long it is.
            limit: Nano-USD or tokens; reached is spent.
            unit: What is counted.
            counts_cached: Whether tokens that were read from a cache count.
            action: What happens when it is spent.
            actor: Who asks.

        Raises:
            UsageError: The limit is not above nothing, or the period means nothing for this scope.
            ConflictError: An agent asks, which no person has let decide.
            UndeliveredError: It is set, and nobody sees to it yet that it holds.
        """
        require_above_nothing(limit)
        if scope is BudgetScope.EXECUTION and period is not BudgetPeriod.TOTAL:
            raise UsageError("the budget of a single run is one in all", hint="leave --per away, or say --per total")
        wanted = Budget(
            id=BudgetId(new_id()),
            scope=scope,
            scope_id=scope_id,
            period=period,
            unit=unit,
            limit=limit,
            counts_cached=counts_cached,
            action=action,
            created_at=self._clock.now(),
        )
        budget = await self._budgets.set(wanted, actor=actor, at=self._clock.now())
        await self._queue.deliver()
        return next(state for state in await self.states() if state.budget.id == budget.id)

    async def find(self, text: str) -> BudgetState:
        """Return the budget whose id begins or ends with the text.

        Raises:
            NotFoundError: There is none.
            UsageError: There are several.
        """
        written = text.strip().lower()
        found = [
            state
            for state in await self.states()
            if written and (state.budget.id.startswith(written) or state.budget.id.endswith(written))
        ]
        if not found:
            raise NotFoundError(f"there is no budget {text!r}", hint="`agentmon budget` lists them")
        if len(found) > 1:
            raise UsageError(f"several budgets are called {text!r}", hint="write more of the id")
        return found[0]

    async def remove(self, budget_id: BudgetId, *, actor: Actor) -> Budget:
        """Take a budget away; what it held back goes on, what it stopped stays stopped.

        Raises:
            NotFoundError: There is none of this id.
            ConflictError: An agent would take it away.
            UndeliveredError: It is removed, and nobody lets go yet what it held back.
        """
        removed = await self._budgets.remove(budget_id, actor=actor, at=self._clock.now())
        await self._queue.deliver()
        return removed

    async def find_execution(self, text: str) -> Execution:
        """Return the execution whose id begins with the text.

        Raises:
            NotFoundError: There is none.
            UsageError: There are several.
        """
        written = text.strip().lower()
        found = await self._executions.find_by_start(written) if written else ()
        if not found:
            raise NotFoundError(f"there is no run {text!r}", hint="`agentmon executions --json` shows their ids")
        if len(found) > 1:
            raise UsageError(f"several runs are called {text!r}", hint="write more of the id")
        return found[0]


def require_above_nothing(limit: int) -> None:
    """Refuse a budget of nothing.

    Raises:
        UsageError: The limit is not above nothing.
    """
    if limit <= 0:
        raise UsageError("a budget has to be above nothing", hint="`agentmon pause` lets nothing start at all")
