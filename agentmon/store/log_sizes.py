"""How large the logs are together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from agentmon.store import tables

if TYPE_CHECKING:
    from agentmon.store.database import Database


class LogSizeRepository:
    """Adds up logs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def total_bytes(self) -> int:
        """Return the size of all logs that were not removed."""
        executions = tables.executions
        statement = select(func.coalesce(func.sum(executions.c.log_byte_size), 0)).where(
            executions.c.log_removed_at.is_(None)
        )
        async with self._database.reading() as connection:
            return int((await connection.execute(statement)).scalar_one())
