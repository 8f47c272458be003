"""Vendors' windows as agents told them, and what the answers of the last hours and days took."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final

from agentmon.domain.burn_rate import MINUTE_MS, UsageMinute
from agentmon.domain.costs import CostSums
from agentmon.domain.limit_readings import LimitSnapshot, LimitSource
from agentmon.domain.projections import DaySum
from agentmon.domain.usage_windows import SLICE_MS, UsageSlice
from agentmon.store.limit_rows import context_statements, limit_statements
from agentmon.store.usage_sums import SUMMED, SUMS_OF_ANSWERS, SUMS_OF_SUMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import RowMapping

    from agentmon.domain.limit_readings import ContextReading, LimitReading
    from agentmon.store.database import Database

_MAX_HISTORY: Final = 10_000
_SNAPSHOT: Final = "SELECT s.*, a.slug FROM limit_snapshots s JOIN agents a ON a.id = s.agent_id "
_LATEST: Final = (
    "SELECT s.*, a.slug FROM (SELECT DISTINCT agent_id, account, window FROM limit_snapshots) w "
    "JOIN limit_snapshots s ON s.id = (SELECT id FROM limit_snapshots n WHERE n.agent_id = w.agent_id "
    "AND n.account = w.account AND n.window = w.window ORDER BY n.captured_at_ms DESC LIMIT 1) "
    "JOIN agents a ON a.id = s.agent_id ORDER BY a.slug, s.account, s.window_minutes, s.window"
)
_HISTORY: Final = (
    _SNAPSHOT + "WHERE :window IN ('', s.window) AND s.seen_at_ms >= :since_ms "
    f"ORDER BY s.captured_at_ms DESC, s.id DESC LIMIT {_MAX_HISTORY}"
)
_TOKENS: Final = (
    "u.prompt_tokens + u.cache_read_tokens + u.cache_write_5m_tokens + u.cache_write_1h_tokens + u.response_tokens"
)
_OF_AGENT: Final = "+u.agent_id = (SELECT id FROM agents WHERE slug = ?)"
"""The plus keeps the index over time, where that over agents and keys would be taken, and lead through all answers."""
_MINUTES: Final = (
    f"SELECT a.slug, u.at_ms / {MINUTE_MS} AS part, sum({_TOKENS}) AS tokens, "
    "coalesce(sum(u.cost_nano), 0) AS cost_nano, sum(u.cost_nano IS NULL) AS unpriced_answers "
    "FROM llm_interactions u JOIN agents a ON a.id = u.agent_id "
    "WHERE u.success AND u.at_ms >= ? AND u.at_ms <= ? GROUP BY 1, 2"
)
_SLICES: Final = (
    f"SELECT u.agent_id, u.at_ms / {SLICE_MS} AS part, min(u.at_ms) AS first_at_ms, max(u.at_ms) AS last_at_ms, "
    f"{SUMS_OF_ANSWERS} FROM llm_interactions u WHERE u.success AND u.at_ms >= ? AND u.at_ms <= ? GROUP BY 1, 2"
)
_SLUGS: Final = "SELECT id, slug FROM agents"
_SPENT: Final = (
    f"SELECT {SUMS_OF_ANSWERS} FROM llm_interactions u WHERE u.success AND u.at_ms >= ? AND u.at_ms < ? AND {_OF_AGENT}"
)
_SPENT_DAYS: Final = (
    f"SELECT {SUMS_OF_SUMS} FROM daily_model_usage u "
    "JOIN agents a ON a.id = u.agent_id WHERE a.slug = ? AND u.day_local >= ? AND u.day_local <= ?"
)
_DAYS: Final = (
    "SELECT day_local, sum(cost_nano) AS cost_nano, sum(unpriced_answers) AS unpriced_answers FROM daily_model_usage "
    "WHERE day_local >= ? AND day_local <= ? GROUP BY day_local"
)


class LimitSnapshotRepository:
    """Reads and writes what agents say of windows, and reads what goes into them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(
        self,
        agent_slug: str,
        *,
        limits: Sequence[LimitReading] = (),
        contexts: Sequence[ContextReading] = (),
        source: LimitSource,
        at: datetime,
    ) -> None:
        """Write what an agent says, as ``limit_statements`` and ``context_statements`` do, all or nothing."""
        statements = [*limit_statements(agent_slug, limits, source, at), *context_statements(agent_slug, contexts)]
        if statements:
            async with self._database.writing() as connection:
                for statement, parameters in statements:
                    await connection.exec_driver_sql(statement, parameters)

    async def latest(self) -> tuple[LimitSnapshot, ...]:
        """Return the newest figures of every window, by agent, account and length."""
        async with self._database.reading() as connection:
            rows = (await connection.exec_driver_sql(_LATEST)).mappings().all()
        return tuple(map(_snapshot_of, rows))

    async def history(self, window: str, since_ms: int) -> tuple[LimitSnapshot, ...]:
        """Return what was said of the windows of this name since then, oldest first; the newest 10,000 at most.

        An empty name means all windows.
        """
        async with self._database.reading() as connection:
            rows = (
                (await connection.exec_driver_sql(_HISTORY, {"window": window, "since_ms": since_ms})).mappings().all()
            )
        return tuple(map(_snapshot_of, reversed(rows)))

    async def minutes(self, since_ms: int, until_ms: int) -> tuple[UsageMinute, ...]:
        """Return what the answers of that time took, by agent and minute."""
        async with self._database.reading() as connection:
            rows = (await connection.exec_driver_sql(_MINUTES, (since_ms, until_ms))).mappings().all()
        return tuple(
            UsageMinute(
                agent_slug=row["slug"],
                begun_at_ms=row["part"] * MINUTE_MS,
                tokens=row["tokens"],
                cost_nano=row["cost_nano"],
                unpriced_answers=row["unpriced_answers"],
            )
            for row in rows
        )

    async def slices(self, since_ms: int, until_ms: int) -> Mapping[str, Sequence[UsageSlice]]:
        """Return what the answers of that time took by agent and quarter of an hour, oldest first."""
        async with self._database.reading() as connection:
            rows = (await connection.exec_driver_sql(_SLICES, (since_ms, until_ms))).mappings().all()
            slugs = {row["id"]: row["slug"] for row in (await connection.exec_driver_sql(_SLUGS)).mappings()}
        found: dict[str, list[UsageSlice]] = {}
        for row in sorted(rows, key=itemgetter("part")):
            one = UsageSlice(
                begun_at_ms=row["part"] * SLICE_MS,
                first_at_ms=row["first_at_ms"],
                last_at_ms=row["last_at_ms"],
                sums=_sums_of(row),
            )
            found.setdefault(slugs.get(row["agent_id"], ""), []).append(one)
        return found

    async def spent(self, agent_slug: str, since_ms: int, until_ms: int) -> CostSums:
        """Return what an agent's answers took from one moment up to before another; for hours, not for months."""
        async with self._database.reading() as connection:
            row = (await connection.exec_driver_sql(_SPENT, (since_ms, until_ms, agent_slug))).mappings().one()
        return _sums_of(row)

    async def spent_days(self, agent_slug: str, first_day: str, last_day: str) -> CostSums:
        """Return what an agent's answers took on whole days, by the kept sums."""
        async with self._database.reading() as connection:
            row = (await connection.exec_driver_sql(_SPENT_DAYS, (agent_slug, first_day, last_day))).mappings().one()
        return _sums_of(row)

    async def days(self, first_day: str, last_day: str) -> Mapping[str, DaySum]:
        """Return what each day cost over all agents, by its name; days without an answer are left out."""
        async with self._database.reading() as connection:
            rows = (await connection.exec_driver_sql(_DAYS, (first_day, last_day))).mappings().all()
        return {
            row["day_local"]: DaySum(cost_nano=row["cost_nano"], unpriced_answers=row["unpriced_answers"])
            for row in rows
        }


def _sums_of(row: RowMapping) -> CostSums:
    return CostSums(**{name: row[name] or 0 for name in SUMMED})


def _snapshot_of(row: RowMapping) -> LimitSnapshot:
    return LimitSnapshot(
        agent_slug=row["slug"],
        account=row["account"],
        window=row["window"],
        window_minutes=row["window_minutes"],
        used_percent=row["used_percent"],
        resets_at_ms=row["resets_at_ms"],
        captured_at_ms=row["captured_at_ms"],
        seen_at_ms=row["seen_at_ms"],
        source=LimitSource(row["source"]),
    )
