"""The agent's own id of a conversation, once it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select, update

from agentmon.store import tables
from agentmon.store.usage_conversations import FORMER_REFS

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection


async def name_conversation(
    connection: AsyncConnection, execution_id: str, session_id: str | None, session_ref: str
) -> None:
    """Write the agent's own id of the conversation of an execution.

    Another one than before, since the agent began anew in the same screen or another try did, is the same session: it
    goes on with the new id, and what the file of the former one tells stays its own.
    """
    sessions = tables.sessions
    present = select(sessions.c.session_ref, sessions.c.metadata).where(sessions.c.id == session_id)
    session = (await connection.execute(present)).first()
    if session is not None and session.session_ref not in {None, session_ref}:
        former = [*session.metadata.get(FORMER_REFS, ()), session.session_ref]
        metadata = {**session.metadata, FORMER_REFS: [one for one in dict.fromkeys(former) if one != session_ref]}
        await connection.execute(update(sessions).where(sessions.c.id == session_id).values(metadata=metadata))
    for table, row_id in ((tables.executions, execution_id), (tables.sessions, session_id)):
        await connection.execute(
            update(table)
            .where(table.c.id == row_id, table.c.session_ref.is_distinct_from(session_ref))
            .values(session_ref=session_ref)
        )
