"""Journals into rows: a stretch of a journal, the offset it ends at and all that follows, in one transaction."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import insert, update

from agentmon.domain.execution_status import LIVE_STATUSES
from agentmon.domain.ids import LOCAL_USER_ID
from agentmon.store import tables
from agentmon.store.errors import refusal_of_a_row
from agentmon.store.news_recording import record_news
from agentmon.store.settling import begin_end

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.executions import ExecutionEnding, ExecutionProgress
    from agentmon.domain.ids import ExecutionId
    from agentmon.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What became of the stretches of some journals."""

    ended: Mapping[ExecutionId, ExecutionEnding]
    """How the executions ended whose processes are gone; ``SettlementRepository.settle`` lets that count."""
    problems: Mapping[ExecutionId, Exception]
    """The executions of which nothing was written, since something in their stretches cannot be."""


class IngestRepository:
    """Writes what journals say."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, stretches: Sequence[ExecutionProgress], *, at: datetime) -> Recorded:
        """Write the stretches of any number of journals in one transaction, those of each journal as a whole or not.

        A stretch whose ``from_offset`` is not what the row holds was written before, and is dropped.

        Args:
            stretches: Those of one journal in their order.
            at: The time now.

        Raises:
            StoreError: The database as a whole cannot be written; nothing was.
        """
        by_execution: defaultdict[ExecutionId, list[ExecutionProgress]] = defaultdict(list)
        for stretch in stretches:
            by_execution[stretch.execution_id].append(stretch)
        ended: dict[ExecutionId, ExecutionEnding] = {}
        problems: dict[ExecutionId, Exception] = {}
        async with self._database.writing() as connection:
            for execution_id, own in by_execution.items():
                try:
                    async with connection.begin_nested():
                        endings = [await _record(connection, stretch, at=at) for stretch in own]
                except Exception as error:
                    refusal = refusal_of_a_row(error)
                    if refusal is None:
                        raise
                    problems[execution_id] = refusal
                else:
                    ended.update((execution_id, ending) for ending in endings if ending is not None)
        return Recorded(ended=ended, problems=problems)

    async def note_problem(self, execution_id: ExecutionId, problem: str | None, *, at: datetime) -> None:
        """Write why the journal of a live execution is set aside; None when it is read again."""
        await self._note(execution_id, "journal_problem", problem, at=at)

    async def complain(self, execution_id: ExecutionId, complaint: str, *, at: datetime) -> None:
        """Write what a person has to know of an execution that is still open."""
        await self._note(execution_id, "error", complaint, at=at)

    async def _note(self, execution_id: ExecutionId, column: str, words: str | None, *, at: datetime) -> None:
        executions = tables.executions
        async with self._database.writing() as connection:
            await connection.execute(
                update(executions)
                .where(
                    executions.c.id == execution_id,
                    executions.c.status.in_(list(LIVE_STATUSES)),
                    executions.c[column].is_distinct_from(words),
                )
                .values({column: words, "updated_at": at})
            )


async def _record(connection: AsyncConnection, stretch: ExecutionProgress, *, at: datetime) -> ExecutionEnding | None:
    row = await _advance(connection, stretch, at=at)
    if row is None:
        return None
    session_id = await record_news(connection, row, stretch, at=at)
    await _write_events(connection, stretch, session_id)
    return None if stretch.ending is None else await begin_end(connection, row, stretch.ending, at=at)


async def _advance(connection: AsyncConnection, stretch: ExecutionProgress, *, at: datetime) -> RowMapping | None:
    executions = tables.executions
    columns = {
        "journal_offset": stretch.to_offset,
        "pid": stretch.pid,
        "log_byte_size": stretch.log_byte_size,
        "log_line_count": stretch.log_line_count,
        "log_updated_at": stretch.log_updated_at,
        "last_line": stretch.last_line,
        "error": stretch.complaint,
        "journal_problem": stretch.journal_problem,
        "updated_at": at,
    }
    paused: dict[str, object] = {}
    if stretch.is_paused is not None:
        paused = {"paused_at": at if stretch.is_paused else None}
    advanced = await connection.execute(
        update(executions)
        .where(
            executions.c.id == stretch.execution_id,
            executions.c.journal_offset == stretch.from_offset,
            executions.c.status.in_(list(LIVE_STATUSES)),
        )
        .values({name: content for name, content in columns.items() if content is not None} | paused)
        .returning(executions)
    )
    row: RowMapping | None = advanced.mappings().first()
    return row


async def _write_events(connection: AsyncConnection, stretch: ExecutionProgress, session_id: str | None) -> None:
    if stretch.events:
        await connection.execute(
            insert(tables.events),
            [
                {
                    "execution_id": event.execution_id,
                    "session_id": session_id,
                    "user_id": LOCAL_USER_ID,
                    "trace_id": event.trace_id,
                    "type": event.type,
                    "level": event.level,
                    "timestamp_ms": event.timestamp_ms,
                    "payload": dict(event.payload),
                }
                for event in stretch.events
            ],
        )
