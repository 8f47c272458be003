"""News of billed answers and of costs into rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import or_, select, update
from sqlalchemy.dialects.sqlite import insert

from agentmon.domain.ids import new_id
from agentmon.store import tables
from agentmon.store.told_conversation import in_pieces, moment_of
from agentmon.store.usage_days import stored_days
from agentmon.store.usage_stand_ins import TWIN_SPAN_MS
from agentmon.store.usage_sums import SumChanges, write_sums
from agentmon.store.usage_totals import COST_SAID_OF, COUNTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.conversation import CostNews, UsageNews
    from agentmon.domain.local_days import LocalDays
    from agentmon.store.told_conversation import ToldConversation

COST_SAID: Final = "cost_said"
COST_SAID_BY: Final = "cost_said_by"
"""Keys of a session's metadata: what its agent last said the conversation has cost, and in which try."""
_REPLACED: Final = (
    *COUNTED,
    "reasoning_tokens",
    "model",
    "provider",
    "latency_ms",
    "is_provisional",
    "price_version",
    "confidence",
)
"""What another telling replaces; the cost stays until the price has been looked up anew, so that no sum drops."""


async def write_usage(
    connection: AsyncConnection, conversation: ToldConversation, told: Sequence[tuple[int, UsageNews]]
) -> None:
    """Write billed answers; the same key again replaces the numbers, and stays with the session that had it first.

    What an agent's own file has told stays as it is, see also ``usage_stand_ins``. Nothing is priced here: the cost of
    a new answer is NULL, which is not a cost of nothing.
    """
    interactions = tables.llm_interactions
    sums = SumChanges()
    place = await _read_place(connection, conversation, moment_of(told[-1][0]))
    newest = await _newest_rows(connection, conversation, told, place)
    for piece in in_pieces(list(newest)):
        statement = select(interactions).where(
            interactions.c.agent_id == conversation.agent_id, interactions.c.key.in_(piece)
        )
        present = {row["key"]: row for row in (await connection.execute(statement)).mappings()}
        for key in piece:
            earlier, row = present.get(key), newest[key]
            if earlier is not None and earlier["source_file_id"] is not None:
                await _note_latency(connection, earlier["id"], row["latency_ms"])
                del newest[key]
                continue
            if earlier is not None:
                sums.take_away(earlier)
                row["latency_ms"] = earlier["latency_ms"] if row["latency_ms"] is None else row["latency_ms"]
                row = {**earlier, **{name: row[name] for name in _REPLACED}}
            sums.add(row)
    if not newest:
        return
    upsert = insert(interactions)
    await connection.execute(
        upsert.on_conflict_do_update(
            index_elements=["agent_id", "key"], set_={name: upsert.excluded[name] for name in _REPLACED}
        ),
        list(newest.values()),
    )
    await write_sums(connection, sums)


def count_cost(
    conversation: ToldConversation, metadata: Mapping[str, object], told: Sequence[CostNews]
) -> dict[str, object]:
    """Return the metadata of the session with what the news say that its execution has cost.

    An agent says what its conversation has cost since the beginning, so that the difference counts. One that says less
    than before, or begins another try, has begun to count anew.
    """
    said, said_by = metadata.get(COST_SAID), metadata.get(COST_SAID_BY)
    this_try = f"{conversation.execution_id}:{conversation.attempt}"
    is_another_try = isinstance(said_by, str) and said_by != this_try and said_by.startswith(conversation.execution_id)
    counted = said if isinstance(said, int) and not is_another_try else 0
    added = 0
    for news in told:
        added += news.cost_nano - counted if news.cost_nano >= counted else news.cost_nano
        counted = news.cost_nano
    said_of = metadata.get(COST_SAID_OF)
    by_execution = dict(said_of) if isinstance(said_of, dict) else {}
    by_execution[conversation.execution_id] = by_execution.get(conversation.execution_id, 0) + added
    return {**metadata, COST_SAID: counted, COST_SAID_BY: this_try, COST_SAID_OF: by_execution}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """What the rows of a conversation have in common."""

    days: LocalDays
    project: str


async def _read_place(connection: AsyncConnection, conversation: ToldConversation, at: datetime) -> _Place:
    sessions = tables.sessions
    statement = select(sessions.c.project).where(sessions.c.id == conversation.session_id)
    project = (await connection.execute(statement)).scalar_one()
    return _Place(days=await stored_days(connection, at), project=project)


async def _newest_rows(
    connection: AsyncConnection, conversation: ToldConversation, told: Sequence[tuple[int, UsageNews]], place: _Place
) -> dict[str, dict[str, object]]:
    """Return by key what was told last of each answer; a stand-in for what the file has told already is left out."""
    newest: dict[str, dict[str, object]] = {}
    for at_ms, news in told:
        twin_id = await _find_twin(connection, conversation, news, at_ms) if news.is_key_provisional else None
        if twin_id is not None:
            await _note_latency(connection, twin_id, news.latency_ms)
            continue
        first = newest.get(news.key)
        row = _row(conversation, news, at_ms, place)
        if first is not None:
            row |= {name: first[name] for name in ("id", "at_ms", "day_local", "created_at")}
            row["latency_ms"] = first["latency_ms"] if news.latency_ms is None else news.latency_ms
        newest[news.key] = row
    return newest


async def _note_latency(connection: AsyncConnection, answer_id: str, latency_ms: object) -> None:
    """Keep how long an answer took, which no file tells."""
    interactions = tables.llm_interactions
    if latency_ms is not None:
        found = interactions.c.id == answer_id, interactions.c.latency_ms.is_(None)
        await connection.execute(update(interactions).where(*found).values(latency_ms=latency_ms))


async def _find_twin(
    connection: AsyncConnection, conversation: ToldConversation, news: UsageNews, at_ms: int
) -> str | None:
    """Return the id of the same answer where the agent's own file has told it already."""
    interactions = tables.llm_interactions
    statement = select(interactions.c.id).where(
        interactions.c.session_id == conversation.session_id,
        or_(
            interactions.c.execution_id == conversation.execution_id,
            interactions.c.execution_id.is_(None),
        ),
        interactions.c.at_ms.between(at_ms - TWIN_SPAN_MS, at_ms + TWIN_SPAN_MS),
        interactions.c.source_file_id.is_not(None),
        *(interactions.c[name] == getattr(news, name) for name in COUNTED),
    )
    found: str | None = (await connection.execute(statement.limit(1))).scalar()
    return found


def _row(conversation: ToldConversation, news: UsageNews, at_ms: int, place: _Place) -> dict[str, object]:
    return {
        "id": new_id(),
        "key": news.key,
        "session_id": conversation.session_id,
        "execution_id": conversation.execution_id,
        "agent_id": conversation.agent_id,
        "model": news.model,
        "provider": news.provider,
        "prompt_tokens": news.prompt_tokens,
        "cache_read_tokens": news.cache_read_tokens,
        "cache_write_5m_tokens": news.cache_write_5m_tokens,
        "cache_write_1h_tokens": news.cache_write_1h_tokens,
        "response_tokens": news.response_tokens,
        "reasoning_tokens": news.reasoning_tokens,
        "latency_ms": news.latency_ms,
        "success": not news.error,
        "error_message": news.error or None,
        "error_status": news.error_status,
        # Of a failed call there is nothing to look up.
        "cost_nano": 0 if news.error else None,
        "cost_source": "none",
        "price_version": "failed" if news.error else "",
        "is_provisional": news.is_key_provisional,
        "at_ms": at_ms,
        "day_local": place.days.day_of(at_ms),
        "created_at": moment_of(at_ms),
        "project": place.project,
        "web_searches": 0,
        "confidence": news.confidence,
    }
