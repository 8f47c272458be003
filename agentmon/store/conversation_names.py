"""The agent's own id of a conversation, once it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import func, select, text, update

from agentmon.store import tables
from agentmon.store.usage_conversations import FORMER_REFS, HAS_FORMER_REFS, HISTORY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

_MAX_FORMER_REFS: Final = 200
"""Most former ids that one conversation keeps, the newest."""
_FORMER_REFS = text(
    f"SELECT former.value FROM sessions, json_each(sessions.metadata, '$.{FORMER_REFS}') AS former "
    f"WHERE {HAS_FORMER_REFS} AND sessions.id <> :session_id"
)


async def refs_of_others(connection: AsyncConnection, refs: Collection[str], *, session_id: str | None) -> set[str]:
    """Return which of the agents' own ids belong to conversations of other runs here."""
    sessions = tables.sessions
    statement = select(sessions.c.session_ref).where(
        sessions.c.session_ref.in_(refs),
        sessions.c.id.is_distinct_from(session_id),
        func.json_extract(sessions.c.metadata, "$.origin").is_distinct_from(HISTORY),
    )
    present = {row.session_ref for row in await connection.execute(statement)}
    former = {row.value for row in await connection.execute(_FORMER_REFS, {"session_id": session_id or ""})}
    return present | (former & set(refs))


async def name_found_conversation(connection: AsyncConnection, row: RowMapping, session_ref: str) -> bool:
    """Write an id that was found in the agent's files, unless another run has that conversation; return whether.

    Args:
        connection: Of the caller's transaction.
        row: Of the execution.
        session_ref: The agent's own id.
    """
    if await refs_of_others(connection, [session_ref], session_id=row["session_id"]):
        return False
    await name_conversation(connection, row["id"], row["session_id"], session_ref)
    return True


async def name_conversation(
    connection: AsyncConnection, execution_id: str, session_id: str | None, *session_refs: str
) -> None:
    """Write the agent's own id of the conversation of an execution; of several, told one after the other, the last.

    Another one than before, since the agent began anew in the same screen or another try did, is the same session: it
    goes on with the new id, and what the files of the newest former ones tell stays its own.
    """
    sessions = tables.sessions
    present = select(sessions.c.session_ref, sessions.c.metadata).where(sessions.c.id == session_id)
    session = (await connection.execute(present)).first()
    if session is not None:
        before = list(session.metadata.get(FORMER_REFS, ()))
        former = _former_refs(before, session.session_ref, session_refs)
        if former != before:
            metadata = {**session.metadata, FORMER_REFS: former}
            await connection.execute(update(sessions).where(sessions.c.id == session_id).values(metadata=metadata))
    session_ref = session_refs[-1]
    for table, row_id in ((tables.executions, execution_id), (tables.sessions, session_id)):
        await connection.execute(
            update(table)
            .where(table.c.id == row_id, table.c.session_ref.is_distinct_from(session_ref))
            .values(session_ref=session_ref)
        )


def _former_refs(before: Iterable[str], present: str | None, session_refs: Iterable[str]) -> list[str]:
    former = dict.fromkeys(before)
    for session_ref in session_refs:
        if present not in {None, session_ref}:
            former[present] = None
            former.pop(session_ref, None)
            if len(former) > _MAX_FORMER_REFS:
                del former[next(iter(former))]
        present = session_ref
    return list(former)
