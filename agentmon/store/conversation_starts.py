"""Where an execution's conversation begins: a session of its own, or that of an earlier execution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import insert, select, update

from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.executions import ConversationStart
from agentmon.domain.ids import LOCAL_USER_ID, new_id
from agentmon.domain.life_cycles import require_session_move
from agentmon.domain.sessions import CANNOT_FORK, SessionStatus
from agentmon.store import tables
from agentmon.store.conversation_mapping import session_of
from agentmon.store.usage_days import stored_days

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.executions import ConversationRequest, Execution, ExecutionRequest
    from agentmon.domain.sessions import Session


async def begin_conversation(
    connection: AsyncConnection, request: ExecutionRequest, *, at: datetime
) -> dict[str, object]:
    """Make the session of an execution that is about to be queued, or open the one that it goes on with.

    Returns:
        The columns of the execution that tell of its conversation; empty for a program without one.

    Raises:
        NotFoundError: The execution to go on from is gone.
        ConflictError: Its agent cannot go on with its conversation, or not with a copy of it.
    """
    conversation = request.conversation
    if conversation is None:
        return {}
    columns: dict[str, object] = {
        "prompt": conversation.prompt,
        "parent_execution_id": conversation.parent_execution_id,
    }
    if conversation.start is ConversationStart.FRESH:
        return columns | {"session_id": await _add_session(connection, request, conversation, {}, at=at)}
    parent = await _read_parent(connection, conversation)
    if conversation.start is ConversationStart.FORK:
        origin = {"forked_from": parent.id}
        return columns | {"session_id": await _add_session(connection, request, conversation, origin, at=at)}
    await _open_again(connection, parent, at=at)
    return columns | {"session_id": parent.id, "session_ref": parent.session_ref}


async def read_origins(
    connection: AsyncConnection, executions: Collection[Execution]
) -> Mapping[str, tuple[ConversationStart, str | None]]:
    """Return by execution how its conversation starts, and the agent's id of the one that it goes on with."""
    rows, sessions = tables.executions, tables.sessions
    parents = {one.parent_execution_id for one in executions if one.parent_execution_id is not None}
    statement = (
        select(rows.c.id, sessions.c.id.label("session_id"), sessions.c.session_ref)
        .join(sessions, sessions.c.id == rows.c.session_id)
        .where(rows.c.id.in_(parents))
    )
    found = {row["id"]: row for row in (await connection.execute(statement)).mappings()} if parents else {}
    origins: dict[str, tuple[ConversationStart, str | None]] = {}
    for one in executions:
        parent = found.get(one.parent_execution_id) if one.parent_execution_id is not None else None
        if parent is None:
            origins[one.id] = (ConversationStart.FRESH, None)
        elif parent["session_id"] == one.session_id:
            origins[one.id] = (ConversationStart.RESUME, parent["session_ref"])
        else:
            origins[one.id] = (ConversationStart.FORK, parent["session_ref"])
    return origins


async def _read_parent(connection: AsyncConnection, conversation: ConversationRequest) -> Session:
    rows, sessions = tables.executions, tables.sessions
    statement = (
        select(sessions)
        .join(rows, rows.c.session_id == sessions.c.id)
        .where(rows.c.id == conversation.parent_execution_id)
    )
    row = (await connection.execute(statement)).mappings().first()
    if row is None:
        raise NotFoundError(
            "there is no conversation to go on with", hint="run the task afresh: r on the board, or `agentmon run`"
        )
    parent = session_of(row)
    is_fork = conversation.start is ConversationStart.FORK
    obstacle = parent.cannot_fork if is_fork else parent.cannot_resume
    if obstacle:
        raise ConflictError(
            f"the agent cannot {'copy' if is_fork else 'resume'} this conversation: {obstacle}",
            hint=f"`agentmon sessions restart {parent.id} --message TEXT` starts a fresh one with its history",
        )
    return parent


async def _open_again(connection: AsyncConnection, session: Session, *, at: datetime) -> None:
    if session.status is SessionStatus.PLANNING:
        return
    require_session_move(session.status, SessionStatus.PLANNING)
    sessions = tables.sessions
    await connection.execute(
        update(sessions)
        .where(sessions.c.id == session.id)
        .values(status=SessionStatus.PLANNING, ended_at=None, updated_at=at)
    )


async def _add_session(
    connection: AsyncConnection,
    request: ExecutionRequest,
    conversation: ConversationRequest,
    origin: Mapping[str, object],
    *,
    at: datetime,
) -> str:
    agents = tables.agents
    agent = (await connection.execute(select(agents).where(agents.c.id == request.agent_id))).mappings().one()
    session_id = new_id()
    await connection.execute(
        insert(tables.sessions).values(
            id=session_id,
            user_id=LOCAL_USER_ID,
            agent_id=request.agent_id,
            task_id=request.task_id,
            workspace=conversation.working_dir,
            project=conversation.project or conversation.working_dir,
            day_local=(await stored_days(connection, at)).day_of_moment(at),
            status=SessionStatus.PLANNING,
            model=conversation.model or agent["model"],
            model_tier=agent["model_tier"],
            temperature=agent["temperature"],
            initial_prompt=conversation.asked or conversation.prompt,
            started_at=at,
            metadata={"origin": "agentmon", **origin}
            | ({} if conversation.permission_mode is None else {"permission_mode": conversation.permission_mode})
            | ({CANNOT_FORK: conversation.cannot_fork} if conversation.cannot_fork else {}),
            created_at=at,
            updated_at=at,
        )
    )
    return session_id
