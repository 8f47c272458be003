"""Brings the index of words of messages up to what was said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.store.message_index import HAS_UNINDEXED, INDEX_SOME

if TYPE_CHECKING:
    from agentmon.store.database import Database


class MessageIndexRepository:
    """Takes messages up into the index."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take_up_some(self) -> bool:
        """Take up at most a thousand messages, and return whether there were any."""
        async with self._database.reading() as connection:
            if not (await connection.exec_driver_sql(HAS_UNINDEXED)).scalar():
                return False
        async with self._database.writing() as connection:
            for statement in INDEX_SOME:
                await connection.exec_driver_sql(statement)
        return True
