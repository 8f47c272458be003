"""The zone whose days the answers are kept under, and moving all of them to another one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from agentmon.domain.local_days import SLICE_MS, LocalDays
from agentmon.schedule import local_zone_name
from agentmon.store.activity_days import move_activity
from agentmon.store.moments import moment_text
from agentmon.store.usage_sums import RECOUNT

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.store.database import Database

ZONE_KEY: Final = "usage.zone"
"""Under which the settings say in which zone the stored days are. No setting of a person: it is kept by the store."""
READ_ZONE: Final = f"SELECT value FROM settings WHERE key = '{ZONE_KEY}'"
WRITE_ZONE: Final = (
    "INSERT INTO settings (key, value, created_at, updated_at) VALUES (?, ?, ?, ?) "
    "ON CONFLICT DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at"
)
_HAS_ANSWERS: Final = "SELECT EXISTS (SELECT 1 FROM llm_interactions)"
_SLICES: Final = f"SELECT DISTINCT at_ms / {SLICE_MS} AS part, day_local FROM llm_interactions"
_MOVE: Final = (
    "UPDATE llm_interactions SET day_local = ? "
    f"WHERE at_ms >= ? * {SLICE_MS} AND at_ms < (? + 1) * {SLICE_MS} AND day_local <> ?"
)
_known_days: Final[dict[str, LocalDays]] = {}


def days_of_zone(zone_name: str) -> LocalDays:
    """Return the days of a zone by its IANA name; what was worked out before is kept."""
    days = _known_days.get(zone_name)
    if days is None:
        days = _known_days[zone_name] = LocalDays(ZoneInfo(zone_name))
    return days


def zone_row(zone_name: str, at: datetime) -> tuple[object, ...]:
    """Return the parameters of ``WRITE_ZONE``."""
    return (ZONE_KEY, json.dumps(zone_name), moment_text(at), moment_text(at))


def zone_of(value: object) -> str | None:
    """Return the zone that a row of ``READ_ZONE`` names; None when there is none."""
    found = json.loads(value) if isinstance(value, str) else None
    return found if isinstance(found, str) and found else None


async def stored_days(connection: AsyncConnection, at: datetime) -> LocalDays:
    """Return the days that new answers are put under; the zone is that of this machine when none was chosen yet."""
    zone_name = zone_of((await connection.exec_driver_sql(READ_ZONE)).scalar())
    if zone_name is None:
        zone_name = local_zone_name()
        await connection.exec_driver_sql(WRITE_ZONE, zone_row(zone_name, at))
    return days_of_zone(zone_name)


class UsageDayRepository:
    """Reads and changes the zone of the days."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def zone(self) -> str | None:
        """Return the IANA name of the zone; None while there is no answer in it."""
        async with self._database.reading() as connection:
            return zone_of((await connection.exec_driver_sql(READ_ZONE)).scalar())

    async def move_to(self, zone_name: str, *, at: datetime) -> bool:
        """Put answers, sessions and tool calls under the days of this zone; return whether that had to be done.

        All sums are counted anew. It is one transaction: who reads meanwhile sees the days of one zone.
        """
        if await self.zone() == zone_name:
            return False
        async with self._database.writing() as connection:
            if zone_of((await connection.exec_driver_sql(READ_ZONE)).scalar()) == zone_name:
                return False
            await connection.exec_driver_sql(WRITE_ZONE, zone_row(zone_name, at))
            days = days_of_zone(zone_name)
            await move_activity(connection, days)
            if not (await connection.exec_driver_sql(_HAS_ANSWERS)).scalar():
                return True
            moved = []
            for slice_of_time in (await connection.exec_driver_sql(_SLICES)).mappings().all():
                part = slice_of_time["part"]
                right = days.day_of(part * SLICE_MS)
                if right != slice_of_time["day_local"]:
                    moved.append((right, part, part, right))
            if moved:
                await connection.exec_driver_sql(_MOVE, moved)
            for statement in RECOUNT:
                await connection.exec_driver_sql(statement)
        return True
