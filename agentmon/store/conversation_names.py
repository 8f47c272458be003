"""The agent's own id of a conversation, once it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import update

from agentmon.store import tables

if TYPE_CHECKING:
    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection


async def name_conversation(connection: AsyncConnection, row: RowMapping, session_ref: str) -> None:
    """Write the agent's own id of the conversation of an execution, of which this is the row."""
    for table, row_id in ((tables.executions, row["id"]), (tables.sessions, row["session_id"])):
        await connection.execute(
            update(table)
            .where(table.c.id == row_id, table.c.session_ref.is_distinct_from(session_ref))
            .values(session_ref=session_ref)
        )
