"""Live runs that get into each other's way: seen from their tool calls at once, and by paced looks at their folders."""

from __future__ import annotations

import asyncio
import itertools
import logging
import resource
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from agentmon.domain.changes import stored_path
from agentmon.domain.errors import AgentmonError
from agentmon.domain.events import TaskEventType
from agentmon.domain.ids import made_at_ms
from agentmon.domain.overlaps import MOST_PATHS, Overlap, OverlapKind, overlap_texts
from agentmon.store.overlaps import Told
from agentmon.threads import in_daemon_thread
from agentmon.worker.touched_paths import TouchedFolder, trace_of
from agentmon.workspaces.comparison import states
from agentmon.workspaces.merging import conflicting, states_in_common
from agentmon.workspaces.snapshots import SnapshotStore

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from agentmon.domain.clock import Clock
    from agentmon.domain.ids import ExecutionId
    from agentmon.paths import Paths
    from agentmon.store.overlaps import Call, CallChange, LivePlace, OverlapRepository
    from agentmon.worker.touched_paths import Discard, HeadMove, RunTrace
    from agentmon.workspaces.files import FileState

_log = logging.getLogger(__name__)

_LOOK_EVERY_S: Final = 1.0
_REST_PER_LOOK: Final = 8.0
"""Looks at folders take a ninth of a core at most, however many and however large these are."""
_MERGES_PER_LOOK: Final = 20
"""Pairs that are left wait for the next looks."""
_TOLD_WITHIN_MS: Final = 120_000
"""So much later than it began the record of an agent may tell of a call, in whose id is when it began."""
_LONGEST_REST_S: Final = 60.0
_QUIET_S: Final = 5.0
"""A folder in which nothing changes is looked at so often while nobody knows when its runs write."""
_AFTER_ERROR_S: Final = 30.0
_TO_THE_SECOND: Final = timedelta(seconds=1)

_Key = tuple["ExecutionId", "ExecutionId", OverlapKind]


@dataclass(slots=True)
class _Watched:
    folder: TouchedFolder
    next_at: float = 0.0
    rest_s: float = _LOOK_EVERY_S


class OverlapWatch:
    """Belongs to one worker.

    Args:
        overlaps: Where runs and calls are read, and overlaps are written down.
        paths: Where the snapshots are.
        clock: Dates what is written.
    """

    def __init__(self, *, overlaps: OverlapRepository, paths: Paths, clock: Clock) -> None:
        self._overlaps = overlaps
        self._paths = paths
        self._clock = clock
        self._began_at = clock.now()
        self._runs: dict[ExecutionId, RunTrace] = {}
        self._folders: dict[Path, _Watched] = {}
        self._noted: dict[_Key, Overlap] | None = None
        self._discards: list[Discard] = []
        self._moves: list[tuple[HeadMove, list[RunTrace]]] = []
        """What was found and is not written down yet."""
        self._newest_call = self._newest_change = ""
        self._read: dict[str, Call] = {}
        """Calls of the last look, which it may find again."""
        self._merges: dict[
            tuple[RunTrace, RunTrace],
            tuple[Mapping[str, tuple[FileState | None, FileState | None]], Collection[str]],
        ] = {}
        """By two runs in worktrees: what both changed, and which of that git cannot merge."""
        self._merges_left = 0
        """How many more pairs git is asked about in this look."""
        self._folders_from = 0.0
        """When folders are looked at again; what calls tell is taken up all the while."""

    async def rest(self) -> None:
        """Wait until the next look is due."""
        await asyncio.sleep(_LOOK_EVERY_S)

    async def look(self) -> None:
        """Find which live runs get into each other's way, and write down what is new of it.

        Raises:
            StoreError: The database cannot be read or written; the next look does it again.
        """
        places = await self._overlaps.live()
        if self._noted is None:
            self._noted = await self._overlaps.noted()
        if not places and not self._noted:
            self._runs, self._folders = {}, {}
            return
        known = self._runs.keys() & {place.execution_id for place in places}
        unread = [place.execution_id for place in places if place.execution_id not in known]
        changed = await self._overlaps.changed_by_calls(unread, known, after_id=self._newest_change)
        calls = await self._overlaps.calls(
            unread,
            known,
            after_id=_id_before(self._newest_call),
            unfinished=[call for execution_id in known for call in self._runs[execution_id].unfinished],
        )
        fresh = [call for call in calls if call.execution_id not in known or self._read.get(call.id) != call]
        found = await in_daemon_thread(partial(self._find, places, fresh, changed), name="overlaps")
        self._read = {call.id: call for call in calls}
        self._newest_change = max([self._newest_change, *(change.id for change in changed)])
        self._newest_call = max([self._newest_call, *(call.id for call in calls)])
        if found != self._noted:
            told = list(self._told(found))
            await self._overlaps.write(list(found.values()), told, at=self._clock.now())
            self._noted = found
        self._discards, self._moves = [], []

    def _find(
        self, places: Sequence[LivePlace], calls: Sequence[Call], changed: Sequence[CallChange]
    ) -> dict[_Key, Overlap]:
        self._follow(places, calls)
        for change in changed:
            if change.execution_id in self._runs:
                self._runs[change.execution_id].take_change(change.path)
        spent_before, began_at = _cpu_s(), time.monotonic()
        is_due = began_at >= self._folders_from
        self._merges_left = _MERGES_PER_LOOK if is_due else 0
        if is_due:
            self._look_at_folders()
        for root, runs in self._by_root().items():
            moves, discards = self._folders[root].folder.settle(runs)
            self._moves += [(move, runs) for move in moves]
            self._discards += discards
        found = dict(self._now())
        if is_due:
            # Programs that others have started end meanwhile, too, with all that they took in their lives.
            cost_s = min(_cpu_s() - spent_before, time.monotonic() - began_at)
            self._folders_from = time.monotonic() + min(_REST_PER_LOOK * cost_s, _LONGEST_REST_S)
        return found

    def _look_at_folders(self) -> None:
        store = SnapshotStore(self._paths.snapshots_dir, left_out=(self._paths.data_dir,))
        for root, runs in self._by_root().items():
            watched = self._folders[root]
            if not self._is_due(watched, runs):
                continue
            try:
                is_new = watched.folder.look(store, runs)
            except (AgentmonError, OSError) as error:
                # Gone, or on a disk that is full: what calls tell is known all the same.
                _log.info("the folder %s cannot be looked at for overlaps: %s", root, error)
                watched.next_at = time.monotonic() + _AFTER_ERROR_S
                continue
            watched.rest_s = _LOOK_EVERY_S if is_new else min(2 * watched.rest_s, _QUIET_S)
            watched.next_at = time.monotonic() + watched.rest_s

    def _follow(self, places: Sequence[LivePlace], calls: Sequence[Call]) -> None:
        """Take note of what runs now, and what it has called."""
        live = {place.execution_id: place for place in places}
        self._runs = {execution_id: trace for execution_id, trace in self._runs.items() if execution_id in live}
        for execution_id, place in live.items():
            present = self._runs.get(execution_id)
            if present is None or present.place.folder != place.folder:
                try:
                    self._runs[execution_id] = trace_of(place)
                except (AgentmonError, OSError):
                    # It is being made, or gone; the next look finds out.
                    self._runs.pop(execution_id, None)
            elif present.before is None and present.place != place:
                present.place, present.has_news = place, True
        for execution_id, own in itertools.groupby(
            sorted(calls, key=lambda call: call.execution_id), key=lambda call: call.execution_id
        ):
            if execution_id in self._runs:
                self._runs[execution_id].take_in(own)
        roots = {trace.root for trace in self._runs.values()}
        self._folders = {root: watched for root, watched in self._folders.items() if root in roots}
        for root in roots - self._folders.keys():
            self._folders[root] = _Watched(TouchedFolder(root, since=self._began_at))

    def _by_root(self) -> dict[Path, list[RunTrace]]:
        by_root: dict[Path, list[RunTrace]] = {}
        for trace in self._runs.values():
            by_root.setdefault(trace.root, []).append(trace)
        return by_root

    def _is_due(self, watched: _Watched, runs: Sequence[RunTrace]) -> bool:
        """Return whether a folder is to be looked at: something may have changed there that concerns two runs."""
        if time.monotonic() < watched.next_at:
            return False
        is_shared = any(self._are_near(runs[0], other) for other in self._runs.values() if other is not runs[0])
        # What is in a worktree is wanted in any case: it may vanish.
        if not is_shared and not runs[0].place.is_isolated:
            return False
        return any(run.has_news or run.unfinished or run.is_opaque for run in runs)

    def _are_near(self, one: RunTrace, other: RunTrace) -> bool:
        return (
            one.root.is_relative_to(other.root)
            or other.root.is_relative_to(one.root)
            or (self._common_dir(one) is not None and self._common_dir(one) == self._common_dir(other))
        )

    def _common_dir(self, run: RunTrace) -> Path | None:
        repository = self._folders[run.root].folder.repository
        return None if repository is None else repository.common_dir

    def _now(self) -> Iterator[tuple[_Key, Overlap]]:
        """Yield all overlaps of live runs; those that were noted and are over stay without paths."""
        for key, noted in (self._noted or {}).items():
            if key[0] in self._runs and key[1] in self._runs:
                is_lasting = noted.kind in {OverlapKind.DISCARDED, OverlapKind.CHECKOUT}
                yield key, noted if is_lasting else noted._replace(paths=(), path_count=0)
        for one, other in itertools.combinations(self._runs.values(), 2):
            kind, paths = self._common_paths(one, other)
            if paths:
                yield from _both(one, other, kind, paths)
        self._merges = {pair: merge for pair, merge in self._merges.items() if all(map(self._is_live, pair))}
        for move, runs in self._moves:
            for one, other in itertools.permutations([run for run in runs if self._is_live(run)], 2):
                are_there = max(one.place.started_at, other.place.started_at) <= move.at + _TO_THE_SECOND
                if are_there and move.by in {None, one, other}:
                    is_own_doing = None if move.by is None else move.by is one
                    yield _entry(one, other, OverlapKind.CHECKOUT, (), is_own_doing=is_own_doing, detail=move.detail)
        for discard in self._discards:
            if not (self._is_live(discard.of) and self._is_live(discard.by)):
                continue
            paths = discard.paths
            yield _entry(discard.of, discard.by, OverlapKind.DISCARDED, paths, is_own_doing=False)
            yield _entry(discard.by, discard.of, OverlapKind.DISCARDED, paths, is_own_doing=True)

    def _is_live(self, run: RunTrace) -> bool:
        return self._runs.get(run.place.execution_id) is run

    def _common_paths(self, one: RunTrace, other: RunTrace) -> tuple[OverlapKind, Collection[str]]:
        """Return which paths two runs both touch, and in what way."""
        if one.root == other.root:
            return OverlapKind.FOLDER, one.touched & other.touched
        if self._common_dir(one) is not None and self._common_dir(one) == self._common_dir(other):
            group = one.place.alternatives_id
            if group is not None and group == other.place.alternatives_id:
                return OverlapKind.WORKTREES, ()
            both = one.touched & other.touched
            changed = both & one.changed.keys() & other.changed.keys()
            # What both have made the same is no news to either.
            apart = {path for path in changed if one.changed[path] != other.changed[path]}
            conflicts = self._conflicts(one, other, apart)
            merging = (both - changed) | apart
            return (OverlapKind.WORKTREES, conflicts) if conflicts else (OverlapKind.FOLDER, merging)
        return OverlapKind.FOLDER, _absolute(one) & _absolute(other) if self._are_near(one, other) else ()

    def _conflicts(self, one: RunTrace, other: RunTrace, paths: Collection[str]) -> Collection[str]:
        """Return which paths of two worktrees git cannot merge, as far as it was asked since they were changed."""
        states = {path: (one.changed[path], other.changed[path]) for path in paths}
        asked, found = self._merges.get((one, other), ({}, ()))
        if states and asked != states and self._merges_left > 0:
            self._merges_left -= 1
            asked, found = self._merges[one, other] = self._ask_for_conflicts(one, other, states)
        return states.keys() & found

    def _ask_for_conflicts(
        self, one: RunTrace, other: RunTrace, changed: Mapping[str, tuple[FileState | None, FileState | None]]
    ) -> tuple[Mapping[str, tuple[FileState | None, FileState | None]], Collection[str]]:
        store = SnapshotStore(self._paths.snapshots_dir, left_out=(self._paths.data_dir,))
        before = [run.before for run in (one, other) if run.before is not None]
        try:
            with store.reading():
                # What was there before both, else what their histories say.
                begins = [states(store, snapshot, changed.keys()) for snapshot in before]
                base = {
                    path: begins[0].get(path) for path in changed if len({begin.get(path) for begin in begins}) == 1
                }
                if left := changed.keys() - base.keys():
                    base |= states_in_common(one.root, other.root, left)
                sides = {path: (base.get(path), *pair) for path, pair in changed.items()}
                return changed, conflicting(store.git(*before), sides)
        except (AgentmonError, OSError) as error:
            # What nobody can tell may conflict; the next look asks again.
            _log.info("nobody knows whether %s and %s can be merged: %s", one.root, other.root, error)
            return {}, set(changed)

    def _told(self, overlaps: Mapping[_Key, Overlap]) -> Iterator[Told]:
        """Yield what is new of it, for the audit trail: of each pair once, and what was discarded each time."""
        pairs = {(frozenset(key[:2]), key[2] is OverlapKind.WORKTREES) for key in self._noted or {}}
        for (execution_id, other_id, kind), overlap in overlaps.items():
            one, other = self._runs[execution_id], self._runs[other_id]
            is_later = (one.place.started_at, execution_id) > (other.place.started_at, other_id)
            is_named = is_later if overlap.is_own_doing is None else not overlap.is_own_doing
            # That a conflict is ahead is news also of two that are known to edit one file.
            pair = frozenset((execution_id, other_id)), kind is OverlapKind.WORKTREES
            if kind is OverlapKind.DISCARDED or pair in pairs or not is_named:
                continue
            pairs.add(pair)
            payload = {
                "execution_id": execution_id,
                "other_execution_id": other_id,
                "other": other.place.number,
                "kind": kind.value,
                "paths": list(overlap.paths),
                "text": overlap_texts([overlap])[0],
            }
            yield Told(one.place.task_id, TaskEventType.RUNS_OVERLAP, payload)
        for discard in self._discards:
            before, after = discard.snapshots
            overlap = _entry(discard.of, discard.by, OverlapKind.DISCARDED, discard.paths, is_own_doing=False)[1]
            payload = {
                "execution_id": discard.of.place.execution_id,
                "other_execution_id": discard.by.place.execution_id,
                "other": discard.by.place.number,
                "files": len(discard.paths),
                "only": list(discard.paths),
                "before_snapshot": before.id,
                "after_snapshot": after.id,
                "text": overlap_texts([overlap])[0],
            }
            yield Told(discard.of.place.task_id, TaskEventType.EDITS_DISCARDED, payload)


def _id_before(call_id: str) -> str:
    """Return where to begin to read so that calls which became known late are read, too."""
    digits = f"{max(0, made_at_ms(call_id) - _TOLD_WITHIN_MS):012x}"
    return f"{digits[:8]}-{digits[8:]}"


def _both(one: RunTrace, other: RunTrace, kind: OverlapKind, paths: Iterable[str]) -> Iterator[tuple[_Key, Overlap]]:
    listed = sorted(paths)
    yield _entry(one, other, kind, listed)
    yield _entry(other, one, kind, listed)


def _entry(
    one: RunTrace,
    other: RunTrace,
    kind: OverlapKind,
    paths: Sequence[str],
    *,
    is_own_doing: bool | None = None,
    detail: str = "",
) -> tuple[_Key, Overlap]:
    execution_id, other_id = one.place.execution_id, other.place.execution_id
    overlap = Overlap(
        execution_id=execution_id,
        other_id=other_id,
        other_number=other.place.number,
        kind=kind,
        paths=tuple(map(stored_path, paths[:MOST_PATHS])),
        path_count=len(paths),
        is_own_doing=is_own_doing,
        detail=stored_path(detail),
    )
    return (execution_id, other_id, kind), overlap


def _cpu_s() -> float:
    """Return what this thread and the programs that the process has ended took of a core, in seconds."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.thread_time() + children.ru_utime + children.ru_stime


def _absolute(run: RunTrace) -> set[str]:
    return {str(run.root / path) for path in run.touched}
