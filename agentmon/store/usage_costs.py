"""Costs as clients read them: from the kept sums where these tell enough, else from the answers one by one."""

from __future__ import annotations

import asyncio
import json
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from agentmon.domain.billing import BilledAnswer, Confidence
from agentmon.domain.costs import AnswerSource, CostGroup, CostPart
from agentmon.domain.local_days import SLICE_MS
from agentmon.store.cost_queries import OF_TIME, SLUGS, cost_parts, cost_query
from agentmon.store.first_words import asked_first

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import RowMapping

    from agentmon.domain.costs import CostFilter
    from agentmon.domain.local_days import LocalDays
    from agentmon.store.database import Database

_CHOSEN: Final = "(SELECT value FROM json_each(?))"
_LABELS: Final[Mapping[CostGroup, str]] = {
    CostGroup.SESSION: "SELECT s.id, coalesce(nullif(s.title, ''), "
    f"nullif(substr({asked_first('s', 'a')}, 1, 200), ''), s.session_ref, '') AS label "
    f"FROM sessions s JOIN agents a ON a.id = s.agent_id WHERE s.id IN {_CHOSEN}",
    CostGroup.TASK: f"SELECT id, '#' || number || ' ' || title AS label FROM tasks WHERE id IN {_CHOSEN}",
    CostGroup.EXECUTION: "SELECT e.id, '#' || t.number || ' ' || t.title AS label FROM executions e "
    f"JOIN tasks t ON t.id = e.task_id WHERE e.id IN {_CHOSEN}",
}
_ANSWER: Final = (
    "SELECT u.*, a.slug, f.path, coalesce(s.session_ref, '') AS session_ref FROM llm_interactions u "
    "JOIN sessions s ON s.id = u.session_id LEFT JOIN agents a ON a.id = u.agent_id "
    "LEFT JOIN usage_files f ON f.id = u.source_file_id "
)


class CostRepository:
    """Reads what answers cost."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def parts(
        self, group: CostGroup, chosen: CostFilter, days: LocalDays, *, are_stored_days: bool
    ) -> tuple[CostPart, ...]:
        """Return the sums by group, agent and model, ordered by these.

        Args:
            group: By what.
            chosen: Which answers count.
            days: Those of the zone that is asked for.
            are_stored_days: Whether the sums are kept in this zone. Otherwise all answers of the time are read.
        """
        query = cost_query(group, chosen, days, are_stored_days=are_stored_days)
        async with self._database.reading() as connection:
            rows = (await connection.exec_driver_sql(*query)).all()
            slugs = {row.id: row.slug for row in await connection.exec_driver_sql(SLUGS)}
        name_of = partial(_name_of_slice, group, days) if group in OF_TIME and not are_stored_days else None
        # Ten thousand sessions would hold up the event loop.
        return await asyncio.to_thread(cost_parts, group, rows, slugs, name_of)

    async def labels(self, group: CostGroup, ids: Sequence[str]) -> Mapping[str, str]:
        """Return what people call these tasks, sessions or executions; empty for other groups."""
        statement = _LABELS.get(group)
        if statement is None or not ids:
            return {}
        async with self._database.reading() as connection:
            rows = await connection.exec_driver_sql(statement, (json.dumps(ids),))
            return {row.id: row.label.strip().partition("\n")[0].rstrip() for row in rows}

    async def of_session(self, session_id: str, *, limit: int) -> tuple[AnswerSource, ...]:
        """Return the answers of a session, oldest first."""
        return await self._answers("WHERE u.session_id = ? ORDER BY u.at_ms, u.id LIMIT ?", (session_id, limit))

    async def find_answers(self, text: str) -> tuple[AnswerSource, ...]:
        """Return at most ten answers that are called so: by the start of the id here, or by the agent's own key."""
        if not text:
            return ()
        upper = text[:-1] + chr(ord(text[-1]) + 1)
        return await self._answers(
            "WHERE u.id >= ? AND u.id < ? OR u.agent_id IN (SELECT id FROM agents) AND u.key = ? LIMIT 10",
            (text.lower(), upper.lower(), text),
        )

    async def _answers(self, rest: str, parameters: tuple[object, ...]) -> tuple[AnswerSource, ...]:
        async with self._database.reading() as connection:
            rows = (await connection.exec_driver_sql(_ANSWER + rest, parameters)).mappings().all()
        return tuple(_answer_source(row) for row in rows)


def billed_answer_of(row: Mapping[str, object] | RowMapping) -> BilledAnswer:
    """Return the answer of a row of ``llm_interactions``; ``session_ref`` is empty unless the row has it."""
    reported, offset = row["reported_cost_nano"], row["source_offset"]
    return BilledAnswer(
        key=str(row["key"]),
        session_ref=str(row["session_ref"]) if "session_ref" in row else "",
        is_owner_marked=bool(row["is_owner_marked"]),
        cwd=str(row["project"]),
        provider=str(row["provider"]),
        model=str(row["model"]),
        speed=str(row["speed"]),
        geo=str(row["geo"]),
        is_subagent=bool(row["is_subagent"]),
        reported_cost_nano=reported if isinstance(reported, int) else None,
        confidence=Confidence(str(row["confidence"])),
        offset=offset if isinstance(offset, int) else 0,
        at_ms=_count(row, "at_ms"),
        prompt_tokens=_count(row, "prompt_tokens"),
        cache_read_tokens=_count(row, "cache_read_tokens"),
        cache_write_5m_tokens=_count(row, "cache_write_5m_tokens"),
        cache_write_1h_tokens=_count(row, "cache_write_1h_tokens"),
        response_tokens=_count(row, "response_tokens"),
        reasoning_tokens=_count(row, "reasoning_tokens"),
        web_searches=_count(row, "web_searches"),
    )


def _count(row: Mapping[str, object] | RowMapping, name: str) -> int:
    count = row[name]
    return count if isinstance(count, int) else 0


def _answer_source(row: RowMapping) -> AnswerSource:
    return AnswerSource(
        answer=billed_answer_of(row),
        id=row["id"],
        agent_slug=row["slug"] or "",
        session_id=row["session_id"],
        execution_id=row["execution_id"],
        day_local=row["day_local"],
        cost_nano=row["cost_nano"],
        cost_source=row["cost_source"],
        price_version=row["price_version"],
        is_provisional=bool(row["is_provisional"]),
        path=row["path"],
        error="" if row["success"] else row["error_message"] or "failed",
        error_status=row["error_status"],
    )


def _name_of_slice(group: CostGroup, days: LocalDays, part: object) -> str:
    day = days.day_of(int(str(part)) * SLICE_MS)
    return day[:7] if group is CostGroup.MONTH else _monday(day) if group is CostGroup.WEEK else day


def _monday(day: str) -> str:
    found = date.fromisoformat(day)
    return (found - timedelta(days=found.weekday())).isoformat()
