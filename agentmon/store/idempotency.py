"""Requests that their clients named: what came of each is written in the transaction that did it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import insert, select

from agentmon.domain.errors import ConflictError
from agentmon.store import tables

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor
    from agentmon.domain.idempotency import IdempotencyKey
    from agentmon.store.database import Database


class IdempotencyRepository:
    """Reads what came of requests; who does one writes that with ``note_result``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_result(self, key: IdempotencyKey | None, *, actor: Actor) -> str | None:
        """Return the id of the row that the same request of this actor made or changed; None when it is new.

        Raises:
            ConflictError: The actor asked for something else under this key.
        """
        if key is None:
            return None
        async with self._database.reading() as connection:
            return await find_result(connection, key, actor=actor)


async def find_result(connection: AsyncConnection, key: IdempotencyKey | None, *, actor: Actor) -> str | None:
    """Return the result of the same request inside the caller's transaction; see ``IdempotencyRepository``."""
    if key is None:
        return None
    keys = tables.idempotency_keys
    statement = select(keys).where(keys.c.actor_id == actor.id, keys.c.key == key.key)
    row = (await connection.execute(statement)).mappings().first()
    if row is None:
        return None
    if (row["action"], row["digest"]) != (key.action, key.digest):
        raise ConflictError(
            f"another request was sent under the key {key.key}", hint="one key is for one request; take a new one"
        )
    return str(row["result_id"])


async def note_result(
    connection: AsyncConnection, key: IdempotencyKey | None, result_id: str, *, actor: Actor, at: datetime
) -> None:
    """Write what came of a request inside the transaction that did it."""
    if key is None:
        return
    await connection.execute(
        insert(tables.idempotency_keys).values(
            actor_id=actor.id,
            key=key.key,
            action=key.action,
            digest=key.digest,
            result_id=result_id,
            created_at=at,
        )
    )
