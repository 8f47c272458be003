"""The worker's side of executions: claiming, starting, commands on their way, heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, func, select, text, update
from sqlalchemy.dialects.sqlite import insert

from agentmon.domain.card_moves import status_at_start
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import LIVE_STATUSES, ExecutionStatus
from agentmon.domain.executions import ClaimedExecution
from agentmon.domain.ids import ExecutionId
from agentmon.domain.task_status import TaskStatus
from agentmon.store import tables
from agentmon.store.agents import read_agents
from agentmon.store.audit import append_task_event
from agentmon.store.column_types import Moment
from agentmon.store.ingest import LAST_RETRY_AFTER
from agentmon.store.mapping import command_of, execution_of, task_of
from agentmon.store.task_moves import SYSTEM_ACTOR, move_task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.executions import Execution, ExecutionCommand
    from agentmon.domain.ids import CommandId, WorkerId
    from agentmon.store.database import Database


# Plain SQL with its words written out: a partial index is used only where the statement repeats its condition, and
# building the statement anew for each claim costs more than all else about it.
_CLAIM: Final = text("""
UPDATE executions
SET status = 'running', worker_id = :worker_id, started_at = :at, heartbeat_at = :at, updated_at = :at
WHERE id = (
    SELECT q.id FROM executions q INDEXED BY ix_executions_queued
    JOIN tasks t ON t.id = q.task_id
    JOIN agents a ON a.id = q.agent_id
    WHERE q.status = 'queued'
      AND (q.not_before IS NULL OR q.not_before <= :at OR q.not_before > :latest)
      AND t.deleted_at IS NULL
      AND (a.max_concurrent = 0 OR a.max_concurrent > (
          SELECT count(*) FROM executions r
          WHERE r.agent_id = q.agent_id AND r.status IN ('cancelling', 'running')))
      AND NOT EXISTS (
          SELECT 1 FROM task_dependencies d
          JOIN tasks p ON p.id = d.depends_on_task_id
          WHERE d.task_id = q.task_id AND p.status IN ('todo', 'in_progress', 'blocked') AND p.deleted_at IS NULL)
    ORDER BY t.priority, coalesce(q.not_before, q.created_at), q.id
    LIMIT 1)
  AND status = 'queued'
  AND :max_running > (
      SELECT count(*) FROM executions l
      WHERE l.status IN ('cancelling', 'queued', 'running') AND l.status <> 'queued')
RETURNING id
""").bindparams(bindparam("at", type_=Moment()), bindparam("latest", type_=Moment()))


class ClaimRepository:
    """What the worker reads and writes about executions that it starts and watches."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, *, worker_id: WorkerId, max_running: int, at: datetime) -> ClaimedExecution | None:
        """Take the next queued execution that the limits allow, or None.

        One guarded statement holds the limits over all and per agent, leaves out what waits for open tasks, and
        takes urgent tasks first, then the oldest; a retry that waits longer than any wait is due, since the clock was
        set back. The card moves to In progress in the same transaction.
        """
        tasks = tables.tasks
        parameters = {"worker_id": worker_id, "max_running": max_running, "at": at, "latest": at + LAST_RETRY_AFTER}
        async with self._database.writing() as connection:
            execution_id = (await connection.execute(_CLAIM, parameters)).scalar()
            if execution_id is None:
                return None
            claimed = await _claimed(connection, execution_id)
            task = (await connection.execute(select(tasks).where(tasks.c.id == claimed.task.id))).mappings().one()
            await append_task_event(
                connection,
                task_id=claimed.task.id,
                actor=SYSTEM_ACTOR,
                event_type=TaskEventType.EXECUTION_STARTED,
                payload={"execution_id": execution_id, "retry_count": claimed.execution.retry_count},
                at=at,
            )
            target = status_at_start(TaskStatus(task["status"]))
            await move_task(connection, task, target, actor=SYSTEM_ACTOR, at=at, cause="its run started")
            return claimed

    async def live(self) -> tuple[ClaimedExecution, ...]:
        """Return every execution that has or may have a process, with all that starting it again would need."""
        executions = tables.executions
        statement = (
            select(executions.c.id)
            .where(tables.IS_OPEN, executions.c.status != ExecutionStatus.QUEUED)
            .order_by(executions.c.started_at)
            .limit(10_000)
        )
        async with self._database.reading() as connection:
            ids = (await connection.execute(statement)).scalars().all()
            return tuple([await _claimed(connection, execution_id) for execution_id in ids])

    async def open_ids(self) -> frozenset[ExecutionId]:
        """Return the executions that wait or run."""
        statement = select(tables.executions.c.id).where(tables.IS_OPEN)
        async with self._database.reading() as connection:
            return frozenset(ExecutionId(found) for found in (await connection.execute(statement)).scalars())

    async def count_waiting(self) -> int:
        """Return how many executions are in the queue."""
        statement = select(func.count()).select_from(tables.executions).where(tables.IS_QUEUED)
        async with self._database.reading() as connection:
            return (await connection.execute(statement)).scalar_one()

    async def record_session(
        self, execution_id: ExecutionId, *, worker_id: WorkerId, tmux_session_name: str, at: datetime
    ) -> None:
        """Note who watches the execution and the session in which its host runs."""
        await self._update(
            [execution_id], {"worker_id": worker_id, "tmux_session_name": tmux_session_name, "updated_at": at}
        )

    async def beat(
        self,
        execution_ids: Sequence[ExecutionId],
        *,
        worker_id: WorkerId,
        particulars: Mapping[str, object],
        at: datetime,
    ) -> None:
        """Say that the worker and the hosts of these executions live."""
        await self._update(execution_ids, {"heartbeat_at": at, "worker_id": worker_id})
        heartbeats = tables.worker_heartbeats
        statement = insert(heartbeats).values(
            worker_id=worker_id,
            last_seen_at=at,
            current_executions=len(execution_ids),
            metadata=dict(particulars),
            created_at=at,
        )
        async with self._database.writing() as connection:
            await connection.execute(
                statement.on_conflict_do_update(
                    index_elements=["worker_id"],
                    set_={
                        "last_seen_at": statement.excluded.last_seen_at,
                        "current_executions": statement.excluded.current_executions,
                        "metadata": statement.excluded.metadata,
                    },
                )
            )

    async def undelivered_commands(self) -> tuple[ExecutionCommand, ...]:
        """Return the commands that no host has got yet, oldest first."""
        commands = tables.execution_commands
        statement = select(commands).where(commands.c.delivered_at.is_(None)).order_by(commands.c.id).limit(1000)
        async with self._database.reading() as connection:
            return tuple(command_of(row) for row in (await connection.execute(statement)).mappings())

    async def mark_delivered(self, command_ids: Sequence[CommandId], *, at: datetime) -> None:
        """Note that the commands stand in their hosts' files."""
        commands = tables.execution_commands
        async with self._database.writing() as connection:
            await connection.execute(update(commands).where(commands.c.id.in_(command_ids)).values(delivered_at=at))

    async def _update(self, execution_ids: Sequence[ExecutionId], columns: Mapping[str, object]) -> None:
        if not execution_ids:
            return
        executions = tables.executions
        async with self._database.writing() as connection:
            await connection.execute(
                update(executions)
                .where(executions.c.id.in_(execution_ids), executions.c.status.in_(list(LIVE_STATUSES)))
                .values(**columns)
            )


async def _claimed(connection: AsyncConnection, execution_id: str) -> ClaimedExecution:
    tasks, executions, workspaces = tables.tasks, tables.executions, tables.workspaces
    row = (await connection.execute(select(executions).where(executions.c.id == execution_id))).mappings().one()
    execution: Execution = execution_of(row)
    joined = (
        select(tasks, workspaces.c.root_path)
        .join(workspaces, workspaces.c.id == tasks.c.workspace_id)
        .where(tasks.c.id == execution.task_id)
    )
    task = (await connection.execute(joined)).mappings().one()
    (agent,) = await read_agents(connection, tables.agents.c.id == execution.agent_id)
    (capability,) = [part for part in agent.capabilities if part.id == execution.capability_id]
    return ClaimedExecution(
        execution=execution,
        task=task_of(task),
        agent=agent,
        capability=capability,
        workspace_root=task["root_path"],
    )
