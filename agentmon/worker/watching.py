"""The executions that this worker watches: their journals into the database, and the proof that their hosts live."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.executions import ExecutionEnding, ExecutionStatus
from agentmon.runners.execution_folder import ExecutionFolder
from agentmon.worker.host_proof import is_host_alive
from agentmon.worker.journal_reading import read_stretch
from agentmon.worker.strays import end_strays

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ClaimedExecution, ExecutionProgress
    from agentmon.domain.ids import ExecutionId
    from agentmon.paths import Paths
    from agentmon.store.ingest import IngestRepository

_log = logging.getLogger(__name__)

_LOST_AFTER_S: Final = 1.0
"""Least time between the two looks that both have to find the host dead."""
_START_PATIENCE_S: Final = 15.0
"""How long a host may take from its session's start to its first sign of life."""


@dataclass(slots=True, kw_only=True)
class Watched:
    """One execution that has or may have a process."""

    claimed: ClaimedExecution
    folder: ExecutionFolder
    journal_offset: int
    start_asked_at: float
    """Monotonic time of the last try to start its host."""
    start_tries: int = 1
    found_dead_at: float | None = None
    """Monotonic time of the first look that found its host dead."""

    @property
    def id(self) -> ExecutionId:
        """The id of the execution."""
        return self.claimed.execution.id

    @property
    def has_begun(self) -> bool:
        """Whether a host ever took it up."""
        return self.journal_offset > 0 or self.folder.journal.exists()


class Watch:
    """All executions of this worker that are not over."""

    def __init__(self, *, ingest: IngestRepository, paths: Paths, clock: Clock) -> None:
        self._ingest = ingest
        self._paths = paths
        self._clock = clock
        self._watched: dict[ExecutionId, Watched] = {}

    def __len__(self) -> int:
        """Return how many are watched."""
        return len(self._watched)

    def __contains__(self, execution_id: object) -> bool:
        """Return whether the execution is watched."""
        return execution_id in self._watched

    def add(self, claimed: ClaimedExecution) -> Watched:
        """Watch an execution from what the database has of its journal."""
        watched = Watched(
            claimed=claimed,
            folder=ExecutionFolder(self._paths.execution_dir(claimed.execution.id)),
            journal_offset=claimed.execution.journal_offset,
            start_asked_at=time.monotonic(),
        )
        self._watched[watched.id] = watched
        return watched

    def find(self, execution_id: ExecutionId) -> Watched | None:
        """Return what is known of an execution that is not over."""
        return self._watched.get(execution_id)

    async def read_journals(self, execution_ids: Iterable[ExecutionId] | None = None) -> bool:
        """Bring what is new in the journals (of all, when none is named) into the database; return whether any ended.

        Raises:
            StoreError: Nothing was written; the next call reads the same again.
        """
        chosen = [
            watched for watched in self._watched.values() if execution_ids is None or watched.id in set(execution_ids)
        ]
        stretches = await asyncio.to_thread(_read_new, chosen)
        if not stretches:
            return False
        over = await self._ingest.record(stretches, at=self._clock.now())
        for stretch in stretches:
            watched = self._watched[stretch.execution_id]
            watched.journal_offset = max(watched.journal_offset, stretch.to_offset)
            watched.found_dead_at = None
        for execution_id, is_queued_again in over.items():
            await self._forget(execution_id, keep_environment=is_queued_again)
        return bool(over)

    async def fail(self, watched: Watched, reason: str, *, may_retry: bool = False) -> None:
        """End an execution whose host will never tell how it ended."""
        _log.warning("execution %s: %s", watched.id, reason)
        is_queued_again = await self._ingest.end_without_journal(
            watched.id,
            ExecutionEnding(
                status=ExecutionStatus.FAILED, ended_at=self._clock.now(), error=reason[:500], may_retry=may_retry
            ),
            at=self._clock.now(),
        )
        await self._forget(watched.id, keep_environment=is_queued_again)

    async def prove_hosts(self) -> tuple[list[ExecutionId], list[Watched]]:
        """Look at every host; return the executions whose hosts live, and those whose hosts never began.

        A host is dead when its lock is free at two looks and its journal said nothing in between: then what it left
        behind is ended and the execution is lost. Nothing follows from one look.
        """
        alive, unbegun = [], []
        for watched in list(self._watched.values()):
            if await asyncio.to_thread(is_host_alive, watched.folder):
                watched.found_dead_at = None
                alive.append(watched.id)
            elif not watched.has_begun:
                if time.monotonic() - watched.start_asked_at > _START_PATIENCE_S:
                    unbegun.append(watched)
            elif watched.found_dead_at is None:
                watched.found_dead_at = time.monotonic()
            elif time.monotonic() - watched.found_dead_at >= _LOST_AFTER_S:
                await self._settle_dead(watched)
        return alive, unbegun

    async def _settle_dead(self, watched: Watched) -> None:
        await self.read_journals([watched.id])
        if watched.id not in self._watched:
            return
        left = await end_strays(watched.id, grace_s=2.0)
        reason = "lost: its host ended without a word (killed, or the machine went down)"
        if not watched.folder.path.exists():
            reason = "lost: its folder was removed while it ran"
        if left:
            reason += f"; could not stop pid {', '.join(str(pid) for pid in left)}"
        await self.fail(watched, reason, may_retry=not left)

    async def _forget(self, execution_id: ExecutionId, *, keep_environment: bool) -> None:
        watched = self._watched.pop(execution_id, None)
        if watched is not None and not keep_environment:
            await asyncio.to_thread(_remove_environment, watched.folder)


def _read_new(chosen: Iterable[Watched]) -> list[ExecutionProgress]:
    stretches = []
    for watched in chosen:
        offset = watched.journal_offset
        while True:
            try:
                stretch = read_stretch(watched.folder.journal, execution_id=watched.id, offset=offset)
            except OSError as error:
                _log.warning("execution %s: its journal cannot be read: %s", watched.id, error)
                break
            if stretch is None:
                break
            stretches.append(stretch)
            offset = stretch.to_offset
    return stretches


def _remove_environment(folder: ExecutionFolder) -> None:
    folder.launch_environment.unlink(missing_ok=True)
    folder.environment.unlink(missing_ok=True)
