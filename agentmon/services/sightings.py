"""What is known of live runs while no worker is at work: read from files and rows, and nothing is changed."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.sightings import NO_SIGHTING, Sighting
from agentmon.runners.execution_folder import ExecutionFolder, open_at_once, read_whole
from agentmon.runners.host.process_table import is_halted
from agentmon.runners.journal import HostStartedEntry, parse_entry
from agentmon.runners.locks import is_locked
from agentmon.store.status_counts import has_startable
from agentmon.worker.at_work import find_last_beat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import Execution, ExecutionCommand
    from agentmon.domain.ids import ExecutionId
    from agentmon.paths import Paths
    from agentmon.store.live_executions import LiveExecutionRepository

_A_FEW_SECONDS: Final = timedelta(seconds=5)
_ELSEWHERE: Final = timedelta(minutes=2)
"""How old the heartbeat of a run may be whose folder is not on this machine: a worker beats every 30 s."""
_HEAD_BYTES: Final = 4096


class Stray(NamedTuple):
    """A run that goes on and that the database does not have."""

    execution_id: str
    host_pid: int | None
    """None where its journal does not tell."""
    output: Path


class SightingService:
    """Looks after runs that no worker looks after; costs next to nothing while one is at work."""

    def __init__(self, live: LiveExecutionRepository, paths: Paths, clock: Clock) -> None:
        self._live = live
        self._paths = paths
        self._clock = clock

    def worker_seen_at(self) -> datetime | None:
        """Return when a worker was last at work; None while one is."""
        beat_at = find_last_beat(
            str(self._paths.worker_lock), str(self._paths.worker_loops), str(self._paths.database_path)
        )
        return None if beat_at is None else datetime.fromtimestamp(beat_at, UTC)

    async def worker_missed_since(self, *, is_running: bool) -> datetime | None:
        """Return when a worker was last at work; None while one is, or while nobody needs one.

        Args:
            is_running: Whether anything runs; otherwise one is needed for what is queued and waits for nothing else.
        """
        seen_at = self.worker_seen_at()
        if seen_at is None or is_running:
            return seen_at
        return seen_at if await asyncio.to_thread(has_startable, str(self._paths.database_path)) else None

    async def look(self) -> Mapping[ExecutionId | None, Sighting]:
        """Return what is known of each live run that nobody looks after; empty while a worker is at work."""
        if self.worker_seen_at() is None:
            return {}
        now = self._clock.now()
        live, commands = await self._live.live(), await self._live.waiting_commands(now - _A_FEW_SECONDS)
        return await asyncio.to_thread(lambda: dict(_sightings(live, commands, now)))

    async def strays(self) -> tuple[Stray, ...]:
        """Return the runs that go on here and have no row, since a copy took the place of their database."""
        alive = await asyncio.to_thread(lambda: list(self._alive()))
        known = await self._live.known_ids([stray.execution_id for stray in alive]) if alive else ()
        return tuple(stray for stray in alive if stray.execution_id not in known)

    def _alive(self) -> Iterator[Stray]:
        """Yield what has a host that lives and belongs to the worker of this database; blocks."""
        for lock in self._paths.executions_dir.glob("*/host.lock"):
            folder = ExecutionFolder(lock.parent)
            with suppress(OSError, ValueError, KeyError):
                if not is_locked(lock):
                    continue
                spec = json.loads(read_whole(folder.spec))
                if spec["notify_socket"] == str(self._paths.worker_socket):
                    yield Stray(spec["execution_id"], next(iter(_host_pids(folder)), None), folder.output_log)

    async def add_to(self, executions: Iterable[Execution]) -> tuple[Execution, ...]:
        """Return the executions with what is known of those that nobody looks after."""
        listed = tuple(executions)
        if not any(execution.status.is_live for execution in listed):
            return listed
        known = await self.look()
        return tuple(replace(one, sighting=known.get(one.id, NO_SIGHTING)) for one in listed) if known else listed


def _sightings(
    live: Iterable[Execution], commands: Iterable[ExecutionCommand], now: datetime
) -> Iterable[tuple[ExecutionId | None, Sighting]]:
    waiting: dict[ExecutionId, dict[str, None]] = {}
    for command in commands:
        waiting.setdefault(command.execution_id, {})[command.type.value.replace("_", " ")] = None
    for execution in live:
        sighting = Sighting(_last_seen_at(execution, now), tuple(waiting.get(execution.id, ())))
        if sighting != NO_SIGHTING:
            yield execution.id, sighting


def _last_seen_at(execution: Execution, now: datetime) -> datetime | None:
    """Return the last sign of life of a host that gives none any more; None of one that lives or did just now."""
    folder = ExecutionFolder(Path(execution.log_file_path or "").parent)
    is_here = execution.log_file_path is not None and folder.path.exists()
    if is_here and _is_alive(folder):
        return None
    margin = _A_FEW_SECONDS if is_here else _ELSEWHERE
    moments = [execution.started_at, execution.heartbeat_at, execution.log_updated_at]
    moments += [_changed_at(folder.journal), _changed_at(folder.output_log)] if is_here else []
    # What is of a time to come was written before the clock was set back.
    past = [moment for moment in moments if moment is not None and moment <= now + margin]
    if not past:
        return min(now, execution.created_at)
    seen_at = min(now, max(past))
    return seen_at if now - seen_at > margin else None


def _is_alive(folder: ExecutionFolder) -> bool:
    """Return whether the host holds its lock and is not halted; one of which nothing can be learnt counts as alive."""
    try:
        if not is_locked(folder.host_lock):
            return False
        pids = _host_pids(folder)
    except OSError:
        return True
    return not pids or not is_halted(pids[0])


def _host_pids(folder: ExecutionFolder) -> list[int]:
    with open_at_once(folder.journal) as journal:
        lines = journal.read(_HEAD_BYTES).split(b"\n")[:-1]
    return [entry.pid for entry in map(parse_entry, lines) if isinstance(entry, HostStartedEntry)]


def _changed_at(path: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return None
