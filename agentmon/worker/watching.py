"""The executions that this worker watches: their journals into the database, and the proof that their hosts live."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.asked_danger import with_danger
from agentmon.domain.conversation import AskNews
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import ExecutionEnding
from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import redact
from agentmon.runners.danger import danger_rules_in_force
from agentmon.runners.locks import is_locked
from agentmon.worker.journal_reading import ERROR_MAX_CHARACTERS, read_stretch
from agentmon.worker.preparation import folder_of
from agentmon.worker.refusal_reading import with_refusal
from agentmon.worker.strays import end_strays

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ClaimedExecution, ExecutionProgress
    from agentmon.domain.ids import ExecutionId
    from agentmon.paths import Paths
    from agentmon.runners.execution_folder import ExecutionFolder
    from agentmon.store.ingest import IngestRepository

_log = logging.getLogger(__name__)

_LOST_AFTER_S: Final = 1.0
"""Least time between the two looks that both have to find the host dead."""
_STRAYS_GRACE_S: Final = 2.0
_START_PATIENCE_S: Final = 15.0
"""How long a host may take from its session's start to its first sign of life."""
_PROBLEM_PATIENCE_S: Final = 2.0
"""How long to the next try when the last one was in vain, as without tmux."""
_MAX_STRETCHES: Final = 8
"""Most pieces of one journal (of 1 MiB) that are in memory at one time; the next look reads on."""


@dataclass(slots=True, kw_only=True)
class Watched:
    """One execution that has or may have a process."""

    claimed: ClaimedExecution
    folder: ExecutionFolder
    journal_offset: int
    start_asked_at: float
    """Monotonic time of the last try to start its host."""
    start_tries: int = 1
    start_problem: str = ""
    """What was in the way of the last try, if that may pass."""
    found_dead_at: float | None = None
    """Monotonic time of the first look that found its host dead."""
    is_being_settled: bool = False

    @property
    def id(self) -> ExecutionId:
        """The id of the execution."""
        return self.claimed.execution.id

    @property
    def has_begun(self) -> bool:
        """Whether a host ever took it up."""
        return self.journal_offset > 0 or self.folder.journal.exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLook:
    """What one look at all hosts found; those about which nothing can be said yet are in none of the three."""

    alive: tuple[Watched, ...]
    unbegun: tuple[Watched, ...]
    """Started long enough ago, and no host ever took them up."""
    lost: tuple[Watched, ...]
    """Their hosts ended without a word; each is left out of further looks until ``Watch.settle`` is through with it."""


class Watch:
    """All executions of this worker that are not over."""

    def __init__(self, *, ingest: IngestRepository, paths: Paths, clock: Clock) -> None:
        self._ingest = ingest
        self._paths = paths
        self._clock = clock
        self.park_after = 0
        """After how many failures in a row an agent is parked; 0 means never."""
        self.has_asked = False
        """Whether an agent has asked a person for something since somebody last took note of it."""
        self._watched: dict[ExecutionId, Watched] = {}
        # Two readers of one journal would move its offset past what the slower one's transaction drops.
        self._reading = asyncio.Lock()

    def __len__(self) -> int:
        """Return how many are watched."""
        return len(self._watched)

    def __contains__(self, execution_id: object) -> bool:
        """Return whether the execution is watched."""
        return execution_id in self._watched

    @property
    def ids(self) -> frozenset[ExecutionId]:
        """The executions that are watched."""
        return frozenset(self._watched)

    async def add(self, claimed: ClaimedExecution) -> Watched:
        """Watch an execution from what the database has of its journal.

        What earlier tries left in its folder is set aside first: the journal of one would be read as that of this one.
        """
        execution = claimed.execution
        folder = folder_of(execution, self._paths)
        try:
            await asyncio.to_thread(folder.set_tries_aside, execution.attempt)
        except OSError as error:
            _log.warning("execution %s: its earlier tries cannot be set aside: %s", execution.id, error)
        watched = Watched(
            claimed=claimed,
            folder=folder,
            journal_offset=execution.journal_offset,
            start_asked_at=time.monotonic(),
        )
        self._watched[watched.id] = watched
        # What it asked while another worker watched it may be undecided.
        self.has_asked = self.has_asked or execution.journal_offset > 0
        return watched

    def find(self, execution_id: ExecutionId) -> Watched | None:
        """Return what is known of an execution that is not over."""
        return self._watched.get(execution_id)

    async def read_journals(self, execution_ids: Iterable[ExecutionId] | None = None) -> bool:
        """Bring what is new in the journals (of all, when none is named) into the database; return whether any ended.

        Raises:
            StoreError: Nothing was written; the next call reads the same again.
        """
        async with self._reading:
            wanted = None if execution_ids is None else set(execution_ids)
            chosen = [watched for watched in self._watched.values() if wanted is None or watched.id in wanted]
            stretches = await asyncio.to_thread(_read_new, chosen, self._paths.danger_rules_file)
            if not stretches:
                return False
            over = await self._ingest.record(stretches, park_after=self.park_after, at=self._clock.now())
            for stretch in stretches:
                self.has_asked = self.has_asked or any(isinstance(told.news, AskNews) for told in stretch.news)
                watched = self._watched.get(stretch.execution_id)
                if watched is not None:
                    watched.journal_offset = max(watched.journal_offset, stretch.to_offset)
                    watched.found_dead_at = None
        await self._forget(over)
        return bool(over)

    async def fail(
        self, watched: Watched, error: str, *, reason: EndReason = EndReason.START_FAILED, may_retry: bool = False
    ) -> None:
        """End an execution whose host will never tell how it ended.

        Raises:
            StoreError: Nothing was written, and the execution stays watched.
        """
        _log.warning("execution %s: %s", watched.id, error)
        ending = ExecutionEnding(
            status=ExecutionStatus.FAILED,
            ended_at=self._clock.now(),
            reason=reason,
            error=plain_line(redact(error), max_characters=ERROR_MAX_CHARACTERS),
            may_retry=may_retry,
        )
        over = await self._ingest.end_without_journal(
            watched.id, ending, park_after=self.park_after, at=self._clock.now()
        )
        await self._forget(over)
        self._watched.pop(watched.id, None)

    async def look_at_hosts(self) -> HostLook:
        """Look whether every host lives.

        A host is dead when its lock is free at two looks and its journal said nothing in between. Nothing follows from
        one look.
        """
        alive, unbegun, lost = [], [], []
        looked_at = [one for one in self._watched.values() if not one.is_being_settled]
        are_alive = await asyncio.to_thread(lambda: [_is_host_alive(one) for one in looked_at])
        for watched, is_alive in zip(looked_at, are_alive, strict=True):
            if is_alive is None:
                continue
            if is_alive:
                watched.found_dead_at = None
                alive.append(watched)
            elif not watched.has_begun:
                patience_s = _PROBLEM_PATIENCE_S if watched.start_problem else _START_PATIENCE_S
                if time.monotonic() - watched.start_asked_at > patience_s:
                    unbegun.append(watched)
            elif watched.found_dead_at is None:
                watched.found_dead_at = time.monotonic()
            elif time.monotonic() - watched.found_dead_at >= _LOST_AFTER_S:
                watched.is_being_settled = True
                lost.append(watched)
        return HostLook(alive=tuple(alive), unbegun=tuple(unbegun), lost=tuple(lost))

    async def settle(self, watched: Watched) -> None:
        """End what a dead host left behind and record the execution as lost; takes seconds when that resists.

        While something of it cannot be ended the execution stays open and says so; the next looks try again.

        Raises:
            StoreError: It could not be recorded; the next looks find the host dead again.
        """
        try:
            await self.read_journals([watched.id])
            if watched.id not in self._watched or watched.found_dead_at is None:
                return
            left = await end_strays(watched.id, grace_s=_STRAYS_GRACE_S)
            if left:
                complaint = f"could not stop pid {', '.join(str(pid) for pid in left)}; its host is gone"
                _log.warning("execution %s: %s", watched.id, complaint)
                await self._ingest.complain(watched.id, complaint, at=self._clock.now())
                return
            error = "lost: its host ended without a word (killed, or the machine went down)"
            if not await asyncio.to_thread(watched.folder.path.exists):
                error = "lost: its folder was removed while it ran"
            await self.fail(watched, error, reason=EndReason.LOST, may_retry=True)
        finally:
            watched.is_being_settled = False

    async def _forget(self, over: Mapping[ExecutionId, bool]) -> None:
        for execution_id, is_queued_again in over.items():
            watched = self._watched.pop(execution_id, None)
            if watched is not None and not is_queued_again:
                await asyncio.to_thread(watched.folder.remove_environments)


def _is_host_alive(watched: Watched) -> bool | None:
    """Return whether the host holds its lock; None when that cannot be told."""
    try:
        return is_locked(watched.folder.host_lock)
    except OSError as error:
        _log.warning("execution %s: its host's lock cannot be looked at: %s", watched.id, error)
        return None


def _read_new(chosen: Iterable[Watched], danger_rules_file: Path) -> list[ExecutionProgress]:
    stretches = []
    for watched in chosen:
        offset = watched.journal_offset
        for _ in range(_MAX_STRETCHES):
            try:
                stretch = read_stretch(
                    watched.folder.journal,
                    execution_id=watched.id,
                    offset=offset,
                    mode=watched.claimed.execution.mode,
                )
            except OSError as error:
                _log.warning("execution %s: its journal cannot be read: %s", watched.id, error)
                break
            if stretch is None:
                break
            stretch = _with_danger(stretch, danger_rules_file)
            if stretch.ending is not None:
                stretch = _with_refusal(stretch, stretch.ending, watched)
            stretches.append(stretch)
            offset = stretch.to_offset
    return stretches


def _with_danger(stretch: ExecutionProgress, danger_rules_file: Path) -> ExecutionProgress:
    if not any(isinstance(told.news, AskNews) for told in stretch.news):
        return stretch
    rules = danger_rules_in_force(danger_rules_file)
    news = tuple(
        replace(told, news=with_danger(told.news, rules)) if isinstance(told.news, AskNews) else told
        for told in stretch.news
    )
    return replace(stretch, news=news)


def _with_refusal(stretch: ExecutionProgress, ending: ExecutionEnding, watched: Watched) -> ExecutionProgress:
    try:
        return replace(stretch, ending=with_refusal(ending, watched.claimed, watched.folder))
    except OSError as error:
        _log.warning("execution %s: the end of its log cannot be read: %s", watched.id, error)
        return stretch
