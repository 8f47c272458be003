"""Which paths each live run touches in one folder: what its calls name, and what was found to differ there.

Nobody says which program wrote a file. It is the run's that named the path in a call at that time, else the only run
that could have written then; where several could, and none names the file, nobody is said to have.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.errors import NotFoundError
from agentmon.domain.operations import OperationStatus, OperationType
from agentmon.workspaces.comparison import sides
from agentmon.workspaces.repositories import find_repository, find_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from agentmon.store.overlaps import Call, LivePlace
    from agentmon.workspaces.files import FileState
    from agentmon.workspaces.repositories import Repository
    from agentmon.workspaces.snapshots import Snapshot, SnapshotStore

_BEGAN_BEFORE: Final = timedelta(seconds=0.25)
"""A call may be at work for so long before its agent's word of it is dated."""
_CLOCK_LAG: Final = timedelta(seconds=0.02)
"""The times of files lag behind the clock."""
_LATE: Final = timedelta(seconds=2)
_SECOND: Final = timedelta(seconds=1)
_CALLS_ARE_KNOWN_AFTER_S: Final = 1.5
_GIVEN_UP_AFTER_S: Final = 30.0
"""What nobody is found to have changed by then is nobody's."""
_UNDONE: Final = frozenset({OperationStatus.FAILED, OperationStatus.BLOCKED, OperationStatus.CANCELLED})
_HEAD_BYTES: Final = 65_536
# As git writes them; a stash says `reset: moving to HEAD`.
_HEAD_MOVED: Final = re.compile(rb"> (\d+) [+-]\d{4}\t(checkout|reset|rebase[^:]*): ([^\n]*)\n")
_FROM_TO: Final = re.compile(r"moving from (\S+) to (\S+)")


class HeadMove(NamedTuple):
    """Something that git says of the HEAD of a folder."""

    at: datetime
    """To the second."""
    detail: str
    """``main → fix``, or ``reset to HEAD``."""
    by: RunTrace | None


class Discard(NamedTuple):
    """One run took edits of another one back."""

    of: RunTrace
    by: RunTrace
    paths: tuple[str, ...]
    snapshots: tuple[Snapshot, Snapshot]
    """With these edits, and without."""


@dataclass(slots=True, eq=False)
class RunTrace:
    """What is known of one live run."""

    place: LivePlace
    root: Path
    """Of the folder that it works in, as snapshots have it."""
    before: Snapshot | None = None
    changed: Mapping[str, FileState | None] = field(default_factory=dict)
    """What differs now from before it began, whoever changed it, each as it is now."""
    mine: set[str] = field(default_factory=set)
    """What it was found to have changed."""
    calls: dict[str, Call] = field(default_factory=dict)
    """Those that had not ended at the last look, or are newer."""
    unfinished: set[str] = field(default_factory=set)
    named: dict[str, str] = field(default_factory=dict)
    """By path: the newest call that names it as what it writes."""
    settled: dict[str, str] = field(default_factory=dict)
    """By path that was changed and is as before again: the newest call that had named it by then."""
    has_news: bool = True
    """Whether it may have changed something since the last look."""
    has_calls: bool = False
    """Whether its calls are known, so that it changes nothing between them."""

    def take_in(self, calls: Iterable[Call]) -> None:
        """Take note of calls that are new, or have gone on."""
        for call in calls:
            self.has_news = self.has_calls = True
            self.calls[call.id] = call
            if call.finished_at is None and call.status is OperationStatus.PENDING:
                self.unfinished.add(call.id)
            else:
                self.unfinished.discard(call.id)
            if call.type is OperationType.WRITE:
                for path in self.paths_of(call):
                    if call.status not in _UNDONE:
                        self.named[path] = max(call.id, self.named.get(path, ""))
                    elif self.named.get(path) == call.id:
                        del self.named[path]

    def take_change(self, path: str) -> None:
        """Take note that a call was found to have changed a path."""
        self.mine.add(path)
        self.has_news = True

    def paths_of(self, call: Call) -> Iterable[str]:
        """Yield the paths that a call names as what it writes; blocks."""
        whole = self._path(call.target)
        parts = call.target.split(", ")
        if len(parts) > 1 and not os.path.lexists(self.root / whole):
            yield from filter(None, map(self._path, parts))
        elif whole:
            yield whole

    @property
    def touched(self) -> frozenset[str]:
        """The paths that it touches now, relative to the root; those outside of it are absolute."""
        named = {path for path, call_id in self.named.items() if self.settled.get(path, "") < call_id}
        return frozenset(named | (self.mine & self.changed.keys()))

    @property
    def is_opaque(self) -> bool:
        """Whether nobody knows when it writes."""
        return not (self.place.reports_calls or self.has_calls)

    def could_write(self, since: datetime, until: datetime) -> bool:
        """Return whether it may have written something in a stretch of time."""
        if self.is_opaque:
            return self.place.started_at <= until + _CLOCK_LAG
        return any(_is_within(call, since, until) for call in self.calls.values())

    def names(self, path: str, since: datetime, until: datetime) -> bool:
        """Return whether a call in that stretch of time names the path as what it writes."""
        call = self.calls.get(self.named.get(path, ""))
        return call is not None and _is_within(call, since, until)

    def names_after(self, path: str, moment: datetime) -> bool:
        """Return whether a call that began later names the path as what it writes."""
        call = self.calls.get(self.named.get(path, ""))
        return call is not None and call.started_at > moment + _SECOND

    def mentions(self, word: str, since: datetime, until: datetime) -> bool:
        """Return whether a command in that stretch of time has the word in it."""
        targets = [
            call.target for call in self.calls.values() if word in call.target and _is_within(call, since, until)
        ]
        found = rf"(?<![\w.-]){re.escape(word)}(?![\w-])"
        return any(re.search(found, target) for target in targets)

    def forget_calls(self, before: datetime) -> None:
        """Forget the calls that ended before."""
        self.calls = {
            call_id: call
            for call_id, call in self.calls.items()
            if call.finished_at is None or call.finished_at >= before
        }

    def _path(self, target: str) -> str:
        if not target or "\0" in target:
            return ""
        full = os.path.normpath(os.path.join(self.place.folder, target))  # noqa: PTH118 - no file is asked
        full = str(Path(os.path.realpath(os.path.dirname(full)), os.path.basename(full)))  # noqa: PTH119, PTH120 - as above
        relative = os.path.relpath(full, self.root)
        return "" if relative == "." else full if relative.startswith("..") else relative


@dataclass(slots=True)
class _News:
    """What one look found; who did it is known a little later, since what agents say takes its time."""

    found_at: float
    """Monotonic."""
    since: datetime
    paths: dict[str, tuple[datetime, datetime]]
    """What changed and is nobody's yet, each with the stretch of time in which it did."""
    edits: Mapping[RunTrace, set[str]] = field(default_factory=dict)
    """Which of that differed already, by the runs for which it did."""
    snapshots: tuple[Snapshot, Snapshot] | None = None
    moves: Sequence[tuple[datetime, str]] = ()
    """Of HEAD: when, and from where to where."""


class TouchedFolder:
    """One folder in which runs work, looked at again and again; everything blocks.

    Args:
        root: The folder, as snapshots have it.
        since: What was taken back before then is not found.
    """

    def __init__(self, root: Path, *, since: datetime) -> None:
        self.root = root
        self._since = since
        self.repository: Repository | None = find_repository(root)
        self._snapshot: Snapshot | None = None
        self._looked_at: datetime | None = None
        self._head_place = 0
        self._moves: list[HeadMove] = []
        """Of HEAD, as far as files may still be found that changed with them."""
        self._found_at = 0.0
        self._news: list[_News] = []

    def look(self, store: SnapshotStore, runs: Sequence[RunTrace]) -> bool:
        """Find what differs in the folder; return whether that is something else than at the last look.

        Raises:
            SnapshotError: It cannot be looked at.
        """
        began_at = datetime.now(UTC)
        self._found_at = time.monotonic()
        moves = self._head_moves(runs) if len(runs) > 1 else []
        # Looks after tool calls may have seen what is gone by now.
        are_new = [
            self._find(store, runs, snapshot, [], (snapshot.taken_at, snapshot.taken_at))
            for snapshot in self._seen(store, runs)
        ]
        snapshot = store.take(self.root)
        is_new = self._find(store, runs, snapshot, moves, (began_at, datetime.now(UTC))) or any(are_new)
        # Only now: what a look that failed was to find is found by the next one.
        for run in runs:
            run.has_news = False
        return is_new

    def _seen(self, store: SnapshotStore, runs: Sequence[RunTrace]) -> list[Snapshot]:
        """Return what others have taken since the last look, or since the runs began."""
        if self._snapshot is not None:
            return store.later(self._snapshot)
        begins = [before for run in runs if (before := _before(store, run.place)) is not None]
        if not begins:
            return []
        taken = store.later(min(begins, key=lambda before: before.taken_at))
        older = [snapshot for snapshot in taken if snapshot.taken_at < self._since]
        return taken[max(len(older) - 1, 0) :]

    def _find(
        self,
        store: SnapshotStore,
        runs: Sequence[RunTrace],
        snapshot: Snapshot,
        moves: Sequence[tuple[datetime, str]],
        span: tuple[datetime, datetime],
    ) -> bool:
        """Take in what a snapshot has that was taken in that time; return whether it is another one than the last."""
        before, (began_at, until) = self._snapshot, span
        is_new = before is None or snapshot.id != before.id
        delta = set(sides(store, before, snapshot, completes=False)) if before is not None and is_new else set()
        edits: dict[RunTrace, set[str]] = {}
        for run in runs:
            is_first = run.before is None
            if run.before is None:
                run.before = _before(store, run.place)
            if run.before is None or not (is_new or is_first):
                continue
            edits[run] = delta & run.changed.keys()
            run.changed = {path: after for path, (_, after) in sides(store, run.before, snapshot).items()}
            run.settled |= {path: run.named[path] for path in delta - run.changed.keys() if path in run.named}
            if run.place.is_isolated:
                # Nobody else works there, and what its branch has is what is merged in the end.
                run.mine = set(run.changed)
            elif is_first:
                begin = run.place.started_at
                self._news.append(_News(self._found_at, begin, self._dated(run.changed, begin, until)))
        if delta or moves:
            pair = None if before is None else (before, snapshot)
            since = self._looked_at or began_at
            dated = self._dated(delta, since, until)
            self._news.append(_News(self._found_at, since, dated, edits, pair, moves))
        self._snapshot, self._looked_at = snapshot, began_at
        return is_new

    def settle(self, runs: Sequence[RunTrace]) -> tuple[list[HeadMove], list[Discard]]:
        """Find who did what the looks have found, as far as that can be known by now."""
        discards: list[Discard] = []
        now = time.monotonic()
        due = [news for news in self._news if news.found_at <= now - _CALLS_ARE_KNOWN_AFTER_S]
        moves = [HeadMove(at, detail, _mover(at, runs)) for news in due for at, detail in news.moves]
        self._moves += moves
        for news in due:
            # Git's log of HEAD knows seconds, and may be read before or behind the files that changed with it.
            self._moves = [move for move in self._moves if move.at + _SECOND >= news.since - _LATE]
            doers = {path: _doers(path, *span, runs) for path, span in news.paths.items()}
            for path, found in doers.items():
                for run in found:
                    run.mine.add(path)
            for run in runs:
                if not run.place.is_isolated:
                    discards += self._discards(run, news, doers)
            news.moves, news.edits = (), {}
            news.paths = {path: span for path, span in news.paths.items() if not doers[path]}
            if not news.paths or news.found_at <= now - _GIVEN_UP_AFTER_S:
                self._news.remove(news)
        if self._looked_at is not None:
            oldest = min([self._looked_at, *(news.since for news in self._news)]) - 2 * _LATE
            for run in runs:
                run.forget_calls(oldest)
        return moves, discards

    def _discards(self, run: RunTrace, news: _News, doers: Mapping[str, Sequence[RunTrace]]) -> Iterator[Discard]:
        """Yield which of the paths that changed were a run's edits until then, by who took them back."""
        move = next((move for move in self._moves if move.by is not None and move.by is not run), None)
        is_own = any(move.by is run for move in self._moves)
        lost: dict[RunTrace, list[str]] = {}
        for path in news.edits.get(run, ()):
            found = doers[path]
            if path not in run.mine and path not in run.named:
                continue
            if move is not None and move.by is not None and not run.names_after(path, move.at):
                lost.setdefault(move.by, []).append(path)
            elif path not in run.changed and found and run not in found and not is_own:
                lost.setdefault(found[0], []).append(path)
        for by, paths in lost.items():
            run.mine.difference_update(paths)
            run.settled |= {path: run.named[path] for path in paths if path in run.named}
            if news.snapshots is not None:
                yield Discard(run, by, tuple(sorted(paths)), news.snapshots)

    def _dated(self, paths: Iterable[str], since: datetime, until: datetime) -> dict[str, tuple[datetime, datetime]]:
        """Return for each path the time at which it was changed, as narrow as its file tells."""
        dated = {}
        for path in paths:
            try:
                changed_at = datetime.fromtimestamp((self.root / path).lstat().st_ctime, UTC)
            except (OSError, OverflowError, ValueError):
                changed_at = None
            is_narrow = changed_at is not None and since - _CLOCK_LAG <= changed_at <= until
            dated[path] = (changed_at, changed_at) if changed_at is not None and is_narrow else (since, until)
        return dated

    def _head_size(self) -> int:
        try:
            return self._head_log().stat().st_size
        except OSError:
            return 0

    def _head_log(self) -> Path:
        return (self.repository.git_dir if self.repository else self.root) / "logs" / "HEAD"

    def _head_moves(self, runs: Sequence[RunTrace]) -> list[tuple[datetime, str]]:
        """Return what moved HEAD since the last look and while runs work here, but for commits."""
        began_at = min(run.place.started_at for run in runs)
        size, place = self._head_size(), self._head_place
        self._head_place = size
        if size <= place:
            return []
        with self._head_log().open("rb") as file:
            file.seek(max(place, size - _HEAD_BYTES))
            text = file.read(_HEAD_BYTES)
        found = []
        for seconds, kind, words in _HEAD_MOVED.findall(text):
            at = datetime.fromtimestamp(int(seconds), UTC)
            told = words.decode("utf-8", "replace")
            ends = _FROM_TO.search(told)
            if at + _SECOND < began_at or (ends is not None and ends[1] == ends[2]):
                continue
            found.append((at, f"{ends[1]} → {ends[2]}" if ends else f"{kind.decode()} {told.removeprefix('moving ')}"))
        return found


def _doers(path: str, since: datetime, until: datetime, runs: Sequence[RunTrace]) -> list[RunTrace]:
    """Return who changed a path in a stretch of time; on a busy machine what is said of calls comes late."""
    name = os.path.basename(path)  # noqa: PTH119 - no file is asked
    found = [run for run in runs if run.names(path, since, until) or run.mentions(name, since, until)]
    for sooner, later in ((timedelta(), _BEGAN_BEFORE), (_LATE, _LATE)):
        found = found or _doers_within(path, name, since - sooner, until + later, runs)
    return found


def _doers_within(path: str, name: str, since: datetime, until: datetime, runs: Sequence[RunTrace]) -> list[RunTrace]:
    found = [run for run in runs if run.names(path, since, until)]
    able = found or [run for run in runs if run.could_write(since, until)]
    return able if found or len(able) <= 1 else [run for run in able if run.mentions(name, since, until)]


def _mover(at: datetime, runs: Sequence[RunTrace]) -> RunTrace | None:
    """Return who moved HEAD in a second; None where nobody knows."""
    able = [run for run in runs if run.mentions("git", at, at + _SECOND)]
    able = able or [run for run in runs if run.could_write(at, at + _SECOND)]
    return able[0] if len(able) == 1 else None


def trace_of(place: LivePlace) -> RunTrace:
    """Return what is known of a run at first; blocks.

    Raises:
        SnapshotError: Its folder is not there.
    """
    return RunTrace(place, find_root(Path(place.folder)))


def _before(store: SnapshotStore, place: LivePlace) -> Snapshot | None:
    if place.before_snapshot is None:
        return None
    try:
        return store.get(place.before_snapshot)
    except NotFoundError:
        return None


def _is_within(call: Call, since: datetime, until: datetime) -> bool:
    if call.is_asked:
        return False
    return call.started_at - _CLOCK_LAG <= until and (
        call.finished_at is None or call.finished_at + _CLOCK_LAG >= since
    )
