"""What a run changed: its folder is looked at before its program starts and after its end, and the two are compared."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import ToolType
from agentmon.domain.errors import NotFoundError, SnapshotError
from agentmon.threads import in_daemon_thread
from agentmon.worker.preparation import folder_of, working_dir_of
from agentmon.workspaces.comparison import compare
from agentmon.workspaces.repositories import find_repository, find_root
from agentmon.workspaces.snapshots import SnapshotStore
from agentmon.workspaces.undoing import recover

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from agentmon.domain.changes import FileChange
    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ClaimedExecution, ExecutionEnding
    from agentmon.domain.ids import ExecutionId
    from agentmon.paths import Paths
    from agentmon.store.changes import ChangeRepository
    from agentmon.worker.watching import Watched
    from agentmon.workspaces.snapshots import Snapshot

_log = logging.getLogger(__name__)

_LOOKED_WITHIN_S: Final = 20.0
"""A start does not wait longer for a folder to be read."""
_STOP_LOOKED_FOR_EVERY_S: Final = 0.1
RECORDED_WITHIN_S: Final = 60.0
_UNWRITTEN_FOR: Final = timedelta(hours=1)
_NAMED_UNCOVERED: Final = 3


class ChangeRecorder:
    """Looks at the folders of this worker's runs.

    Args:
        changes: Where it is written down.
        paths: Where the snapshots are.
        clock: Dates what is written.
    """

    def __init__(self, *, changes: ChangeRepository, paths: Paths, clock: Clock) -> None:
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
        before_id, began_at = await self._changes.began(watched.id)
        if before_id is None:
            return ending
        try:
            after, changes = await in_daemon_thread(partial(self._compare, before_id), name="changes")
        except (SnapshotError, NotFoundError, OSError) as error:
            await self._changes.note(watched.id, f"its changes are not known: {error}", at=self._clock.now())
            self._looked_at.discard(watched.id)
            return ending
        root = str(after.root)
        foreign = await self._changes.written_beside(
            watched.id, root, since=began_at or ending.ended_at, until=ending.ended_at
        )
        own = [change for change in changes if change.path not in foreign]
        await self._changes.record(watched.id, snapshot_id=after.id, root=root, changes=own, at=self._clock.now())
        # Only now: what could not be written is done again.
        self._looked_at.discard(watched.id)
        return ending

    async def recover(self) -> None:
        """Finish what a kill broke off of an undo."""
        try:
            finished = await in_daemon_thread(lambda: recover(self._store()), name="undo")
        except Exception:  # noqa: BLE001 - whatever is in the journal, the worker goes on
            _log.exception("an undo that was broken off is not finished")
            return
        for one in finished:
            _log.info("finished an undo in %s that was broken off: %s files", one.root, len(one.paths))

    async def prune(self) -> None:
        """Remove the snapshots of runs whose logs are gone, and what nobody needs any more.

        Raises:
            StoreError: It could not be read which ones are needed.
        """
        kept = await self._changes.kept_snapshots()
        # One that was just taken may not have been written down yet.
        since = self._clock.now() - _UNWRITTEN_FOR
        try:
            await in_daemon_thread(lambda: self._store().prune(kept, since=since), name="prune snapshots")
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
        after = store.take(before.root)
        return after, compare(store, before, after)


def _note_of(snapshot: Snapshot) -> str:
    """Return what a snapshot leaves out, in a line; empty when that is nothing."""
    named = [f"{one.path}: {one.reason}" for one in snapshot.uncovered[:_NAMED_UNCOVERED]]
    more = len(snapshot.uncovered) - len(named)
    return "; ".join([*([snapshot.limit] if snapshot.limit else []), *named, *([f"{more} more"] if more > 0 else [])])
