"""News of messages into rows: one row for each message, however many parts it came in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import func
from sqlalchemy.dialects.sqlite import insert

from agentmon.domain.ids import new_id
from agentmon.store import tables
from agentmon.store.told_conversation import moment_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.conversation import MessageNews
    from agentmon.store.told_conversation import ToldConversation

_MAX_CHARACTERS: Final = 4_000_000
"""Most of one message that is kept; parts beyond it are cut."""


async def write_messages(
    connection: AsyncConnection, conversation: ToldConversation, told: Sequence[tuple[int, MessageNews]]
) -> None:
    """Write messages; a part goes on from the text that is there, anything else takes its place."""
    rows: dict[str, dict[str, object]] = {}
    texts: dict[str, list[str]] = {}
    is_whole: dict[str, bool] = {}
    for at_ms, news in told:
        ref = conversation.ref(news.message_ref)
        if ref in rows and news.continues:
            texts[ref].append(news.text)
            continue
        first = rows.get(ref)
        rows[ref] = {
            "id": new_id() if first is None else first["id"],
            "session_id": conversation.session_id,
            "execution_id": conversation.execution_id,
            "message_ref": ref,
            "role": news.role,
            "is_thinking": news.is_thinking,
            "parent_ref": news.parent_tool_ref,
            "created_at": moment_of(at_ms) if first is None else first["created_at"],
        }
        texts[ref] = [news.text]
        is_whole[ref] = not news.continues
    for ref, row in rows.items():
        row["content"] = "".join(texts[ref])[:_MAX_CHARACTERS]
    await _write(connection, [row for ref, row in rows.items() if is_whole[ref]], goes_on=False)
    await _write(connection, [row for ref, row in rows.items() if not is_whole[ref]], goes_on=True)


async def _write(connection: AsyncConnection, rows: Sequence[dict[str, object]], *, goes_on: bool) -> None:
    if not rows:
        return
    messages = tables.messages
    statement = insert(messages)
    new = statement.excluded
    changes = (
        {"content": func.substr(messages.c.content + new.content, 1, _MAX_CHARACTERS)}
        if goes_on
        else {name: new[name] for name in ("role", "content", "is_thinking", "parent_ref")}
    )
    await connection.execute(
        statement.on_conflict_do_update(index_elements=["execution_id", "message_ref"], set_=changes), list(rows)
    )
