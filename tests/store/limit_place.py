"""Answers, windows and contexts as an import brings them in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.domain.billing import BilledAnswer, HistorySession
from agentmon.domain.costs import FileCursor, PricedAnswer
from agentmon.store.usage_import import FilePiece

if TYPE_CHECKING:
    from agentmon.domain.limit_readings import ContextReading, LimitReading
    from agentmon.store.usage_import import UsageImport
    from tests.store.conversation_place import ConversationPlace


def an_answer(key: str, at_ms: int, tokens: int = 10, *, ref: str = "s", model: str = "m") -> PricedAnswer:
    answer = BilledAnswer(
        key=key,
        session_ref=ref,
        cwd="/w",
        provider="anthropic",
        model=model,
        at_ms=at_ms,
        prompt_tokens=tokens,
        cache_read_tokens=0,
        cache_write_5m_tokens=0,
        cache_write_1h_tokens=0,
        response_tokens=0,
        reasoning_tokens=0,
        offset=0,
    )
    return PricedAnswer(answer=answer, cost_nano=tokens * 1000, cost_source="list", price_version="1")


def import_piece(
    files: UsageImport,
    *answers: PricedAnswer,
    limits: tuple[LimitReading, ...] = (),
    contexts: tuple[ContextReading, ...] = (),
    path: str = "/a",
) -> None:
    cursor = FileCursor(
        agent_slug="claude",
        path=path,
        thread_key=path,
        inode=1,
        size_bytes=1,
        mtime_ns=1,
        read_offset=1,
        head_hash="",
        parser_version=1,
    )
    sessions = [HistorySession(session_ref=context.session_ref) for context in contexts]
    piece = FilePiece(before=None, after=cursor, answers=answers, sessions=sessions, limits=limits, contexts=contexts)
    assert files.write(piece)


async def context_of(place: ConversationPlace, ref: str) -> tuple[int | None, int | None, int | None]:
    async with place.database.reading() as connection:
        statement = "SELECT context_tokens, context_limit_tokens, context_at_ms FROM sessions WHERE session_ref = ?"
        row = (await connection.exec_driver_sql(statement, (ref,))).mappings().one()
    return row["context_tokens"], row["context_limit_tokens"], row["context_at_ms"]
