"""News of billed answers and of costs into rows, and into the totals of executions and sessions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sqlalchemy import func, select, update
from sqlalchemy.dialects.sqlite import insert

from agentmon.domain.ids import new_id
from agentmon.store import tables
from agentmon.store.told_conversation import in_pieces, local_day_of, moment_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.conversation import CostNews, UsageNews
    from agentmon.store.told_conversation import ToldConversation

COST_SAID: Final = "cost_said"
COST_SAID_BY: Final = "cost_said_by"
"""Keys of a session's metadata: what its agent last said the conversation has cost, and in which try."""
_COUNTED: Final = (
    "prompt_tokens",
    "cache_read_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
    "response_tokens",
)
"""All tokens of an answer; those of reasoning are among those of the response."""
_REPLACED: Final = (
    *_COUNTED,
    "reasoning_tokens",
    "model",
    "provider",
    "latency_ms",
    "is_provisional",
    "cost_nano",
    "cost_source",
    "price_version",
)


@dataclass(slots=True)
class TokenChanges:
    """By how much the totals of executions and sessions grow; less than nothing when an answer got smaller."""

    by_execution: dict[str, int] = field(default_factory=dict)
    by_session: dict[str, int] = field(default_factory=dict)

    def add(self, execution_id: str | None, session_id: str, tokens: int) -> None:
        """Count the tokens for their execution and their session."""
        if execution_id is not None:
            self.by_execution[execution_id] = self.by_execution.get(execution_id, 0) + tokens
        self.by_session[session_id] = self.by_session.get(session_id, 0) + tokens


async def write_usage(
    connection: AsyncConnection, conversation: ToldConversation, told: Sequence[tuple[int, UsageNews]]
) -> TokenChanges:
    """Write billed answers; the same key again replaces the numbers, and stays with the session that had it first.

    Nothing is priced here: the cost is NULL, which is not a cost of nothing.
    """
    interactions = tables.llm_interactions
    changes = TokenChanges()
    newest: dict[str, dict[str, object]] = {}
    for at_ms, news in told:
        first = newest.get(news.key)
        row = _row(conversation, news, at_ms)
        if first is not None:
            row |= {name: first[name] for name in ("id", "at_ms", "day_local", "created_at")}
        newest[news.key] = row
    for piece in in_pieces(list(newest)):
        statement = select(interactions).where(
            interactions.c.agent_id == conversation.agent_id, interactions.c.key.in_(piece)
        )
        present = {row["key"]: row for row in (await connection.execute(statement)).mappings()}
        for key in piece:
            earlier = present.get(key)
            if earlier is None:
                changes.add(conversation.execution_id, conversation.session_id, _total(newest[key]))
            else:
                changes.add(earlier["execution_id"], earlier["session_id"], _total(newest[key]) - _total(earlier))
    upsert = insert(interactions)
    await connection.execute(
        upsert.on_conflict_do_update(
            index_elements=["agent_id", "key"], set_={name: upsert.excluded[name] for name in _REPLACED}
        ),
        list(newest.values()),
    )
    return changes


async def add_tokens(connection: AsyncConnection, changes: TokenChanges) -> None:
    """Add the changes to the totals."""
    executions, sessions = tables.executions, tables.sessions
    for execution_id, tokens in changes.by_execution.items():
        await connection.execute(
            update(executions)
            .where(executions.c.id == execution_id)
            .values(tokens_used=func.max(0, executions.c.tokens_used + tokens))
        )
    for session_id, tokens in changes.by_session.items():
        await connection.execute(
            update(sessions)
            .where(sessions.c.id == session_id)
            .values(total_tokens=func.max(0, sessions.c.total_tokens + tokens))
        )


def count_cost(
    conversation: ToldConversation, metadata: Mapping[str, object], told: Sequence[CostNews]
) -> tuple[int, dict[str, object]]:
    """Return what the news add to the cost of the execution and its session, and the new metadata of the session.

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
    return added, {**metadata, COST_SAID: counted, COST_SAID_BY: this_try}


def _row(conversation: ToldConversation, news: UsageNews, at_ms: int) -> dict[str, object]:
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
        "success": True,
        "cost_nano": None,
        "cost_source": "none",
        "price_version": "",
        "is_provisional": news.is_key_provisional,
        "at_ms": at_ms,
        "day_local": local_day_of(at_ms),
        "created_at": moment_of(at_ms),
    }


def _total(row: Mapping[str, object] | RowMapping) -> int:
    counts = (row[name] for name in _COUNTED)
    return sum(count for count in counts if isinstance(count, int))
