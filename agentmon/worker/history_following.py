"""The worker's looks at conversations that agents have without agentmon, in the time that their answers leave."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from typing import TYPE_CHECKING, Final

from agentmon.schedule import local_zone_name
from agentmon.threads import to_its_end
from agentmon.usage.history.openings import has_history
from agentmon.worker.import_progress import find_running_import
from agentmon.worker.problem_log import ProblemLog
from agentmon.worker.separate_import import SeparateImport

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentmon.domain.clock import Clock
    from agentmon.domain.history import HistoryOperation
    from agentmon.paths import Paths
    from agentmon.settings import CostSettings, HistorySettings
    from agentmon.usage.sources import SourceFile
    from agentmon.worker.history_importing import HistoryImporter
    from agentmon.worker.history_outcome import HistoryOutcome

_log = logging.getLogger(__name__)

_FIRST_LOOK_AFTER_S: Final = 3.0
"""What is billed comes first."""
_LOOK_EVERY_S: Final = 15.0
_LONGEST_LOOK_S: Final = 0.25
_REST_PER_LOOK: Final = 9
"""Reading takes at most a tenth of the time."""
_APART_FROM_BYTES: Final = 20_000_000
_NICENESS: Final = 15


class HistoryFollowing:
    """Looks, imports a little, and rests in between; for one task of the worker.

    Args:
        paths: Where the database is.
        clock: Tells the time of the rows.
        on_calls: Hears of tool calls of an agent before they are written, in a thread.
    """

    def __init__(
        self,
        *,
        paths: Paths,
        clock: Clock,
        on_calls: Callable[[str, Sequence[HistoryOperation]], None] = lambda *_: None,
    ) -> None:
        self._on_calls = on_calls
        self._paths = paths
        self._clock = clock
        self._importer: HistoryImporter | None = None
        self._has_looked = False
        self._apart = SeparateImport("sessions", "import", "--gently", "--json", paths=paths, niceness=_NICENESS)
        self._problems = ProblemLog(_log)
        self._rest_until = time.monotonic() + _FIRST_LOOK_AFTER_S
        """When all files are looked at again; monotonic."""
        self._pause_until = float("-inf")
        """Until when nothing is read, so that the looks take a part of the time alone; monotonic."""
        self._wanted: dict[str, SourceFile] = {}
        self._is_wanted = asyncio.Event()

    def hasten(self, sources: Sequence[SourceFile]) -> None:
        """Let these files be read before all others, and soon."""
        self._wanted |= {source.path: source for source in sources if has_history(source)}
        if self._wanted:
            self._is_wanted.set()

    async def look(self, costs: CostSettings, history: HistorySettings) -> None:
        """Import some of what is new; nothing of history that is not wanted.

        When the caller is cancelled this returns behind the piece of a file that is being read.

        Raises:
            StoreError: The database refused something; what was imported before is kept.
        """
        self._is_wanted.clear()
        wanted, self._wanted = list(self._wanted.values()), {}
        if not costs.import_history:
            self._rest_for(_LOOK_EVERY_S)
            return
        running = find_running_import(self._paths.import_progress)
        if running is not None and not (wanted and running.pid == os.getpid()):
            self.hasten(wanted)
            self._rest_for(_FIRST_LOOK_AFTER_S)
            return
        is_whole = not wanted or time.monotonic() >= self._rest_until
        work = self._import_all(history) if is_whole else self._import_wanted(history, wanted)
        await to_its_end(asyncio.create_task(work, name="import conversations"), stop=self._stop)

    def _stop(self) -> None:
        self._apart.end()
        if self._importer is not None:
            self._importer.stop()

    async def rest(self) -> None:
        """Wait until the next look is due, or something is to be read soon."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._rest_until - time.monotonic()):
                await asyncio.sleep(self._pause_until - time.monotonic())
                await self._is_wanted.wait()

    def _rest_for(self, seconds: float) -> None:
        self._rest_until = time.monotonic() + seconds

    def close(self) -> None:
        """Close the connection to the database; no look is going on."""
        if self._importer is not None:
            self._importer.close()
            self._importer = None

    async def _open_importer(self, history: HistorySettings) -> HistoryImporter:
        if self._importer is None:
            self._importer = await asyncio.to_thread(self._make_importer)
        self._importer.keeps_messages = history.import_messages
        return self._importer

    async def _import_wanted(self, history: HistorySettings, wanted: Sequence[SourceFile]) -> None:
        importer = await self._open_importer(history)
        changed = await asyncio.to_thread(importer.changed_of, wanted)
        outcome = await asyncio.to_thread(importer.read, changed, most_s=_LONGEST_LOOK_S)
        self._tell(outcome)
        self._pause_until = time.monotonic() + outcome.elapsed_s * _REST_PER_LOOK
        if not outcome.is_finished:
            self.hasten(changed)

    async def _import_all(self, history: HistorySettings) -> None:
        importer = await self._open_importer(history)
        begun_at = time.monotonic()
        sources = await asyncio.to_thread(importer.find_changed)
        self._rest_for(max(_LOOK_EVERY_S, (time.monotonic() - begun_at) * _REST_PER_LOOK))
        await asyncio.to_thread(importer.take_names)
        if not sources:
            return
        if not self._has_looked and await asyncio.to_thread(importer.unread_bytes, sources) > _APART_FROM_BYTES:
            self._has_looked = True
            await self._apart.run()
            importer.look_anew()
            self._rest_for(_FIRST_LOOK_AFTER_S)
            return
        outcome = await asyncio.to_thread(importer.read, sources, most_s=_LONGEST_LOOK_S)
        self._tell(outcome)
        if not outcome.is_finished:
            self._rest_for(outcome.elapsed_s * _REST_PER_LOOK)

    def _tell(self, outcome: HistoryOutcome) -> None:
        if outcome.files:
            _log.info(
                "%s messages and %s tool calls read of %s files in %.1f s",
                *(outcome.messages, outcome.operations, outcome.files, outcome.elapsed_s),
            )
        self._problems.tell(outcome.problems)

    def _make_importer(self) -> HistoryImporter:
        from agentmon.worker.history_importing import HistoryImporter  # noqa: PLC0415 - the start need not wait

        return HistoryImporter(
            paths=self._paths,
            environ=os.environ,
            zone_name=local_zone_name(),
            clock=self._clock,
            keeps_messages=True,
            on_calls=self._on_calls,
        )
