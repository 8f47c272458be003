"""Conversations as clients read them: messages, tool calls and the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, literal, select

from agentmon.domain.events import EventType
from agentmon.domain.operations import MessageRole
from agentmon.store import tables
from agentmon.store.conversation_mapping import message_of, operation_of, plan_of

if TYPE_CHECKING:
    from agentmon.domain.conversation import PlanNews
    from agentmon.domain.ids import ExecutionId, MessageId, SessionId, TaskId
    from agentmon.domain.operations import Operation
    from agentmon.domain.sessions import Message
    from agentmon.store.database import Database


class ConversationRepository:
    """Reads what agents said and did."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def messages(
        self, session_id: SessionId, *, after: MessageId | None = None, limit: int = 500
    ) -> tuple[Message, ...]:
        """Return messages of a session, oldest first.

        Args:
            session_id: Whose messages.
            after: The last message that is known already; None begins with the first one.
            limit: Most messages.
        """
        messages = tables.messages
        statement = (
            select(messages).where(messages.c.session_id == session_id).order_by(messages.c.id).limit(max(0, limit))
        )
        if after is not None:
            statement = statement.where(messages.c.id > after)
        async with self._database.reading() as connection:
            return tuple(message_of(row) for row in (await connection.execute(statement)).mappings())

    async def operations(
        self, *, session_id: SessionId | None = None, execution_id: ExecutionId | None = None, limit: int = 500
    ) -> tuple[Operation, ...]:
        """Return the newest ``limit`` tool calls of a session or an execution, oldest first; none without either."""
        operations = tables.operations
        conditions = []
        if session_id is not None:
            conditions.append(operations.c.session_id == session_id)
        if execution_id is not None:
            conditions.append(operations.c.execution_id == execution_id)
        if not conditions:
            return ()
        number = func.row_number().over(partition_by=operations.c.execution_id, order_by=operations.c.id)
        # A run's calls are numbered also where they are in several conversations.
        runs = select(operations.c.execution_id).where(*conditions)
        numbered = select(operations.c.id, number.label("number")).where(operations.c.execution_id.in_(runs)).subquery()
        statement = (
            select(operations, numbered.c.number)
            .outerjoin(numbered, numbered.c.id == operations.c.id)
            .where(*conditions)
            .order_by(operations.c.id.desc())
            .limit(max(0, limit))
        )
        async with self._database.reading() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return tuple(operation_of(row) for row in reversed(rows))

    async def last_answer(self, task_id: TaskId) -> str:
        """Return what the agent of a task said last, which mostly sums up what it did; empty when it said nothing."""
        messages, sessions = tables.messages, tables.sessions
        statement = (
            select(messages.c.content)
            .join(sessions, sessions.c.id == messages.c.session_id)
            .where(
                sessions.c.task_id == task_id,
                messages.c.role == MessageRole.ASSISTANT,
                messages.c.is_thinking.is_(False),
                messages.c.parent_ref.is_(None),
            )
            .order_by(messages.c.id.desc())
            .limit(1)
        )
        async with self._database.reading() as connection:
            return str((await connection.execute(statement)).scalar() or "")

    async def operation(self, execution_id: ExecutionId, number: int) -> Operation | None:
        """Return the tool call of an execution by its place among them, from 1; None when there is none."""
        operations = tables.operations
        statement = (
            select(operations, literal(number).label("number"))
            .where(operations.c.execution_id == execution_id)
            .order_by(operations.c.id)
            .offset(number - 1)
            .limit(1)
        )
        async with self._database.reading() as connection:
            row = (await connection.execute(statement)).mappings().first() if number > 0 else None
        return None if row is None else operation_of(row)

    async def plan(self, execution_id: ExecutionId) -> PlanNews | None:
        """Return the agent's plan as it stands now; None when it told of none."""
        events = tables.events
        statement = (
            select(events.c.payload)
            .where(events.c.execution_id == execution_id, events.c.type == EventType.PLAN_UPDATE)
            .order_by(events.c.id.desc())
            .limit(1)
        )
        async with self._database.reading() as connection:
            payload = (await connection.execute(statement)).scalar()
        return None if payload is None else plan_of(payload)
