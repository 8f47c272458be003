"""Where conversations stand: sessions along their life cycle with their registry row, and what running agents do."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

from sqlalchemy import exists, select, true, update
from sqlalchemy.dialects.sqlite import insert

from agentmon.domain.activity import Activity
from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import CommandType
from agentmon.domain.life_cycles import SESSION_MOVES, require_session_move
from agentmon.domain.operations import OperationStatus
from agentmon.domain.sessions import SessionStatus, registry_status
from agentmon.domain.unheard import ENDED_BEFORE
from agentmon.store import tables
from agentmon.store.audit import append_task_events
from agentmon.store.task_moves import SYSTEM_ACTOR

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.conversation import AskKind

APPROVAL_SOURCE: Final = "approval"
"""The source of an activity that follows from a request that is not decided."""
_FOR_AGENTS: Final = frozenset(CommandType) - {
    CommandType.STOP,
    CommandType.KILL,
    CommandType.PAUSE,
    CommandType.RESUME,
}
_OVER: Final = frozenset({SessionStatus.COMPLETED, SessionStatus.FAILED, SessionStatus.CANCELLED})
_AT_END: Final = {
    ExecutionStatus.SUCCEEDED: SessionStatus.COMPLETED,
    ExecutionStatus.FAILED: SessionStatus.FAILED,
    ExecutionStatus.TIMED_OUT: SessionStatus.FAILED,
    ExecutionStatus.CANCELLED: SessionStatus.CANCELLED,
}
_BY_ACTIVITY: Final = {
    Activity.WORKING: SessionStatus.RUNNING,
    Activity.WAITING: SessionStatus.WAITING_FOR_INPUT,
}


async def move_session(
    connection: AsyncConnection, session_id: str, target: SessionStatus, *, worker_id: str | None, at: datetime
) -> None:
    """Bring a session to a status by moves that its life cycle has, and its registry row along with it.

    One that is over begins again on the way; one that waits goes on before it is paused.
    """
    sessions, registry = tables.sessions, tables.agent_registry
    present = SessionStatus(
        (await connection.execute(select(sessions.c.status).where(sessions.c.id == session_id))).scalar_one()
    )
    if present is target:
        return
    step = present
    for stop in (*_stops_between(present, target), target):
        require_session_move(step, stop)
        step = stop
    await connection.execute(
        update(sessions)
        .where(sessions.c.id == session_id)
        .values(status=target, ended_at=at if target in _OVER else None, updated_at=at)
    )
    row = insert(registry).values(
        session_id=session_id,
        status=registry_status(target),
        last_heartbeat_at=at,
        worker_id=worker_id or "",
        host=socket.gethostname(),
        created_at=at,
    )
    changes = {"status": row.excluded.status, "last_heartbeat_at": row.excluded.last_heartbeat_at}
    if worker_id is not None:
        changes |= {"worker_id": row.excluded.worker_id, "host": row.excluded.host}
    await connection.execute(row.on_conflict_do_update(index_elements=["session_id"], set_=changes))


def status_of_activity(activity: Activity | None, *, is_paused: bool) -> SessionStatus:
    """Return where the session of a running execution stands."""
    if is_paused:
        return SessionStatus.PAUSED
    return SessionStatus.RUNNING if activity is None else _BY_ACTIVITY.get(activity, SessionStatus.RUNNING)


async def find_oldest_request(
    connection: AsyncConnection, execution_id: str, *, kind: AskKind | None = None
) -> str | None:
    """Return the title of the oldest request of an execution that is not decided, of one kind or any."""
    approvals = tables.approvals
    statement = (
        select(approvals.c.title)
        .where(
            tables.IS_PENDING_APPROVAL,
            approvals.c.execution_id == execution_id,
            true() if kind is None else approvals.c.ask_kind == kind,
        )
        .order_by(approvals.c.asked_at, approvals.c.id)
        .limit(1)
    )
    title: str | None = (await connection.execute(statement)).scalar()
    return title


async def show_activity(connection: AsyncConnection, execution_id: str, *, at: datetime) -> None:
    """Let a running agent whose last request was just decided count as working, before it says so itself."""
    executions = tables.executions
    row = (await connection.execute(select(executions).where(executions.c.id == execution_id))).mappings().one()
    if row["status"] is not ExecutionStatus.RUNNING or row["activity"] is not Activity.WAITING:
        return
    title = await find_oldest_request(connection, execution_id)
    activity = Activity.WORKING if title is None else Activity.WAITING
    await connection.execute(
        update(executions)
        .where(executions.c.id == execution_id)
        .values(activity=activity, activity_note=title, activity_source=APPROVAL_SOURCE, activity_at=at, updated_at=at)
    )
    if row["session_id"] is not None:
        status = status_of_activity(activity, is_paused=row["paused_at"] is not None)
        await move_session(connection, row["session_id"], status, worker_id=row["worker_id"], at=at)


async def close_conversation(
    connection: AsyncConnection, row: RowMapping, status: ExecutionStatus, *, is_queued_again: bool, at: datetime
) -> None:
    """Settle what an execution leaves open that is over: requests are withdrawn and calls cancelled.

    Args:
        connection: Of the caller's transaction.
        row: Of ``executions``.
        status: How this try of it ended.
        is_queued_again: Whether another try follows, so that the conversation begins again.
        at: The time of the end.
    """
    executions, operations = tables.executions, tables.operations
    await _withdraw(connection, row, at=at)
    await _note_unheard(connection, row, at=at)
    await connection.execute(
        update(operations)
        .where(operations.c.execution_id == row["id"], operations.c.status == OperationStatus.PENDING)
        .values(status=OperationStatus.CANCELLED, finished_at=at, updated_at=at)
    )
    await connection.execute(
        update(executions)
        .where(executions.c.id == row["id"])
        .values(activity=None, activity_note=None, activity_source=None, activity_at=None, is_held=False)
    )
    if row["session_id"] is None:
        return
    elsewhere = exists().where(
        executions.c.session_id == row["session_id"], executions.c.id != row["id"], tables.IS_OPEN
    )
    if (await connection.execute(select(elsewhere))).scalar():
        return
    await move_session(connection, row["session_id"], _AT_END[status], worker_id=row["worker_id"], at=at)
    if is_queued_again:
        await move_session(connection, row["session_id"], SessionStatus.PLANNING, worker_id=None, at=at)


async def _withdraw(connection: AsyncConnection, row: RowMapping, *, at: datetime) -> None:
    approvals = tables.approvals
    withdrawn = await connection.execute(
        update(approvals)
        .where(tables.IS_PENDING_APPROVAL, approvals.c.execution_id == row["id"])
        .values(status=ApprovalStatus.WITHDRAWN, decided_at=at, closed_at=at, updated_at=at)
        .returning(approvals.c.id, approvals.c.title)
    )
    await append_task_events(
        connection,
        [
            (row["task_id"], {"execution_id": row["id"], "approval_id": one.id, "title": one.title})
            for one in withdrawn.all()
        ],
        actor=SYSTEM_ACTOR,
        event_type=TaskEventType.APPROVAL_WITHDRAWN,
        at=at,
    )


async def _note_unheard(connection: AsyncConnection, row: RowMapping, *, at: datetime) -> None:
    """Note what was said and decided and never reached the agent: whoever did so has to see it."""
    approvals, commands = tables.approvals, tables.execution_commands
    unheard = await connection.execute(
        update(commands)
        .where(
            commands.c.execution_id == row["id"],
            commands.c.obeyed_at.is_(None),
            commands.c.error.is_(None),
            commands.c.type.in_(sorted(_FOR_AGENTS)),
        )
        .values(error=ENDED_BEFORE, is_queued=False)
        .returning(commands.c.id)
    )
    command_ids = {one.id for one in unheard.all()}
    closed = await connection.execute(
        update(approvals)
        .where(approvals.c.execution_id == row["id"], approvals.c.closed_at.is_(None))
        .values(closed_at=at, updated_at=at)
        .returning(approvals.c.id, approvals.c.title, approvals.c.command_id)
    )
    await append_task_events(
        connection,
        [
            (
                row["task_id"],
                {"execution_id": row["id"], "approval_id": one.id, "title": one.title, "cause": ENDED_BEFORE},
            )
            for one in closed.all()
            if one.command_id in command_ids
        ],
        actor=SYSTEM_ACTOR,
        event_type=TaskEventType.APPROVAL_WITHDRAWN,
        at=at,
    )


def _stops_between(present: SessionStatus, target: SessionStatus) -> tuple[SessionStatus, ...]:
    if target in SESSION_MOVES[present]:
        return ()
    if present in _OVER:
        return (SessionStatus.PLANNING, *_stops_between(SessionStatus.PLANNING, target))
    if target is SessionStatus.PLANNING:
        return (SessionStatus.FAILED,)
    return (SessionStatus.RUNNING,)
