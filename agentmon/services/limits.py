"""Limits: the vendors' usage windows as they are now, how fast they go, and what comes of it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from agentmon.domain.burn_rate import HOUR_MS, burn_rate
from agentmon.domain.costs import CostSums
from agentmon.domain.errors import StoreError
from agentmon.domain.limit_readings import FIVE_HOUR, SEVEN_DAY, SEVEN_DAY_MINUTES
from agentmon.domain.projections import LOOK_BACK_DAYS, Projection, project_month, project_windows
from agentmon.domain.usage_windows import (
    MINUTE_MS,
    begin_of,
    estimated_week,
    estimated_window,
    find_block,
    is_stale,
    official_window,
)
from agentmon.schedule import local_zone_name
from agentmon.store.usage_days import days_of_zone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.burn_rate import BurnRate
    from agentmon.domain.clock import Clock
    from agentmon.domain.limit_readings import LimitSnapshot
    from agentmon.domain.local_days import LocalDays
    from agentmon.domain.usage_windows import UsageWindow
    from agentmon.store.limit_snapshots import LimitSnapshotRepository
    from agentmon.store.usage_days import UsageDayRepository
    from agentmon.worker.status_intake import StatusIntake

_DAY_MS: Final = 24 * HOUR_MS
_BLOCK_DAYS: Final = 1
"""So many whole days of UTC back, a pause of five hours is looked for; without one the first answer there begins."""
_WITH_WINDOWS: Final = ("claude", "codex")
"""Agents whose vendors sell usage by five hours and by week; of others no window is estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOverview:
    """All of it, read at one time."""

    windows: tuple[UsageWindow, ...]
    burn: BurnRate
    projection: Projection
    zone_name: str
    """IANA name of the zone whose month is meant."""


class LimitService:
    """Tells the usage windows, the burn rate and the projection; each a few reads of the last hours and of sums."""

    def __init__(
        self, *, limits: LimitSnapshotRepository, days: UsageDayRepository, intake: StatusIntake, clock: Clock
    ) -> None:
        self._limits = limits
        self._days = days
        self._intake = intake
        self._clock = clock

    async def windows(self) -> tuple[UsageWindow, ...]:
        """Return the windows as they are now, by agent, the shorter first; official ones before estimates.

        Of an agent whose vendor sells windows and that says nothing of one, it is estimated while there are answers of
        the last seven days. What status lines left is taken in first, since no worker may be there to do it.
        """
        await self._take_in()
        now_ms = self._now_ms()
        days = await self._local_days()
        found: list[UsageWindow] = []
        for snapshot in await self._limits.latest():
            window = await self._official(snapshot, days, now_ms)
            if window is not None:
                found.append(window)
        found += await self._estimates(found, days, now_ms)
        return tuple(sorted(found, key=lambda one: (one.agent_slug, one.account, one.minutes or now_ms, one.name)))

    async def burn(self) -> BurnRate:
        """Return how fast tokens and money go now."""
        now_ms = self._now_ms()
        return burn_rate(await self._limits.minutes(now_ms - HOUR_MS, now_ms), now_ms)

    async def projection(self) -> Projection:
        """Return what the windows and the month come to."""
        return (await self.overview()).projection

    async def overview(self) -> LimitOverview:
        """Return windows, burn rate and projection together."""
        windows, burn, days = await self.windows(), await self.burn(), await self._local_days()
        today = date.fromisoformat(days.day_of(burn.at_ms))
        first = today - timedelta(days=LOOK_BACK_DAYS)
        month = project_month(await self._limits.days(first.isoformat(), today.isoformat()), today)
        return LimitOverview(
            windows=windows,
            burn=burn,
            projection=Projection(windows=project_windows(windows, burn), month=month),
            zone_name=days.zone_name,
        )

    async def history(self, window: str, *, since_ms: int) -> tuple[LimitSnapshot, ...]:
        """Return what agents said of the windows of this name since then, oldest first; of all for an empty name."""
        await self._take_in()
        return await self._limits.history(window, since_ms)

    async def zone_name(self) -> str:
        """Return the IANA name of the zone in which days and months are."""
        return (await self._local_days()).zone_name

    async def _take_in(self) -> None:
        # What is kept can be read also where nothing can be written.
        with contextlib.suppress(StoreError):
            await self._intake.take_in()

    async def _official(self, snapshot: LimitSnapshot, days: LocalDays, now_ms: int) -> UsageWindow | None:
        begun_ms = begin_of(snapshot, now_ms)
        if snapshot.resets_at_ms is not None and snapshot.resets_at_ms <= now_ms:
            begun_ms = snapshot.resets_at_ms
        elif is_stale(snapshot, now_ms):
            begun_ms = None
        spent = CostSums()
        if begun_ms is not None:
            spent = await self._spent(snapshot.agent_slug, begun_ms, days, now_ms)
        return official_window(snapshot, spent, now_ms)

    async def _estimates(self, known: Sequence[UsageWindow], days: LocalDays, now_ms: int) -> list[UsageWindow]:
        official = {(window.agent_slug, window.name) for window in known if not window.is_stale}
        estimates, of_hours = [], []
        for slug in _WITH_WINDOWS:
            if {(slug, FIVE_HOUR), (slug, SEVEN_DAY)} <= official:
                continue
            of_week = await self._spent(slug, now_ms - SEVEN_DAY_MINUTES * MINUTE_MS, days, now_ms)
            if of_week.answers and (slug, SEVEN_DAY) not in official:
                estimates.append(estimated_week(slug, of_week, now_ms))
            if of_week.answers and (slug, FIVE_HOUR) not in official:
                of_hours.append(slug)
        if of_hours:
            slices = await self._limits.slices((now_ms // _DAY_MS - _BLOCK_DAYS) * _DAY_MS, now_ms)
            estimates += [estimated_window(slug, find_block(slices.get(slug, ()), now_ms)) for slug in of_hours]
        return estimates

    async def _spent(self, slug: str, since_ms: int, days: LocalDays, now_ms: int) -> CostSums:
        """Add up since a moment: the answers of its own day, and the kept sums of the days behind it."""
        first_day, today = days.day_of(since_ms), days.day_of(now_ms)
        if first_day >= today:
            return await self._limits.spent(slug, since_ms, now_ms + 1)
        next_day = (date.fromisoformat(first_day) + timedelta(days=1)).isoformat()
        begun = await self._limits.spent(slug, since_ms, days.begin_ms(next_day))
        return begun + await self._limits.spent_days(slug, next_day, today)

    async def _local_days(self) -> LocalDays:
        zone_name = await self._days.zone()
        return days_of_zone(await asyncio.to_thread(local_zone_name) if zone_name is None else zone_name)

    def _now_ms(self) -> int:
        return round(self._clock.now().timestamp() * 1000)
