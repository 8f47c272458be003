"""What the costs screen reads, and keeps for as long as it stays true."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.costs import CostFilter, CostGroup
from agentmon.domain.summaries import Activity

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.budgets import BudgetState
    from agentmon.domain.clock import Clock
    from agentmon.screens.costs.cost_periods import Period
    from agentmon.services.cost_reports import CostReport
    from agentmon.services.limits import LimitOverview

COMPARED_DAYS: Final = 62
"""This month and the one before it."""
_SLICE_S: Final = 900
"""Days of every zone begin with such a slice of time."""
_LIMITS_S: Final = 60
"""A rate falls while nothing happens."""
_MOST_KEPT: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSnapshot:
    """What is shown at one time."""

    compared: CostReport
    """The last days one by one."""
    chart: CostReport
    table: CostReport
    activity: Activity
    """How much was done in the time of the table; nothing where only a model is chosen, since no tool call has one."""
    budgets: tuple[BudgetState, ...]
    limits: LimitOverview


class CostReader:
    """Reads reports; one that was read is given again until the data change or a day may have begun."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stamp: tuple[int, int] | None = None
        self._reports: dict[tuple[CostGroup, CostFilter, int | None], CostReport] = {}
        self._activities: dict[CostFilter, Activity] = {}
        self._limits: tuple[int, LimitOverview] | None = None

    async def read(self, services: Services, group: CostGroup, chosen: CostFilter, period: Period) -> CostSnapshot:
        """Return what is shown of a choice, summed up by something in the table."""
        stamp = (services.data_version(), int(self._clock.now().timestamp()) // _SLICE_S)
        if stamp != self._stamp or len(self._reports) > _MOST_KEPT:
            self._stamp, self._reports, self._activities, self._limits = stamp, {}, {}, None
        compared = await self._report(services, CostGroup.DAY, chosen, COMPARED_DAYS)
        chart = await self._report(services, period.group, chosen, period.bars)
        if period.bars == period.last:
            of_chart = replace(chosen, since_day=chart.since_day, until_day=chart.until_day)
            table = await self._report(services, group, of_chart, None)
        else:
            table = await self._report(services, group, chosen, period.last)
        return CostSnapshot(
            compared=compared,
            chart=chart,
            table=table,
            activity=await self._activity(
                services, replace(chosen, since_day=table.since_day, until_day=table.until_day)
            ),
            budgets=tuple(await services.budgets.states()),
            limits=await self._overview(services),
        )

    async def _overview(self, services: Services) -> LimitOverview:
        minute = int(self._clock.now().timestamp()) // _LIMITS_S
        if self._limits is None or self._limits[0] != minute:
            self._limits = minute, await services.limits.overview()
        return self._limits[1]

    async def _activity(self, services: Services, chosen: CostFilter) -> Activity:
        if chosen.model:
            return Activity()
        if chosen not in self._activities:
            self._activities[chosen] = await services.summaries.activity(
                since_day=chosen.since_day,
                until_day=chosen.until_day,
                agent_slug=chosen.agent_slug,
                project=chosen.project,
            )
        return self._activities[chosen]

    async def _report(self, services: Services, group: CostGroup, chosen: CostFilter, last: int | None) -> CostReport:
        key = (group, chosen, last)
        if key not in self._reports:
            self._reports[key] = await services.costs.report(group, chosen, last=last)
        return self._reports[key]
