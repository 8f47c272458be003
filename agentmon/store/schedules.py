"""Tasks that run by themselves again and again: which are due, and their next time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select, update

from agentmon.domain.events import TaskEventType
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.executions import queue_execution
from agentmon.store.mapping import task_of
from agentmon.store.stops import find_open
from agentmon.store.task_labels import select_tasks
from agentmon.store.task_moves import SYSTEM_ACTOR

if TYPE_CHECKING:
    from datetime import datetime

    from agentmon.domain.executions import Execution, ExecutionRequest
    from agentmon.domain.ids import ExecutionId
    from agentmon.domain.tasks import Task
    from agentmon.store.database import Database


class ScheduleRepository:
    """Reads and moves on the times at which tasks run by themselves."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def next_time(self) -> datetime | None:
        """Return the earliest time at which a task is due."""
        tasks = tables.tasks
        statement = select(func.min(tasks.c.next_run_at)).where(
            tasks.c.next_run_at.is_not(None), tasks.c.deleted_at.is_(None), tasks.c.archived_at.is_(None)
        )
        async with self._database.reading() as connection:
            earliest: datetime | None = (await connection.execute(statement)).scalar()
        return earliest

    async def due(self, *, at: datetime) -> tuple[Task, ...]:
        """Return the tasks whose time has come, the longest overdue first."""
        tasks = tables.tasks
        statement = (
            select_tasks()
            .where(
                tasks.c.next_run_at.is_not(None),
                tasks.c.next_run_at <= at,
                tasks.c.deleted_at.is_(None),
                tasks.c.archived_at.is_(None),
            )
            .order_by(tasks.c.next_run_at, tasks.c.id)
            .limit(1000)
        )
        async with self._database.reading() as connection:
            return tuple(task_of(row) for row in (await connection.execute(statement)).mappings())

    async def waiting(self, *, after: datetime) -> tuple[Task, ...]:
        """Return the tasks that run by themselves for the first time after that time."""
        tasks = tables.tasks
        statement = select_tasks().where(
            tasks.c.next_run_at > after,
            tasks.c.cron.is_not(None),
            tasks.c.deleted_at.is_(None),
            tasks.c.archived_at.is_(None),
        )
        async with self._database.reading() as connection:
            return tuple(task_of(row) for row in (await connection.execute(statement)).mappings())

    async def bring_forward(self, task: Task, next_run_at: datetime) -> None:
        """Set an earlier next time of a task, unless somebody else has set one since."""
        tasks = tables.tasks
        async with self._database.writing() as connection:
            await connection.execute(
                update(tasks)
                .where(tasks.c.id == task.id, tasks.c.next_run_at == task.next_run_at)
                .values(next_run_at=next_run_at)
            )

    async def queue_due(
        self,
        task: Task,
        request: ExecutionRequest | None,
        *,
        execution_id: ExecutionId,
        log_file_path: str,
        next_run_at: datetime | None,
        cannot_run: str,
        at: datetime,
    ) -> Execution | None:
        """Queue one execution of a due task and set its next time, in one transaction.

        However many times were missed, one execution is queued. When one waits or runs already none is, and the audit
        trail says so.

        Args:
            task: As ``due`` returned it.
            request: What to run; None when it cannot be run.
            execution_id: The id of the new execution.
            log_file_path: Where its output goes.
            next_run_at: Its next time; None when there is none.
            cannot_run: Why there is no request.
            at: The time now.

        Returns:
            What was queued; None when nothing was, or when somebody else did it.
        """
        tasks = tables.tasks
        async with self._database.writing() as connection:
            moved = await connection.execute(
                update(tasks)
                .where(
                    tasks.c.id == task.id,
                    tasks.c.next_run_at == task.next_run_at,
                    tasks.c.deleted_at.is_(None),
                    tasks.c.archived_at.is_(None),
                )
                .values(next_run_at=next_run_at)
            )
            if not moved.rowcount:
                return None
            reason = cannot_run
            if request is not None:
                present = await find_open(connection, task.id)
                if present is None:
                    return await queue_execution(
                        connection,
                        request,
                        execution_id=execution_id,
                        log_file_path=log_file_path,
                        actor=SYSTEM_ACTOR,
                        at=at,
                    )
                reason = f"it is still {present.live_state.value}"
            await append_task_event(
                connection,
                task_id=task.id,
                actor=SYSTEM_ACTOR,
                event_type=TaskEventType.SCHEDULE_PASSED_OVER,
                payload={
                    "time": None if task.next_run_at is None else task.next_run_at.isoformat(),
                    "reason": reason,
                },
                at=at,
            )
            return None
