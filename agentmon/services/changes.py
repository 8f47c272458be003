"""What runs changed in their folders: read as it was recorded, or looked at now while they work."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.domain.changes import stored_path
from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.events import ActorType
from agentmon.domain.plain_text import plain_line
from agentmon.workspaces.comparison import compare, content, patch
from agentmon.workspaces.patches import reverse_patch
from agentmon.workspaces.snapshots import SnapshotStore
from agentmon.workspaces.undoing import apply, plan, recover

if TYPE_CHECKING:
    from collections.abc import Collection

    from agentmon.domain.changes import FileChange
    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import TaskId
    from agentmon.paths import Paths
    from agentmon.store.changes import ChangeRepository
    from agentmon.workspaces.snapshots import Snapshot
    from agentmon.workspaces.three_way import Side
    from agentmon.workspaces.undoing import UndoPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChanges:
    """What one run changed, as one look found it."""

    execution: Execution
    root: Path
    """The folder to which the paths belong."""
    files: tuple[FileChange, ...]
    """In the order of their paths."""
    note: str
    """What the record leaves out; empty when that is nothing."""
    snapshots: tuple[Snapshot, Snapshot] | None
    """Before it, and at its end or now; None where they were removed, so that only the names of the files are left."""
    is_alone: bool
    """Whether nothing else was changed between these snapshots."""

    @property
    def is_live(self) -> bool:
        """Whether another look may find something else."""
        return self.execution.status.is_live

    @property
    def lines_added(self) -> int:
        """Of all files together."""
        return sum(one.lines_added for one in self.files)

    @property
    def lines_removed(self) -> int:
        """Of all files together."""
        return sum(one.lines_removed for one in self.files)

    def chosen(self, paths: Collection[str]) -> tuple[str, ...]:
        """Return the paths that are to be looked at between the snapshots; none at all means everything.

        Args:
            paths: Only these; all of the run when empty.

        Raises:
            NotFoundError: The run did not change one of them.
        """
        known = {one.path for one in self.files}
        for path in paths:
            if path not in known:
                raise NotFoundError(
                    f"this run did not change {plain_line(path)}",
                    hint="agentmon changes lists its files by their names",
                )
        return tuple(paths) or (() if self.is_alone else tuple(known))


class ChangeService:
    """Reads what runs changed, and takes it back."""

    def __init__(self, *, changes: ChangeRepository, paths: Paths, clock: Clock) -> None:
        self._changes = changes
        self._paths = paths
        self._clock = clock

    async def of_run(self, execution: Execution) -> RunChanges:
        """Return what a run changed; of one that has not ended, up to now.

        Raises:
            NotFoundError: Nobody could look at its folder before it began, or at its end.
            SnapshotError: The folder of one that works cannot be looked at.
        """
        is_live = execution.status.is_live
        if execution.before_snapshot is None or not (is_live or execution.after_snapshot):
            why = f": {execution.snapshot_note}" if execution.snapshot_note else ""
            raise NotFoundError(
                f"what this run changes is not recorded{why}",
                hint="agents are looked at in every folder, other programs in git repositories",
            )
        recorded = await self._changes.of_execution(execution.id)
        note = execution.snapshot_note or ""
        try:
            snapshots, found = await asyncio.to_thread(self._look, execution)
        except NotFoundError as error:
            root = Path(execution.working_dir or "")
            return RunChanges(
                execution=execution, root=root, files=recorded, note=str(error), snapshots=None, is_alone=False
            )
        if is_live:
            foreign = await self._changes.written_beside(
                execution.id,
                str(snapshots[0].root),
                since=execution.started_at or execution.created_at,
                until=self._clock.now(),
            )
            own = [one for one in found if one.path not in foreign]
        else:
            names = {one.path for one in recorded}
            own = [one for one in found if stored_path(one.path) in names]
        return RunChanges(
            execution=execution,
            root=snapshots[0].root,
            files=tuple(own),
            note=note,
            snapshots=snapshots,
            is_alone=len(own) == len(found),
        )

    async def patch_of_run(self, changes: RunChanges, paths: Collection[str] = ()) -> bytes:
        """Return what a run changed as a patch that ``git apply`` takes.

        Args:
            changes: Of the run.
            paths: Only these files; all when empty.

        Raises:
            NotFoundError: The snapshots of the run were removed, or it did not change one of the files.
            SnapshotError: They cannot be compared.
        """
        chosen = changes.chosen(paths)
        before, after = _snapshots_of(changes)
        return await asyncio.to_thread(patch, self._store(), before, after, chosen) if changes.files else b""

    async def text_of(self, changes: RunChanges, path: str) -> str:
        """Return what a changed file holds after the run, for its unchanged lines; empty where that was not kept."""
        change = next((one for one in changes.files if one.path == path), None)
        if change is None or change.after_ref is None or change.is_binary:
            return ""
        try:
            found = await asyncio.to_thread(content, self._store(), change.after_ref)
        except NotFoundError:
            return ""
        return found.decode("utf-8", "replace")

    async def take_back_hunk(self, changes: RunChanges, path: str, hunk: bytes, *, actor: Actor) -> None:
        """Take one stretch of lines back in the file as it is now; ``plan_redo`` takes that back.

        Args:
            changes: Of the run.
            path: The file.
            hunk: A patch of the lines alone.
            actor: Who asks.

        Raises:
            ConflictError: The lines are not as the run left them, or an agent asks for it.
            SnapshotError: The folder cannot be looked at, or git failed.
        """
        _require_person(actor)

        def taken_back() -> tuple[str, str]:
            store = self._store()
            before = store.take(changes.root)
            reverse_patch(store, changes.root, hunk)
            return before.id, store.take(changes.root).id

        execution, snapshots = changes.execution, await asyncio.to_thread(taken_back)
        await self._changes.note_undone(
            execution.task_id,
            execution.id,
            files=1,
            snapshots=snapshots,
            only=[path],
            actor=actor,
            at=self._clock.now(),
        )

    async def plan_undo(
        self, changes: RunChanges, *, paths: Collection[str] = (), side: Side | None = None
    ) -> UndoPlan:
        """Return what taking a run's changes back would do to the files as they are now; nothing is done.

        Args:
            changes: Of the run.
            paths: Only these files; all when empty.
            side: Which side of conflicts to take; None leaves them alone.

        Raises:
            ConflictError: The run has not ended.
            NotFoundError: Its snapshots were removed, or it did not change one of the files.
            SnapshotError: The folder cannot be looked at.
        """
        if changes.execution.status.is_open:
            raise ConflictError("this run is not over, and could change it again", hint="stop it first")
        chosen = changes.chosen(paths)
        before, after = _snapshots_of(changes)
        return await asyncio.to_thread(self._plan, before.id, after.id, chosen, side)

    async def plan_redo(self, task_id: TaskId) -> UndoPlan:
        """Return what taking the last undo of a task back would do.

        Raises:
            NotFoundError: Nothing of the task was undone, or the snapshots of that were removed.
            SnapshotError: The folder cannot be looked at.
        """
        last = await self._changes.last_undo(task_id)
        if last is None:
            raise NotFoundError("nothing of this task was undone", hint="agentmon undo takes back what a run changed")
        return await asyncio.to_thread(self._plan, *last)

    async def undo(self, execution: Execution, plan: UndoPlan, *, actor: Actor) -> tuple[str, ...]:
        """Do what a plan says, all of it or nothing; it is a change itself, which ``plan_redo`` takes back.

        Returns:
            The files that somebody changed while it was done, and that were left alone.

        Raises:
            ConflictError: Something changed since the plan was made, a run works in the folder, or an agent asks.
            SnapshotError: A file could not be written; nothing was undone.
        """
        _require_person(actor)
        for number, folder in await self._changes.folders_at_work():
            if await asyncio.to_thread(_overlap, plan.root, Path(folder)):
                raise ConflictError(
                    f"#{number} works in {folder} now", hint=f"agentmon stop {number} ends it; then undo again"
                )
        undone = await asyncio.to_thread(apply, plan)
        await self._changes.note_undone(
            execution.task_id,
            execution.id,
            files=sum(step.is_done for step in plan.steps),
            snapshots=(undone.before.id, undone.after.id),
            actor=actor,
            at=self._clock.now(),
        )
        return undone.left_alone

    def _plan(self, before_id: str, after_id: str, paths: Collection[str], side: Side | None = None) -> UndoPlan:
        store = self._store()
        # What a kill broke off is finished first: a plan over half an undo would take it for somebody's work.
        recover(store)
        before, after = store.get(before_id), store.get(after_id)
        found = plan(store, before.root, before, after, paths=paths)
        if side is None or not found.left_alone:
            return found
        choices = {step.path: side for step in found.left_alone}
        return plan(store, before.root, before, after, paths=paths, choices=choices)

    async def looked_at(self, digests: Collection[str]) -> frozenset[str]:
        """Return which of these a person has looked at."""
        return await self._changes.looked_at(digests)

    async def mark_looked_at(self, digests: Collection[str], *, is_looked: bool) -> None:
        """Keep that a person has looked at these, or wants to look again."""
        await self._changes.mark_looked_at(digests, is_looked=is_looked, at=self._clock.now())

    def _look(self, execution: Execution) -> tuple[tuple[Snapshot, Snapshot], tuple[FileChange, ...]]:
        store = self._store()
        before = store.get(str(execution.before_snapshot))
        after = store.take(before.root) if execution.status.is_live else store.get(str(execution.after_snapshot))
        return (before, after), compare(store, before, after)

    def _store(self) -> SnapshotStore:
        return SnapshotStore(self._paths.snapshots_dir, left_out=(self._paths.data_dir,))


def _snapshots_of(changes: RunChanges) -> tuple[Snapshot, Snapshot]:
    if changes.snapshots is None:
        raise NotFoundError(changes.note, hint="agentmon changes still lists the files")
    return changes.snapshots


def _overlap(one: Path, other: Path) -> bool:
    """Return whether two folders are one, or one of them lies in the other; blocks."""
    one, other = one.resolve(), other.resolve()
    return one.is_relative_to(other) or other.is_relative_to(one)


def _require_person(actor: Actor) -> None:
    if actor.type is ActorType.AGENT:
        raise ConflictError("an agent may not take changes back here", hint="it changes files with its own tools")
