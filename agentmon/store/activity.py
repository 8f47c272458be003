"""What an agent does as its own screen shows it, written to its execution with the event that says why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, func, insert, or_, select, update

from agentmon.domain.activity import Activity
from agentmon.domain.approvals import SCREEN_REQUEST, ApprovalStatus
from agentmon.domain.conversation import AskKind
from agentmon.domain.events import EventType, TaskEventType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import LOCAL_USER_ID
from agentmon.store import tables
from agentmon.store.approvals import add_request, put_back
from agentmon.store.audit import append_task_event
from agentmon.store.conversation_names import name_conversation, name_found_conversation, refs_of_others
from agentmon.store.mapping import execution_of
from agentmon.store.session_moves import APPROVAL_SOURCE, find_oldest_request, move_session, status_of_activity
from agentmon.store.task_moves import SYSTEM_ACTOR

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from sqlalchemy import ColumnElement, RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.conversation import ActivityNews, AskNews
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import CommandId, ExecutionId
    from agentmon.store.database import Database

_IS_OPEN_DIALOG: Final = and_(
    tables.approvals.c.request_id.startswith(SCREEN_REQUEST, autoescape=True), tables.approvals.c.closed_at.is_(None)
)
"""What an agent asked in its own screen, until that is settled."""


class ActivityRepository:
    """Writes what the looks at an agent's own screen found."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(
        self,
        execution_id: ExecutionId,
        news: ActivityNews,
        *,
        ask: AskNews | None = None,
        gone: ApprovalStatus = ApprovalStatus.WITHDRAWN,
        evidence: Mapping[str, object],
        at: datetime,
    ) -> bool:
        """Write what the agent does, and the event that tells of it; return False when it does not run any more.

        Args:
            execution_id: Whose agent.
            news: What it does.
            ask: What it asks on its own screen; a request that waits for the same dialog stays as it is.
            gone: What became of the dialogs that it showed before and does not now, where nobody decided on them here.
            evidence: What each source said; part of the event.
            at: The time now.
        """
        executions = tables.executions
        async with self._database.writing() as connection:
            budget = await find_oldest_request(connection, execution_id, kind=AskKind.BUDGET)
            if budget is not None:
                news = replace(news, activity=Activity.WAITING, note=budget, source=APPROVAL_SOURCE)
            changed = (
                update(executions)
                .where(executions.c.id == execution_id, executions.c.status == ExecutionStatus.RUNNING)
                .values(
                    activity=news.activity,
                    activity_note=news.note or None,
                    activity_source=news.source or None,
                    activity_at=at,
                    updated_at=at,
                )
                .returning(executions)
            )
            row = (await connection.execute(changed)).mappings().first()
            if row is None:
                return False
            await connection.execute(
                insert(tables.events).values(
                    execution_id=execution_id,
                    session_id=row["session_id"],
                    user_id=LOCAL_USER_ID,
                    trace_id=execution_id,
                    type=EventType.STATUS_CHANGE,
                    timestamp_ms=int(at.timestamp() * 1000),
                    payload={"activity": news.activity.value, "note": news.note, "source": news.source, **evidence},
                )
            )
            is_other = tables.approvals.c.input_digest != ("" if ask is None else ask.input_digest)
            of_run = tables.approvals.c.execution_id == row["id"]
            await _close(connection, and_(tables.IS_PENDING_APPROVAL, _IS_OPEN_DIALOG, of_run, is_other), gone, at=at)
            if ask is not None:
                await _add_dialog(connection, row, ask, at=at)
            if row["session_id"] is not None:
                status = status_of_activity(news.activity, is_paused=row["paused_at"] is not None)
                await move_session(connection, row["session_id"], status, worker_id=row["worker_id"], at=at)
            return True

    async def name_conversation(self, execution_id: ExecutionId, session_ref: str) -> None:
        """Write the agent's own id of the conversation that it has in its own screen."""
        executions = tables.executions
        named = select(executions).where(executions.c.id == execution_id)
        async with self._database.writing() as connection:
            row = (await connection.execute(named)).mappings().first()
            if row is not None:
                await name_conversation(connection, row["id"], row["session_id"], session_ref)

    async def name_found_conversation(self, execution_id: ExecutionId, session_ref: str) -> bool:
        """Write an id that was found in the agent's files, unless another run has that conversation; return whether."""
        executions = tables.executions
        named = select(executions).where(executions.c.id == execution_id)
        async with self._database.writing() as connection:
            row = (await connection.execute(named)).mappings().first()
            return row is not None and await name_found_conversation(connection, row, session_ref)

    async def has_said(self, execution_id: ExecutionId, *, since: datetime) -> bool:
        """Return whether a message or an answer of an execution is known that is no older."""
        messages, answers = tables.messages, tables.llm_interactions
        said = select(messages.c.id).where(messages.c.execution_id == execution_id, messages.c.created_at >= since)
        since_ms = since.timestamp() * 1000
        answered = select(answers.c.id).where(answers.c.execution_id == execution_id, answers.c.at_ms >= since_ms)
        async with self._database.reading() as connection:
            return (await connection.execute(select(said.exists() | answered.exists()))).scalar_one()

    async def refs_of_runs(self, refs: Collection[str]) -> set[str]:
        """Return which of the agents' own ids belong to conversations of runs here."""
        async with self._database.reading() as connection:
            return await refs_of_others(connection, refs, session_id=None)

    async def unnamed_beside(self, execution_ids: Collection[ExecutionId]) -> tuple[Execution, ...]:
        """Return other runs in own screens of the same agents, since the first of these, that have no conversation."""
        rows = tables.executions
        of_these = rows.c.id.in_(execution_ids)
        since = select(func.min(rows.c.started_at)).where(of_these).scalar_subquery()
        statement = select(rows).where(
            rows.c.agent_id.in_(select(rows.c.agent_id).where(of_these)),
            rows.c.id.not_in(execution_ids),
            rows.c.mode == ExecutionMode.TMUX,
            rows.c.session_ref.is_(None),
            rows.c.started_at.is_not(None),
            rows.c.ended_at.is_(None) | (rows.c.ended_at >= since),
        )
        async with self._database.reading() as connection:
            return tuple(execution_of(row) for row in (await connection.execute(statement)).mappings())

    async def settle_command(self, command_id: CommandId, *, error: str | None = None, at: datetime) -> None:
        """Note that a command was obeyed by typing it into the agent's screen, or why it was not.

        A request on which it decided is over.
        """
        async with self._database.writing() as connection:
            await _settle_command(connection, command_id, error=error, at=at)

    async def close_request(self, command_id: CommandId, *, at: datetime) -> None:
        """Note that a decision was heard; its command stays open, since the reason is still to be said."""
        async with self._database.writing() as connection:
            await _close_request(connection, command_id, at=at)

    async def settle_answer(self, command_id: CommandId, *, error: str, status: ApprovalStatus, at: datetime) -> None:
        """Note that a decision was not carried to the agent's screen, and what became of its request.

        Args:
            command_id: The command of the decision.
            error: Why it was not.
            status: Pending when the agent still asks; else what the screen tells of it. What is settled stays so.
            at: The time now.
        """
        of_command = tables.approvals.c.command_id == command_id
        async with self._database.writing() as connection:
            if status is ApprovalStatus.PENDING:
                await put_back(connection, command_id, cause=error, at=at)
            else:
                await _close(connection, of_command, status, error=error, at=at)
            await _settle_command(connection, command_id, error=error, at=at)


async def _settle_command(
    connection: AsyncConnection, command_id: CommandId, *, error: str | None, at: datetime
) -> None:
    commands = tables.execution_commands
    settled = {"error": error} if error is not None else {"obeyed_at": at}
    await connection.execute(
        update(commands)
        .where(commands.c.id == command_id)
        .values(delivered_at=func.coalesce(commands.c.delivered_at, at), is_queued=False, **settled)
    )
    await _close_request(connection, command_id, at=at)


async def _close_request(connection: AsyncConnection, command_id: CommandId, *, at: datetime) -> None:
    approvals = tables.approvals
    await connection.execute(
        update(approvals)
        .where(approvals.c.command_id == command_id, approvals.c.closed_at.is_(None))
        .values(closed_at=at, updated_at=at)
    )


async def _add_dialog(connection: AsyncConnection, row: RowMapping, ask: AskNews, *, at: datetime) -> None:
    approvals = tables.approvals
    request_ref = f"{row['attempt']}:{ask.request_id}"
    is_same = or_(
        approvals.c.request_ref == request_ref,
        and_(_IS_OPEN_DIALOG, approvals.c.input_digest == ask.input_digest),
    )
    known = select(approvals.c.id).where(approvals.c.execution_id == row["id"], is_same)
    if (await connection.execute(known)).first() is not None:
        return
    await add_request(
        connection,
        ask,
        request_ref,
        execution_id=row["id"],
        session_id=row["session_id"],
        task_id=row["task_id"],
        at=at,
    )


async def _close(
    connection: AsyncConnection,
    which: ColumnElement[bool],
    status: ApprovalStatus,
    *,
    error: str = "",
    at: datetime,
) -> None:
    """Settle what was open of these requests as the screen tells, and note it in the audit trail.

    Args:
        connection: Of the caller's transaction.
        which: The requests.
        status: What became of them.
        error: Why the decision that was made here is none; empty when there was none.
        at: The time now.
    """
    approvals, executions = tables.approvals, tables.executions
    undecided = dict.fromkeys(("scope", "decided_by_type", "decided_by_id", "rule_id"))
    is_withdrawn = status is ApprovalStatus.WITHDRAWN
    reason = "; ".join(part for part in ("" if is_withdrawn else "in its terminal", error) if part)
    closed = await connection.execute(
        update(approvals)
        .where(which, approvals.c.closed_at.is_(None))
        .values(**undecided, status=status, decision_reason=reason or None, decided_at=at, closed_at=at, updated_at=at)
        .returning(approvals.c.id, approvals.c.title, approvals.c.execution_id)
    )
    told = {"cause": error} if is_withdrawn else {"status": status.value, "reason": reason}
    for row in closed.all():
        task_id = await connection.execute(select(executions.c.task_id).where(executions.c.id == row.execution_id))
        await append_task_event(
            connection,
            task_id=task_id.scalar_one(),
            actor=SYSTEM_ACTOR,
            event_type=TaskEventType.APPROVAL_WITHDRAWN if is_withdrawn else TaskEventType.APPROVAL_DECIDED,
            payload={"execution_id": row.execution_id, "approval_id": row.id, "title": row.title, **told},
            at=at,
        )
