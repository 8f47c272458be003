"""The settings that the database holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, select
from sqlalchemy.dialects.sqlite import insert

from agentmon.domain.events import TaskEventType
from agentmon.store import tables
from agentmon.store.audit import append_task_event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from agentmon.domain.events import Actor
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

    async def set(self, key: str, setting: object, *, actor: Actor, at: datetime) -> None:
        """Write one setting over what was there, with its line in the audit trail."""
        await self.change(key, lambda _before: setting, actor=actor, at=at)

    async def change(self, key: str, changed: Callable[[object], object], *, actor: Actor, at: datetime) -> None:
        """Make one setting of what was there, so that no change of another client gets lost.

        Args:
            key: Which.
            changed: Gets what is there, None for nothing, and returns what is to be there; what it raises is raised,
                and nothing is changed.
            actor: Who does it.
            at: The time now.
        """
        present = select(tables.settings.c.value).where(tables.settings.c.key == key)
        async with self._database.writing() as connection:
            before = (await connection.execute(present)).scalar()
            setting = changed(before)
            if before == setting:
                return
            await append_task_event(
                connection,
                task_id=None,
                actor=actor,
                event_type=TaskEventType.SETTING_CHANGED,
                payload={"key": key, "from": before, "to": setting},
                at=at,
            )
            statement = insert(tables.settings).values(key=key, value=setting, created_at=at, updated_at=at)
            await connection.execute(
                statement.on_conflict_do_update(
                    index_elements=["key"],
                    set_={"value": statement.excluded.value, "updated_at": statement.excluded.updated_at},
                )
            )

    async def remove(self, key: str, *, actor: Actor, at: datetime) -> None:
        """Take one setting away, with its line in the audit trail; one that is not there is none."""
        rows = tables.settings
        async with self._database.writing() as connection:
            found = (await connection.execute(select(rows.c.value).where(rows.c.key == key))).first()
            if found is None:
                return
            await append_task_event(
                connection,
                task_id=None,
                actor=actor,
                event_type=TaskEventType.SETTING_CHANGED,
                payload={"key": key, "from": found.value, "to": "what it is by itself"},
                at=at,
            )
            await connection.execute(delete(rows).where(rows.c.key == key))
