"""The executions that this worker watches: their journals into the database, and the proof that their hosts live."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import ToolType
from agentmon.domain.asked_danger import with_danger
from agentmon.domain.conversation import AskNews, CostNews, UsageNews
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import ExecutionEnding
from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import redact
from agentmon.runners.danger import danger_rules_in_force
from agentmon.runners.locks import is_locked
from agentmon.worker.journal_reading import ERROR_MAX_CHARACTERS, read_stretch, without_content
from agentmon.worker.preparation import folder_of
from agentmon.worker.strays import end_strays, find_strays

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ClaimedExecution, ExecutionProgress, TimedNews
    from agentmon.domain.ids import ExecutionId
    from agentmon.paths import Paths
    from agentmon.runners.execution_folder import ExecutionFolder
    from agentmon.store.ingest import IngestRepository, Recorded
    from agentmon.store.settling import SettlementRepository

_log = logging.getLogger(__name__)

_LOST_AFTER_S: Final = 1.0
"""Least time between the two looks that both have to find the host dead."""
_STRAYS_GRACE_S: Final = 2.0
_START_PATIENCE_S: Final = 15.0
"""How long a host may take from its session's start to its first sign of life."""
_PROBLEM_PATIENCE_S: Final = 2.0
"""How long to the next try when the last one was in vain, as without tmux."""
_MAX_STRETCHES: Final = 8
"""Most pieces of one journal that one look reads; the next one reads on."""
_MAX_BATCH_BYTES: Final = 1024 * 1024
"""About how much of all journals is in memory, and in one transaction, at a time."""
_MAX_BATCH_ENTRIES: Final = 512
"""Most entries in one transaction: others, a stop among them, wait no longer than these take."""
_MAX_WORK_S: Final = 0.25
"""How long batches follow each other before others get their turn, whichever of them waits."""
_REST_S: Final = 0.12
"""A little more than the longest that SQLite lets a process sleep that waits to write."""
_MAX_CLOSER_LOOKS: Final = 64
"""Finding one entry among a thousand takes twelve; the journals of others have their turn then."""
_SETTLED_WITHOUT_JOURNAL_AFTER: Final = 8
"""Looks in vain, some four minutes, after which a dead host counts although its journal is set aside."""
_FIRST_SET_ASIDE_S: Final = 1.0
_LONGEST_SET_ASIDE_S: Final = 60.0


@dataclass(slots=True, kw_only=True)
class Watched:
    """One execution that has or may have a process."""

    claimed: ClaimedExecution
    folder: ExecutionFolder
    journal_offset: int
    start_asked_at: float
    """Monotonic time of the last try to start its host."""
    start_tries: int = 1
    is_being_prepared: bool = False
    """Whether what its host needs is being made, which a large repository may take minutes for."""
    start_problem: str = ""
    """What was in the way of the last try, if that may pass."""
    found_dead_at: float | None = None
    """Monotonic time of the first look that found its host dead."""
    is_being_settled: bool = False
    is_set_aside: bool = False
    """Whether nothing of an earlier try was seen in its folder; nothing of one comes back."""
    is_cleared: bool = False
    """Whether its host is dead, and what that left behind was ended as far as that can be done."""
    ending: ExecutionEnding | None = None
    """How its processes ended, when they are gone."""
    max_entries: int = _MAX_BATCH_ENTRIES
    """Most entries that are read of its journal at a time; fewer look for one that cannot be recorded."""
    has_more: bool = False
    """Whether its journal goes on behind the stretch that was read last."""
    failures: int = 0
    """How often in a row not even the bare progress of its journal could be recorded."""
    set_aside_until: float = float("-inf")
    """Monotonic time until which its journal is not read."""

    @property
    def id(self) -> ExecutionId:
        """The id of the execution."""
        return self.claimed.execution.id

    @property
    def has_begun(self) -> bool:
        """Whether a host ever took it up."""
        return self.journal_offset > 0 or (self.is_readable and self.folder.journal.exists())

    @property
    def is_readable(self) -> bool:
        """Whether what stands in its folder is its own; else it is set aside before the next try to start its host."""
        self.is_set_aside = self.is_set_aside or self.folder.is_of_try(self.claimed.execution.attempt)
        return self.is_set_aside


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

    def __init__(
        self, *, ingest: IngestRepository, settlement: SettlementRepository, paths: Paths, clock: Clock
    ) -> None:
        self._ingest = ingest
        self._settlement = settlement
        self._paths = paths
        self._clock = clock
        self.on_news: Callable[[Watched, Sequence[TimedNews]], None] = lambda *_: None
        """Called with what a run has said, once that is recorded."""
        self.has_asked = False
        """Whether an agent has asked a person for something since somebody last took note of it."""
        self.has_spent = False
        """Whether an answer was billed since somebody last took note of it."""
        self._watched: dict[ExecutionId, Watched] = {}
        self._problems: dict[ExecutionId, str] = {}
        # Two readers of one journal would move its offset past what the slower one's transaction drops.
        self._reading = asyncio.Lock()
        self._worked_s = 0.0

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

    def ended(self) -> tuple[Watched, ...]:
        """Return those whose processes are gone and whose end does not count yet."""
        return tuple(watched for watched in self._watched.values() if watched.ending is not None)

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
            ending=execution.ending,
        )
        self._watched[watched.id] = watched
        # What it asked while another worker watched it may be undecided.
        self.has_asked = self.has_asked or execution.journal_offset > 0
        return watched

    def find(self, execution_id: ExecutionId) -> Watched | None:
        """Return what is known of an execution that is not over."""
        return self._watched.get(execution_id)

    def place(self, claimed: ClaimedExecution) -> None:
        """Take note of where an execution works, which is certain once its worktree is made."""
        watched = self._watched.get(claimed.execution.id)
        if watched is not None:
            watched.claimed = claimed

    async def read_journals(self, execution_ids: Collection[ExecutionId] | None = None) -> bool:
        """Bring what is new in the journals (of all, when none is named) into the database.

        What of one journal cannot be recorded holds up no other: fewer entries of it are tried until the one is found
        whose content is left out, with an event that says why. A journal of which not even that can be written is set
        aside for a while, with the reason on its execution.

        Returns:
            Whether there is more to read at once.

        Raises:
            StoreError: The database as a whole cannot be written; the next call reads the same again.
        """
        has_more = False
        async with self._reading:
            now = time.monotonic()
            chosen = self._watched.values() if execution_ids is None else map(self._watched.get, execution_ids)
            unread = deque(
                (watched, 0)
                for watched in chosen
                if watched is not None and watched.ending is None and watched.set_aside_until <= now
            )
            while unread:
                began_at = time.monotonic()
                read = await asyncio.to_thread(_read_batch, unread, self._paths.danger_rules_file, self._beside)
                problems = {watched.id: outcome for watched, _, outcome in read if isinstance(outcome, Exception)}
                stretches = {
                    watched.id: outcome for watched, _, outcome in read if not isinstance(outcome, Exception | None)
                }
                if stretches:
                    recorded = await self._ingest.record(tuple(stretches.values()), at=self._clock.now())
                    problems |= recorded.problems
                    self._note(recorded, stretches)
                for watched, times, _ in read:
                    stretch = stretches.get(watched.id)
                    if watched.id in problems:
                        goes_on = await self._look_closer(watched, stretch, problems[watched.id])
                        most = _MAX_CLOSER_LOOKS
                    else:
                        goes_on = stretch is not None and watched.has_more and watched.ending is None
                        most = _MAX_STRETCHES
                        if watched.failures and stretch is not None:
                            watched.failures = 0
                            await self._ingest.note_problem(watched.id, None, at=self._clock.now())
                    if goes_on and times + 1 < most:
                        unread.append((watched, times + 1))
                    else:
                        has_more = has_more or goes_on
                self._worked_s += time.monotonic() - began_at
                if unread and self._worked_s >= _MAX_WORK_S:
                    # Other processes write meanwhile.
                    await asyncio.sleep(_REST_S)
                    self._worked_s = 0.0
        return has_more

    def _beside(self, watched: Watched) -> tuple[int, ...]:
        """Return the tasks whose AI agents work in the folder of a run: their numbers."""
        folder = watched.claimed.execution.working_dir
        return tuple(
            sorted(
                other.claimed.task.number
                for other in tuple(self._watched.values())
                if other is not watched
                and other.ending is None
                and other.claimed.execution.working_dir == folder
                and other.claimed.agent.tool_type is ToolType.AI_AGENT
            )
        )

    def _note(self, recorded: Recorded, stretches: Mapping[ExecutionId, ExecutionProgress]) -> None:
        for execution_id, stretch in stretches.items():
            watched = self._watched.get(execution_id)
            if execution_id in recorded.problems or watched is None:
                continue
            self.has_asked = self.has_asked or any(isinstance(told.news, AskNews) for told in stretch.news)
            self.has_spent = self.has_spent or any(isinstance(told.news, UsageNews | CostNews) for told in stretch.news)
            watched.journal_offset = max(watched.journal_offset, stretch.to_offset)
            watched.found_dead_at = None
            watched.ending = recorded.ended.get(execution_id)
            watched.max_entries = min(2 * watched.max_entries, _MAX_BATCH_ENTRIES)
            self.on_news(watched, stretch.news)

    async def _look_closer(self, watched: Watched, stretch: ExecutionProgress | None, error: Exception) -> bool:
        """Do what is left for a stretch that could not be recorded; return whether its journal may be read on now."""
        if watched.max_entries != 1:
            watched.max_entries //= 2
            return True
        problem = f"something that its agent said or did could not be recorded: {_words_of(error)}"
        _log.warning("execution %s: %s", watched.id, problem)
        now = self._clock.now()
        if stretch is not None:
            bare = without_content(stretch, problem, at_ms=round(now.timestamp() * 1000))
            recorded = await self._ingest.record([bare], at=now)
            if not recorded.problems:
                watched.failures = 0
                self._note(recorded, {watched.id: bare})
                return watched.ending is None
        watched.failures += 1
        pause_s = min(_FIRST_SET_ASIDE_S * 2 ** (watched.failures - 1), _LONGEST_SET_ASIDE_S)
        watched.set_aside_until = time.monotonic() + pause_s
        await self._ingest.note_problem(watched.id, f"its journal cannot be read: {_words_of(error)}", at=now)
        return False

    async def fail(
        self, watched: Watched, error: str, *, reason: EndReason = EndReason.START_FAILED, may_retry: bool = False
    ) -> None:
        """End an execution whose host will never tell how it ended.

        Raises:
            StoreError: Nothing was written, and the execution stays watched.
        """
        _log.warning("execution %s: %s", watched.id, error)
        error = plain_line(redact(error), max_characters=ERROR_MAX_CHARACTERS)
        await self._end(watched, ExecutionStatus.FAILED, reason, error=error, may_retry=may_retry)

    async def put_back(self, watched: Watched, error: str) -> None:
        """Let an execution that could not be started wait in the queue, unless a host has begun with it after all.

        Raises:
            StoreError: Nothing was written, and the execution stays watched.
        """
        try:
            is_withdrawn = not watched.is_readable or await asyncio.to_thread(watched.folder.withdraw)
        except OSError as failure:
            _log.warning("execution %s: it cannot be put back: %s", watched.id, failure)
            return
        if is_withdrawn:
            await self.fail(watched, error, reason=EndReason.START_FAILED, may_retry=True)

    async def _end(
        self,
        watched: Watched,
        status: ExecutionStatus,
        reason: EndReason,
        *,
        error: str | None = None,
        may_retry: bool = False,
    ) -> None:
        ending = ExecutionEnding(
            status=status, ended_at=self._clock.now(), reason=reason, error=error, may_retry=may_retry
        )
        watched.ending = await self._settlement.begin(watched.id, ending, at=self._clock.now())
        if watched.ending is None:
            self._watched.pop(watched.id, None)

    async def look_at_hosts(self) -> HostLook:
        """Look whether every host lives.

        A host is dead when its lock is free at two looks and its journal said nothing in between. Nothing follows from
        one look.
        """
        alive, unbegun, lost = [], [], []
        looked_at = [one for one in self._watched.values() if one.ending is None and not one.is_being_settled]
        are_alive = await asyncio.to_thread(lambda: [_is_host_alive(one) for one in looked_at])
        for watched, is_alive in zip(looked_at, are_alive, strict=True):
            if is_alive is None:
                continue
            if is_alive:
                watched.found_dead_at = None
                alive.append(watched)
            elif watched.is_being_prepared:
                continue
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
            if watched.set_aside_until > time.monotonic() and watched.failures < _SETTLED_WITHOUT_JOURNAL_AFTER:
                return
            await self.read_journals([watched.id])
            if watched.id not in self._watched or watched.found_dead_at is None or watched.ending is not None:
                return
            left = await end_strays(watched.id, grace_s=_STRAYS_GRACE_S)
            watched.is_cleared = True
            await self.read_journals([watched.id])
            if watched.id not in self._watched or watched.ending is not None:
                return
            if left:
                complaint = f"could not stop pid {', '.join(str(pid) for pid in left)}; its host is gone"
                _log.warning("execution %s: %s", watched.id, complaint)
                await self._ingest.complain(watched.id, complaint, at=self._clock.now())
                return
            if await asyncio.to_thread(lambda: watched.folder.was_stopped):
                _log.warning("execution %s: stopped, and the full disk did not take how it had ended", watched.id)
                await self._end(watched, ExecutionStatus.CANCELLED, EndReason.STOPPED)
                return
            error = "lost: its host ended without a word (killed, or the machine went down)"
            if not await asyncio.to_thread(watched.folder.path.exists):
                error = "lost: its folder was removed while it ran"
            await self.fail(watched, error, reason=EndReason.LOST, may_retry=True)
        finally:
            watched.is_being_settled = False

    async def note_problem(self, execution_id: ExecutionId, problem: str) -> None:
        """Write what of an execution is not in the database, for its card and the doctor; the same is said once."""
        if self._problems.get(execution_id) != problem:
            _log.warning("execution %s: %s", execution_id, problem)
            problem = plain_line(redact(problem), max_characters=ERROR_MAX_CHARACTERS)
            await self._ingest.note_problem(execution_id, problem, at=self._clock.now())
            self._problems[execution_id] = problem

    async def forget(self, over: Mapping[ExecutionId, bool]) -> None:
        """Watch executions no more whose try is over, each with whether it was queued again."""
        for execution_id, is_queued_again in over.items():
            self._problems.pop(execution_id, None)
            watched = self._watched.pop(execution_id, None)
            if watched is not None and not is_queued_again:
                try:
                    await asyncio.to_thread(watched.folder.remove_environments)
                except OSError as error:
                    _log.warning("execution %s: its environment cannot be removed: %s", execution_id, error)


def _is_host_alive(watched: Watched) -> bool | None:
    """Return whether the host holds its lock; None when that cannot be told."""
    try:
        return is_locked(watched.folder.host_lock)
    except OSError as error:
        _log.warning("execution %s: its host's lock cannot be looked at: %s", watched.id, error)
        return None


def _read_batch(
    unread: deque[tuple[Watched, int]], danger_rules_file: Path, beside: Callable[[Watched], tuple[int, ...]]
) -> list[tuple[Watched, int, ExecutionProgress | Exception | None]]:
    """Take from the front what fits into one batch; return a stretch of each, None, or why there is none."""
    read: list[tuple[Watched, int, ExecutionProgress | Exception | None]] = []
    size = entries = 0
    while unread and size < _MAX_BATCH_BYTES and entries < _MAX_BATCH_ENTRIES:
        watched, times = unread.popleft()
        most = min(watched.max_entries, _MAX_BATCH_ENTRIES - entries)
        outcome = _read(watched, danger_rules_file, beside, max_entries=most)
        read.append((watched, times, outcome))
        if not isinstance(outcome, Exception | None):
            size += outcome.to_offset - outcome.from_offset
            entries += len(outcome.events)
    return read


def _read(
    watched: Watched, danger_rules_file: Path, beside: Callable[[Watched], tuple[int, ...]], *, max_entries: int
) -> ExecutionProgress | Exception | None:
    if not watched.is_readable:
        return None
    try:
        stretch = read_stretch(
            watched.folder.journal,
            execution_id=watched.id,
            offset=watched.journal_offset,
            mode=watched.claimed.execution.mode,
            max_entries=max_entries,
            # Its host writes that when nothing of the run lives; a program can write it at any time.
            may_end=lambda: watched.is_cleared or not find_strays(watched.id),
        )
        if stretch is None:
            return None
        watched.has_more = watched.folder.journal.stat().st_size > stretch.to_offset
        return _with_danger(stretch, danger_rules_file, lambda: beside(watched))
    except OSError as error:
        _log.warning("execution %s: its journal cannot be read: %s", watched.id, error)
        return None
    except Exception as error:  # noqa: BLE001 - what one agent says must not keep the words of another from being read
        return error


def _words_of(error: Exception) -> str:
    return plain_line(redact(str(error) or type(error).__name__), max_characters=ERROR_MAX_CHARACTERS)


def _with_danger(
    stretch: ExecutionProgress, danger_rules_file: Path, find_beside: Callable[[], tuple[int, ...]]
) -> ExecutionProgress:
    if not any(isinstance(told.news, AskNews) for told in stretch.news):
        return stretch
    rules, beside = danger_rules_in_force(danger_rules_file), find_beside()
    news = tuple(
        replace(told, news=with_danger(told.news, rules, beside=beside)) if isinstance(told.news, AskNews) else told
        for told in stretch.news
    )
    return replace(stretch, news=news)
