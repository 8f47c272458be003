"""Costs as clients read them: from the kept sums where these tell enough, else from the answers one by one."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from agentmon.domain.billing import BilledAnswer, Confidence
from agentmon.domain.costs import AnswerSource, CostGroup, CostPart, CostSums
from agentmon.domain.local_days import SLICE_MS
from agentmon.store.usage_sums import SUMMED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import RowMapping

    from agentmon.domain.costs import CostFilter
    from agentmon.domain.local_days import LocalDays
    from agentmon.store.database import Database

_OF_SUMS: Final[Mapping[CostGroup, str]] = {
    CostGroup.DAY: "u.day_local",
    CostGroup.WEEK: "date(u.day_local, 'weekday 0', '-6 days')",
    CostGroup.MONTH: "substr(u.day_local, 1, 7)",
    CostGroup.AGENT: "coalesce(a.slug, '')",
    CostGroup.MODEL: "u.model",
    CostGroup.PROJECT: "u.project",
}
_OF_ANSWERS: Final[Mapping[CostGroup, str]] = {
    CostGroup.DAY: f"u.at_ms / {SLICE_MS}",
    CostGroup.WEEK: f"u.at_ms / {SLICE_MS}",
    CostGroup.MONTH: f"u.at_ms / {SLICE_MS}",
    CostGroup.AGENT: "coalesce(a.slug, '')",
    CostGroup.MODEL: "u.model",
    CostGroup.PROJECT: "u.project",
    CostGroup.TASK: "coalesce(e.task_id, '')",
    CostGroup.SESSION: "u.session_id",
    CostGroup.EXECUTION: "coalesce(u.execution_id, '')",
}
_SUMS_OF_SUMS: Final = ", ".join(f"sum(u.{name}) AS {name}" for name in SUMMED)
_SUMS_OF_ANSWERS: Final = ", ".join(
    {
        "answers": "count(*) AS answers",
        "cost_nano": "coalesce(sum(u.cost_nano), 0) AS cost_nano",
        "unpriced_answers": "sum(u.cost_nano IS NULL) AS unpriced_answers",
        "reported_answers": "sum(u.cost_source = 'reported') AS reported_answers",
    }.get(name, f"sum(u.{name}) AS {name}")
    for name in SUMMED
)
_OF_TIME: Final = frozenset({CostGroup.DAY, CostGroup.WEEK, CostGroup.MONTH})
_LABELS: Final[Mapping[CostGroup, str]] = {
    CostGroup.SESSION: "SELECT id, coalesce(title, session_ref, '') AS label FROM sessions WHERE id IN ({marks})",
    CostGroup.TASK: "SELECT id, '#' || number || ' ' || title AS label FROM tasks WHERE id IN ({marks})",
    CostGroup.EXECUTION: "SELECT e.id, '#' || t.number || ' ' || t.title AS label FROM executions e "
    "JOIN tasks t ON t.id = e.task_id WHERE e.id IN ({marks})",
}
_ANSWER: Final = (
    "SELECT u.*, a.slug, f.path, coalesce(s.session_ref, '') AS session_ref FROM llm_interactions u "
    "JOIN sessions s ON s.id = u.session_id LEFT JOIN agents a ON a.id = u.agent_id "
    "LEFT JOIN usage_files f ON f.id = u.source_file_id "
)
_MAX_NAMES: Final = 500


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
            are_stored_days: Whether the sums are kept in this zone. Otherwise, as for tasks, sessions and executions,
                all answers of the time are read.
        """
        if group in _OF_SUMS and are_stored_days:
            source = "daily_usage u LEFT JOIN agents a ON a.id = u.agent_id"
            column, sums, spans = _OF_SUMS[group], _SUMS_OF_SUMS, _days(chosen)
        else:
            source = "llm_interactions u LEFT JOIN agents a ON a.id = u.agent_id"
            if group is CostGroup.TASK:
                source += " LEFT JOIN executions e ON e.id = u.execution_id"
            column, sums, spans = _OF_ANSWERS[group], _SUMS_OF_ANSWERS, _moments(chosen, days)
        conditions = {**spans, **_kinds(chosen)}
        statement = (
            f"SELECT {column} AS name, coalesce(a.slug, '') AS slug, u.model AS model, {sums} FROM {source} "
            f"WHERE {' AND '.join(conditions) or 'true'} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        )
        parameters = tuple(value for values in conditions.values() for value in values)
        async with self._database.reading() as connection:
            rows = (await connection.exec_driver_sql(statement, parameters)).mappings().all()
        if group in _OF_TIME and not are_stored_days:
            return _by_time(group, rows, days)
        return tuple(
            CostPart(group=row["name"], agent_slug=row["slug"], model=row["model"], sums=_sums_of(row)) for row in rows
        )

    async def labels(self, group: CostGroup, ids: Sequence[str]) -> Mapping[str, str]:
        """Return what people call these tasks, sessions or executions; empty for other groups."""
        statement = _LABELS.get(group)
        labels: dict[str, str] = {}
        if statement is None:
            return labels
        async with self._database.reading() as connection:
            for start in range(0, len(ids), _MAX_NAMES):
                some = tuple(ids[start : start + _MAX_NAMES])
                marked = statement.format(marks=", ".join("?" * len(some)))
                rows = (await connection.exec_driver_sql(marked, some)).mappings().all()
                labels.update((row["id"], row["label"]) for row in rows)
        return labels

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
    )


def _sums_of(row: RowMapping) -> CostSums:
    return CostSums(**{name: row[name] for name in SUMMED})


def _by_time(group: CostGroup, rows: Sequence[RowMapping], days: LocalDays) -> tuple[CostPart, ...]:
    found: dict[tuple[str, str, str], CostSums] = {}
    for row in rows:
        day = days.day_of(row["name"] * SLICE_MS)
        name = {CostGroup.MONTH: day[:7], CostGroup.WEEK: _monday(day)}.get(group, day)
        key = (name, row["slug"], row["model"])
        found[key] = found.get(key, CostSums()) + _sums_of(row)
    return tuple(
        CostPart(group=name, agent_slug=slug, model=model, sums=sums)
        for (name, slug, model), sums in sorted(found.items())
    )


def _monday(day: str) -> str:
    found = date.fromisoformat(day)
    return (found - timedelta(days=found.weekday())).isoformat()


def _days(chosen: CostFilter) -> dict[str, tuple[object, ...]]:
    spans: dict[str, tuple[object, ...]] = {}
    if chosen.since_day is not None:
        spans["u.day_local >= ?"] = (chosen.since_day,)
    if chosen.until_day is not None:
        spans["u.day_local <= ?"] = (chosen.until_day,)
    return spans


def _moments(chosen: CostFilter, days: LocalDays) -> dict[str, tuple[object, ...]]:
    spans: dict[str, tuple[object, ...]] = {}
    if chosen.since_day is not None:
        spans["u.at_ms >= ?"] = (days.begin_ms(chosen.since_day),)
    if chosen.until_day is not None and chosen.until_day != date.max.isoformat():
        day_after = date.fromisoformat(chosen.until_day) + timedelta(days=1)
        spans["u.at_ms < ?"] = (days.begin_ms(day_after.isoformat()),)
    return spans


def _kinds(chosen: CostFilter) -> dict[str, tuple[object, ...]]:
    kinds: dict[str, tuple[object, ...]] = {}
    if chosen.agent_slug:
        kinds["a.slug = ?"] = (chosen.agent_slug,)
    if chosen.model:
        kinds["u.model = ?"] = (chosen.model,)
    if chosen.project:
        below = chosen.project.rstrip("/") + "/"
        kinds["(u.project = ? OR substr(u.project, 1, ?) = ?)"] = (chosen.project, len(below), below)
    return kinds
