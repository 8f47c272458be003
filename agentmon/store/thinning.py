"""Rows that nobody needs any more: counted, and removed in small pieces, so that no writer waits for long."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, insert, text

from agentmon.domain.events import ActorType, EventType, TaskEventType
from agentmon.domain.storage import ThinningRule
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.column_types import json_text
from agentmon.store.moments import moment_text

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor
    from agentmon.store.database import Database

_AT_ONE_TIME: Final = 500
_BETWEEN_PIECES_S: Final = 0.02
"""Others that wait for the database get it."""
_OF_ENDED: Final = (
    "execution_id IN (SELECT id FROM executions WHERE ended_at < :before"
    " AND status NOT IN ('cancelling', 'finalizing', 'queued', 'running'))"
)
_WITH_OWN_ROWS: Final = ", ".join(
    f"'{kind}'" for kind in (EventType.MESSAGE, EventType.TOOL_FINISHED, EventType.TOOL_STARTED, EventType.USAGE)
)
_MADE_OR_EDITED: Final = f"'{TaskEventType.TASK_CREATED}', '{TaskEventType.TASK_EDITED}'"
_RULES: Final[Mapping[ThinningRule, tuple[str, str]]] = {
    ThinningRule.EVENTS: (
        "events",
        f"timestamp_ms < :before_ms AND type IN ({_WITH_OWN_ROWS}) AND session_id IS NOT NULL AND {_OF_ENDED}",
    ),
    ThinningRule.COMMANDS: (
        "execution_commands",
        # A repeated request finds what it did by its key.
        f"""created_at < :before AND delivered_at IS NOT NULL AND {_OF_ENDED}
        AND NOT EXISTS (SELECT 1 FROM idempotency_keys k WHERE k.result_id = execution_commands.id)""",
    ),
    ThinningRule.HEARTBEATS: (
        "worker_heartbeats",
        """last_seen_at < :before AND NOT EXISTS (SELECT 1 FROM executions e WHERE
        e.worker_id = worker_heartbeats.worker_id AND e.status IN ('cancelling', 'finalizing', 'queued', 'running'))""",
    ),
    ThinningRule.REQUEST_KEYS: ("idempotency_keys", "created_at < :before"),
    # What an agent wrote is judged by another measure for as long as it can run; see ``task_authors``.
    ThinningRule.AUDIT: (
        "task_events",
        f"""created_at < :before AND NOT (actor_type = '{ActorType.AGENT}' AND event_type IN ({_MADE_OR_EDITED}))""",
    ),
}


class ThinningRepository:
    """Removes rows by rules."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self, bounds: Mapping[ThinningRule, datetime]) -> Mapping[ThinningRule, int]:
        """Return how many rows each rule would remove."""

        def count_all(driver: sqlite3.Connection) -> dict[ThinningRule, int]:
            counts = {}
            for rule, before in bounds.items():
                table, condition = _RULES[rule]
                found = driver.execute(f"SELECT count(*) FROM {table} WHERE {condition}", _values(before))
                counts[rule] = int(found.fetchone()[0])
            return counts

        return await self._database.read(count_all)

    async def thin(
        self, bounds: Mapping[ThinningRule, datetime], *, actor: Actor, at: datetime, at_most: int | None = None
    ) -> Mapping[ThinningRule, int]:
        """Remove what the rules name, and return how many rows of each went.

        Args:
            bounds: Each rule with the time before which it removes.
            actor: Who wants that; the audit trail says from before when it was thinned, and by whom.
            at: The time now.
            at_most: About how many rows of a rule; the rest goes with the next call. None means all.

        Raises:
            StoreError: What was removed until then is gone.
        """
        removed = {}
        for rule, before in bounds.items():
            rows = await self._find(rule, before, at_most)
            pieces = [rows[first : first + _AT_ONE_TIME] for first in range(0, len(rows), _AT_ONE_TIME)]
            removed[rule] = 0
            for piece in pieces:
                async with self._database.writing() as connection:
                    removed[rule] += await _remove(connection, rule, piece, before, at=at)
                    if rule is ThinningRule.AUDIT and piece is pieces[0]:
                        await _tell(connection, before, actor=actor, at=at)
                await asyncio.sleep(_BETWEEN_PIECES_S)
        return removed

    async def _find(self, rule: ThinningRule, before: datetime, at_most: int | None) -> list[int]:
        """Return the rows to remove; found without the lock of writers, since they may lie behind many that stay."""
        table, condition = _RULES[rule]
        limit = -1 if at_most is None else at_most
        statement = f"SELECT rowid FROM {table} WHERE {condition} LIMIT {limit}"
        return await self._database.read(lambda driver: [row[0] for row in driver.execute(statement, _values(before))])


async def _remove(
    connection: AsyncConnection, rule: ThinningRule, rows: Sequence[int], before: datetime, *, at: datetime
) -> int:
    table, condition = _RULES[rule]
    settings, values = tables.settings, _values(before)
    if rule is ThinningRule.AUDIT:
        # The trigger lets go what is older than the mark, which no other transaction ever sees.
        mark = {"key": tables.AUDIT_MARK, "value": values["before"], "created_at": at, "updated_at": at}
        await connection.execute(insert(settings).values(**mark))
    # A row that was found may be another one by now.
    statement = text(f"DELETE FROM {table} WHERE rowid IN (SELECT value FROM json_each(:rows)) AND {condition}")
    count = (await connection.execute(statement, {**values, "rows": json_text(list(rows))})).rowcount
    if rule is ThinningRule.AUDIT:
        await connection.execute(delete(settings).where(settings.c.key == tables.AUDIT_MARK))
    return count


async def _tell(connection: AsyncConnection, before: datetime, *, actor: Actor, at: datetime) -> None:
    await append_task_event(
        connection,
        task_id=None,
        actor=actor,
        event_type=TaskEventType.AUDIT_THINNED,
        payload={"before": before.isoformat()},
        at=at,
    )


def _values(before: datetime) -> dict[str, object]:
    return {"before": moment_text(before), "before_ms": round(before.timestamp() * 1000)}
