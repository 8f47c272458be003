"""The days of sessions and tool calls moved to another zone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.store.moments import parse_moment
from agentmon.store.usage_conversations import IS_COPY

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.local_days import LocalDays

_FUNCTION: Final = "local_day"
_MOVE: Final = tuple(
    f"UPDATE {table} SET day_local = {_FUNCTION}(started_at) WHERE day_local <> {_FUNCTION}(started_at){but}"
    for table, but in (("sessions", f" AND json_extract(metadata, '$.{IS_COPY}') IS NULL"), ("operations", ""))
)


async def move_activity(connection: AsyncConnection, days: LocalDays) -> None:
    """Put all sessions and tool calls under these days; their counts follow by themselves."""

    def day_of(moment: str) -> str:
        return days.day_of_moment(parse_moment(moment))

    opened = (await connection.get_raw_connection()).driver_connection
    if opened is None:
        raise TypeError("a connection that is closed")
    await opened.create_function(_FUNCTION, 1, day_of, deterministic=True)
    for statement in _MOVE:
        await connection.exec_driver_sql(statement)
