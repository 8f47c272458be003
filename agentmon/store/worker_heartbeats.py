"""Workers as their heartbeats describe them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from agentmon.domain.ids import WorkerId
from agentmon.domain.owners import Owner
from agentmon.store import tables

if TYPE_CHECKING:
    from agentmon.store.database import Database


class HeartbeatRepository:
    """Reads who has worked on this database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def newest(self, *, limit: int) -> tuple[Owner, ...]:
        """Return the workers that were seen last, the newest first."""
        heartbeats = tables.worker_heartbeats
        statement = select(heartbeats).order_by(heartbeats.c.last_seen_at.desc()).limit(limit)
        async with self._database.reading() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return tuple(
            Owner.of_particulars(WorkerId(row["worker_id"]), row["metadata"] or {}, last_seen_at=row["last_seen_at"])
            for row in rows
        )
