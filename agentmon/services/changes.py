"""What runs changed in their folders: read as it was recorded, or looked at now while they work."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.changes import Artifact, stored_path
from agentmon.domain.diffs import Diff, DiffSide
from agentmon.domain.errors import ConflictError, NotFoundError, SnapshotError
from agentmon.domain.ids import new_id
from agentmon.domain.operations import OperationType
from agentmon.domain.plain_text import plain_line
from agentmon.domain.review_comments import ReviewComment, hunk_at, message_text
from agentmon.domain.standing import standings
from agentmon.worker.change_recording import finish_undos, first_began_at, note_undone
from agentmon.workspaces.artifacts import sha256_of, size_of
from agentmon.workspaces.commits import commit_paths, commits_between
from agentmon.workspaces.comparison import bare_patch, compare, content, patch, renames, sizes
from agentmon.workspaces.files import FileState
from agentmon.workspaces.patches import plan_lines
from agentmon.workspaces.snapshots import SnapshotStore
from agentmon.workspaces.undoing import Stretch, apply, forget, plan_all, step_patch, stretch_between

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from agentmon.domain.changes import FileChange
    from agentmon.domain.clock import Clock
    from agentmon.domain.diffs import LineSpan
    from agentmon.domain.events import Actor
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import OperationId, TaskId
    from agentmon.domain.operations import Operation
    from agentmon.domain.standing import Standing
    from agentmon.domain.tasks import Task
    from agentmon.paths import Paths
    from agentmon.services.conversations import ConversationService, SentMessage
    from agentmon.store.changes import ChangeRepository
    from agentmon.store.conversations import ConversationRepository
    from agentmon.store.review_comments import ReviewCommentRepository
    from agentmon.workspaces.commits import MadeCommit
    from agentmon.workspaces.snapshots import Snapshot
    from agentmon.workspaces.three_way import Side, UndoStep
    from agentmon.workspaces.undoing import Recovered, Undone, UndoPlan

    Stretches = Callable[[SnapshotStore], tuple[Snapshot, list[Stretch]]]

_WRITING: Final = (OperationType.WRITE, OperationType.EXECUTE)
_MOST_CALLS: Final = 100_000
_ONE_BY_ONE: Final = "agentmon undo --run undoes the runs one by one"


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
    artifacts: tuple[Artifact, ...] = ()
    """What its tool calls wrote outside of version control; known when it has ended."""

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

    def __init__(
        self,
        *,
        changes: ChangeRepository,
        comments: ReviewCommentRepository,
        conversations: ConversationRepository,
        talking: ConversationService,
        paths: Paths,
        clock: Clock,
    ) -> None:
        self._changes = changes
        self._comments = comments
        self._conversations = conversations
        self._talking = talking
        self._paths = paths
        self._clock = clock
        self._compared: tuple[tuple[str, str], tuple[FileChange, ...]] | None = None

    async def of_run(self, execution: Execution, *, known: RunChanges | None = None) -> RunChanges:
        """Return what a run changed; of one that has not ended, up to now.

        Args:
            execution: The run.
            known: What an earlier look found, which is returned itself where nothing changed since.

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
        recorded = () if is_live else await self._changes.of_execution(execution.id)
        note = execution.snapshot_note or ""
        artifacts = () if is_live else await self._artifacts_of(execution)
        try:
            snapshots, found = await asyncio.to_thread(self._look, execution)
        except (NotFoundError, SnapshotError) as error:
            if is_live and isinstance(error, SnapshotError):
                raise
            root = Path(execution.working_dir or "")
            return RunChanges(
                execution=execution,
                root=root,
                files=recorded,
                note=str(error),
                snapshots=None,
                is_alone=False,
                artifacts=artifacts,
            )
        if is_live:
            foreign = await self._changes.written_beside(
                execution.id,
                str(snapshots[0].root),
                since=first_began_at(execution, snapshots[0].id, execution.started_at or execution.created_at),
                until=self._clock.now(),
            )
            own = [one for one in found if one.path not in foreign]
        else:
            names = {one.path for one in recorded}
            own = [one for one in found if stored_path(one.path) in names]
        changes = RunChanges(
            execution=execution,
            root=snapshots[0].root,
            files=tuple(own),
            note=note,
            snapshots=snapshots,
            is_alone=len(own) == len(found),
            artifacts=artifacts,
        )
        is_same = known is not None and known.is_live and is_live and replace(known, execution=execution) == changes
        return known if known is not None and is_same else changes

    async def _artifacts_of(self, execution: Execution) -> tuple[Artifact, ...]:
        listed = await self._changes.artifacts_of(execution.id)

        def look() -> tuple[Artifact, ...]:
            return tuple(Artifact(path=path, kind=kind, size_bytes=size_of(path)) for path, kind in listed)

        return await asyncio.to_thread(look) if listed else ()

    async def hashes_of(self, artifacts: Collection[Artifact]) -> Mapping[str, str | None]:
        """Return by path the SHA-256 of each as it is now, in hexadecimal digits; None of one gone or over 64 MiB."""
        return await asyncio.to_thread(lambda: {one.path: sha256_of(one.path) for one in artifacts})

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

    async def between(self, one: RunChanges, other: RunChanges) -> RunChanges:
        """Return what another run left otherwise than this one, in the files that either of them changed.

        Args:
            one: The run that is compared with; what it left is the older side.
            other: What it left, or has up to now, is the newer side.

        Raises:
            NotFoundError: The snapshots of one of them were removed.
            SnapshotError: They cannot be compared.
        """
        older, newer = _snapshots_of(one)[1], _snapshots_of(other)[1]
        paths = {path for run in (one, other) for change in run.files for path in (change.path, change.old_path)}
        found = await asyncio.to_thread(compare, self._store(), older, newer)
        files = tuple(change for change in found if change.path in paths or change.old_path in paths)
        return replace(other, files=files, snapshots=(older, newer), is_alone=len(files) == len(found), artifacts=())

    async def sizes_of(self, changes: RunChanges) -> Mapping[str, tuple[int | None, int | None]]:
        """Return how many bytes the binary files of a run had before and after, by path; None where none are known.

        Raises:
            SnapshotError: git failed.
        """
        binaries = [one for one in changes.files if one.is_binary]
        refs = {ref for one in binaries for ref in (one.before_ref, one.after_ref) if ref is not None}
        known = await asyncio.to_thread(sizes, self._store(), refs)
        return {one.path: (known.get(one.before_ref or ""), known.get(one.after_ref or "")) for one in binaries}

    async def text_of(self, changes: RunChanges, path: str, side: DiffSide = DiffSide.NEW) -> str:
        """Return what a changed file holds after the run, or held before it; empty where that was not kept."""
        change = next((one for one in changes.files if one.path == path), None)
        ref = None if change is None else change.after_ref if side is DiffSide.NEW else change.before_ref
        if change is None or ref is None or change.is_binary:
            return ""
        try:
            found = await asyncio.to_thread(content, self._store(), ref)
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
            SnapshotError: The folder cannot be looked at, the file cannot be written, or git failed.
        """
        await self._recovered(changes.root)
        plan = await asyncio.to_thread(plan_lines, self._store(), changes.root, path, hunk)
        await self._apply(changes.execution, plan, only=[path], actor=actor)

    async def plan_undo(
        self,
        changes: RunChanges,
        *,
        paths: Collection[str] = (),
        side: Side | None = None,
        choices: Mapping[str, Side] | None = None,
    ) -> UndoPlan:
        """Return what taking a run's changes back would do to the files as they are now; nothing is done.

        Args:
            changes: Of the run.
            paths: Only these files; all when empty.
            side: Which side of conflicts to take; None leaves them alone.
            choices: Which side of single conflicts to take, by path.

        Raises:
            ConflictError: The run has not ended.
            NotFoundError: Its snapshots were removed, or it did not change one of the files.
            SnapshotError: The folder cannot be looked at.
        """
        _require_over(changes.execution)
        chosen = changes.chosen(paths)
        before, after = _snapshots_of(changes)
        stretches = partial(_between, before_id=before.id, after_id=after.id, paths=chosen)
        return await self._planned(changes.root, stretches, side, choices)

    async def plan_undo_of_call(
        self,
        execution: Execution,
        number: int,
        *,
        side: Side | None = None,
        choices: Mapping[str, Side] | None = None,
    ) -> UndoPlan:
        """Return what taking the changes of one tool call back would do.

        Args:
            execution: Its run.
            number: Its place among the calls of the run, from 1.
            side: As for ``plan_undo``.
            choices: As for ``plan_undo``.

        Raises:
            ConflictError: The run has not ended.
            NotFoundError: There is no such call, or what it changed is not known.
            SnapshotError: The folder cannot be looked at.
        """
        _require_over(execution)
        call, changed = await self.of_call(execution, number)
        if unknown := next((one for one in changed if not one.can_undo), None):
            raise NotFoundError(
                f"call {number} cannot be undone by itself: {plain_line(unknown.path)}: {unknown.why_not}",
                hint="agentmon undo without --call undoes the whole run",
            )
        if call.changes is None or (call.changes.note and not changed):
            why = call.changes.note if call.changes is not None else "its folder was not looked at in time"
            raise NotFoundError(
                f"what call {number} changed is not known: {why}",
                hint="agentmon undo without --call undoes the whole run",
            )
        before_id = str(execution.before_snapshot)

        def stretches(store: SnapshotStore) -> tuple[Snapshot, list[Stretch]]:
            return store.get(before_id), [_stretch_of(changed)]

        return await self._planned(None, stretches, side, choices)

    async def plan_undo_of_task(
        self,
        executions: Sequence[Execution],
        *,
        side: Side | None = None,
        choices: Mapping[str, Side] | None = None,
    ) -> UndoPlan:
        """Return what taking back the changes of all runs of a task would do, the newest first, as one undo.

        Args:
            executions: Of the task, the newest first.
            side: As for ``plan_undo``.
            choices: As for ``plan_undo``.

        Raises:
            ConflictError: A run has not ended, or they worked in several folders.
            NotFoundError: The changes of a run are not known, or its snapshots were removed.
            SnapshotError: The folder cannot be looked at.
        """
        runs = []
        for place, execution in enumerate(executions):
            _require_over(execution)
            if execution.started_at is None or execution.changed_files == 0:
                continue
            found = await self.of_run(execution)
            if found.snapshots is None:
                raise NotFoundError(f"run {len(executions) - place}: {found.note}", hint=_ONE_BY_ONE)
            runs.append(found)
        if not runs:
            raise NotFoundError("no run of this task changed a file", hint="agentmon changes lists what a run changed")
        if len({found.root for found in runs}) > 1:
            raise ConflictError("the runs of this task worked in several folders", hint=_ONE_BY_ONE)
        places = [(found.chosen(()), *_snapshots_of(found)) for found in runs]

        def stretches(store: SnapshotStore) -> tuple[Snapshot, list[Stretch]]:
            made = [stretch_between(store, before.root, before, after, chosen) for chosen, before, after in places]
            return places[-1][1], made

        return await self._planned(runs[0].root, stretches, side, choices)

    async def of_call(self, execution: Execution, number: int) -> tuple[Operation, tuple[FileChange, ...]]:
        """Return a tool call of a run, by its place among them from 1, and what it changed.

        Raises:
            NotFoundError: The run has no such call.
        """
        call = await self._conversations.operation(execution.id, number)
        if call is None:
            raise NotFoundError(
                f"this run has no call {number}", hint="agentmon operations lists the calls with their numbers"
            )
        return call, (await self._changes.of_calls(execution.id)).get(call.id, ())

    async def of_calls(self, execution: Execution) -> tuple[tuple[Operation, tuple[FileChange, ...]], ...]:
        """Return the tool calls of a run that may have changed something, each with what is known of it."""
        changed = await self._changes.of_calls(execution.id)
        calls = await self._conversations.operations(execution_id=execution.id, limit=_MOST_CALLS)
        return tuple((one, changed.get(one.id, ())) for one in calls if one.type in _WRITING)

    async def plan_redo(self, task_id: TaskId, *, choices: Mapping[str, Side] | None = None) -> UndoPlan:
        """Return what taking the last undo of a task back would do.

        Args:
            task_id: The task.
            choices: Which side of single conflicts to take, by path.

        Raises:
            NotFoundError: Nothing of the task was undone, or the snapshots of that were removed.
            SnapshotError: The folder cannot be looked at.
        """
        # It may have been broken off, and not be written down yet.
        await self.recover()
        last = await self._changes.last_undo(task_id)
        if last is None:
            raise NotFoundError("nothing of this task was undone", hint="agentmon undo NUMBER undoes its newest run")
        before_id, after_id = last.before_snapshot, last.after_snapshot
        stretches = partial(_between, before_id=before_id, after_id=after_id, paths=last.only)
        return await self._planned(None, stretches, choices=choices)

    async def is_last_undone(self, execution: Execution, *, call: OperationId | None = None) -> bool:
        """Return whether the last undo of a task is one of this run, so that ``plan_redo`` is about it.

        Args:
            execution: The run.
            call: Only an undo of this tool call counts.
        """
        last = await self._changes.last_undo(execution.task_id)
        if last is None or last.is_redo or last.execution_id != execution.id:
            return False
        return call is None or last.operation_id == call

    async def step_patch(self, plan: UndoPlan, step: UndoStep) -> bytes:
        """Return what a step of a plan does to its file, to be read; of a conflict what taking it back would do.

        Raises:
            SnapshotError: git failed.
        """
        return await asyncio.to_thread(step_patch, plan, step)

    async def standings(self, changes: RunChanges, diff: Diff) -> Mapping[str, Standing]:
        """Return what became of the hunks of a run that ended, in the files as they are now; see ``standings``.

        Args:
            changes: Of the run.
            diff: Its patch.

        Raises:
            SnapshotError: The folder is not there any more, or cannot be looked at.
        """
        if changes.snapshots is None or not diff.files:
            return {}
        return await asyncio.to_thread(self._standings, changes.snapshots, diff)

    async def undo(
        self,
        execution: Execution,
        plan: UndoPlan,
        *,
        call: OperationId | None = None,
        is_redo: bool = False,
        actor: Actor,
    ) -> tuple[str, ...]:
        """Do what a plan says, all of it or nothing; it is a change itself, which ``plan_redo`` takes back.

        Args:
            execution: The run whose changes are taken back; of several the newest.
            plan: What is to be done.
            call: The tool call, when it is the changes of one.
            is_redo: Whether the plan is one of ``plan_redo``.
            actor: Who asks.

        Returns:
            The files that somebody changed while it was done, and that were left alone.

        Raises:
            ConflictError: Something changed since the plan was made, a run works in the folder, or an agent asks.
            SnapshotError: A file could not be written; nothing was undone.
        """
        for number, folder in await self._changes.folders_at_work():
            if await asyncio.to_thread(_overlap, plan.root, Path(folder)):
                raise ConflictError(
                    f"#{number} works in {folder} now", hint=f"agentmon stop {number} ends it; then undo again"
                )
        return (await self._apply(execution, plan, call=call, is_redo=is_redo, actor=actor)).left_alone

    async def recover(self) -> tuple[Recovered, ...]:
        """Finish every undo that a kill broke off, and write it down; return those that nobody knew of yet."""
        return await finish_undos(self._changes, self._store(), self._clock)

    async def _recovered(self, root: Path) -> None:
        """Finish what a kill broke off: a plan over half an undo would take it for somebody's work."""
        for one in await self.recover():
            if one.problem and one.root == root:
                raise SnapshotError(f"an undo was broken off here, and cannot be finished: {one.problem}")

    async def _apply(
        self,
        execution: Execution,
        plan: UndoPlan,
        *,
        only: Sequence[str] = (),
        call: OperationId | None = None,
        is_redo: bool = False,
        actor: Actor,
    ) -> Undone:
        note: dict[str, object] = {
            "undo_id": new_id(),
            "task_id": execution.task_id,
            "execution_id": execution.id,
            "files": sum(step.is_done for step in plan.steps),
            "only": list(only),
            "actor": [actor.type, actor.id],
        }
        note |= ({} if call is None else {"operation_id": call}) | ({"is_redo": True} if is_redo else {})
        undone = await asyncio.to_thread(apply, plan, note)
        snapshots = undone.before.id, undone.after.id
        await note_undone(self._changes, note, snapshots, at=self._clock.now())
        await asyncio.to_thread(forget, plan.store, plan.root, snapshots)
        return undone

    async def _planned(
        self,
        root: Path | None,
        stretches: Stretches,
        side: Side | None = None,
        choices: Mapping[str, Side] | None = None,
    ) -> UndoPlan:
        if root is None:
            await self.recover()
        else:
            await self._recovered(root)
        return await asyncio.to_thread(self._plan, stretches, side, choices or {})

    def _plan(self, stretches: Stretches, side: Side | None, choices: Mapping[str, Side]) -> UndoPlan:
        store = self._store()
        before, made = stretches(store)
        found = plan_all(store, before.root, before, made, choices=choices)
        if side is None or not found.left_alone:
            return found
        of_all = {step.path: side for step in found.left_alone}
        return plan_all(store, before.root, before, made, choices=of_all | dict(choices))

    async def commits_of_run(self, execution: Execution) -> tuple[MadeCommit, ...]:
        """Return the commits that came into the folder while a run worked, the newest first; they stay at an undo."""
        if execution.before_snapshot is None or execution.after_snapshot is None:
            return ()
        before_id, after_id = execution.before_snapshot, execution.after_snapshot

        def look() -> tuple[MadeCommit, ...]:
            store = self._store()
            try:
                return commits_between(store.get(before_id), store.get(after_id))
            except NotFoundError:
                return ()

        return await asyncio.to_thread(look)

    async def commit_undone(self, plan: UndoPlan, message: str, *, actor: Actor) -> str | None:
        """Commit the files that an undo took back, on the branch that is checked out.

        Returns:
            The id of the commit; None where they are as in the last commit.

        Raises:
            ConflictError: It is no repository, a merge or rebase is in progress, or an agent asks for it.
            GitError: git failed.
        """
        paths = [step.path for step in plan.steps if step.is_done]
        return await asyncio.to_thread(commit_paths, plan.root, paths, message)

    async def looked_at(self, digests: Collection[str]) -> frozenset[str]:
        """Return which of these a person has looked at."""
        return await self._changes.looked_at(digests)

    async def mark_looked_at(self, digests: Collection[str], *, is_looked: bool, actor: Actor) -> None:
        """Keep that a person has looked at these, or wants to look again."""
        await self._changes.mark_looked_at(digests, is_looked=is_looked, at=self._clock.now())

    def _standings(self, snapshots: tuple[Snapshot, Snapshot], diff: Diff) -> Mapping[str, Standing]:
        store = self._store()
        before, after = snapshots
        now = store.take(before.root)
        if now.id == after.id:
            return {}
        paths = {path for file in diff.files for path in (file.path, file.old_path)}
        since, whole = (Diff(bare_patch(store, one, now, paths)) for one in (after, before))
        return standings(diff, since, whole)

    async def comments_of(self, task_id: TaskId) -> tuple[ReviewComment, ...]:
        """Return the comments on all runs of a task, oldest first, also those that were sent."""
        return await self._comments.of_task(task_id)

    async def comment_at(self, changes: RunChanges, span: LineSpan) -> ReviewComment:
        """Return the comment on lines of a run that is not sent yet, or a new one without a text, which is not kept.

        Args:
            changes: Of the run.
            span: The lines.

        Raises:
            NotFoundError: The run did not change the file, or that has no such lines.
            SnapshotError: git failed.
        """
        execution = changes.execution
        unsent = [one for one in await self.comments_of(execution.task_id) if one.sent_at is None]
        known = next((one for one in unsent if (one.execution_id, one.span) == (execution.id, span)), None)
        if known is not None:
            return known
        changes.chosen([span.path])
        text = await self.text_of(changes, span.path, span.side)
        lines = text.removesuffix("\n").split("\n") if text else []
        if not span.first_line <= span.last_line <= len(lines):
            raise NotFoundError(
                f"{plain_line(span.path)} has {len(lines)} {'line' if len(lines) == 1 else 'lines'} "
                f"{'before' if span.side is DiffSide.OLD else 'after'} this run",
                hint="agentmon diff shows them; --old is for lines as they were before the run",
            )
        return ReviewComment(
            id=new_id(),
            execution_id=execution.id,
            span=span,
            quoted="\n".join(line.removesuffix("\r") for line in lines[span.first_line - 1 : span.last_line]),
            text="",
            digest=hunk_at(Diff(await self.patch_of_run(changes)), span) or "",
            sent_at=None,
        )

    async def write_comment(self, comment: ReviewComment, *, actor: Actor) -> None:
        """Keep a comment, in the place of the one with its id; without a text it is forgotten.

        Raises:
            ConflictError: An agent asks for it.
        """
        if comment.text.strip():
            await self._comments.write(comment, at=self._clock.now())
        else:
            await self._comments.remove(comment.id)

    async def send_comments(self, task: Task, *, actor: Actor) -> tuple[SentMessage, tuple[ReviewComment, ...]]:
        """Send all comments of a task that were not sent yet to its agent, as one message.

        Returns:
            Where the message went, and the comments.

        Raises:
            NotFoundError: There are none.
            ConflictError: An agent asks for it, or nobody takes a message now; see ``ConversationService.send``.
            AgentmonError: The conversation cannot go on.
        """
        comments = tuple(one for one in await self.comments_of(task.id) if one.sent_at is None)
        if not comments:
            raise NotFoundError(
                f"#{task.number} has no comments to send",
                hint=f"agentmon review {task.number} PATH:LINE TEXT adds one",
            )
        ids = [one.id for one in comments]
        sent = await self._talking.send(task.id, message_text(comments), comment_ids=ids, actor=actor)
        return sent, comments

    def _look(self, execution: Execution) -> tuple[tuple[Snapshot, Snapshot], tuple[FileChange, ...]]:
        store = self._store()
        before = store.get(str(execution.before_snapshot))
        after = store.take(before.root) if execution.status.is_live else store.get(str(execution.after_snapshot))
        # Whoever looks at what works asks every few seconds, and mostly nothing happened meanwhile.
        compared = self._compared
        ids = before.id, after.id
        if compared is None or compared[0] != ids:
            compared = self._compared = ids, compare(store, before, after)
        return (before, after), compared[1]

    def _store(self) -> SnapshotStore:
        return SnapshotStore(self._paths.snapshots_dir, left_out=(self._paths.data_dir,))


def _between(
    store: SnapshotStore, *, before_id: str, after_id: str, paths: Collection[str]
) -> tuple[Snapshot, list[Stretch]]:
    before, after = store.get(before_id), store.get(after_id)
    return before, [stretch_between(store, before.root, before, after, paths)]


def _stretch_of(changes: Sequence[FileChange]) -> Stretch:
    """Return what a tool call changed, as its rows have it."""
    sides: dict[str, tuple[FileState | None, FileState | None]] = {}
    for one in changes:
        before, after = _state(one.before_mode, one.before_ref), _state(one.after_mode, one.after_ref)
        if one.old_path is None:
            sides[one.path] = before, after
        else:
            sides[one.old_path], sides[one.path] = (before, None), (None, after)
    return Stretch(sides=sides, renamed=renames(changes))


def _state(mode: int | None, ref: str | None) -> FileState | None:
    return None if mode is None or ref is None else FileState(mode, ref)


def _snapshots_of(changes: RunChanges) -> tuple[Snapshot, Snapshot]:
    if changes.snapshots is None:
        raise NotFoundError(changes.note, hint="agentmon changes still lists the files")
    return changes.snapshots


def _overlap(one: Path, other: Path) -> bool:
    """Return whether two folders are one, or one of them lies in the other; blocks."""
    one, other = one.resolve(), other.resolve()
    return one.is_relative_to(other) or other.is_relative_to(one)


def _require_over(execution: Execution) -> None:
    if execution.status.is_open:
        raise ConflictError("this run is not over, and could change it again", hint="stop it first")
