"""What single tool calls change: their folder is looked at as they start and finish, beside the run.

An agent waits for no look, so that one may come late. When calls follow each other faster than their folder can be
read, ``workspaces.attribution`` tells them apart as far as that can be done, and the rest is on the run alone.

The calls of an agent in its own screen are told by its record, when they may long be over. So its folder is looked at
while it works, what differs waits for the record, and a call that waits for an answer is seen on the screen.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.agents import ToolType
from agentmon.domain.conversation import AskClosedNews, AskNews, DiffNews, ToolFinishedNews, ToolStartedNews
from agentmon.domain.errors import AgentmonError, StoreError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.operations import OperationType
from agentmon.store.history_ids import history_ref
from agentmon.threads import in_daemon_thread
from agentmon.worker.preparation import working_dir_of
from agentmon.workspaces.attribution import Call, attribute, changes_between
from agentmon.workspaces.comparison import compare_sides

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentmon.domain.changes import FileChange
    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ClaimedExecution, TimedNews
    from agentmon.domain.history import HistoryOperation
    from agentmon.domain.ids import ExecutionId
    from agentmon.runners.screens.states import ScreenState
    from agentmon.store.changes import ChangeRepository, RecordedCall
    from agentmon.worker.watching import Watch, Watched
    from agentmon.workspaces.attribution import Change
    from agentmon.workspaces.snapshots import Snapshot, SnapshotStore

_log = logging.getLogger(__name__)

_LOOKS_AT_ONCE: Final = 4
"""Of different folders."""
_LONG_LOOK_S: Final = 0.5
"""After a longer one its folder rests for as long."""
_NEWS_MAY_TAKE_S: Final = 1.0
"""For so long a change waits for the word of the call that made it."""
_LATE_S: Final = 0.25
_LAST_LOOK_S: Final = 10.0
_MOST_CALLS: Final = 1_000
_RECORD_TAKES_S: Final = 3.0
"""By then the record of an own screen tells of whatever was at work."""
_READ_LATELY: Final = timedelta(seconds=60)
_FOLLOWED_EVERY_S: Final = 1.0
_LOOK_EVERY_S: Final = 5.0
"""At the folder of an own screen that works or asks."""
_QUIET_AFTER_S: Final = 120.0
"""After so long without a word of it, nobody looks at its folder."""
_FREE_AFTER_S: Final = 30.0
"""For so long its record may tell of what an agent did that is free now."""
_STILL_SHOWN_S: Final = 0.5
"""For so long a dialog may be on the screen that was answered."""
_MOST_PAUSES: Final = 200
_MOST_TOLD: Final = 200
_ENDED_LATELY_S: Final = 10.0
_LOOKED_FOR_RECORD_EVERY_S: Final = 0.5
_STARTS_SUBAGENT: Final = frozenset({"Task", "Agent"})
"""What a subagent changes is told by its own calls."""
_NOT_LOOKED: Final = "its folder could not be looked at in time"


@dataclass(slots=True)
class _Folder:
    """A folder in which runs call tools."""

    root: Path
    last: Snapshot | None
    since: float
    """When the last look began, in seconds since 1970."""
    runs: set[ExecutionId] = field(default_factory=set)
    calls: dict[tuple[ExecutionId, str], Call] = field(default_factory=dict)
    """By run, and by try and the agent's own name of the call."""
    written: set[tuple[ExecutionId, str]] = field(default_factory=set)
    """Calls that are written down: what was read of them before that tells nothing new."""
    to_keep: dict[str, float | None] = field(default_factory=dict)
    """Paths that a call names: since when they may have been written; None where a call reads."""
    kept: set[str] = field(default_factory=set)
    waiting: list[dict[str, Change]] = field(default_factory=list)
    """Changes of which no call is known yet, by the look that found them."""
    seen_since: float = 0.0
    """From when on nothing was missed, in seconds since 1970."""
    is_ending: bool = False
    """Whether what waits is settled at once, since nothing more is told of it."""
    is_due: bool = False
    look: asyncio.Task[None] | None = None


@dataclass(slots=True, eq=False)
class _OwnScreen:
    """What the screen of a run tells; times are in seconds since 1970."""

    heard_at: float
    """When it last said something new."""
    is_asking: bool = False
    is_free: bool = False
    pauses: tuple[tuple[float, float], ...] = ()
    """When it waited for answers, or for the next prompt."""

    def take(self, state: ScreenState | None, at: float) -> bool:
        """Take note of what it shows, None where that is not known; return whether it is new."""
        if state is None or (state.is_asking, state.is_free) == (self.is_asking, self.is_free):
            return False
        is_waiting = state.is_asking or state.is_free
        if self.is_asking or self.is_free:
            *ended, (begin, _) = self.pauses
            self.pauses = (*ended, (begin, at if is_waiting else max(begin, at - _STILL_SHOWN_S)))
        if is_waiting:
            self.pauses = (*self.pauses[1 - _MOST_PAUSES :], (at, float("inf")))
        self.is_asking, self.is_free, self.heard_at = state.is_asking, state.is_free, at
        return True

    def may_tell(self, at: float) -> bool:
        """Return whether its record may tell something new."""
        return not self.is_free or at - self.heard_at < _FREE_AFTER_S

    def may_write(self, at: float) -> bool:
        """Return whether something may change."""
        return not self.is_free and at - self.heard_at < _QUIET_AFTER_S


class _Place(NamedTuple):
    """Where a run works."""

    folder: _Folder
    working_dir: str
    inner: str
    """The same without links, relative to the root of the folder."""
    screen: _OwnScreen | None = None
    """None of a run in a protocol."""

    @property
    def root_as_named(self) -> Path:
        """The root of the folder on the way that the run takes, which may go through links."""
        return Path(self.working_dir.removesuffix(f"/{self.inner}"))

    def path(self, name: str) -> str | None:
        """Return the path of a file in the folder; None for one outside of it."""
        real = os.path.join(self.folder.root, self.inner)  # noqa: PTH118 - no file is asked
        for base in (self.working_dir, real):
            below = os.path.relpath(os.path.normpath(os.path.join(base, name)), base)  # noqa: PTH118 - as above
            path = os.path.normpath(os.path.join(self.inner, below))  # noqa: PTH118 - as above
            if not path.startswith("..") and path != ".":
                return path
        return None

    def paths(self, target: str) -> set[str]:
        """Return what the target of a call names: one file, or several with commas between them."""
        found = {self.path(name) for name in {target, *target.split(", ")} if name}
        return {path for path in found if path is not None}


class CallRecorder:
    """Looks at the folders of this worker's runs while they call tools.

    Args:
        changes: Where it is written down.
        store: Makes the store of snapshots; called in threads.
        clock: Dates what is written.
        watch: Tells ``note`` what runs say; None for nothing.
    """

    def __init__(
        self,
        *,
        changes: ChangeRepository,
        store: Callable[[], SnapshotStore],
        clock: Clock,
        watch: Watch | None,
    ) -> None:
        self._changes = changes
        self._store = store
        self._clock = clock
        self._watch = watch
        if watch is not None:
            watch.on_news = self.note
        self._folders: dict[Path, _Folder] = {}
        self._places: dict[ExecutionId, _Place] = {}
        self._asked: dict[tuple[ExecutionId, str], tuple[ExecutionId, str]] = {}
        """By run and request: the call that waits for it."""
        self._looking = asyncio.Semaphore(_LOOKS_AT_ONCE)
        self._resuming: asyncio.Task[None] | None = None
        self._unknown: set[ExecutionId] = set()
        """Runs of whose folders nothing is known to compare with."""
        self._told: OrderedDict[str, Sequence[tuple[str, str]]] = OrderedDict()
        """By the names of calls: what the records of agents say that they changed."""

    def begin(
        self, execution_id: ExecutionId, snapshot: Snapshot, working_dir: str, *, is_own_screen: bool = False
    ) -> None:
        """Follow a run from what its folder holds."""
        now = time.time()
        folder = self._folders.get(snapshot.root)
        if folder is None:
            folder = self._folders[snapshot.root] = _Folder(snapshot.root, snapshot, now)
        folder.runs.add(execution_id)
        inner = os.path.relpath(os.path.realpath(working_dir), folder.root)
        screen = _OwnScreen(now) if is_own_screen else None
        self._places[execution_id] = _Place(folder, working_dir, inner, screen)

    def note(self, watched: Watched, news: Sequence[TimedNews]) -> None:
        """Take note of what a run said; looks follow by themselves."""
        place, execution = self._places.get(watched.id), watched.claimed.execution
        if place is not None:
            for told in news:
                self._take(place, watched.id, execution.attempt, told)
            self._look_when_due(place.folder)
        elif (
            execution.before_snapshot is not None
            and execution.mode.is_protocol
            and watched.ending is None
            and watched.id not in self._unknown
        ):
            self._resuming = self._resuming or asyncio.create_task(self._resume(watched), name="calls")

    async def _resume(self, watched: Watched) -> None:
        """Follow a later try, or a run that another worker began: what it called until now is not told apart."""
        try:
            before_id = str(watched.claimed.execution.before_snapshot)
            snapshot = await in_daemon_thread(lambda: self._store().get(before_id), name="snapshot")
            if watched.ending is not None:
                return
            is_own_screen = not watched.claimed.execution.mode.is_protocol
            self.begin(watched.id, snapshot, working_dir_of(watched.claimed), is_own_screen=is_own_screen)
            folder = self._places[watched.id].folder
            folder.last, folder.seen_since, folder.is_due = None, float("inf"), True
            self._look_when_due(folder)
        except (AgentmonError, OSError) as error:
            self._unknown.add(watched.id)
            _log.warning("execution %s: its tool calls are not looked at: %s", watched.id, error)
        finally:
            self._resuming = None

    async def finish(self, execution_id: ExecutionId) -> None:
        """Write down what is known of the calls of a run that is over, and forget it.

        Raises:
            StoreError: It could not be written down.
        """
        self._unknown.discard(execution_id)
        place = self._places.get(execution_id)
        if place is None:
            return
        folder = place.folder
        try:
            folder.is_due |= place.screen is not None or any(run == execution_id for run, _ in folder.calls)
            self._look_when_due(folder)
            if folder.look is not None:
                await asyncio.wait([folder.look], timeout=_LAST_LOOK_S)
            if place.screen is not None:
                await self._take_last_words(execution_id, place)
            for key in [key for key in folder.calls if key[0] == execution_id]:
                await self._write(folder, key)
        finally:
            self._forget(execution_id, folder)

    def _forget(self, execution_id: ExecutionId, folder: _Folder) -> None:
        self._places.pop(execution_id, None)
        self._asked = {key: call for key, call in self._asked.items() if key[0] != execution_id}
        folder.calls = {key: call for key, call in folder.calls.items() if key[0] != execution_id}
        folder.written = {key for key in folder.written if key[0] != execution_id}
        folder.runs.discard(execution_id)
        if not folder.runs:
            self._folders.pop(folder.root, None)

    def _look_when_due(self, folder: _Folder) -> None:
        if folder.is_due and folder.look is None:
            folder.look = asyncio.create_task(self._look_while_due(folder), name=f"look at {folder.root}")

    # Own screens

    def note_state(self, execution_id: ExecutionId, state: ScreenState | None) -> None:
        """Take note of what the own screen of a run shows; None when nobody knows."""
        place = self._places.get(execution_id)
        if place is not None and place.screen is not None and place.screen.take(state, time.time()):
            # What a person did until now is not the work of what comes.
            place.folder.is_due = True
            self._look_when_due(place.folder)

    def note_told(self, agent_slug: str, operations: Sequence[HistoryOperation]) -> None:
        """Take note of how an agent's record says that its calls changed files; may be called by any thread."""
        has_screen = any(place.screen is not None for place in tuple(self._places.values()))
        for operation in operations if has_screen else ():
            if operation.differences:
                self._told[history_ref(agent_slug, operation.ref)] = operation.differences
        while len(self._told) > _MOST_TOLD:
            self._told.popitem(last=False)

    async def follow(self) -> None:
        """Take up what the records of own screens tell by now, and look at their folders when that is due.

        Raises:
            StoreError: The calls cannot be read; the next turn does it again.
        """
        await self._take_up()
        now = time.time()
        screens = {run: place for run, place in self._places.items() if place.screen is not None}
        await self._take_recorded(
            [run for run, place in screens.items() if place.screen and place.screen.may_tell(now)]
        )
        for place in screens.values():
            folder, screen = place.folder, place.screen
            is_settling = any(call.ended_at is not None and call.is_told_late for call in folder.calls.values())
            may_write = screen is not None and screen.may_write(now) and now - folder.since >= _LOOK_EVERY_S
            folder.is_due = folder.is_due or is_settling or may_write
            self._look_when_due(folder)

    async def rest(self) -> None:
        """Wait until the next turn is due."""
        await asyncio.sleep(_FOLLOWED_EVERY_S)

    async def _take_up(self) -> None:
        """Follow own screens that another worker began, or that are tried again."""
        watching = self._watch.ids - self._places.keys() - self._unknown if self._watch is not None else ()
        for execution_id in watching:
            watched = self._watch.find(execution_id) if self._watch is not None else None
            if watched is None or watched.ending is not None or self._resuming is not None:
                continue
            execution = watched.claimed.execution
            is_own_screen = may_tell_calls(watched.claimed) and not execution.mode.is_protocol
            if is_own_screen and execution.before_snapshot is not None:
                self._resuming = asyncio.create_task(self._resume(watched), name="calls")
                await self._resuming

    async def _take_recorded(self, execution_ids: Sequence[ExecutionId]) -> None:
        if not execution_ids:
            return
        reads_since = self._clock.now() - _READ_LATELY
        for call in await self._changes.unsettled_calls(execution_ids, reads_since=reads_since):
            place = self._places.get(call.execution_id)
            if place is not None:
                self._take_call(place, call)

    def _take_call(self, place: _Place, recorded: RecordedCall) -> None:
        folder, key, at = place.folder, (recorded.execution_id, recorded.operation_ref), recorded.started_at.timestamp()
        if key in folder.written:
            return
        if key not in folder.calls:
            news = ToolStartedNews(
                tool_ref=recorded.operation_ref,
                tool_name=recorded.tool_name,
                type=recorded.type,
                target=recorded.target,
            )
            self._take_start(place, key, news, at)
        call = folder.calls.get(key)
        if call is None or place.screen is None:
            return
        call.is_told_late = True
        for name, hunks in self._told.pop(recorded.operation_ref, ()):
            self._take_difference(place, key, name, hunks)
        if recorded.finished_at is not None and call.ended_at is None:
            call.ended_at, folder.is_due = recorded.finished_at.timestamp(), True
            place.screen.heard_at = max(place.screen.heard_at, call.ended_at)

    async def _take_last_words(self, execution_id: ExecutionId, place: _Place) -> None:
        """Wait for the record where something was changed lately of which it does not tell yet."""
        folder, ended_at = place.folder, time.time()
        folder.is_ending = True
        try:
            while True:
                await self._take_recorded([execution_id])
                folder.is_due = True
                self._look_when_due(folder)
                if folder.look is not None:
                    await asyncio.wait([folder.look], timeout=_LAST_LOOK_S)
                is_open = any(key[0] == execution_id and call.ended_at is None for key, call in folder.calls.items())
                lately = ended_at - _ENDED_LATELY_S
                is_untold = any(change.at >= lately for changes in folder.waiting for change in changes.values())
                if not (is_open or is_untold) or time.time() - ended_at >= _RECORD_TAKES_S:
                    return
                await asyncio.sleep(_LOOKED_FOR_RECORD_EVERY_S)
        finally:
            folder.is_ending = False

    # What calls say

    def _take(self, place: _Place, execution_id: ExecutionId, attempt: int, told: TimedNews) -> None:
        at, news, folder = told.at_ms / 1000, told.news, place.folder
        match news:
            case ToolStartedNews():
                self._take_start(place, (execution_id, f"{attempt}:{news.tool_ref}"), news, at)
            case AskNews(tool_ref=str() as ref):
                self._asked[execution_id, news.request_id] = execution_id, f"{attempt}:{ref}"
            case AskClosedNews():
                asked = self._asked.pop((execution_id, news.request_id), None)
                call = None if asked is None else folder.calls.get(asked)
                if call is not None and call.ended_at is None:
                    # It has waited until now: what was changed meanwhile is not its work.
                    call.began_at, folder.is_due = at, True
            case DiffNews(tool_ref=str() as ref):
                self._take_difference(place, (execution_id, f"{attempt}:{ref}"), news.path, news.diff)
            case ToolFinishedNews():
                call = folder.calls.get((execution_id, f"{attempt}:{news.tool_ref}"))
                if call is not None and call.ended_at is None:
                    call.ended_at, folder.is_due = at, True

    def _take_start(self, place: _Place, key: tuple[ExecutionId, str], news: ToolStartedNews, at: float) -> None:
        folder = place.folder
        if news.type is OperationType.READ:
            # Who reads a file may write it next.
            named = place.paths(news.target) - folder.kept - folder.to_keep.keys()
            # What a record tells late may be written by now.
            folder.to_keep |= dict.fromkeys(named, None if place.screen is None else at - _LATE_S)
            folder.is_due = folder.is_due or bool(named)
        if news.type not in {OperationType.WRITE, OperationType.EXECUTE} or news.tool_name in _STARTS_SUBAGENT:
            return
        call = folder.calls.get(key)
        if call is None:
            if len(folder.calls) == _MOST_CALLS:
                return
            call = folder.calls[key] = Call(paths=None, began_at=at)
        if news.type is OperationType.WRITE:
            call.paths = (call.paths or set()) | place.paths(news.target)
            folder.to_keep |= dict.fromkeys(call.paths - folder.kept, call.began_at - _LATE_S)
        folder.is_due = True

    def _take_difference(self, place: _Place, key: tuple[ExecutionId, str], name: str, hunks: str) -> None:
        call, path = place.folder.calls.get(key), place.path(name)
        if call is None or path is None:
            return
        if call.paths is not None:
            call.paths.add(path)
        call.told.setdefault(path, []).append(hunks)

    # Looking

    async def _look_while_due(self, folder: _Folder) -> None:
        try:
            while folder.is_due:
                folder.is_due = False
                began_at = time.time()
                async with self._looking:
                    await self._look(folder)
                took_s = time.time() - began_at
                if took_s > _LONG_LOOK_S and folder.is_due:
                    await asyncio.sleep(took_s)
        finally:
            folder.look = None

    async def _look(self, folder: _Folder) -> None:
        began_at = time.time()
        to_keep, folder.to_keep = folder.to_keep, {}
        folder.kept |= to_keep.keys()
        try:
            snapshot, changes = await in_daemon_thread(partial(self._read, folder, to_keep), name="look")
            # Whatever was announced before the look ended is known from here on.
            if self._watch is not None:
                with contextlib.suppress(StoreError):
                    await self._watch.read_journals(frozenset(folder.runs))
            folder.waiting += [changes] if changes else []
            if folder.waiting:
                for (run, _), call in folder.calls.items():
                    screen = self._places[run].screen if run in self._places else None
                    call.pauses = () if screen is None else screen.pauses
                calls, is_beside = list(folder.calls.values()), self._has_unheard(folder)
                await in_daemon_thread(partial(self._attribute, folder, calls, is_beside=is_beside), name="look")
        except Exception as error:  # noqa: BLE001 - whatever agents write, the other runs of the folder go on
            _log.warning("%s cannot be looked at for its tool calls: %s", folder.root, error)
            folder.last, folder.seen_since, folder.waiting = None, float("inf"), []
        else:
            folder.seen_since = began_at if folder.last is None else folder.seen_since
            folder.last = snapshot
        folder.since = began_at
        until = began_at - self._told_within_s(folder)
        ended = [key for key, call in folder.calls.items() if call.ended_at is not None and call.ended_at <= until]
        for key in ended:
            # What cannot be written now is written with the next look, or at the end.
            with contextlib.suppress(AgentmonError, OSError):
                await self._write(folder, key)

    def _read(self, folder: _Folder, to_keep: dict[str, float | None]) -> tuple[Snapshot, dict[str, Change]]:
        store = self._store()
        for since in sorted(set(to_keep.values()), key=lambda one: one or 0.0):
            store.keep(folder.root, [path for path, at in to_keep.items() if at == since], since=since)
        snapshot = store.take(folder.root)
        if folder.last is None or snapshot.id == folder.last.id:
            return snapshot, {}
        return snapshot, changes_between(store, folder.last, snapshot, since=folder.since)

    def _is_told_late(self, folder: _Folder) -> bool:
        return any(self._places[run].screen is not None for run in folder.runs if run in self._places)

    def _has_unheard(self, folder: _Folder) -> bool:
        """Return whether another run works in the folder, or below it, of whose calls nobody hears."""
        if self._watch is None:
            return False
        # By name alone: nobody waits here for a disk that does not answer.
        roots = {folder.root} | {place.root_as_named for place in self._places.values() if place.folder is folder}
        beside = [self._watch.find(run) for run in self._watch.ids - folder.runs]
        return any(
            watched is not None
            and watched.ending is None
            and any(Path(working_dir_of(watched.claimed)).is_relative_to(root) for root in roots)
            for watched in beside
        )

    def _told_within_s(self, folder: _Folder) -> float:
        """Return for how long calls may have been at work beside others that nobody knows of yet."""
        return _RECORD_TAKES_S if self._is_told_late(folder) and not folder.is_ending else 0.0

    def _attribute(self, folder: _Folder, calls: Sequence[Call], *, is_beside: bool) -> None:
        """Find which calls made what waits; what a record may still tell is left waiting."""
        store, now, is_told_late = self._store(), time.time(), self._is_told_late(folder)
        until = now - self._told_within_s(folder)
        if is_told_late and len(folder.runs) > 1:
            # What the runs do side by side is not all known.
            calls = [*calls, Call(paths=None, began_at=0.0)]
        waiting = []
        for changes in folder.waiting:
            due = {path: change for path, change in changes.items() if change.at <= until}
            others = attribute(store, due, calls, is_beside=is_beside)
            left = {
                path: change
                for path, change in changes.items()
                if path not in due or (path in others and (is_told_late or change.at > now - _NEWS_MAY_TAKE_S))
            }
            waiting += [left] if left else []
        folder.waiting = waiting[-_MOST_CALLS:]

    async def _write(self, folder: _Folder, key: tuple[ExecutionId, str]) -> None:
        call = folder.calls.pop(key, None)
        if call is None:
            return
        folder.written.add(key)
        try:
            await self._record(folder, call, *key)
        except BaseException:
            # Written with the next look, or at the end.
            folder.written.discard(key)
            folder.calls.setdefault(key, call)
            raise

    async def _record(self, folder: _Folder, call: Call, execution_id: ExecutionId, ref: str) -> None:
        is_looked = folder.seen_since <= call.began_at and (call.ended_at or call.began_at) <= folder.since
        note = call.unclear or ("" if is_looked else _NOT_LOOKED)
        known = {path: one for path, one in tuple(call.found.items()) if one.before != one.after}
        sides = {path: (one.before, one.after) for path, one in known.items()}
        found = await in_daemon_thread(lambda: compare_sides(self._store(), sides), name="changes")
        missed = "" if is_looked else _NOT_LOOKED
        changes = [(_with_reason(one, known[one.path].why_not or missed), hunks) for one, hunks in found]
        # What a record tells is in no event yet.
        shown = () if call.is_told_late else tuple(call.told)
        await self._changes.record_call(execution_id, ref, changes, note=note, shown=shown, at=self._clock.now())


def may_tell_calls(claimed: ClaimedExecution) -> bool:
    """Return whether the tool calls of a run become known, by its protocol or by the record of its agent."""
    mode = claimed.execution.mode
    return mode.is_protocol or (mode is ExecutionMode.TMUX and claimed.agent.tool_type is ToolType.AI_AGENT)


def _with_reason(change: FileChange, why_not: str) -> FileChange:
    return replace(change, can_undo=False, why_not=why_not) if why_not else change
