"""The worker's looks at the files of agents: what is new in them is imported, and live answers get their prices."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from typing import TYPE_CHECKING, Final

from agentmon.schedule import local_zone_name
from agentmon.settings import SYSTEM_ZONE
from agentmon.threads import to_its_end
from agentmon.usage.sources import list_places
from agentmon.worker.folder_watching import Changes, FolderWatch
from agentmon.worker.problem_log import ProblemLog
from agentmon.worker.separate_import import SeparateImport

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from agentmon.domain.clock import Clock
    from agentmon.paths import Paths
    from agentmon.settings import CostSettings
    from agentmon.store.agents import AgentRepository
    from agentmon.store.usage_days import UsageDayRepository
    from agentmon.store.usage_prices import UsagePriceRepository
    from agentmon.usage.sources import SourceFile
    from agentmon.worker.import_progress import ImportOutcome
    from agentmon.worker.usage_importing import UsageImporter

_log = logging.getLogger(__name__)

_FIRST_LOOK_AFTER_S: Final = 1.0
"""What waits to be started comes first."""
_LOOK_EVERY_S: Final = 2.0
"""At all files, where changes are not told."""
_LOOK_BESIDE_WATCH_EVERY_S: Final = 30.0
"""At all files, where changes are told: the system drops what comes too fast."""
_SHORTEST_REST_S: Final = 0.5
"""Many agents that write at once are read together."""
_PRICE_EVERY_S: Final = 2.0
_LONGEST_REST_S: Final = 60.0
_REST_PER_LOOK: Final = 20
"""A look at very many files, or on a slow disk, takes at most a twentieth of the time."""
_SYSTEM_ZONE_EVERY_S: Final = 600.0
"""To find its name, hundreds of files are looked at."""
_APART_FROM_BYTES: Final = 20_000_000
_NICENESS: Final = 10
_PRICED_AFTER_MS: Final = 3_000
"""By then the agent's own file has mostly told what a conversation told live, and with its price; if it ever does."""


class UsageFollowing:
    """Looks, imports, and rests in between; for one task of the worker.

    Args:
        agents: Gets those of which only files are there.
        days: In which zone days are.
        prices: Of what was told live.
        paths: Where the database, the person's prices and the progress are.
        clock: Tells the time of the rows.
        on_read: Hears of the files whose answers were read.
    """

    def __init__(
        self,
        *,
        agents: AgentRepository,
        days: UsageDayRepository,
        prices: UsagePriceRepository,
        paths: Paths,
        clock: Clock,
        on_read: Callable[[Sequence[SourceFile]], None] = lambda _: None,
    ) -> None:
        self._on_read = on_read
        self._agents = agents
        self._days = days
        self._prices = prices
        self._paths = paths
        self._clock = clock
        self._importer: UsageImporter | None = None
        self._has_looked = False
        self._apart = SeparateImport("costs", "import", "--json", paths=paths, niceness=_NICENESS)
        self._problems = ProblemLog(_log)
        self._zone_name = ""
        self._system_zone = ""
        self._system_zone_seen_at = float("-inf")
        self._rest_s = _FIRST_LOOK_AFTER_S
        self._watch: FolderWatch | None = None
        self._changed = asyncio.Event()
        self._looked_at = self._looked_at_all_at = self._priced_at = float("-inf")
        self._look_s = 0.0
        self._is_look_due = True
        self._unknown_paths: set[str] = set()
        self._has_named = False

    @property
    def is_watching(self) -> bool:
        """Whether changes in all folders of agents that are there are told, so that looks at all files are rare."""
        return self._watch is not None and self._watch.is_complete

    def note_named(self) -> None:
        """Let what was read before come to the run whose conversation it turned out to be, with the next look."""
        self._has_named = True

    async def look(self, settings: CostSettings) -> None:
        """Import what is new, put days into the zone of the settings, and price what was told live.

        When the caller is cancelled this returns behind the piece of a file that is being read.

        Raises:
            StoreError: The database refused something; what was imported before is kept.
        """
        self._rest_s = _LOOK_EVERY_S
        self._looked_at = time.monotonic()
        self._changed.clear()
        await self._settle_zone(settings)
        if settings.import_history:
            if self._watch is None:
                self._watch = _watch_agents(self._changed)
            await self._import()
        else:
            await self._end_watch()
        if time.monotonic() - self._priced_at >= _PRICE_EVERY_S:
            await self._price_live(after_ms=_PRICED_AFTER_MS if settings.import_history else 0)
            self._priced_at = time.monotonic()

    async def rest(self) -> None:
        """Wait until something has changed or the next look is due."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._rest_s):
                await self._changed.wait()
                await asyncio.sleep(self._looked_at + _SHORTEST_REST_S - time.monotonic())

    async def close(self) -> None:
        """End the watching of folders and close the connection to the database; no look is going on."""
        await self._end_watch()
        self._close()

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
            await to_its_end(importing, stop=self._stop)
        except asyncio.CancelledError:
            self._close()
            raise

    def _stop(self) -> None:
        self._apart.end()
        if self._importer is not None:
            self._importer.stop()

    async def _import_changed(self) -> None:
        if self._importer is None:
            self._importer = await asyncio.to_thread(self._make_importer)
        if not self._has_looked and await asyncio.to_thread(self._importer.unread_bytes) > _APART_FROM_BYTES:
            await self._apart.run()
            self._importer.look_anew()
        if self._apart.is_ended:
            return
        self._has_looked = True
        if self._has_named:
            await asyncio.to_thread(self._importer.adopt)
            self._has_named = False
            self._on_read(())
        changes = self._watch.take() if self._watch is not None else Changes(is_everything=True)
        self._is_look_due |= changes.is_everything
        try:
            await self._import_told(changes.paths)
        except BaseException:
            # What was taken from the watch is not told again.
            self._is_look_due = True
            raise

    async def _import_told(self, paths: Collection[str]) -> None:
        since_look_s = time.monotonic() - self._looked_at_all_at
        if not self._is_look_due and since_look_s < self._look_every_s:
            self._tell(await self._import_among(paths))
        elif since_look_s < self._shortest_rest_s:
            self._rest_s = self._shortest_rest_s - since_look_s
            self._is_look_due = True
            self._tell(await self._import_among(paths))
        else:
            self._tell(await self._import_all(paths))

    @property
    def _shortest_rest_s(self) -> float:
        """How long to rest between two looks at all files."""
        return min(_LONGEST_REST_S, self._look_s * _REST_PER_LOOK)

    @property
    def _look_every_s(self) -> float:
        return _LOOK_BESIDE_WATCH_EVERY_S if self.is_watching else _LOOK_EVERY_S

    async def _import_among(self, paths: Collection[str]) -> ImportOutcome | None:
        from agentmon.worker.usage_importing import import_among  # noqa: PLC0415 - was imported in a thread

        if not paths or self._importer is None:
            return None
        outcome, unknown = await import_among(self._importer, self._agents, self._clock, paths)
        if unknown:
            self._unknown_paths.update(unknown)
            self._is_look_due = True
            self._rest_s = _SHORTEST_REST_S
        return outcome

    async def _import_all(self, paths: Collection[str]) -> ImportOutcome | None:
        from agentmon.worker.usage_importing import import_usage  # noqa: PLC0415 - was imported in a thread

        if self._importer is None:
            return None
        self._looked_at_all_at = time.monotonic()
        self._is_look_due = False
        unknown, self._unknown_paths = self._unknown_paths.union(paths), set()
        outcome = await import_usage(self._importer, self._agents, self._clock)
        self._importer.pass_over(unknown)
        self._look_s = outcome.look_s
        return outcome

    def _tell(self, outcome: ImportOutcome | None) -> None:
        if outcome is None:
            return
        if outcome.sources:
            self._on_read(outcome.sources)
        if outcome.files:
            _log.info("%s answers read of %s files in %.1f s", outcome.answers, outcome.files, outcome.elapsed_s)
        self._problems.tell(outcome.problems)

    async def _price_live(self, *, after_ms: int) -> None:
        until_ms = round(self._clock.now().timestamp() * 1000) - after_ms
        places = await self._prices.find_unlooked(until_ms=until_ms)
        if places:
            if self._importer is None:
                self._importer = await asyncio.to_thread(self._make_importer)
            await asyncio.to_thread(self._importer.warm_prices)
            await self._prices.price(places, self._importer.priced)

    def _make_importer(self) -> UsageImporter:
        from agentmon.worker.usage_importing import UsageImporter  # noqa: PLC0415 - the worker's start need not wait

        return UsageImporter(paths=self._paths, environ=os.environ, zone_name=self._zone_name, clock=self._clock)

    async def _end_watch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            await asyncio.to_thread(watch.close)

    def _close(self) -> None:
        if self._importer is not None:
            self._importer.close()
            self._importer = None


def _watch_agents(changed: asyncio.Event) -> FolderWatch:
    """Return a watch of the folders of all agents that sets the event of this loop when something changes."""
    loop = asyncio.get_running_loop()

    def tell() -> None:
        # The loop may be closed when the worker ends.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(changed.set)

    return FolderWatch(lambda: [place.path for place in list_places(os.environ)], tell)
