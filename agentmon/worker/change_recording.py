"""What a run changed: its folder is looked at before its program starts and after its end, and the two are compared."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentmon.domain.agents import ToolType
from agentmon.domain.errors import NoRoomError, NotFoundError, SnapshotError
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.plain_text import plain_line
from agentmon.threads import in_daemon_thread
from agentmon.worker.call_recording import CallRecorder, may_tell_calls
from agentmon.worker.preparation import folder_of, working_dir_of
from agentmon.workspaces.artifacts import find_artifacts
from agentmon.workspaces.comparison import compare
from agentmon.workspaces.repositories import find_repository, find_root
from agentmon.workspaces.snapshots import SnapshotStore, taken_at
from agentmon.workspaces.undoing import forget, recover

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from datetime import datetime

    from agentmon.domain.changes import FileChange
    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ClaimedExecution, Execution, ExecutionEnding
    from agentmon.domain.ids import ExecutionId
    from agentmon.paths import Paths
    from agentmon.store.changes import ChangeRepository
    from agentmon.worker.watching import Watch, Watched
    from agentmon.workspaces.snapshots import Snapshot
    from agentmon.workspaces.undoing import Recovered

_log = logging.getLogger(__name__)

_LOOKED_WITHIN_S: Final = 20.0
"""A start does not wait longer for a folder to be read."""
_STOP_LOOKED_FOR_EVERY_S: Final = 0.1
RECORDED_WITHIN_S: Final = 60.0
_ROOM_WITHIN_S: Final = 30.0
_LOOKED_FOR_ROOM_EVERY_S: Final = 1.0
_UNWRITTEN_FOR: Final = timedelta(hours=1)
_NAMED_UNCOVERED: Final = 3
_NAMED_CHARACTERS: Final = 120


class ChangeRecorder:
    """Looks at the folders of this worker's runs.

    Args:
        changes: Where it is written down.
        paths: Where the snapshots are.
        clock: Dates what is written.
        watch: Of the runs whose tool calls are told apart; None for none.
    """

    def __init__(
        self,
        *,
        changes: ChangeRepository,
        paths: Paths,
        clock: Clock,
        watch: Watch | None = None,
    ) -> None:
        self.calls = CallRecorder(changes=changes, store=self._store, clock=clock, watch=watch)
        self._changes = changes
        self._paths = paths
        self._clock = clock
        self._looked_at: set[ExecutionId] = set()

    async def begin(self, claimed: ClaimedExecution) -> None:
        """Look at the folder of a run whose program has not started; later tries keep what the first found.

        What cannot be looked at keeps no run from starting: its card says why its changes are not known.

        Raises:
            StoreError: It could not be written down.
        """
        if claimed.execution.before_snapshot is not None or claimed.execution.snapshot_note:
            return
        look = partial(self._look, Path(working_dir_of(claimed)), is_agent=claimed.agent.tool_type is ToolType.AI_AGENT)
        try:
            async with asyncio.timeout(_LOOKED_WITHIN_S):
                snapshot = await self._unless_stopped(claimed, in_daemon_thread(look, name="snapshot"))
        except TimeoutError:
            snapshot, note = None, f"its folder could not be read within {_LOOKED_WITHIN_S:g} s"
        except Exception as error:  # noqa: BLE001 - whatever a folder holds, its run starts
            _log.warning("execution %s: its folder cannot be looked at: %r", claimed.execution.id, error)
            snapshot, note = None, str(error) or type(error).__name__
        else:
            if snapshot is None:
                return
            note = _note_of(snapshot)
        execution_id, at = claimed.execution.id, self._clock.now()
        snapshot_id = snapshot.id if snapshot is not None else None
        await self._changes.begin(execution_id, snapshot_id=snapshot_id, note=note, at=at)
        if snapshot_id is not None:
            self._looked_at.add(execution_id)
        if snapshot is not None and may_tell_calls(claimed):
            is_own_screen = not claimed.execution.mode.is_protocol
            self.calls.begin(execution_id, snapshot, working_dir_of(claimed), is_own_screen=is_own_screen)

    async def _unless_stopped(
        self, claimed: ClaimedExecution, looking: Coroutine[None, None, Snapshot | None]
    ) -> Snapshot | None:
        """Return what the look finds; None once the run is told to stop, which its host obeys as soon as it starts."""
        folder = folder_of(claimed.execution, self._paths)
        look = asyncio.ensure_future(looking)
        try:
            while not (await asyncio.wait([look], timeout=_STOP_LOOKED_FOR_EVERY_S))[0]:
                if await in_daemon_thread(lambda: folder.has_stop, name="stop"):
                    return None
            return look.result()
        finally:
            look.cancel()

    def is_due(self, watched: Watched, _: ExecutionEnding) -> bool:
        """Return whether the folder of a run was looked at before it began."""
        return watched.claimed.execution.before_snapshot is not None or watched.id in self._looked_at

    async def record(self, watched: Watched, ending: ExecutionEnding) -> ExecutionEnding:
        """Look at the folder of a run that is over, and write down what it changed; again after a kill.

        What tool calls of another run wrote meanwhile, and none of this one, is not put on it.

        Raises:
            StoreError: It could not be written down.
        """
        try:
            await self.calls.finish(watched.id)
        except Exception as error:  # noqa: BLE001 - what the run changed as a whole is written down all the same
            _log.warning("execution %s: what its last tool calls changed is not known: %s", watched.id, error)
        before_id, began_at = await self._changes.began(watched.id)
        if before_id is None:
            return ending
        try:
            after, changes = await self._compared(before_id)
        except (SnapshotError, NotFoundError, OSError) as error:
            await self._changes.note(watched.id, f"its changes are not known: {error}", at=self._clock.now())
            self._looked_at.discard(watched.id)
            return ending
        since = first_began_at(watched.claimed.execution, before_id, began_at or ending.ended_at)
        foreign = await self._changes.written_beside(watched.id, str(after.root), since=since, until=ending.ended_at)
        own = [change for change in changes if change.path not in foreign]
        await self._changes.record(watched.id, snapshot_id=after.id, changes=own, at=self._clock.now())
        await self._record_artifacts(watched, since)
        # Only now: what could not be written is done again.
        self._looked_at.discard(watched.id)
        return ending

    async def _record_artifacts(self, watched: Watched, since: datetime) -> None:
        targets = await self._changes.written_targets(watched.id)
        if not targets:
            return
        folder = Path(working_dir_of(watched.claimed))
        look = partial(find_artifacts, folder, targets, since=since.timestamp())
        try:
            paths = await in_daemon_thread(look, name="artifacts")
        except (SnapshotError, OSError) as error:
            _log.warning("execution %s: what it wrote outside of git is not known: %s", watched.id, error)
            return
        await self._changes.record_artifacts(watched.id, paths, at=self._clock.now())

    async def _compared(self, before_id: str) -> tuple[Snapshot, tuple[FileChange, ...]]:
        """Look at a folder and compare; for a while again where the disk is full."""
        deadline = time.monotonic() + _ROOM_WITHIN_S
        while True:
            try:
                return await in_daemon_thread(partial(self._compare, before_id), name="changes")
            except NoRoomError:
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(_LOOKED_FOR_ROOM_EVERY_S)

    async def recover(self) -> None:
        """Finish what a kill broke off of an undo, and write it to the audit of its task."""
        try:
            found = await finish_undos(self._changes, self._store(), self._clock)
        except Exception:  # noqa: BLE001 - whatever is in the journal, the worker goes on
            _log.exception("an undo that was broken off is not finished")
            return
        for one in found:
            if one.problem:
                _log.warning("an undo in %s was broken off, and is not finished: %s", one.root, one.problem)
            else:
                _log.info("finished an undo in %s that was broken off: %s files", one.root, len(one.paths))

    async def prune(self) -> None:
        """Remove the snapshots of runs whose logs are gone, and what nobody needs any more.

        Raises:
            StoreError: It could not be read which ones are needed.
        """
        kept, refs = await self._changes.kept_snapshots(), await self._changes.kept_contents()
        # One that was just taken may not have been written down yet.
        since = self._clock.now() - _UNWRITTEN_FOR
        try:
            await in_daemon_thread(lambda: self._store().prune(kept, refs=refs, since=since), name="prune snapshots")
        except (SnapshotError, OSError) as error:
            _log.warning("old snapshots are not removed: %s", error)

    def _store(self) -> SnapshotStore:
        return SnapshotStore(self._paths.snapshots_dir, left_out=(self._paths.data_dir,))

    def _look(self, folder: Path, *, is_agent: bool) -> Snapshot | None:
        """Return what a folder holds; None for that of a plain program outside of version control."""
        if not is_agent and find_repository(find_root(folder)) is None:
            return None
        return self._store().take(folder)

    def _compare(self, before_id: str) -> tuple[Snapshot, tuple[FileChange, ...]]:
        store = self._store()
        before = store.get(before_id)
        # Of a folder that is gone, what was last seen in it is all that there is.
        last_seen = None if before.root.is_dir() else store.newest(before.root)
        after = last_seen or store.take(before.root)
        return after, compare(store, before, after)


def first_began_at(execution: Execution, before_id: str, started_at: datetime) -> datetime:
    """Return when the first try of a run began, whose changes all its tries have.

    Args:
        execution: The run.
        before_id: Its snapshot from before the first try.
        started_at: When this try began.
    """
    return max(execution.created_at, taken_at(before_id)) if execution.attempt else started_at


async def finish_undos(changes: ChangeRepository, store: SnapshotStore, clock: Clock) -> tuple[Recovered, ...]:
    """Finish every undo that a kill broke off, and write it to the audit trail; return those that were not there yet.

    Raises:
        StoreError: It could not be written; the next call does it again.
    """
    found = []
    for one in await in_daemon_thread(lambda: recover(store), name="undo"):
        # Whoever did it may have been killed behind that, or be about to write it down itself.
        is_new = not (one.snapshots and one.note) or await note_undone(
            changes, one.note, one.snapshots, is_late=True, at=clock.now()
        )
        if one.snapshots is not None:
            await in_daemon_thread(partial(forget, store, one.root, one.snapshots), name="undo")
        if is_new:
            found.append(one)
    return tuple(found)


async def note_undone(
    changes: ChangeRepository,
    note: Mapping[str, Any],
    snapshots: tuple[str, str],
    *,
    is_late: bool = False,
    at: datetime,
) -> bool:
    """Write an undo to the audit trail; return False where it is there already.

    Args:
        changes: Where.
        note: Kept with it: ``undo_id``, ``task_id``, ``execution_id``, ``files``, ``only``, and the type and id of
            ``actor``; of one tool call, ``operation_id``; of an undo that was taken back, ``is_redo``.
        snapshots: Their ids, before and after it.
        is_late: Whether a kill had broken it off.
        at: The time now.

    Raises:
        StoreError: It could not be written.
    """
    actor_type, actor_id = note["actor"]
    return await changes.note_undone(
        note["task_id"],
        note["execution_id"],
        # What an earlier version has left has none.
        undo_id=note.get("undo_id", snapshots[1]),
        call=note.get("operation_id"),
        files=note["files"],
        snapshots=snapshots,
        only=note["only"],
        is_redo=note.get("is_redo", False),
        is_late=is_late,
        actor=Actor(type=ActorType(actor_type), id=actor_id),
        at=at,
    )


def _note_of(snapshot: Snapshot) -> str:
    """Return what a snapshot leaves out, in a line; empty when that is nothing."""
    named = [
        f"{plain_line(one.path, max_characters=_NAMED_CHARACTERS)}: {one.reason}"
        for one in snapshot.uncovered[:_NAMED_UNCOVERED]
    ]
    more = len(snapshot.uncovered) - len(named)
    return "; ".join([*([snapshot.limit] if snapshot.limit else []), *named, *([f"{more} more"] if more > 0 else [])])
