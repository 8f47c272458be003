"""Sessions as clients see them: listed, searched and named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, exists, false, func, literal, literal_column, or_, select, table, true, update

from agentmon.domain.errors import NotFoundError
from agentmon.domain.ids import ExecutionId
from agentmon.domain.live_state import live_state
from agentmon.domain.plain_text import plain_line
from agentmon.domain.sessions import STATES, SessionListing
from agentmon.store import tables
from agentmon.store.conversation_mapping import session_of
from agentmon.store.first_words import asked_first
from agentmon.store.mapping import execution_of
from agentmon.store.message_index import INDEX, UNINDEXED, index_query, is_plain
from agentmon.store.text_search import has_word, starts_with

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, RowMapping, Select

    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import SessionId, TaskId, WorkspaceId
    from agentmon.domain.live_state import LiveState
    from agentmon.domain.sessions import Session
    from agentmon.store.database import Database

_STATE_COLUMNS: Final = (
    "status", "end_reason", "wait_reason", "paused_at", "error", "is_held", "activity", "exit_code",
)  # fmt: skip
_MAX_FOUND: Final = 10
_MAX_WORDS: Final = 12
_MATCH_BEFORE: Final = 40
_MATCH_CHARACTERS: Final = 160
_ROW: Final[ColumnElement[int]] = literal_column("rowid")
_MESSAGE_ROW: Final[ColumnElement[int]] = literal_column("messages.rowid")
_UNINDEXED: Final[Select[tuple[int]]] = select(literal_column("message_row")).select_from(table(UNINDEXED))


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
        with_history: bool = False,
        limit: int,
        offset: int = 0,
    ) -> tuple[SessionListing, ...]:
        """Return sessions with what a list shows beside them, newest first; without those of history that are empty.

        Args:
            workspace_id: Only those of its tasks; None means all, also those without a task.
            with_history: With a workspace: also those of no task, which agents had without agentmon.
            search: Words that all have to occur, each in the title, the agent's id, the first prompt, a message, or
                an operation of an execution; letters match in either case, and the first twelve words count. In
                messages they are whole words, and the last one may be the beginning of one.
            live_only: Only those of which an execution runs or waits.
            limit: Most sessions.
            offset: How many are passed over.
        """
        words = _words_of(search)
        tasks = tables.tasks
        is_of_workspace = tasks.c.workspace_id == workspace_id
        conditions = (
            _is_of_task_or_used(),
            true() if workspace_id is None else or_(is_of_workspace, tasks.c.id.is_(None) if with_history else false()),
            _is_live() if live_only else true(),
            *(_occurs(word, is_last=place == len(words)) for place, word in enumerate(words, start=1)),
        )
        return await self._list(conditions, words, limit=limit, offset=offset)

    async def get_listing(self, session_id: SessionId) -> SessionListing:
        """Return one session with what a list shows beside it.

        Raises:
            NotFoundError: There is none of this id.
        """
        found = await self._list((tables.sessions.c.id == session_id,), (), limit=1, offset=0)
        if not found:
            raise NotFoundError("there is no such session", hint="`agentmon sessions` lists them")
        return found[0]

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

    async def _list(
        self, conditions: Sequence[ColumnElement[bool]], words: Sequence[str], *, limit: int, offset: int
    ) -> tuple[SessionListing, ...]:
        sessions, tasks, agents, executions = tables.sessions, tables.tasks, tables.agents, tables.executions
        run = executions.alias("run")
        newest = (
            select(executions.c.id)
            .where(executions.c.session_id == sessions.c.id)
            .order_by(executions.c.created_at.desc(), executions.c.id.desc())
            .limit(1)
            .scalar_subquery()
        )
        statement = (
            select(
                sessions,
                agents.c.slug.label("agent_slug"),
                tasks.c.number.label("task_number"),
                tasks.c.title.label("task_title"),
                run.c.id.label("newest_execution_id"),
                *(run.c[name].label(f"run_{name}") for name in _STATE_COLUMNS),
                _is_live().label("is_live"),
                literal_column(asked_first("sessions", "agents")).label("asked"),
                _match(words).label("match"),
            )
            .join(agents, agents.c.id == sessions.c.agent_id)
            .outerjoin(tasks, tasks.c.id == sessions.c.task_id)
            .outerjoin(run, run.c.id == newest)
            .where(*conditions)
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
                asked=row["asked"],
                newest_execution_id=None
                if row["newest_execution_id"] is None
                else ExecutionId(row["newest_execution_id"]),
                is_live=bool(row["is_live"]),
                state=_state_of(row),
                exit_code=row["run_exit_code"],
                match=plain_line(row["match"] or "", max_characters=_MATCH_CHARACTERS).strip(),
            )
            for row in rows
        )

    async def _read(self, condition: ColumnElement[bool], *, limit: int) -> tuple[Session, ...]:
        sessions = tables.sessions
        statement = (
            select(sessions).where(condition).order_by(sessions.c.started_at.desc(), sessions.c.id.desc()).limit(limit)
        )
        async with self._database.reading() as connection:
            return tuple(session_of(row) for row in (await connection.execute(statement)).mappings())


def _state_of(row: RowMapping) -> LiveState:
    if row["run_status"] is None:
        return STATES[row["status"]]
    wait_reason = row["run_wait_reason"]
    return live_state(
        row["run_status"],
        end_reason=row["run_end_reason"],
        is_parked=wait_reason is not None and wait_reason.is_parking,
        is_paused=row["run_paused_at"] is not None,
        is_stuck=row["run_error"] is not None,
        is_held=row["run_is_held"],
        activity=row["run_activity"],
    )


def _words_of(search: str) -> list[str]:
    """Return the words that are looked for; quotes around them mean nothing, and nothing is told apart by zeros."""
    return [word for part in search.replace("\0", " ").split() if (word := part.strip('"'))][:_MAX_WORDS]


def _is_of_task_or_used() -> ColumnElement[bool]:
    """Some agents leave a file behind whenever they start."""
    sessions = tables.sessions
    return or_(
        sessions.c.task_id.is_not(None),
        sessions.c.total_tokens > 0,
        sessions.c.operation_count > 0,
        sessions.c.initial_prompt != "",
        sessions.c.title.is_not(None),
        exists().where(tables.messages.c.session_id == sessions.c.id),
    )


def _is_live() -> ColumnElement[bool]:
    return exists().where(tables.executions.c.session_id == tables.sessions.c.id, tables.IS_OPEN)


def _occurs(word: str, *, is_last: bool) -> ColumnElement[bool]:
    sessions, messages, operations = tables.sessions, tables.messages, tables.operations
    has_said = select(messages.c.session_id)
    query = index_query(word, is_last=is_last)
    if query is None:
        said = [has_said.where(has_word(word, messages.c.content))]
    else:
        is_confirmed = true() if is_plain(word) else has_word(word, messages.c.content)
        indexed = select(_ROW).select_from(table(INDEX)).where(literal_column(INDEX).op("MATCH")(query))
        said = [
            has_said.where(_MESSAGE_ROW.in_(indexed), _MESSAGE_ROW.not_in(_UNINDEXED), is_confirmed),
            has_said.where(_MESSAGE_ROW.in_(_UNINDEXED), has_word(word, messages.c.content)),
        ]
    # Calls of history are many, and what they are about is mostly said as well.
    did = select(operations.c.session_id).where(operations.c.execution_id > "", has_word(word, *_operation_texts()))
    return or_(
        has_word(word, sessions.c.title, sessions.c.session_ref, sessions.c.initial_prompt),
        *(sessions.c.id.in_(some) for some in (*said, did)),
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
