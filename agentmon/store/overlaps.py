"""Live runs that get into each other's way: where they work, what they call, and what was found of them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, delete, exists, func, select, text
from sqlalchemy.dialects.sqlite import insert

from agentmon.domain.agents import ToolType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import ExecutionId, TaskId
from agentmon.domain.operations import OperationStatus, OperationType
from agentmon.domain.overlaps import Overlap, OverlapKind
from agentmon.store import tables
from agentmon.store.audit import append_task_events
from agentmon.store.card_states import OVERLAP_SHOWN
from agentmon.store.optional_columns import optional
from agentmon.store.task_moves import SYSTEM_ACTOR

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from agentmon.domain.events import TaskEventType
    from agentmon.store.database import Database


class LivePlace(NamedTuple):
    """A run that works now, and where."""

    execution_id: ExecutionId
    task_id: TaskId
    number: int
    """Of its task."""
    folder: str
    started_at: datetime
    before_snapshot: str | None
    """What counts as unchanged: from before its first try, or from before anything worked in its worktree."""
    is_isolated: bool
    """Whether it works in a worktree of its own."""
    reports_calls: bool
    """Whether each of its tool calls is known as it comes."""
    alternatives_id: TaskId | None = None
    """What it shares with its alternatives, of which only one is merged; None for a task without any."""


class Call(NamedTuple):
    """A tool call that may change files."""

    id: str
    execution_id: ExecutionId
    type: OperationType
    target: str
    """A path or several, or a command."""
    status: OperationStatus
    started_at: datetime
    finished_at: datetime | None
    is_asked: bool = False
    """Whether it waits for leave, so that it does nothing yet."""


class CallChange(NamedTuple):
    """A path that a tool call was found to have changed, as it is stored: relative to the root of the snapshots."""

    id: str
    execution_id: ExecutionId
    path: str


class Told(NamedTuple):
    """A line for the audit trail."""

    task_id: TaskId
    event_type: TaskEventType
    payload: Mapping[str, object]


class OverlapRepository:
    """Reads and writes what live runs have to do with each other."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def live(self) -> tuple[LivePlace, ...]:
        """Return the runs that have a process, the one that began first first."""
        executions, tasks, agents = tables.executions, tables.tasks, tables.agents
        earlier = executions.alias("earlier")
        first = (
            select(earlier.c.before_snapshot)
            .where(
                earlier.c.task_id == executions.c.task_id,
                earlier.c.worktree_id == executions.c.worktree_id,
                earlier.c.log_removed_at.is_(None),
            )
            .order_by(earlier.c.created_at)
            .limit(1)
            .scalar_subquery()
        )
        statement = (
            select(
                executions.c.id,
                executions.c.task_id,
                tasks.c.number,
                tasks.c.alternatives_id,
                executions.c.working_dir,
                executions.c.started_at,
                func.coalesce(first, executions.c.before_snapshot).label("before_snapshot"),
                executions.c.worktree_id,
                executions.c.mode,
                agents.c.tool_type,
            )
            .join(tasks, tasks.c.id == executions.c.task_id)
            .join(agents, agents.c.id == executions.c.agent_id)
            .where(
                tables.IS_OPEN,
                executions.c.status.in_([ExecutionStatus.RUNNING, ExecutionStatus.CANCELLING]),
                executions.c.working_dir.is_not(None),
                executions.c.started_at.is_not(None),
            )
        )
        async with self._database.reading() as connection:
            rows = (await connection.execute(statement)).all()
        found = [
            LivePlace(
                execution_id=ExecutionId(row.id),
                task_id=TaskId(row.task_id),
                number=row.number,
                folder=row.working_dir,
                started_at=row.started_at,
                before_snapshot=row.before_snapshot,
                is_isolated=row.worktree_id is not None,
                reports_calls=row.tool_type is ToolType.AI_AGENT and ExecutionMode(row.mode).is_protocol,
                alternatives_id=optional(TaskId, row.alternatives_id),
            )
            for row in rows
        ]
        return tuple(sorted(found, key=lambda place: (place.started_at, place.execution_id)))

    async def calls(
        self,
        unread: Collection[ExecutionId],
        read: Collection[ExecutionId],
        *,
        after_id: str,
        unfinished: Sequence[str],
    ) -> tuple[Call, ...]:
        """Return tool calls that may change files, in their order.

        Args:
            unread: Runs of which all are wanted.
            read: Runs of which those are wanted that are new, or that had not ended.
            after_id: The newest that is known of ``read``.
            unfinished: Those that had not ended.
        """
        operations, approvals = tables.operations, tables.approvals
        is_asked = exists().where(
            tables.IS_PENDING_APPROVAL,
            approvals.c.execution_id == operations.c.execution_id,
            approvals.c.operation_id == operations.c.id,
        )
        statement = (
            select(
                operations.c.id,
                operations.c.execution_id,
                operations.c.type,
                operations.c.target,
                operations.c.status,
                operations.c.started_at,
                operations.c.finished_at,
                is_asked.label("is_asked"),
            )
            .where(operations.c.type.in_([OperationType.WRITE, OperationType.EXECUTE]))
            .order_by(operations.c.id)
        )
        wanted = [statement.where(operations.c.execution_id.in_(list(unread)))] if unread else []
        if read:
            wanted.append(statement.where(operations.c.id > after_id, operations.c.execution_id.in_(list(read))))
        if unfinished:
            wanted.append(statement.where(operations.c.id.in_(list(unfinished))))
        found: dict[str, Call] = {}
        async with self._database.reading() as connection:
            for one in wanted:
                for row in await connection.execute(one):
                    found[row.id] = Call(*row)._replace(execution_id=ExecutionId(row.execution_id))
        return tuple(found[call_id] for call_id in sorted(found))

    async def changed_by_calls(
        self, unread: Collection[ExecutionId], read: Collection[ExecutionId], *, after_id: str
    ) -> tuple[CallChange, ...]:
        """Return what tool calls have changed; of the runs that were read before, what is newer than an id."""
        changes = tables.changes
        statement = (
            select(changes.c.id, changes.c.execution_id, changes.c.path)
            .where(changes.c.operation_id.is_not(None))
            .order_by(changes.c.id)
        )
        wanted = [statement.where(changes.c.execution_id.in_(list(unread)))] if unread else []
        if read:
            wanted.append(statement.where(changes.c.execution_id.in_(list(read)), changes.c.id > after_id))
        async with self._database.reading() as connection:
            rows = [row for one in wanted for row in (await connection.execute(one)).all()]
        return tuple(CallChange(row.id, ExecutionId(row.execution_id), row.path) for row in rows)

    async def noted(self) -> dict[tuple[ExecutionId, ExecutionId, OverlapKind], Overlap]:
        """Return all that is written down of live runs, also what went away."""
        return {(one.execution_id, one.other_id, one.kind): one for one in await self._read(is_shown=False)}

    async def of_runs(self, execution_ids: Collection[ExecutionId]) -> dict[ExecutionId, tuple[Overlap, ...]]:
        """Return what some runs have to do with others now; those with nothing are left out."""
        found = defaultdict(list)
        for one in await self._read(execution_ids) if execution_ids else ():
            found[one.execution_id].append(one)
        return {execution_id: tuple(overlaps) for execution_id, overlaps in found.items()}

    async def write(self, overlaps: Sequence[Overlap], told: Sequence[Told], *, at: datetime) -> None:
        """Write down what live runs have to do with each other, in the place of what was written before.

        Args:
            overlaps: All that there is, one of each kind for each run and other.
            told: What is new of that, for the audit trail.
            at: The time now.
        """
        rows = tables.overlaps
        kept = {(one.execution_id, one.other_id, one.kind) for one in overlaps}
        async with self._database.writing() as connection:
            present = await connection.execute(select(rows.c.execution_id, rows.c.other_id, rows.c.kind))
            for execution_id, other_id, kind in present.all():
                if (execution_id, other_id, kind) not in kept:
                    of_pair = (rows.c.execution_id == execution_id, rows.c.other_id == other_id)
                    await connection.execute(delete(rows).where(*of_pair, rows.c.kind == kind))
            if overlaps:
                statement = insert(rows)
                changing = ("paths", "path_count", "is_own_doing", "detail")
                await connection.execute(
                    statement.on_conflict_do_update(
                        index_elements=["execution_id", "other_id", "kind"],
                        set_={name: statement.excluded[name] for name in changing},
                    ),
                    [
                        {
                            "execution_id": one.execution_id,
                            "other_id": one.other_id,
                            "kind": one.kind,
                            "paths": list(one.paths),
                            "path_count": one.path_count,
                            "is_own_doing": one.is_own_doing,
                            "detail": one.detail,
                            "created_at": at,
                        }
                        for one in overlaps
                    ],
                )
            for event_type in dict.fromkeys(one.event_type for one in told):
                lines = [(one.task_id, one.payload) for one in told if one.event_type is event_type]
                await append_task_events(connection, lines, actor=SYSTEM_ACTOR, event_type=event_type, at=at)

    async def _read(
        self, execution_ids: Collection[ExecutionId] | None = None, *, is_shown: bool = True
    ) -> tuple[Overlap, ...]:
        rows, others = tables.overlaps.alias("v"), tables.executions.alias("other")
        executions, tasks = tables.executions, tables.tasks
        at_work = [ExecutionStatus.RUNNING, ExecutionStatus.CANCELLING]
        statement = (
            select(rows, tasks.c.number)
            .join(executions, and_(executions.c.id == rows.c.execution_id, executions.c.status.in_(at_work)))
            .join(others, and_(others.c.id == rows.c.other_id, others.c.status.in_(at_work)))
            .join(tasks, tasks.c.id == others.c.task_id)
            .order_by(rows.c.execution_id, tasks.c.number, rows.c.kind)
        )
        if is_shown:
            statement = statement.where(text(OVERLAP_SHOWN))
        if execution_ids is not None:
            statement = statement.where(rows.c.execution_id.in_(list(execution_ids)))
        async with self._database.reading() as connection:
            return tuple(
                Overlap(
                    execution_id=ExecutionId(row.execution_id),
                    other_id=ExecutionId(row.other_id),
                    other_number=row.number,
                    kind=OverlapKind(row.kind),
                    paths=tuple(row.paths),
                    path_count=row.path_count,
                    is_own_doing=row.is_own_doing,
                    detail=row.detail,
                )
                for row in await connection.execute(statement)
            )
