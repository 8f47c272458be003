"""What the doctor looks at of the queue: its worker, who else has runs, and tasks that wait for each other."""

from __future__ import annotations

import asyncio
import platform
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from agentmon import __version__
from agentmon.domain.amounts import duration_text
from agentmon.runners.host.process_table import is_halted
from agentmon.services.findings import fine, warning
from agentmon.worker.presence import read_presence

if TYPE_CHECKING:
    from agentmon.domain.clock import Clock
    from agentmon.domain.owners import Owner
    from agentmon.paths import Paths
    from agentmon.services.findings import Finding
    from agentmon.services.settings import SettingsService
    from agentmon.services.sightings import SightingService
    from agentmon.services.tasks import TaskService
    from agentmon.store.live_executions import LiveExecutionRepository
    from agentmon.store.worker_heartbeats import HeartbeatRepository

_SILENT_AFTER: Final = timedelta(minutes=2)
_BEATS_MISSED: Final = 4
_WORKERS_LOOKED_AT: Final = 100
_MOST_NAMED: Final = 10


class QueueChecks:
    """Looks at the queue; nothing is changed."""

    def __init__(
        self,
        *,
        paths: Paths,
        tasks: TaskService,
        settings: SettingsService,
        heartbeats: HeartbeatRepository,
        live: LiveExecutionRepository,
        sightings: SightingService,
        clock: Clock,
    ) -> None:
        self._paths = paths
        self._tasks = tasks
        self._settings = settings
        self._heartbeats = heartbeats
        self._live = live
        self._sightings = sightings
        self._clock = clock

    async def worker(self) -> Finding:
        """Return whether the worker of this folder lives and works."""
        presence = await asyncio.to_thread(read_presence, self._paths.worker_lock)
        if not presence.is_running or presence.pid is None:
            return fine("worker", "starting" if presence.is_running else "not running; it starts with the first run")
        pid = presence.pid
        seen_at = await self._last_seen(pid)
        silence = self._clock.now() - seen_at if seen_at is not None else timedelta(0)
        ago = f"; its last sign of life was {duration_text(silence.total_seconds())} ago" if seen_at is not None else ""
        if await asyncio.to_thread(is_halted, pid):
            return warning(
                "worker",
                f"pid {pid} is halted, so nothing starts{ago}",
                hint=f"`kill -CONT {pid}` lets it go on; after `kill -KILL {pid}` the next command starts another, "
                "and what runs goes on",
            )
        heartbeat_s = (await self._settings.get("worker.heartbeat_s")).value
        if silence > max(_SILENT_AFTER, _BEATS_MISSED * timedelta(seconds=float(heartbeat_s))):
            return warning(
                "worker",
                f"pid {pid} lives but does not work{ago}",
                hint=f"its log may say why: {self._paths.worker_log}; after `kill -KILL {pid}` the next command starts "
                "another, and what runs goes on",
            )
        if presence.version not in {None, __version__}:
            return warning(
                "worker",
                f"pid {pid} is of release {presence.version}",
                hint="`agentmon worker --stop` ends it; the next run starts one of this release",
            )
        return fine("worker", f"running, pid {pid}, since {_begun(presence.started_at)}")

    async def owners(self) -> Finding:
        """Return whether live runs belong to workers that this folder's worker cannot know to be gone, or to nobody."""
        if strays := await self._sightings.strays():
            pids = [str(stray.host_pid) for stray in strays if stray.host_pid is not None]
            count = "1 goes on that" if len(strays) == 1 else f"{len(strays)} go on that"
            return warning(
                "runs",
                f"{count} the database does not have, since another one took its place: {strays[0].output}"
                + (f" and {len(strays) - 1} more" if len(strays) > 1 else ""),
                hint="put the other database back"
                + (f", or end what runs with `kill {' '.join(pids[:_MOST_NAMED])}`" if pids else "")
                + "; their output stays",
            )
        claims = await self._live.owners()
        foreign: dict[str, int] = {}
        for _, owner in claims:
            place = self._foreign_place(owner)
            if place:
                foreign[place] = foreign.get(place, 0) + 1
        if not foreign:
            return fine("runs", f"{len(claims)} with processes, all of this folder's worker")
        counted = ", ".join(f"{count} of a worker {place}" for place, count in list(foreign.items())[:_MOST_NAMED])
        return warning(
            "runs",
            f"{len(claims)} with processes, {counted}",
            hint="the worker here takes over those of another folder some minutes after that worker's end; "
            "those of another machine can only be stopped there",
        )

    async def journals(self) -> Finding:
        """Return whether all that the agents of live runs say and do is in the database."""
        problems = await self._live.journal_problems()
        if not problems:
            return fine("journals", "all live runs are recorded")
        named = "; ".join(f"#{number}: {problem}" for number, problem in problems[:_MOST_NAMED])
        return warning(
            "journals",
            named + (f"; and {len(problems) - _MOST_NAMED} more" if len(problems) > _MOST_NAMED else ""),
            hint="the runs go on, and every byte stays in the journal.jsonl of their folders; please report it",
        )

    async def dependencies(self) -> Finding:
        """Return whether tasks wait for each other, so that none of them can ever start."""
        rings = await self._tasks.rings()
        if not rings:
            return fine("dependencies", "no tasks wait for each other")
        named = "; ".join(
            ", ".join(f"#{task.number}" for task in ring[:_MOST_NAMED])
            + (f" and {len(ring) - _MOST_NAMED} more" if len(ring) > _MOST_NAMED else "")
            for ring in rings[:_MOST_NAMED]
        )
        return warning(
            "dependencies",
            f"these wait for each other, so that none can start: {named}",
            hint=f"`agentmon task graph {rings[0][0].number}` shows the ring, "
            "`agentmon task after NUMBER --remove OTHER` opens it",
        )

    async def _last_seen(self, pid: int) -> datetime | None:
        for owner in await self._heartbeats.newest(limit=_WORKERS_LOOKED_AT):
            is_its = owner.identity is not None and owner.identity.pid == pid
            if is_its and not self._foreign_place(owner):
                return owner.last_seen_at
        return None

    def _foreign_place(self, owner: Owner) -> str:
        """Return where the owner works; empty for this folder on this machine, and when it never said."""
        if owner.machine not in {"", platform.node()}:
            return f"on the machine {owner.machine}"
        return f"of the folder {owner.run_dir}" if owner.run_dir not in {"", str(self._paths.run_dir)} else ""


def _begun(started_at: str | None) -> str:
    """Return when the worker says that it began, in the local time; what nobody can read stays as it is."""
    try:
        return f"{datetime.fromisoformat(started_at or '').astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return started_at or "?"
