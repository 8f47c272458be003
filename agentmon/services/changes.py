"""What runs changed in their folders: read as it was recorded, or looked at now while they work."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.events import ActorType
from agentmon.workspaces.comparison import compare, content, patch
from agentmon.workspaces.patches import reverse_patch
from agentmon.workspaces.snapshots import SnapshotStore
from agentmon.workspaces.undoing import apply, plan

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

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

    def __init__(self, *, changes: ChangeRepository, paths: Paths, clock: Clock) -> None:
        self._changes = changes
        self._paths = paths
        self._clock = clock

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

    async def take_back_hunk(self, changes: RunChanges, hunk: bytes, *, actor: Actor) -> None:
        """Take one stretch of lines back in the file as it is now.

        Args:
            changes: Of the run.
            hunk: A patch of it alone.
            actor: Who asks.

        Raises:
            ConflictError: The lines are not as the run left them, or an agent asks for it.
            SnapshotError: git failed.
        """
        _require_person(actor)
        await asyncio.to_thread(reverse_patch, self._store(), changes.root, hunk)
        execution = changes.execution
        await self._changes.note_undone(execution.task_id, execution.id, files=1, actor=actor, at=self._clock.now())

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
            NotFoundError: Its snapshots were removed.
            SnapshotError: The folder cannot be looked at.
        """
        execution = changes.execution
        if execution.after_snapshot is None:
            raise ConflictError("this run still works, and could change it again", hint="stop it first")
        return await self._plan(str(execution.before_snapshot), execution.after_snapshot, paths=paths, side=side)

    async def plan_redo(self, task_id: TaskId) -> UndoPlan:
        """Return what taking the last undo of a task back would do.

        Raises:
            NotFoundError: Nothing of the task was undone.
            SnapshotError: The folder cannot be looked at.
        """
        last = await self._changes.last_undo(task_id)
        if last is None:
            raise NotFoundError("nothing of this task was undone")
        return await self._plan(*last)

    async def undo(self, execution: Execution, plan: UndoPlan, *, actor: Actor) -> tuple[str, ...]:
        """Do what a plan says, all of it or nothing; it is a change itself, which ``plan_redo`` takes back.

        Returns:
            The files that somebody changed while it was done, and that were left alone.

        Raises:
            ConflictError: Something changed since the plan was made, a run works in the folder, or an agent asks.
            SnapshotError: A file could not be written; nothing was undone.
        """
        _require_person(actor)
        number = await self._changes.number_at_work_in(str(plan.root))
        if number is not None:
            raise ConflictError(
                f"#{number} works in {plan.root} now", hint=f"agentmon stop {number} ends it; then undo again"
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

    async def _plan(
        self, before_id: str, after_id: str, *, paths: Collection[str] = (), side: Side | None = None
    ) -> UndoPlan:
        store = self._store()

        def made() -> UndoPlan:
            before, after = store.get(before_id), store.get(after_id)
            found = plan(store, before.root, before, after, paths=paths)
            if side is None or not found.left_alone:
                return found
            choices = {step.path: side for step in found.left_alone}
            return plan(store, before.root, before, after, paths=paths, choices=choices)

        return await asyncio.to_thread(made)

    async def looked_at(self, digests: Collection[str]) -> frozenset[str]:
        """Return which of these a person has looked at."""
        return await self._changes.looked_at(digests)

    async def mark_looked_at(self, digests: Collection[str], *, is_looked: bool) -> None:
        """Keep that a person has looked at these, or wants to look again."""
        await self._changes.mark_looked_at(digests, is_looked=is_looked, at=self._clock.now())

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


def _require_person(actor: Actor) -> None:
    if actor.type is ActorType.AGENT:
        raise ConflictError("an agent may not take changes back here", hint="it changes files with its own tools")
