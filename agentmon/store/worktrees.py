"""Worktrees that agentmon makes: written down by the claim before anything of them is on the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import bindparam, func, insert, select, text, update

from agentmon.domain.errors import NotFoundError
from agentmon.domain.events import TaskEventType
from agentmon.domain.ids import ExecutionId, TaskId, WorkspaceId, WorktreeId, new_id
from agentmon.domain.merges import Merged, MergeHow
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.worktrees import Worktree, WorktreeStatus, branch_name
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.stops import find_open
from agentmon.store.task_labels import select_tasks
from agentmon.store.task_moves import SYSTEM_ACTOR, move_task

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from sqlalchemy import RowMapping, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor
    from agentmon.domain.worktrees import WorktreePlaces
    from agentmon.store.database import Database


async def give_worktrees(
    connection: AsyncConnection,
    execution_ids: Sequence[str],
    *,
    folder: str,
    places: WorktreePlaces | None,
    at: datetime,
) -> None:
    """Let claimed executions work in a worktree: in the one that their row names, or in a new one.

    Args:
        connection: That of the claim, in its transaction.
        execution_ids: What works in no folder yet.
        folder: The expression for the folder that an execution would work in, over ``t``, ``a`` and ``w``.
        places: Where new ones are made; needed only where a row names none.
        at: The time now.
    """
    statement = text(f"""
        SELECT q.id, q.session_id, q.repository, q.worktree_id,
            coalesce(q.base, json_extract(t.input_context, '$.base')) AS base,
            {folder} AS folder, t.id AS task_id, t.workspace_id, t.number, t.title
        FROM executions q JOIN tasks t ON t.id = q.task_id JOIN agents a ON a.id = q.agent_id
        JOIN workspaces w ON w.id = t.workspace_id
        WHERE q.id IN :ids ORDER BY q.id
    """).bindparams(bindparam("ids", list(execution_ids), expanding=True))  # fmt: skip
    executions, worktrees, sessions = tables.executions, tables.worktrees, tables.sessions
    for row in (await connection.execute(statement)).mappings().all():
        worktree_id = row["worktree_id"]
        if worktree_id is None and places is not None:
            worktree_id = await _write_down(connection, row, places, at=at)
        known = (await connection.execute(select(worktrees).where(worktrees.c.id == worktree_id))).mappings().one()
        working_dir = known["path"] + _inside(row["folder"], known["source"])
        await connection.execute(
            update(executions)
            .where(executions.c.id == row["id"])
            .values(worktree_id=worktree_id, working_dir=working_dir)
        )
        await connection.execute(
            update(sessions).where(sessions.c.id == row["session_id"]).values(workspace=working_dir)
        )


def _inside(folder: str, source: str) -> str:
    """Return where in a worktree a folder is, as far as its name says; what links hide is known when it is made."""
    return folder[len(source) :].rstrip("/") if folder.startswith(f"{source.rstrip('/')}/") else ""


async def _write_down(connection: AsyncConnection, row: RowMapping, places: WorktreePlaces, *, at: datetime) -> str:
    worktrees = tables.worktrees
    source = row["repository"] or row["folder"]
    first = path = places.path_of(source, number=row["number"], title=row["title"])
    further = 1
    while (
        await connection.execute(
            select(worktrees.c.id).where(worktrees.c.path == path, worktrees.c.status != WorktreeStatus.REMOVED)
        )
    ).first():
        further += 1
        path = f"{first}-{further}"
    worktree_id = new_id()
    await connection.execute(
        insert(worktrees).values(
            id=worktree_id,
            workspace_id=row["workspace_id"],
            task_id=row["task_id"],
            source=source,
            path=path,
            branch=branch_name(places.branch_template, number=row["number"], title=row["title"]),
            base_branch=row["base"],
            status=WorktreeStatus.MAKING,
            created_at=at,
            updated_at=at,
        )
    )
    return worktree_id


class WorktreeRepository:
    """Reads and changes what is known of worktrees."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, worktree_id: WorktreeId) -> Worktree:
        """Return one worktree.

        Raises:
            NotFoundError: There is none of this id.
        """
        found = await self._read(_worktrees().where(tables.worktrees.c.id == worktree_id))
        if not found:
            raise NotFoundError("there is no such worktree", hint="`agentmon worktrees` lists them")
        return found[0]

    async def present(self, workspace_id: WorkspaceId | None = None) -> tuple[Worktree, ...]:
        """Return those that are not removed, of one workspace or of all, by the number of their task."""
        worktrees = tables.worktrees
        statement = _worktrees().where(worktrees.c.status != WorktreeStatus.REMOVED)
        if workspace_id is not None:
            statement = statement.where(worktrees.c.workspace_id == workspace_id)
        return await self._read(statement.order_by(tables.tasks.c.number, worktrees.c.id).limit(10_000))

    async def of_task(self, task_id: TaskId) -> tuple[Worktree, ...]:
        """Return those of a task that are not removed, the newest first."""
        worktrees = tables.worktrees
        return await self._read(
            _worktrees()
            .where(worktrees.c.task_id == task_id, worktrees.c.status != WorktreeStatus.REMOVED)
            .order_by(worktrees.c.id.desc())
        )

    async def last_snapshot(self, worktree_id: WorktreeId) -> str | None:
        """Return the snapshot of what a worktree held when its newest run ended, or began; None when nobody looked."""
        executions = tables.executions
        statement = (
            select(func.coalesce(executions.c.after_snapshot, executions.c.before_snapshot))
            .where(executions.c.worktree_id == worktree_id, executions.c.before_snapshot.is_not(None))
            .order_by(executions.c.created_at.desc(), executions.c.id.desc())
            .limit(1)
        )
        async with self._database.reading() as connection:
            found: str | None = (await connection.execute(statement)).scalar()
        return found

    async def in_use(self) -> frozenset[WorktreeId]:
        """Return those in which a run works, or will when it is tried again."""
        executions = tables.executions
        statement = select(executions.c.worktree_id).where(tables.IS_OPEN, executions.c.worktree_id.is_not(None))
        async with self._database.reading() as connection:
            return frozenset(map(WorktreeId, (await connection.execute(statement)).scalars()))

    async def slot(self, worktree_id: WorktreeId) -> int:
        """Return the smallest number that no other worktree that is there has, kept for as long as it is there."""
        worktrees = tables.worktrees
        async with self._database.writing() as connection:
            statement = select(worktrees.c.id, worktrees.c.slot).where(worktrees.c.status != WorktreeStatus.REMOVED)
            slots = {row.id: row.slot for row in await connection.execute(statement)}
            kept = slots.get(worktree_id)
            if kept is not None:
                return int(kept)
            taken = {slot for slot in slots.values() if slot is not None}
            slot = next(number for number in range(len(taken) + 1) if number not in taken)
            await connection.execute(update(worktrees).where(worktrees.c.id == worktree_id).values(slot=slot))
            return slot

    async def plan(
        self,
        worktree: Worktree,
        *,
        inside: str,
        execution_id: ExecutionId,
        at: datetime,
    ) -> str:
        """Write down what is about to be made, before it is; return the folder in which the execution works.

        Args:
            worktree: With all that was found out of it.
            inside: The folder in it, such as ``src``; empty for its top.
            execution_id: What works in it.
            at: The time now.
        """
        worktrees, executions, sessions = tables.worktrees, tables.executions, tables.sessions
        working_dir = f"{worktree.path}/{inside}" if inside else worktree.path
        async with self._database.writing() as connection:
            await connection.execute(
                update(worktrees)
                .where(worktrees.c.id == worktree.id)
                .values(
                    repository=worktree.repository,
                    path=worktree.path,
                    branch=worktree.branch,
                    base_branch=worktree.base_branch,
                    base_commit=worktree.base_commit,
                    status=WorktreeStatus.MAKING,
                    error=None,
                    updated_at=at,
                )
            )
            changed = await connection.execute(
                update(executions)
                .where(executions.c.id == execution_id)
                .values(working_dir=working_dir)
                .returning(executions.c.session_id)
            )
            await connection.execute(
                update(sessions).where(sessions.c.id == changed.scalar_one_or_none()).values(workspace=working_dir)
            )
        return working_dir

    async def finish(self, worktree: Worktree, *, error: str | None, at: datetime) -> None:
        """Note that the worktree can be worked in, or why it cannot."""
        status = WorktreeStatus.READY if error is None else WorktreeStatus.FAILED
        async with self._database.writing() as connection:
            await _set_status(connection, worktree.id, status, error=error, at=at)
            if error is None:
                await append_task_event(
                    connection,
                    task_id=worktree.task_id,
                    actor=SYSTEM_ACTOR,
                    event_type=TaskEventType.WORKTREE_MADE,
                    payload={"branch": worktree.branch, "path": worktree.path, "base": worktree.base_commit},
                    at=at,
                )

    async def note_restored(self, worktree: Worktree, *, files: int, actor: Actor, at: datetime) -> None:
        """Write to the audit trail that a worktree was made again, with so many files that were seen in it."""
        async with self._database.writing() as connection:
            await append_task_event(
                connection,
                task_id=worktree.task_id,
                actor=actor,
                event_type=TaskEventType.WORKTREE_RESTORED,
                payload={"branch": worktree.branch, "path": worktree.path, "files": files},
                at=at,
            )

    async def remove(
        self, worktree: Worktree, *, kept_ref: str | None = None, lost: Collection[str] = (), actor: Actor, at: datetime
    ) -> None:
        """Note that the worktree is gone, with what went with it and where its commits are kept."""
        async with self._database.writing() as connection:
            await _set_status(connection, worktree.id, WorktreeStatus.REMOVED, error=None, at=at)
            await append_task_event(
                connection,
                task_id=worktree.task_id,
                actor=actor,
                event_type=TaskEventType.WORKTREE_REMOVED,
                payload={"branch": worktree.branch, "path": worktree.path, "kept_ref": kept_ref, "lost": list(lost)},
                at=at,
            )

    async def merged_of_task(self, task_id: TaskId) -> Worktree | None:
        """Return the worktree of a task whose branch was merged last, also where it is gone; None for none."""
        worktrees = tables.worktrees
        statement = _worktrees().where(worktrees.c.task_id == task_id, worktrees.c.merge_how.is_not(None))
        found = await self._read(statement.order_by(worktrees.c.updated_at.desc()).limit(1))
        return found[0] if found else None

    async def note_merged(self, worktree: Worktree, merged: Merged, *, cause: str, actor: Actor, at: datetime) -> None:
        """Note that the branch of a worktree was merged, and move its card to Done; once, however often it is called.

        Args:
            worktree: Whose branch.
            merged: What became of its base.
            cause: What there is to say about it; empty for nothing.
            actor: Who merged it.
            at: The time now.
        """
        worktrees = tables.worktrees
        values = {
            "merge_how": merged.how,
            "merged_into": merged.into,
            "merged_from": merged.before,
            "merged_commit": merged.commit,
            "reverted_by": None,
        }
        payload = {"how": merged.how.value, "into": merged.into, "from": merged.before, "commit": merged.commit}
        async with self._database.writing() as connection:
            changed = await connection.execute(
                update(worktrees)
                .where(worktrees.c.id == worktree.id, worktrees.c.merged_commit.is_distinct_from(merged.commit))
                .values(values | {"updated_at": at})
            )
            if not changed.rowcount:
                return
            await append_task_event(
                connection,
                task_id=worktree.task_id,
                actor=actor,
                event_type=TaskEventType.BRANCH_MERGED,
                payload={**payload, "branch": worktree.branch, **({"cause": cause} if cause else {})},
                at=at,
            )
            found = await connection.execute(select_tasks().where(tables.tasks.c.id == worktree.task_id))
            task = found.mappings().one()
            is_on_board = task["deleted_at"] is None and task["archived_at"] is None
            if is_on_board and TaskStatus(task["status"]).is_open and await find_open(connection, task["id"]) is None:
                await move_task(connection, task, TaskStatus.DONE, actor=actor, at=at, cause="its branch was merged")

    async def note_merge_undone(
        self, worktree: Worktree, commit: str, *, cause: str, actor: Actor, at: datetime
    ) -> None:
        """Note that a commit took the merge of a worktree's branch back; once, however often it is called."""
        worktrees = tables.worktrees
        async with self._database.writing() as connection:
            changed = await connection.execute(
                update(worktrees)
                .where(worktrees.c.id == worktree.id, worktrees.c.reverted_by.is_distinct_from(commit))
                .values(reverted_by=commit, updated_at=at)
            )
            if changed.rowcount:
                await append_task_event(
                    connection,
                    task_id=worktree.task_id,
                    actor=actor,
                    event_type=TaskEventType.MERGE_UNDONE,
                    payload={"commit": commit, **({"cause": cause} if cause else {})},
                    at=at,
                )

    async def note_merge_broken_off(self, worktree: Worktree, into: str, *, at: datetime) -> None:
        """Note that a merge was broken off by a kill, and nothing of it is left."""
        async with self._database.writing() as connection:
            await append_task_event(
                connection,
                task_id=worktree.task_id,
                actor=SYSTEM_ACTOR,
                event_type=TaskEventType.MERGE_BROKEN_OFF,
                payload={"into": into},
                at=at,
            )

    async def _read(self, statement: Select[tuple[object, ...]]) -> tuple[Worktree, ...]:
        async with self._database.reading() as connection:
            return tuple(_worktree_of(row) for row in (await connection.execute(statement)).mappings())


def _worktrees() -> Select[tuple[object, ...]]:
    worktrees, tasks = tables.worktrees, tables.tasks
    return select(
        worktrees,
        tasks.c.number.label("task_number"),
        tasks.c.title,
        tasks.c.status.label("task_status"),
        tasks.c.deleted_at,
    ).join(tasks, tasks.c.id == worktrees.c.task_id)


async def _set_status(
    connection: AsyncConnection, worktree_id: WorktreeId, status: WorktreeStatus, *, error: str | None, at: datetime
) -> None:
    worktrees = tables.worktrees
    await connection.execute(
        update(worktrees).where(worktrees.c.id == worktree_id).values(status=status, error=error, updated_at=at)
    )


def _worktree_of(row: RowMapping) -> Worktree:
    return Worktree(
        id=WorktreeId(row["id"]),
        workspace_id=WorkspaceId(row["workspace_id"]),
        task_id=TaskId(row["task_id"]),
        task_number=row["task_number"],
        task_title=row["title"],
        is_task_closed=row["deleted_at"] is not None or not TaskStatus(row["task_status"]).is_open,
        source=row["source"],
        repository=row["repository"],
        path=row["path"],
        branch=row["branch"],
        base_branch=row["base_branch"],
        base_commit=row["base_commit"],
        status=WorktreeStatus(row["status"]),
        error=row["error"],
        merged=_merged_of(row),
        created_at=row["created_at"],
    )


def _merged_of(row: RowMapping) -> Merged | None:
    if row["merge_how"] is None:
        return None
    return Merged(
        how=MergeHow(row["merge_how"]),
        into=row["merged_into"],
        before=row["merged_from"],
        commit=row["merged_commit"],
        reverted_by=row["reverted_by"],
    )
