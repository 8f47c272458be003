"""Archived cards: off the board, with number, runs, logs and history kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, bindparam, exists, select, update

from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.task_status import TaskStatus
from agentmon.store import tables
from agentmon.store.audit import append_task_events
from agentmon.store.mapping import task_of
from agentmon.store.stops import find_open
from agentmon.store.task_labels import select_tasks
from agentmon.store.task_moves import ask_about_waiting

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor
    from agentmon.domain.ids import TaskId, WorkspaceId
    from agentmon.domain.tasks import Task
    from agentmon.store.database import Database

AT_ONE_TIME: Final = 1000
_CLOSED: Final = [status for status in TaskStatus if not status.is_open]


class ArchiveRepository:
    """Takes cards off the board and brings them back, each with its line in the audit trail."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def archive(self, task_id: TaskId, *, actor: Actor, at: datetime) -> Task:
        """Take the card off the board; one that is archived stays so.

        Raises:
            NotFoundError: The task is gone.
            ConflictError: An execution of it waits or runs.
        """
        async with self._database.writing() as connection:
            row = await _row(connection, task_id)
            present = await find_open(connection, task_id)
            if present is not None:
                state = "waits in the queue" if present.status is ExecutionStatus.QUEUED else "still runs"
                raise ConflictError(
                    f"#{row['number']} {state}, and cannot be archived",
                    hint=f"stop it first: x on the board, or `agentmon stop {row['number']}`",
                )
            if row["archived_at"] is None:
                await _set_archived(connection, [row], at, actor=actor, at=at)
                await ask_about_waiting(connection, task_id, at=at)
            return task_of(await _row(connection, task_id))

    async def unarchive(self, task_id: TaskId, *, next_run_at: datetime | None, actor: Actor, at: datetime) -> Task:
        """Bring the card back to where it was; one that is on the board stays.

        Args:
            task_id: Which.
            next_run_at: The next time of its schedule; times that passed meanwhile are not made up for.
            actor: Who does it.
            at: The time now.

        Raises:
            NotFoundError: The task is gone.
        """
        async with self._database.writing() as connection:
            row = await _row(connection, task_id)
            if row["archived_at"] is not None:
                await connection.execute(
                    update(tables.tasks).where(tables.tasks.c.id == task_id).values(next_run_at=next_run_at)
                )
                await _set_archived(connection, [row], None, actor=actor, at=at)
                await ask_about_waiting(connection, task_id, at=at)
            return task_of(await _row(connection, task_id))

    async def closed_before(
        self, moment: datetime, workspace_id: WorkspaceId | None, *, limit: int = AT_ONE_TIME
    ) -> tuple[Task, ...]:
        """Return closed cards on the board that nothing has changed since the moment, the oldest first.

        None as the workspace means all. Cards with an open execution are left out.
        """
        tasks = tables.tasks
        is_there = [] if workspace_id is None else [tasks.c.workspace_id == workspace_id]
        statement = (
            select_tasks()
            .where(_may_go(moment), *is_there)
            .order_by(tasks.c.updated_at, tasks.c.id)
            .limit(min(limit, AT_ONE_TIME))
        )
        async with self._database.reading() as connection:
            return tuple(task_of(row) for row in (await connection.execute(statement)).mappings())

    async def archive_closed(
        self, moment: datetime, task_ids: Sequence[TaskId], *, cause: str, actor: Actor, at: datetime
    ) -> tuple[Task, ...]:
        """Archive those of the tasks that are still closed, unchanged since the moment and not running; return them.

        Args:
            moment: As given to ``closed_before``.
            task_ids: At most a thousand.
            cause: Why, for the audit trail.
            actor: Who does it.
            at: The time now.
        """
        tasks = tables.tasks
        async with self._database.writing() as connection:
            statement = select(tasks).where(_may_go(moment), tasks.c.id.in_(task_ids)).order_by(tasks.c.updated_at)
            rows = (await connection.execute(statement)).mappings().all()
            await _set_archived(connection, rows, at, actor=actor, at=at, cause=cause)
            archived = select_tasks().where(tasks.c.id.in_([row["id"] for row in rows])).order_by(tasks.c.number)
            return tuple(task_of(row) for row in (await connection.execute(archived)).mappings())


def _may_go(moment: datetime) -> ColumnElement[bool]:
    tasks, executions = tables.tasks, tables.executions
    return and_(
        tasks.c.status.in_(_CLOSED),
        tasks.c.deleted_at.is_(None),
        tasks.c.archived_at.is_(None),
        tasks.c.updated_at < moment,
        ~exists().where(executions.c.task_id == tasks.c.id, tables.IS_OPEN),
    )


async def _set_archived(
    connection: AsyncConnection,
    rows: Sequence[RowMapping],
    archived_at: datetime | None,
    *,
    actor: Actor,
    at: datetime,
    cause: str = "",
) -> None:
    if not rows:
        return
    tasks = tables.tasks
    await connection.execute(
        update(tasks)
        .where(tasks.c.id == bindparam("archived_id"))
        .values(archived_at=archived_at, version=tasks.c.version + 1, updated_at=at),
        [{"archived_id": row["id"]} for row in rows],
    )
    await append_task_events(
        connection,
        [(row["id"], {"title": row["title"], **({"cause": cause} if cause else {})}) for row in rows],
        actor=actor,
        event_type=TaskEventType.TASK_UNARCHIVED if archived_at is None else TaskEventType.TASK_ARCHIVED,
        at=at,
    )


async def _row(connection: AsyncConnection, task_id: str) -> RowMapping:
    statement = select_tasks().where(tables.tasks.c.id == task_id, tables.tasks.c.deleted_at.is_(None))
    row = (await connection.execute(statement)).mappings().first()
    if row is None:
        raise NotFoundError("this task was deleted", hint="`agentmon task restore` brings it back")
    return row
