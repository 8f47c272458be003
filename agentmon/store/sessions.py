"""Sessions as clients see them: listed, searched and named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, exists, func, literal, or_, select, true, update

from agentmon.domain.errors import NotFoundError
from agentmon.domain.ids import ExecutionId
from agentmon.domain.plain_text import plain_line
from agentmon.domain.sessions import SessionListing
from agentmon.store import tables
from agentmon.store.conversation_mapping import session_of
from agentmon.store.mapping import execution_of
from agentmon.store.text_search import has_word, starts_with

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement

    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import SessionId, TaskId, WorkspaceId
    from agentmon.domain.sessions import Session
    from agentmon.store.database import Database

_MAX_FOUND: Final = 10
_MAX_WORDS: Final = 12
_MATCH_BEFORE: Final = 40
_MATCH_CHARACTERS: Final = 160


class SessionRepository:
    """Reads sessions, and names them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(
        self,
        workspace_id: WorkspaceId | None,
        *,
        search: str = "",
        live_only: bool = False,
        limit: int,
        offset: int = 0,
    ) -> tuple[SessionListing, ...]:
        """Return sessions with what a list shows beside them, newest first.

        Args:
            workspace_id: Only those of its tasks; None means all, also those without a task.
            search: Words that all have to occur in the title, the agent's id, the first prompt, a message or an
                operation; ASCII letters match in either case, and the first twelve words count.
            live_only: Only those of which an execution runs or waits.
            limit: Most sessions.
            offset: How many are passed over.
        """
        sessions, tasks, agents, executions = tables.sessions, tables.tasks, tables.agents, tables.executions
        words = search.split()[:_MAX_WORDS]
        newest = (
            select(executions.c.id)
            .where(executions.c.session_id == sessions.c.id)
            .order_by(executions.c.created_at.desc(), executions.c.id.desc())
            .limit(1)
            .scalar_subquery()
        )
        is_live = exists().where(executions.c.session_id == sessions.c.id, tables.IS_OPEN)
        statement = (
            select(
                sessions,
                agents.c.slug.label("agent_slug"),
                tasks.c.number.label("task_number"),
                tasks.c.title.label("task_title"),
                newest.label("newest_execution_id"),
                is_live.label("is_live"),
                _match(words).label("match"),
            )
            .join(agents, agents.c.id == sessions.c.agent_id)
            .outerjoin(tasks, tasks.c.id == sessions.c.task_id)
            .where(
                true() if workspace_id is None else tasks.c.workspace_id == workspace_id,
                is_live if live_only else true(),
                *(_occurs(word) for word in words),
            )
            .order_by(sessions.c.started_at.desc(), sessions.c.id.desc())
            .limit(max(0, limit))
            .offset(max(0, offset))
        )
        async with self._database.reading() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return tuple(
            SessionListing(
                session=session_of(row),
                agent_slug=row["agent_slug"],
                task_number=row["task_number"],
                task_title=row["task_title"] or "",
                newest_execution_id=None
                if row["newest_execution_id"] is None
                else ExecutionId(row["newest_execution_id"]),
                is_live=bool(row["is_live"]),
                match=plain_line(row["match"] or "", max_characters=_MATCH_CHARACTERS).strip(),
            )
            for row in rows
        )

    async def get(self, session_id: SessionId) -> Session:
        """Return one session.

        Raises:
            NotFoundError: There is none of this id.
        """
        found = await self._read(tables.sessions.c.id == session_id, limit=1)
        if not found:
            raise NotFoundError("there is no such session", hint="`agentmon sessions` lists them")
        return found[0]

    async def find_by_prefix(self, text: str) -> tuple[Session, ...]:
        """Return at most ten sessions whose id, or the agent's own id, begins with the text; none for an empty one.

        Those of which it is the whole id come alone.
        """
        if not text:
            return ()
        sessions = tables.sessions
        named = await self._read(or_(sessions.c.id == text.lower(), sessions.c.session_ref == text), limit=_MAX_FOUND)
        if named:
            return named
        return await self._read(
            or_(starts_with(sessions.c.id, text.lower()), starts_with(sessions.c.session_ref, text)), limit=_MAX_FOUND
        )

    async def of_task(self, task_id: TaskId) -> tuple[Session, ...]:
        """Return the sessions of a task, newest first."""
        return await self._read(tables.sessions.c.task_id == task_id, limit=1000)

    async def executions(self, session_id: SessionId) -> tuple[Execution, ...]:
        """Return the executions of a session, oldest first."""
        executions = tables.executions
        statement = (
            select(executions)
            .where(executions.c.session_id == session_id)
            .order_by(executions.c.created_at, executions.c.id)
            .limit(1000)
        )
        async with self._database.reading() as connection:
            return tuple(execution_of(row) for row in (await connection.execute(statement)).mappings())

    async def set_title(self, session_id: SessionId, title: str, *, at: datetime) -> None:
        """Name a session; what its agent calls it later does not change that, unless the title is empty.

        Raises:
            NotFoundError: There is none of this id.
        """
        sessions = tables.sessions
        async with self._database.writing() as connection:
            named = await connection.execute(
                update(sessions).where(sessions.c.id == session_id).values(title=title or None, updated_at=at)
            )
            if not named.rowcount:
                raise NotFoundError("there is no such session", hint="`agentmon sessions` lists them")

    async def _read(self, condition: ColumnElement[bool], *, limit: int) -> tuple[Session, ...]:
        sessions = tables.sessions
        statement = (
            select(sessions).where(condition).order_by(sessions.c.started_at.desc(), sessions.c.id.desc()).limit(limit)
        )
        async with self._database.reading() as connection:
            return tuple(session_of(row) for row in (await connection.execute(statement)).mappings())


def _occurs(word: str) -> ColumnElement[bool]:
    sessions, messages, operations = tables.sessions, tables.messages, tables.operations
    return or_(
        has_word(word, sessions.c.title, sessions.c.session_ref, sessions.c.initial_prompt),
        exists().where(messages.c.session_id == sessions.c.id, has_word(word, messages.c.content)),
        exists().where(operations.c.session_id == sessions.c.id, has_word(word, *_operation_texts())),
    )


def _match(words: Sequence[str]) -> ColumnElement[Any]:
    """Return the piece of text around the first word, from a message that holds all words where there is one."""
    if not words:
        return literal("")
    sessions, messages, operations = tables.sessions, tables.messages, tables.operations
    first = words[0]
    in_messages = [
        select(_around(messages.c.content, first))
        .where(messages.c.session_id == sessions.c.id, and_(*(has_word(word, messages.c.content) for word in wanted)))
        .order_by(messages.c.id)
        .limit(1)
        .scalar_subquery()
        for wanted in ([words, words[:1]] if len(words) > 1 else [words])
    ]
    target, tool_name, *summaries = _operation_texts()
    text = target + " " + tool_name + " " + summaries[0] + " " + summaries[1]
    in_operations = (
        select(_around(text, first))
        .where(operations.c.session_id == sessions.c.id, has_word(first, *_operation_texts()))
        .order_by(operations.c.id)
        .limit(1)
        .scalar_subquery()
    )
    return func.coalesce(*in_messages, in_operations, "")


def _operation_texts() -> tuple[ColumnElement[str], ...]:
    operations = tables.operations
    return (
        operations.c.target,
        operations.c.tool_name,
        operations.c.input_summary,
        operations.c.output_summary,
    )


def _around(text: ColumnElement[str], word: str) -> ColumnElement[str]:
    place = func.instr(func.lower(text), func.lower(word))
    return func.substr(text, func.max(1, place - _MATCH_BEFORE), _MATCH_CHARACTERS)
