"""What an agent said and did into rows, inside the transaction that moves its journal's offset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from sqlalchemy import insert, select, update

from agentmon.domain.activity import Activity
from agentmon.domain.conversation import (
    ActivityNews,
    AskClosedNews,
    AskKind,
    AskNews,
    CommandNews,
    CostNews,
    MessageNews,
    NoticeNews,
    SessionNews,
    ToolFinishedNews,
    ToolStartedNews,
    UsageNews,
)
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import LOCAL_USER_ID, new_id
from agentmon.domain.sessions import CANNOT_FORK, CANNOT_RESUME, SessionStatus
from agentmon.store import tables
from agentmon.store.approval_news import write_approvals, write_command_outcomes
from agentmon.store.conversation_names import name_conversation
from agentmon.store.message_rows import write_messages
from agentmon.store.operation_rows import share_answers, write_operations
from agentmon.store.session_moves import APPROVAL_SOURCE, find_oldest_request, move_session, status_of_activity
from agentmon.store.told_conversation import ToldConversation, moment_of
from agentmon.store.usage_days import stored_days
from agentmon.store.usage_rows import count_cost, write_usage
from agentmon.store.usage_totals import write_totals

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.executions import ExecutionProgress, TimedNews

_OBSTACLES: Final = (CANNOT_RESUME, CANNOT_FORK)
"""What is told anew when a conversation begins or goes on."""
_OF_NO_CONVERSATION: Final = (ActivityNews, CommandNews, NoticeNews)
"""What a program without a conversation tells too."""

_Kind = TypeVar("_Kind")


async def record_news(
    connection: AsyncConnection, row: RowMapping, stretch: ExecutionProgress, *, at: datetime
) -> str | None:
    """Write the news of one stretch, and return the session of the execution.

    The rows are those that the news one by one would make, however they are cut into stretches. What is repeated or
    names something unknown changes nothing else.

    Args:
        connection: Of the transaction that moved the offset of the journal.
        row: Of ``executions``, after that.
        stretch: What the journal says.
        at: The time now.
    """
    session_id: str | None = row["session_id"]
    if session_id is None and any(not isinstance(one.news, _OF_NO_CONVERSATION) for one in stretch.news):
        session_id = await _add_session(connection, row, at=at)
    if session_id is not None and stretch.news:
        conversation = ToldConversation(
            execution_id=row["id"],
            session_id=session_id,
            agent_id=row["agent_id"],
            task_id=row["task_id"],
            attempt=row["attempt"],
        )
        await _write(connection, conversation, stretch.news, at=at)
    commands = _of_kind(stretch.news, CommandNews)
    if commands:
        await write_command_outcomes(connection, row["id"], commands)
    if stretch.news or stretch.pid is not None or stretch.is_paused is not None:
        await _write_activity(connection, row, session_id, stretch.news, at=at)
    return session_id


async def _write(
    connection: AsyncConnection, conversation: ToldConversation, news: Sequence[TimedNews], *, at: datetime
) -> None:
    messages = _of_kind(news, MessageNews)
    if messages:
        await write_messages(connection, conversation, messages)
    usage = _of_kind(news, UsageNews)
    if usage:
        await write_usage(connection, conversation, usage)
    calls = [
        (one.at_ms, one.news) for one in news if isinstance(one.news, ToolStartedNews | ToolFinishedNews | AskNews)
    ]
    new_calls, answer_keys = await write_operations(connection, conversation, calls) if calls else (0, frozenset())
    answer_keys |= {one.key for _, one in usage}
    if answer_keys:
        await share_answers(connection, conversation, answer_keys)
    asks = [(one.at_ms, one.news) for one in news if isinstance(one.news, AskNews | AskClosedNews)]
    if asks:
        await write_approvals(connection, conversation, asks)
    await _write_session(connection, conversation, news, new_calls, at=at)


async def _write_session(
    connection: AsyncConnection,
    conversation: ToldConversation,
    news: Sequence[TimedNews],
    new_calls: int,
    *,
    at: datetime,
) -> None:
    told = [one for _, one in _of_kind(news, SessionNews)]
    costs = [one for _, one in _of_kind(news, CostNews)]
    if not told and not costs and not new_calls:
        return
    refs = [one.session_ref for one in told if one.session_ref is not None]
    if refs:
        await name_conversation(connection, conversation.execution_id, conversation.session_id, *refs)
    sessions = tables.sessions
    present = select(sessions).where(sessions.c.id == conversation.session_id)
    row = (await connection.execute(present)).mappings().one()
    columns: dict[str, object] = {"operation_count": sessions.c.operation_count + new_calls, "updated_at": at}
    metadata: dict[str, object] = dict(row["metadata"])
    title = row["title"]
    for one in told:
        title = title or one.title
        columns |= {"model": one.model} if one.model else {}
        if one.session_ref is not None:
            metadata = {name: fact for name, fact in metadata.items() if name not in _OBSTACLES}
        metadata |= _particulars(one)
    if costs:
        metadata = count_cost(conversation, metadata, costs)
    await connection.execute(
        update(sessions)
        .where(sessions.c.id == conversation.session_id)
        .values(title=title, metadata=metadata, **columns)
    )
    if costs:
        await write_totals(connection, session_id=conversation.session_id, execution_id=conversation.execution_id)


def _particulars(news: SessionNews) -> dict[str, object]:
    told = {
        "permission_mode": news.permission_mode,
        "agent_version": news.agent_version,
        "transcript_path": news.transcript_path,
        "models": list(news.models),
        "permission_modes": list(news.permission_modes),
        CANNOT_RESUME: news.cannot_resume,
        CANNOT_FORK: news.cannot_fork,
    }
    return {name: content for name, content in told.items() if content}


async def _write_activity(
    connection: AsyncConnection, row: RowMapping, session_id: str | None, news: Sequence[TimedNews], *, at: datetime
) -> None:
    """Write what the agent does: it waits while a request of it does, else it does what it last said."""
    if row["status"] is not ExecutionStatus.RUNNING:
        return
    executions = tables.executions
    said = _of_kind(news, ActivityNews)
    title = await find_oldest_request(connection, row["id"])
    activity: Activity | None = row["activity"]
    columns: dict[str, object] | None = None
    if title is not None:
        is_told = bool(said) and said[-1][1].activity is Activity.WAITING
        budget = await find_oldest_request(connection, row["id"], kind=AskKind.BUDGET)
        if budget is not None:
            # Whatever else it says it waits for: no answer to that lets it go on.
            title, is_told = budget, False
        activity = Activity.WAITING
        columns = {
            "activity_note": title,
            "activity_source": (said[-1][1].source or APPROVAL_SOURCE) if is_told else APPROVAL_SOURCE,
        }
    elif said:
        at_ms, newest = said[-1]
        activity, at = newest.activity, moment_of(at_ms)
        columns = {"activity_note": newest.note or None, "activity_source": newest.source or None}
    elif activity is Activity.WAITING and row["activity_source"] == APPROVAL_SOURCE:
        activity = Activity.WORKING
        columns = {"activity_note": None, "activity_source": APPROVAL_SOURCE}
    if columns is not None and (
        activity is not row["activity"] or any(row[name] != content for name, content in columns.items())
    ):
        await connection.execute(
            update(executions).where(executions.c.id == row["id"]).values(activity=activity, activity_at=at, **columns)
        )
    if session_id is not None:
        status = status_of_activity(activity, is_paused=row["paused_at"] is not None)
        await move_session(connection, session_id, status, worker_id=row["worker_id"], at=at)


async def _add_session(connection: AsyncConnection, row: RowMapping, *, at: datetime) -> str:
    """Make the session of an execution that was queued before executions had one."""
    tasks, workspaces, agents = tables.tasks, tables.workspaces, tables.agents
    statement = (
        select(workspaces.c.root_path, agents.c.model, agents.c.model_tier, agents.c.temperature)
        .select_from(tasks)
        .join(workspaces, workspaces.c.id == tasks.c.workspace_id)
        .join(agents, agents.c.id == row["agent_id"])
        .where(tasks.c.id == row["task_id"])
    )
    place = (await connection.execute(statement)).one()
    started_at = row["started_at"] or at
    session_id = new_id()
    await connection.execute(
        insert(tables.sessions).values(
            id=session_id,
            user_id=LOCAL_USER_ID,
            agent_id=row["agent_id"],
            task_id=row["task_id"],
            workspace=place.root_path,
            project=place.root_path,
            day_local=(await stored_days(connection, at)).day_of_moment(started_at),
            session_ref=row["session_ref"],
            status=SessionStatus.PLANNING,
            model=place.model,
            model_tier=place.model_tier,
            temperature=place.temperature,
            initial_prompt=row["prompt"] or "",
            started_at=started_at,
            metadata={"origin": "agentmon"},
            created_at=at,
            updated_at=at,
        )
    )
    executions = tables.executions
    await connection.execute(update(executions).where(executions.c.id == row["id"]).values(session_id=session_id))
    return session_id


def _of_kind(news: Sequence[TimedNews], kind: type[_Kind]) -> list[tuple[int, _Kind]]:
    return [(one.at_ms, one.news) for one in news if isinstance(one.news, kind)]
