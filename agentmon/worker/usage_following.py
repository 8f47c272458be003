"""The worker's looks at the files of agents: what is new in them is imported, and live answers get their prices."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import time
from typing import TYPE_CHECKING, Final

from agentmon.paths import find_paths
from agentmon.schedule import local_zone_name
from agentmon.settings import SYSTEM_ZONE

if TYPE_CHECKING:
    from agentmon.domain.clock import Clock
    from agentmon.paths import Paths
    from agentmon.settings import CostSettings
    from agentmon.store.agents import AgentRepository
    from agentmon.store.usage_days import UsageDayRepository
    from agentmon.store.usage_prices import UsagePriceRepository
    from agentmon.worker.import_progress import FileProblem
    from agentmon.worker.usage_importing import UsageImporter

_log = logging.getLogger(__name__)

_FIRST_LOOK_AFTER_S: Final = 1.0
"""What waits to be started comes first."""
_LOOK_EVERY_S: Final = 2.0
_LONGEST_REST_S: Final = 60.0
_REST_PER_LOOK: Final = 20
"""A look at very many files, or on a slow disk, takes at most a twentieth of the time."""
_SYSTEM_ZONE_EVERY_S: Final = 600.0
"""To find its name, hundreds of files are looked at."""
_APART_FROM_BYTES: Final = 20_000_000
_NICENESS: Final = 10
_MAX_TOLD_PROBLEMS: Final = 1_000
"""The log says each once."""
_PRICED_AFTER_MS: Final = 60_000
"""By then the agent's own file has told what a conversation told live, if it ever does."""


class UsageFollowing:
    """Looks, imports, and rests in between; for one task of the worker."""

    def __init__(
        self,
        *,
        agents: AgentRepository,
        days: UsageDayRepository,
        prices: UsagePriceRepository,
        paths: Paths,
        clock: Clock,
    ) -> None:
        self._agents = agents
        self._days = days
        self._prices = prices
        self._paths = paths
        self._clock = clock
        self._importer: UsageImporter | None = None
        self._has_looked = False
        self._apart: asyncio.subprocess.Process | None = None
        self._told_problems: dict[FileProblem, None] = {}
        self._zone_name = ""
        self._system_zone = ""
        self._system_zone_seen_at = float("-inf")
        self._rest_s = _FIRST_LOOK_AFTER_S

    async def look(self, settings: CostSettings) -> None:
        """Import what is new, put days into the zone of the settings, and price what was told live.

        When the caller is cancelled this returns behind the piece of a file that is being read.

        Raises:
            StoreError: The database refused something; what was imported before is kept.
        """
        self._rest_s = _LOOK_EVERY_S
        await self._settle_zone(settings)
        if settings.import_history:
            await self._import()
        await self._price_live()

    async def rest(self) -> None:
        """Wait until the next look is due."""
        await asyncio.sleep(self._rest_s)

    async def _settle_zone(self, settings: CostSettings) -> None:
        zone_name = settings.timezone
        if zone_name == SYSTEM_ZONE:
            if time.monotonic() - self._system_zone_seen_at > _SYSTEM_ZONE_EVERY_S:
                self._system_zone = await asyncio.to_thread(local_zone_name)
                self._system_zone_seen_at = time.monotonic()
            zone_name = self._system_zone
        if zone_name != self._zone_name:
            if await self._days.zone() is not None and await self._days.move_to(zone_name, at=self._clock.now()):
                _log.info("days of answers are those of %s from now on", zone_name)
            self._zone_name = zone_name

    async def _import(self) -> None:
        importing = asyncio.create_task(self._import_changed(), name="import usage")
        try:
            await asyncio.shield(importing)
        except asyncio.CancelledError:
            if self._importer is not None:
                self._importer.stop()
            if self._apart is not None:
                with contextlib.suppress(ProcessLookupError):
                    self._apart.terminate()
            await asyncio.wait([importing])
            self._close()
            raise

    async def _import_changed(self) -> None:
        if self._importer is None:
            self._importer = await asyncio.to_thread(self._make_importer)
        from agentmon.worker.usage_importing import import_usage  # noqa: PLC0415 - was imported in a thread

        if not self._has_looked and await asyncio.to_thread(self._importer.unread_bytes) > _APART_FROM_BYTES:
            await self._import_apart()
            self._importer.look_anew()
        self._has_looked = True
        outcome = await import_usage(self._importer, self._agents, self._clock)
        self._rest_s = min(_LONGEST_REST_S, max(_LOOK_EVERY_S, outcome.look_s * _REST_PER_LOOK))
        if outcome.files:
            _log.info("%s answers read of %s files in %.1f s", outcome.answers, outcome.files, outcome.elapsed_s)
        for problem in outcome.problems:
            if problem in self._told_problems:
                continue
            self._told_problems[problem] = None
            if len(self._told_problems) > _MAX_TOLD_PROBLEMS:
                del self._told_problems[next(iter(self._told_problems))]
            _log.warning("%s, at byte %s: %s was passed over", problem.path, problem.offset, problem.reason)

    async def _import_apart(self) -> None:
        """Let another process read a long history, which would hold up what the worker does for the runs.

        What it leaves unread, for whatever reason, is read here afterwards.
        """
        if find_paths() != self._paths:
            return
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "agentmon", "costs", "import", "--json"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            cwd="/",
        )
        self._apart = process
        try:
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, process.pid, _NICENESS)
            code = await process.wait()
            _log.info("a long history was read by process %s, which ended with %s", process.pid, code)
        finally:
            self._apart = None

    async def _price_live(self) -> None:
        until_ms = round(self._clock.now().timestamp() * 1000) - _PRICED_AFTER_MS
        places = await self._prices.find_unlooked(until_ms=until_ms)
        if places:
            if self._importer is None:
                self._importer = await asyncio.to_thread(self._make_importer)
            await asyncio.to_thread(self._importer.warm_prices)
            await self._prices.price(places, self._importer.priced)

    def _make_importer(self) -> UsageImporter:
        from agentmon.worker.usage_importing import UsageImporter  # noqa: PLC0415 - the worker's start need not wait

        return UsageImporter(paths=self._paths, environ=os.environ, zone_name=self._zone_name, clock=self._clock)

    def _close(self) -> None:
        if self._importer is not None:
            self._importer.close()
            self._importer = None
