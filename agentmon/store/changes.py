"""What runs changed in their folders: the snapshots around each, and one row for each file that differs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, insert, select, update

from agentmon.domain.changes import FileChange, stored_path
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import new_id
from agentmon.domain.operations import OperationType
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.column_types import json_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import RowMapping, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor
    from agentmon.domain.ids import ExecutionId, TaskId
    from agentmon.store.database import Database


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
        self, execution_id: ExecutionId, *, snapshot_id: str, root: str, changes: Sequence[FileChange], at: datetime
    ) -> None:
        """Write what an execution changed, in the place of what was written of it before.

        Args:
            execution_id: Whose changes.
            snapshot_id: What its folder held at its end.
            root: The folder to which the paths of the changes belong; absolute.
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
            await connection.execute(delete(rows).where(rows.c.execution_id == execution_id))
            await connection.execute(update(executions).where(executions.c.id == execution_id).values(values))
            if changes:
                calls = await self._calls_by_path(connection, execution_id, root)
                await connection.execute(
                    insert(rows),
                    [_columns_of(one, execution_id, calls.get(stored_path(one.path)), at) for one in changes],
                )

    async def of_execution(self, execution_id: ExecutionId) -> tuple[FileChange, ...]:
        """Return what an execution changed, in the order of paths; of one that has not ended, nothing."""
        rows = tables.changes
        statement = select(rows).where(rows.c.execution_id == execution_id).order_by(rows.c.path)
        async with self._database.reading() as connection:
            return tuple(_change_of(row) for row in (await connection.execute(statement)).mappings())

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
        files: int,
        snapshots: tuple[str, str],
        only: Sequence[str] = (),
        actor: Actor,
        at: datetime,
    ) -> None:
        """Write to the audit trail that changes of an execution were taken back.

        Args:
            task_id: Of the execution.
            execution_id: Whose changes.
            files: In how many files.
            snapshots: What the folder held before and after that, so that it can be taken back itself.
            only: The files that are its own of what differs between the two; all when empty.
            actor: Who did it.
            at: The time now.
        """
        before, after = snapshots
        payload: dict[str, object] = {
            "execution_id": execution_id,
            "files": files,
            "only": list(only),
            "before_snapshot": before,
            "after_snapshot": after,
        }
        async with self._database.writing() as connection:
            await append_task_event(
                connection,
                task_id=task_id,
                actor=actor,
                event_type=TaskEventType.CHANGES_UNDONE,
                payload=payload,
                at=at,
            )

    async def last_undo(self, task_id: TaskId) -> tuple[str, str, tuple[str, ...]] | None:
        """Return the snapshots before and after the newest undo of a task, and its files where not all are its own."""
        events = tables.task_events
        statement = (
            select(events.c.payload)
            .where(events.c.task_id == task_id, events.c.event_type == TaskEventType.CHANGES_UNDONE)
            .order_by(events.c.id.desc())
            .limit(1)
        )
        async with self._database.reading() as connection:
            payload = (await connection.execute(statement)).scalar()
        if payload is None:
            return None
        return payload["before_snapshot"], payload["after_snapshot"], tuple(payload["only"])

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
        of_undos = select(events.c.payload).where(events.c.event_type == TaskEventType.CHANGES_UNDONE)
        async with self._database.reading() as connection:
            ids = {one for row in await connection.execute(of_runs) for one in row}
            for payload in (await connection.execute(of_undos)).scalars():
                ids |= {payload.get("before_snapshot"), payload.get("after_snapshot")}
        return frozenset(ids - {None})

    async def _calls_by_path(
        self, connection: AsyncConnection, execution_id: ExecutionId, root: str
    ) -> Mapping[str | None, str]:
        """Return by path the last tool call that named it as what it writes."""
        operations, executions = tables.operations, tables.executions
        statement = (
            select(operations.c.id, operations.c.target, executions.c.working_dir)
            .join(executions, executions.c.id == operations.c.execution_id)
            .where(operations.c.execution_id == execution_id, operations.c.type == OperationType.WRITE)
            .order_by(operations.c.id)
        )
        return {_within(root, row.working_dir, row.target): row.id for row in await connection.execute(statement)}


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
        "can_undo": change.can_undo,
        "why_not": change.why_not or None,
        "created_at": at,
        "updated_at": at,
    }


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
