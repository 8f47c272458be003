"""The worker's side of executions that have or may have a process: heartbeats, owners, commands on their way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import func, literal_column, select, true, update
from sqlalchemy.dialects.sqlite import insert

from agentmon.domain.execution_status import LIVE_STATUSES, ExecutionStatus
from agentmon.domain.executions import CommandType
from agentmon.domain.ids import ExecutionId, WorkerId
from agentmon.domain.owners import Owner
from agentmon.store import tables
from agentmon.store.claims import read_claimed
from agentmon.store.conversation_names import name_conversation
from agentmon.store.mapping import command_of, execution_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement

    from agentmon.domain.executions import ClaimedExecution, Execution, ExecutionCommand
    from agentmon.domain.ids import CommandId
    from agentmon.domain.sandboxes import Sandbox
    from agentmon.store.database import Database

_MAX_UNDELIVERED_OF_ONE: Final = 100


class LiveExecutionRepository:
    """What the worker reads and writes about executions that it watches."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def owners(self) -> tuple[tuple[ExecutionId, Owner], ...]:
        """Return every execution that has or may have a process with its owner, oldest first."""
        executions, heartbeats = tables.executions, tables.worker_heartbeats
        statement = (
            select(executions.c.id, executions.c.worker_id, heartbeats.c.last_seen_at, heartbeats.c.metadata)
            .outerjoin(heartbeats, heartbeats.c.worker_id == executions.c.worker_id)
            .where(
                tables.IS_OPEN,
                executions.c.status != ExecutionStatus.QUEUED,
            )
            .order_by(executions.c.started_at)
            .limit(10_000)
        )
        async with self._database.reading() as connection:
            return tuple(
                (
                    ExecutionId(row["id"]),
                    Owner.of_particulars(
                        WorkerId(row["worker_id"] or ""), row["metadata"] or {}, last_seen_at=row["last_seen_at"]
                    ),
                )
                for row in (await connection.execute(statement)).mappings()
            )

    async def live(self) -> tuple[Execution, ...]:
        """Return the executions that have or may have a process, without what is said beside them, in no order."""
        executions = tables.executions
        # An order by id would be had from the primary key: through all the executions there ever were.
        statement = (
            select(executions).where(tables.IS_OPEN, executions.c.status != ExecutionStatus.QUEUED).limit(10_000)
        )
        async with self._database.reading() as connection:
            return tuple(execution_of(row) for row in (await connection.execute(statement)).mappings())

    async def waiting_commands(self, before: datetime | None = None) -> tuple[ExecutionCommand, ...]:
        """Return the commands that no host has got yet, oldest first; those written before then where one is given."""
        commands = tables.execution_commands
        statement = (
            select(commands)
            .where(commands.c.delivered_at.is_(None), true() if before is None else commands.c.created_at < before)
            .order_by(commands.c.id)
            .limit(10_000)
        )
        async with self._database.reading() as connection:
            return tuple(command_of(row) for row in (await connection.execute(statement)).mappings())

    async def journal_problems(self) -> tuple[tuple[int, str], ...]:
        """Return what of live runs is not in the database: the number of the task, and why."""
        executions, tasks = tables.executions, tables.tasks
        statement = (
            select(tasks.c.number, executions.c.journal_problem)
            .join(tasks, tasks.c.id == executions.c.task_id)
            .where(tables.IS_OPEN, executions.c.journal_problem.is_not(None))
            .order_by(tasks.c.number)
        )
        async with self._database.reading() as connection:
            return tuple((row.number, row.journal_problem) for row in await connection.execute(statement))

    async def take_over(
        self, execution_ids: Sequence[ExecutionId], *, worker_id: WorkerId, at: datetime
    ) -> tuple[ClaimedExecution, ...]:
        """Make the worker the owner of executions whose owner is gone, and return them with all that starting needs."""
        await self._update(execution_ids, {"worker_id": worker_id, "updated_at": at})
        executions = tables.executions
        owned = (
            select(executions.c.id)
            .where(executions.c.id.in_(execution_ids), executions.c.worker_id == worker_id, tables.IS_OPEN)
            .order_by(executions.c.started_at)
        )
        async with self._database.reading() as connection:
            return await read_claimed(connection, (await connection.execute(owned)).scalars().all())

    async def known_ids(self, execution_ids: Collection[str]) -> frozenset[str]:
        """Return which of these executions have a row."""
        statement = select(tables.executions.c.id).where(tables.executions.c.id.in_(list(execution_ids)))
        async with self._database.reading() as connection:
            return frozenset((await connection.execute(statement)).scalars())

    async def open_ids(self) -> frozenset[ExecutionId]:
        """Return the executions that wait or run."""
        statement = select(tables.executions.c.id).where(tables.IS_OPEN)
        async with self._database.reading() as connection:
            return frozenset(ExecutionId(found) for found in (await connection.execute(statement)).scalars())

    async def record_sandbox(self, execution_id: ExecutionId, sandbox: Sandbox, *, at: datetime) -> None:
        """Note the sandbox that an execution is about to start in."""
        executions = tables.executions
        statement = update(executions).where(
            executions.c.id == execution_id, executions.c.status.in_(list(LIVE_STATUSES))
        )
        async with self._database.writing() as connection:
            await connection.execute(statement.values(sandbox=sandbox, updated_at=at))

    async def record_session(
        self,
        execution_id: ExecutionId,
        *,
        worker_id: WorkerId,
        tmux_session_name: str,
        session_ref: str | None = None,
        at: datetime,
    ) -> None:
        """Note who watches the execution and the session in which its host runs.

        Args:
            execution_id: What was started.
            worker_id: Who watches it.
            tmux_session_name: Where its host runs.
            session_ref: The id that its agent was told to give its conversation.
            at: The time now.
        """
        executions = tables.executions
        statement = (
            update(executions)
            .where(executions.c.id == execution_id, executions.c.status.in_(list(LIVE_STATUSES)))
            .values(worker_id=worker_id, tmux_session_name=tmux_session_name, updated_at=at)
            .returning(executions)
        )
        async with self._database.writing() as connection:
            row = (await connection.execute(statement)).mappings().first()
            if row is not None and session_ref is not None:
                await name_conversation(connection, row["id"], row["session_id"], session_ref)

    async def beat(
        self,
        execution_ids: Sequence[ExecutionId],
        *,
        worker_id: WorkerId,
        particulars: Mapping[str, object],
        at: datetime,
    ) -> None:
        """Say that the worker and the hosts of these executions live."""
        await self._update(execution_ids, {"heartbeat_at": at})
        heartbeats = tables.worker_heartbeats
        statement = insert(heartbeats).values(
            worker_id=worker_id,
            last_seen_at=at,
            current_executions=len(execution_ids),
            metadata=dict(particulars),
            created_at=at,
        )
        executions, registry = tables.executions, tables.agent_registry
        watched = select(executions.c.session_id).where(executions.c.id.in_(execution_ids))
        async with self._database.writing() as connection:
            if execution_ids:
                await connection.execute(
                    update(registry)
                    .where(registry.c.session_id.in_(watched))
                    .values(last_heartbeat_at=at, worker_id=worker_id)
                )
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

    async def undelivered_commands(self, worker_id: WorkerId) -> tuple[ExecutionCommand, ...]:
        """Return the commands for executions of this worker that no host has got yet, stops first, then the oldest.

        Of each execution at most 100: what one does not take holds up no other.
        """
        commands, executions = tables.execution_commands, tables.executions
        order = (commands.c.type.not_in([CommandType.STOP, CommandType.KILL]), commands.c.id)
        # The sign keeps SQLite from walking through all commands in the order of this index.
        of_one: ColumnElement[str] = literal_column("+execution_commands.execution_id")
        place = func.row_number().over(partition_by=of_one, order_by=order)
        own = (
            select(commands.c.id, place.label("place"))
            .join(executions, executions.c.id == commands.c.execution_id)
            .where(commands.c.delivered_at.is_(None), executions.c.worker_id == worker_id)
            .subquery()
        )
        statement = (
            select(commands)
            .join(own, own.c.id == commands.c.id)
            .where(own.c.place <= _MAX_UNDELIVERED_OF_ONE)
            .order_by(*order)
        )
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
