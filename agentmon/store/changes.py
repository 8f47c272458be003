"""What runs changed in their folders: the snapshots around each, and one row for each file that differs."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import and_, delete, func, insert, null, or_, select, update

from agentmon.domain.changes import MOST_PATHS, FileChange, artifact_kind, stored_path
from agentmon.domain.conversation import DiffNews
from agentmon.domain.events import EventType, TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import LOCAL_USER_ID, OperationId, new_id
from agentmon.domain.operations import ArtifactKind, OperationStatus, OperationType
from agentmon.domain.redaction import redact
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.column_types import json_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import RowMapping, Select

    from agentmon.domain.events import Actor
    from agentmon.domain.ids import ExecutionId, TaskId
    from agentmon.store.database import Database

_UNDOING: Final = (TaskEventType.CHANGES_UNDONE, TaskEventType.EDITS_DISCARDED)
"""Lines of the audit trail with the snapshots between which something was taken back."""


_MOST_DIFF: Final = 40_000
_NO_TEXT: Final = "its name is no text, so that only the whole run can be taken back"


class RecordedUndo(NamedTuple):
    """Changes of a run that were taken back, as the audit trail has it."""

    execution_id: ExecutionId
    before_snapshot: str
    after_snapshot: str
    only: tuple[str, ...]
    """Its files of what differs between the two snapshots; all when empty."""
    operation_id: str | None
    """The tool call, when it was the changes of one."""
    is_redo: bool
    """Whether it took an undo back itself."""


class RecordedCall(NamedTuple):
    """A tool call of a run as the agent's own record tells it."""

    execution_id: ExecutionId
    operation_ref: str
    tool_name: str
    type: OperationType
    target: str
    started_at: datetime
    finished_at: datetime | None


class ChangeRepository:
    """Reads and writes what runs changed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, execution_id: ExecutionId, *, snapshot_id: str | None, note: str, at: datetime) -> None:
        """Write what the folder of an execution held before its first try; a later try keeps that.

        Args:
            execution_id: Whose folder.
            snapshot_id: The snapshot; None when nobody could look.
            note: Why there is none, or what it leaves out.
            at: The time now.
        """
        executions = tables.executions
        is_first = (executions.c.id == execution_id, executions.c.before_snapshot.is_(None))
        async with self._database.writing() as connection:
            await connection.execute(
                update(executions)
                .where(*is_first)
                .values(before_snapshot=snapshot_id, snapshot_note=note or None, updated_at=at)
            )

    async def began(self, execution_id: ExecutionId) -> tuple[str | None, datetime | None]:
        """Return the snapshot from before an execution, and when its program started."""
        executions = tables.executions
        statement = select(executions.c.before_snapshot, executions.c.started_at).where(executions.c.id == execution_id)
        async with self._database.reading() as connection:
            row = (await connection.execute(statement)).one()
            return row.before_snapshot, row.started_at

    async def note(self, execution_id: ExecutionId, note: str, *, at: datetime) -> None:
        """Write why the changes of an execution are not known."""
        executions = tables.executions
        changed = update(executions).where(executions.c.id == execution_id).values(snapshot_note=note, updated_at=at)
        async with self._database.writing() as connection:
            await connection.execute(changed)

    async def record(
        self, execution_id: ExecutionId, *, snapshot_id: str, changes: Sequence[FileChange], at: datetime
    ) -> None:
        """Write what an execution changed, in the place of what was written of it before.

        Args:
            execution_id: Whose changes.
            snapshot_id: What its folder held at its end.
            changes: Against what it held before it began.
            at: The time now.
        """
        executions, rows = tables.executions, tables.changes
        values = {
            "after_snapshot": snapshot_id,
            "changed_files": len(changes),
            "lines_added": sum(one.lines_added for one in changes),
            "lines_removed": sum(one.lines_removed for one in changes),
            "updated_at": at,
        }
        async with self._database.writing() as connection:
            await connection.execute(
                delete(rows).where(rows.c.execution_id == execution_id, rows.c.operation_id.is_(None))
            )
            await connection.execute(update(executions).where(executions.c.id == execution_id).values(values))
            if changes:
                await connection.execute(insert(rows), [_columns_of(one, execution_id, None, at) for one in changes])

    async def record_call(
        self,
        execution_id: ExecutionId,
        operation_ref: str,
        changes: Sequence[tuple[FileChange, str]],
        *,
        note: str,
        shown: Collection[str] = (),
        at: datetime,
    ) -> None:
        """Write what one tool call changed; a call without a row is left out.

        Args:
            execution_id: Of the run.
            operation_ref: The try and the agent's own name of the call.
            changes: Each with its unified hunks.
            note: What is not known.
            shown: Paths of which the agent itself has told the difference; of the others an event tells it.
            at: The time now.
        """
        rows, operations = tables.changes, tables.operations
        result: dict[str, object] = {
            "files": len(changes),
            "lines_added": sum(one.lines_added for one, _ in changes),
            "lines_removed": sum(one.lines_removed for one, _ in changes),
            "paths": [stored_path(one.path) for one, _ in changes[:MOST_PATHS]],
            "note": note,
        }
        written = (
            update(operations)
            .where(operations.c.execution_id == execution_id, operations.c.operation_ref == operation_ref)
            .values(result=result, updated_at=at)
            .returning(operations.c.id, operations.c.session_id)
        )
        async with self._database.writing() as connection:
            call = (await connection.execute(written)).first()
            if call is None:
                return
            await connection.execute(delete(rows).where(rows.c.operation_id == call.id))
            if changes:
                columns = [_columns_of(one, execution_id, call.id, at) for one, _ in changes]
                await connection.execute(insert(rows), columns)
            events = [_event_of(one, hunks, operation_ref, call.id) for one, hunks in changes if one.path not in shown]
            if events:
                common = {
                    "execution_id": execution_id,
                    "session_id": call.session_id,
                    "user_id": LOCAL_USER_ID,
                    "trace_id": execution_id,
                    "type": EventType.DIFF,
                    "level": None,
                    "timestamp_ms": round(at.timestamp() * 1000),
                }
                await connection.execute(
                    insert(tables.events), [common | {"payload": payload} for payload in events[:MOST_PATHS]]
                )

    async def unsettled_calls(
        self, execution_ids: Collection[ExecutionId], *, reads_since: datetime
    ) -> tuple[RecordedCall, ...]:
        """Return the tool calls of which nothing is written yet, in their order.

        Args:
            execution_ids: Of these runs.
            reads_since: Of calls that read only those that began since.
        """
        operations = tables.operations
        statement = (
            select(*(operations.c[name] for name in RecordedCall._fields))
            .where(
                operations.c.execution_id.in_(execution_ids),
                operations.c.operation_ref.is_not(None),
                operations.c.result.is_(null()),
                or_(
                    operations.c.type.in_([OperationType.WRITE, OperationType.EXECUTE]),
                    and_(operations.c.type == OperationType.READ, operations.c.started_at >= reads_since),
                ),
            )
            .order_by(operations.c.started_at, operations.c.id)
        )
        async with self._database.reading() as connection:
            return tuple(RecordedCall(*row) for row in await connection.execute(statement))

    async def written_targets(self, execution_id: ExecutionId) -> tuple[str, ...]:
        """Return what tool calls of an execution wrote as far as they name it: a path, or several with commas."""
        operations = tables.operations
        statement = (
            select(operations.c.target)
            .where(
                operations.c.execution_id == execution_id,
                operations.c.type == OperationType.WRITE,
                operations.c.status == OperationStatus.SUCCESS,
            )
            .distinct()
        )
        async with self._database.reading() as connection:
            return tuple((await connection.execute(statement)).scalars())

    async def record_artifacts(self, execution_id: ExecutionId, paths: Collection[str], *, at: datetime) -> None:
        """Write which files an execution wrote outside of version control, in the place of what was written before.

        Args:
            execution_id: Of the run; one without a conversation has none.
            paths: Absolute.
            at: The time now.
        """
        rows, executions = tables.artifacts, tables.executions
        async with self._database.writing() as connection:
            await connection.execute(delete(rows).where(rows.c.execution_id == execution_id))
            of_run = select(executions.c.session_id).where(executions.c.id == execution_id)
            session_id = (await connection.execute(of_run)).scalar()
            stored = sorted(map(stored_path, paths)) if session_id is not None else []
            if stored:
                common = {"session_id": session_id, "execution_id": execution_id, "created_at": at}
                await connection.execute(
                    insert(rows),
                    [common | {"id": new_id(), "path": path, "kind": artifact_kind(path)} for path in stored],
                )

    async def artifacts_of(self, execution_id: ExecutionId) -> tuple[tuple[str, ArtifactKind], ...]:
        """Return what an execution wrote outside of version control, each with what it is, in the order of paths."""
        rows = tables.artifacts
        statement = select(rows.c.path, rows.c.kind).where(rows.c.execution_id == execution_id).order_by(rows.c.path)
        async with self._database.reading() as connection:
            return tuple((row.path, ArtifactKind(row.kind)) for row in await connection.execute(statement))

    async def of_execution(self, execution_id: ExecutionId) -> tuple[FileChange, ...]:
        """Return what an execution changed, in the order of paths; of one that has not ended, nothing."""
        rows = tables.changes
        statement = (
            select(rows).where(rows.c.execution_id == execution_id, rows.c.operation_id.is_(None)).order_by(rows.c.path)
        )
        async with self._database.reading() as connection:
            return tuple(_change_of(row) for row in (await connection.execute(statement)).mappings())

    async def of_calls(self, execution_id: ExecutionId) -> Mapping[OperationId, tuple[FileChange, ...]]:
        """Return what each tool call of an execution changed, in the order of paths; those that changed nothing not."""
        rows = tables.changes
        statement = (
            select(rows)
            .where(rows.c.execution_id == execution_id, rows.c.operation_id.is_not(None))
            .order_by(rows.c.operation_id, rows.c.path)
        )
        found: dict[OperationId, tuple[FileChange, ...]] = {}
        async with self._database.reading() as connection:
            for row in (await connection.execute(statement)).mappings():
                call = OperationId(row["operation_id"])
                found[call] = (*found.get(call, ()), _change_of(row))
        return found

    async def written_beside(
        self, execution_id: ExecutionId, folder: str, *, since: datetime, until: datetime
    ) -> frozenset[str]:
        """Return the files that tool calls of other runs wrote in a folder meanwhile, and none of this run.

        Args:
            execution_id: The run.
            folder: Absolute; what is outside of it is left out.
            since: When the run began.
            until: When it ended.

        Returns:
            Paths relative to the folder.
        """
        operations, executions = tables.operations, tables.executions
        statement = (
            select(operations.c.execution_id, operations.c.target, executions.c.working_dir)
            .join(executions, executions.c.id == operations.c.execution_id)
            .where(
                operations.c.type == OperationType.WRITE,
                operations.c.started_at.between(since, until),
                executions.c.heartbeat_at >= since,
            )
        )
        own: set[str] = set()
        others: set[str] = set()
        async with self._database.reading() as connection:
            for row in await connection.execute(statement):
                path = _within(folder, row.working_dir, row.target)
                if path is not None:
                    (own if row.execution_id == execution_id else others).add(path)
        return frozenset(others - own)

    async def looked_at(self, digests: Collection[str]) -> frozenset[str]:
        """Return which of these stretches of lines a person has looked at."""
        rows = tables.looked_at
        statement = select(rows.c.digest).where(rows.c.digest.in_(_listed(digests)))
        async with self._database.reading() as connection:
            return frozenset((await connection.execute(statement)).scalars())

    async def mark_looked_at(self, digests: Collection[str], *, is_looked: bool, at: datetime) -> None:
        """Keep that a person has looked at these stretches of lines, or wants to look again."""
        rows = tables.looked_at
        async with self._database.writing() as connection:
            await connection.execute(delete(rows).where(rows.c.digest.in_(_listed(digests))))
            if is_looked and digests:
                await connection.execute(insert(rows), [{"digest": digest, "created_at": at} for digest in digests])

    async def note_undone(
        self,
        task_id: TaskId,
        execution_id: ExecutionId,
        *,
        undo_id: str,
        call: str | None = None,
        files: int,
        snapshots: tuple[str, str],
        only: Sequence[str] = (),
        is_redo: bool = False,
        is_late: bool = False,
        actor: Actor,
        at: datetime,
    ) -> bool:
        """Write to the audit trail that changes of an execution were taken back; return False where it is there.

        Args:
            task_id: Of the execution.
            execution_id: Whose changes; of several the newest.
            undo_id: Names this undo, which whoever did it and whoever finishes it may write down at the same time.
            call: Of which tool call alone.
            files: In how many files.
            snapshots: What the folder held before and after that, so that it can be taken back itself.
            only: The files that are its own of what differs between the two; all when empty.
            is_redo: Whether an undo was taken back.
            is_late: Whether a kill had broken it off, and it was finished later.
            actor: Who did it.
            at: The time now.
        """
        before, after = snapshots
        payload: dict[str, object] = {
            "execution_id": execution_id,
            "undo_id": undo_id,
            "files": files,
            "only": list(only),
            "before_snapshot": before,
            "after_snapshot": after,
        }
        payload |= ({"is_late": True} if is_late else {}) | ({"operation_id": call} if call is not None else {})
        payload |= {"is_redo": True} if is_redo else {}
        events = tables.task_events
        known = select(events.c.id).where(
            events.c.task_id == task_id,
            events.c.event_type == TaskEventType.CHANGES_UNDONE,
            func.json_extract(events.c.payload, "$.undo_id") == undo_id,
        )
        async with self._database.writing() as connection:
            if (await connection.execute(known)).first() is not None:
                return False
            await append_task_event(
                connection,
                task_id=task_id,
                actor=actor,
                event_type=TaskEventType.CHANGES_UNDONE,
                payload=payload,
                at=at,
            )
        return True

    async def last_undo(self, task_id: TaskId) -> RecordedUndo | None:
        """Return the newest undo of a task; None when nothing of it was undone.

        That another run discarded edits of it counts as one.
        """
        events = tables.task_events
        statement = (
            select(events.c.payload)
            .where(events.c.task_id == task_id, events.c.event_type.in_(_UNDOING))
            .order_by(events.c.id.desc())
            .limit(1)
        )
        async with self._database.reading() as connection:
            payload = (await connection.execute(statement)).scalar()
        if payload is None:
            return None
        return RecordedUndo(
            execution_id=payload["execution_id"],
            before_snapshot=payload["before_snapshot"],
            after_snapshot=payload["after_snapshot"],
            only=tuple(payload["only"]),
            operation_id=payload.get("operation_id"),
            is_redo=payload.get("is_redo", False),
        )

    async def folders_at_work(self) -> tuple[tuple[int, str], ...]:
        """Return where runs work now: the number of the task, and the folder."""
        executions, tasks = tables.executions, tables.tasks
        statement = (
            select(tasks.c.number, executions.c.working_dir)
            .join(tasks, tasks.c.id == executions.c.task_id)
            .where(tables.IS_OPEN, executions.c.status != ExecutionStatus.QUEUED, executions.c.working_dir.is_not(None))
        )
        async with self._database.reading() as connection:
            return tuple((row.number, row.working_dir) for row in await connection.execute(statement))

    async def kept_snapshots(self) -> frozenset[str]:
        """Return the snapshots of all runs whose logs are kept, and of all undos."""
        executions, events = tables.executions, tables.task_events
        of_runs = select(executions.c.before_snapshot, executions.c.after_snapshot).where(
            executions.c.log_removed_at.is_(None), executions.c.before_snapshot.is_not(None)
        )
        of_undos = select(events.c.payload).where(events.c.event_type.in_(_UNDOING))
        async with self._database.reading() as connection:
            ids = {one for row in await connection.execute(of_runs) for one in row}
            for payload in (await connection.execute(of_undos)).scalars():
                ids |= {payload.get("before_snapshot"), payload.get("after_snapshot")}
        return frozenset(ids - {None})

    async def kept_contents(self) -> frozenset[str]:
        """Return the ids of what files held before and after tool calls of runs whose logs are kept."""
        rows, executions = tables.changes, tables.executions
        statement = (
            select(rows.c.before_ref, rows.c.after_ref)
            .join(executions, executions.c.id == rows.c.execution_id)
            .where(rows.c.operation_id.is_not(None), executions.c.log_removed_at.is_(None))
        )
        async with self._database.reading() as connection:
            return frozenset({ref for row in await connection.execute(statement) for ref in row} - {None})


def _within(folder: str, working_dir: str | None, target: str) -> str | None:
    path = os.path.normpath(os.path.join(working_dir or folder, target))  # noqa: PTH118 - no file is asked
    relative = os.path.relpath(path, folder)
    return None if relative.startswith("..") else relative


def _listed(words: Collection[str]) -> Select[tuple[str]]:
    """Return any number of words as a query, which has one parameter."""
    return select(func.json_each(json_text(sorted(words))).table_valued("value").c.value)


def _columns_of(
    change: FileChange, execution_id: ExecutionId, operation_id: str | None, at: datetime
) -> dict[str, object]:
    # A call is taken back by what is stored of it.
    can_undo = change.can_undo and (operation_id is None or stored_path(change.path) == change.path)
    return {
        "id": new_id(),
        "execution_id": execution_id,
        "operation_id": operation_id,
        "path": stored_path(change.path),
        "old_path": None if change.old_path is None else stored_path(change.old_path),
        "change_type": change.change_type,
        "before_ref": change.before_ref,
        "after_ref": change.after_ref,
        "before_mode": change.before_mode,
        "after_mode": change.after_mode,
        "diff_lines": change.lines_added + change.lines_removed,
        "lines_added": change.lines_added,
        "is_binary": change.is_binary,
        "can_undo": can_undo,
        "why_not": change.why_not or (None if can_undo else _NO_TEXT),
        "created_at": at,
        "updated_at": at,
    }


def _event_of(change: FileChange, hunks: str, operation_ref: str, operation_id: str) -> dict[str, object]:
    """Return the difference of a file as the agents' own are told, with the call that it is of."""
    news = DiffNews(
        path=stored_path(change.path),
        change_type=change.change_type,
        diff=redact(hunks)[:_MOST_DIFF],
        added_lines=change.lines_added,
        removed_lines=change.lines_removed,
        tool_ref=operation_ref.partition(":")[2],
    )
    return {"kind": "diff", **asdict(news), "change_type": news.change_type.value, "operation_id": operation_id}


def _change_of(row: RowMapping) -> FileChange:
    return FileChange(
        path=row["path"],
        change_type=row["change_type"],
        old_path=row["old_path"],
        before_ref=row["before_ref"],
        after_ref=row["after_ref"],
        before_mode=row["before_mode"],
        after_mode=row["after_mode"],
        lines_added=row["lines_added"],
        lines_removed=row["diff_lines"] - row["lines_added"],
        is_binary=row["is_binary"],
        can_undo=row["can_undo"],
        why_not=row["why_not"] or "",
    )
