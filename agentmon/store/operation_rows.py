"""News of tool calls into rows: one row for each call, with its share of the answer that asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, select, update
from sqlalchemy.dialects.sqlite import insert

from agentmon.domain.conversation import AskNews, ToolFinishedNews, ToolStartedNews
from agentmon.domain.ids import new_id
from agentmon.domain.operations import OperationStatus
from agentmon.store import tables
from agentmon.store.told_conversation import in_pieces, moment_of
from agentmon.store.usage_days import stored_days

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.local_days import LocalDays
    from agentmon.store.told_conversation import ToldConversation

_KEPT: Final = (
    "id",
    "operation_ref",
    "parent_ref",
    "answer_key",
    "tool_name",
    "type",
    "target",
    "input_summary",
    "output_summary",
    "status",
    "error",
    "started_at",
    "day_local",
    "finished_at",
    "duration_ms",
    "created_at",
    "updated_at",
)
_NEVER_CHANGED: Final = frozenset({"id", "operation_ref", "started_at", "day_local", "created_at"})


async def write_operations(
    connection: AsyncConnection,
    conversation: ToldConversation,
    told: Sequence[tuple[int, ToolStartedNews | ToolFinishedNews | AskNews]],
) -> tuple[int, frozenset[str]]:
    """Write tool calls.

    A call that is told of again is the same call with more detail. The end of a call that nobody began is no call. A
    request for a call that has not begun makes it, so that what waits for a decision can be seen.

    Returns:
        How many calls are new, and the keys of the answers that asked for calls of this stretch.
    """
    refs = list(dict.fromkeys(conversation.ref(news.tool_ref) for _, news in told if news.tool_ref is not None))
    rows = await _read(connection, conversation, refs)
    known, changed = set(rows), set[str]()
    days = await stored_days(connection, moment_of(told[-1][0]))
    for at_ms, news in told:
        if news.tool_ref is None:
            continue
        ref, at = conversation.ref(news.tool_ref), moment_of(at_ms)
        match news:
            case ToolStartedNews():
                _begin(rows, ref, news, at, days)
            case ToolFinishedNews() if ref in rows and news.status is not OperationStatus.PENDING:
                _finish(rows[ref], news, at)
            case AskNews() if ref not in rows and news.type is not None:
                _begin(rows, ref, _call_of(news, news.tool_ref), at, days)
            case _:
                continue
        changed.add(ref)
    if changed:
        both = {"session_id": conversation.session_id, "execution_id": conversation.execution_id}
        statement = insert(tables.operations)
        names = [name for name in _KEPT if name not in _NEVER_CHANGED]
        await connection.execute(
            statement.on_conflict_do_update(
                index_elements=["execution_id", "operation_ref"],
                set_={name: statement.excluded[name] for name in names},
            ),
            [rows[ref] | both for ref in rows if ref in changed],
        )
    answer_keys = {str(rows[ref]["answer_key"]) for ref in changed if rows[ref]["answer_key"] is not None}
    return len(changed - known), frozenset(answer_keys)


async def find_operation_ids(
    connection: AsyncConnection, conversation: ToldConversation, tool_refs: Collection[str]
) -> Mapping[str, str]:
    """Return the ids of calls by the agent's own names of them; those without a row are left out."""
    operations = tables.operations
    found: dict[str, str] = {}
    for piece in in_pieces(sorted(tool_refs)):
        refs = {conversation.ref(name): name for name in piece}
        statement = select(operations.c.operation_ref, operations.c.id).where(
            operations.c.execution_id == conversation.execution_id, operations.c.operation_ref.in_(list(refs))
        )
        found |= {refs[row.operation_ref]: row.id for row in await connection.execute(statement)}
    return found


async def share_answers(
    connection: AsyncConnection, conversation: ToldConversation, answer_keys: Collection[str]
) -> None:
    """Share the tokens of answers among the calls that they asked for.

    Every call of an answer gets the same whole number of tokens, and what is left over goes to the first calls, one
    token each: so their sum is that of the answer. Input tokens count those from and for a cache too; output tokens
    are those of the response with its reasoning.
    """
    operations, interactions = tables.operations, tables.llm_interactions
    shares: list[dict[str, object]] = []
    for piece in in_pieces(sorted(answer_keys)):
        billed = select(
            interactions.c.key,
            (
                interactions.c.prompt_tokens
                + interactions.c.cache_read_tokens
                + interactions.c.cache_write_5m_tokens
                + interactions.c.cache_write_1h_tokens
            ).label("input_tokens"),
            interactions.c.response_tokens.label("output_tokens"),
        ).where(interactions.c.agent_id == conversation.agent_id, interactions.c.key.in_(piece))
        totals = {row.key: row for row in await connection.execute(billed)}
        calls = (
            select(operations.c.id, operations.c.answer_key)
            .where(operations.c.execution_id == conversation.execution_id, operations.c.answer_key.in_(list(totals)))
            .order_by(operations.c.id)
        )
        by_answer: dict[str, list[str]] = {}
        for row in await connection.execute(calls):
            by_answer.setdefault(row.answer_key, []).append(row.id)
        for key, ids in by_answer.items():
            inputs = _shares(totals[key].input_tokens, len(ids))
            outputs = _shares(totals[key].output_tokens, len(ids))
            shares += [
                {"call_id": call_id, "share_in": inputs[place], "share_out": outputs[place]}
                for place, call_id in enumerate(ids)
            ]
    if shares:
        await connection.execute(
            update(operations)
            .where(operations.c.id == bindparam("call_id"))
            .values(input_tokens=bindparam("share_in"), output_tokens=bindparam("share_out")),
            shares,
        )


def _shares(total: int, count: int) -> list[int]:
    each, left = divmod(total, count)
    return [each + (1 if place < left else 0) for place in range(count)]


async def _read(
    connection: AsyncConnection, conversation: ToldConversation, refs: Sequence[str]
) -> dict[str, dict[str, object]]:
    operations = tables.operations
    rows: dict[str, dict[str, object]] = {}
    for piece in in_pieces(refs):
        statement = select(*(operations.c[name] for name in _KEPT)).where(
            operations.c.execution_id == conversation.execution_id, operations.c.operation_ref.in_(piece)
        )
        for row in (await connection.execute(statement)).mappings():
            rows[row["operation_ref"]] = dict(row)
    return rows


def _begin(rows: dict[str, dict[str, object]], ref: str, news: ToolStartedNews, at: datetime, days: LocalDays) -> None:
    row = rows.setdefault(
        ref,
        {
            "id": new_id(),
            "operation_ref": ref,
            "parent_ref": None,
            "answer_key": None,
            "input_summary": "",
            "output_summary": "",
            "status": OperationStatus.PENDING,
            "error": None,
            "started_at": at,
            "day_local": days.day_of_moment(at),
            "finished_at": None,
            "duration_ms": None,
            "created_at": at,
        },
    )
    row |= {"tool_name": news.tool_name, "type": news.type, "target": news.target, "updated_at": at}
    row["input_summary"] = news.input_summary or row["input_summary"]
    row["parent_ref"] = news.parent_tool_ref or row["parent_ref"]
    row["answer_key"] = news.answer_key or row["answer_key"]


def _finish(row: dict[str, object], news: ToolFinishedNews, at: datetime) -> None:
    row |= {
        "status": news.status,
        "output_summary": news.output_summary,
        "error": news.error,
        "finished_at": at,
        "duration_ms": news.duration_ms,
        "updated_at": at,
    }


def _call_of(news: AskNews, tool_ref: str) -> ToolStartedNews:
    if news.type is None:
        raise ValueError("a request that names no kind of call")
    return ToolStartedNews(tool_ref=tool_ref, tool_name=news.tool_name, type=news.type, target=news.target)
