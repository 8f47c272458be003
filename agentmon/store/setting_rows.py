"""The settings that the database holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.dialects.sqlite import insert

from agentmon.store import tables

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agentmon.store.database import Database


class SettingRepository:
    """Reads and writes settings by key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> Mapping[str, object]:
        """Return every stored setting by its key."""
        statement = select(tables.settings.c.key, tables.settings.c.value).limit(1000)
        async with self._database.reading() as connection:
            return {row.key: row.value for row in await connection.execute(statement)}

    async def set(self, key: str, setting: object, *, at: datetime) -> None:
        """Write one setting over what was there."""
        statement = insert(tables.settings).values(key=key, value=setting, created_at=at, updated_at=at)
        async with self._database.writing() as connection:
            await connection.execute(
                statement.on_conflict_do_update(
                    index_elements=["key"],
                    set_={"value": statement.excluded.value, "updated_at": statement.excluded.updated_at},
                )
            )
