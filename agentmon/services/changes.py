"""What runs changed in their folders: read as it was recorded, or looked at now while they work."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from agentmon.domain.errors import NotFoundError
from agentmon.workspaces.comparison import compare, patch
from agentmon.workspaces.snapshots import SnapshotStore

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from agentmon.domain.changes import FileChange
    from agentmon.domain.executions import Execution
    from agentmon.paths import Paths
    from agentmon.store.changes import ChangeRepository
    from agentmon.workspaces.snapshots import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChanges:
    """What one run changed."""

    execution: Execution
    root: Path
    """The folder to which the paths belong."""
    files: tuple[FileChange, ...]
    """In the order of their paths."""
    note: str
    """What the record leaves out; empty when that is nothing."""

    @property
    def lines_added(self) -> int:
        """Of all files together."""
        return sum(one.lines_added for one in self.files)

    @property
    def lines_removed(self) -> int:
        """Of all files together."""
        return sum(one.lines_removed for one in self.files)


class ChangeService:
    """Reads what runs changed."""

    def __init__(self, *, changes: ChangeRepository, paths: Paths) -> None:
        self._changes = changes
        self._paths = paths

    async def of_run(self, execution: Execution) -> RunChanges:
        """Return what a run changed; of one that has not ended, up to now.

        Raises:
            NotFoundError: Nobody looked at its folder before it began, or that was removed.
            SnapshotError: The folder of one that works cannot be looked at.
        """
        before = await asyncio.to_thread(self._before, execution)
        if execution.after_snapshot is None:
            after = await asyncio.to_thread(self._store().take, before.root)
            files = await asyncio.to_thread(compare, self._store(), before, after)
        else:
            files = await self._changes.of_execution(execution.id)
        return RunChanges(execution=execution, root=before.root, files=files, note=execution.snapshot_note or "")

    async def patch_of_run(self, changes: RunChanges, paths: Collection[str] = ()) -> bytes:
        """Return what a run changed as a patch that ``git apply`` takes; of one that has not ended, up to now.

        Args:
            changes: Of the run.
            paths: Only these files; all when empty.

        Raises:
            NotFoundError: The snapshots of the run were removed.
            SnapshotError: They cannot be compared.
        """
        chosen = [one.path for one in changes.files if not paths or one.path in paths]
        return await asyncio.to_thread(partial(self._patch, changes.execution, chosen)) if chosen else b""

    def _patch(self, execution: Execution, paths: Collection[str]) -> bytes:
        store, before = self._store(), self._before(execution)
        after = store.take(before.root) if execution.after_snapshot is None else store.get(execution.after_snapshot)
        return patch(store, before, after, paths)

    def _before(self, execution: Execution) -> Snapshot:
        if execution.before_snapshot is None:
            why = f": {execution.snapshot_note}" if execution.snapshot_note else ""
            raise NotFoundError(
                f"what this run changes is not recorded{why}",
                hint="agents are looked at in every folder, other programs in git repositories",
            )
        return self._store().get(execution.before_snapshot)

    def _store(self) -> SnapshotStore:
        return SnapshotStore(self._paths.snapshots_dir, left_out=(self._paths.data_dir,))
