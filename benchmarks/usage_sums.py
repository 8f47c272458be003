"""What reports of costs over 10,000,000 answers read, beside the plain GROUP BY over all of them, in one run."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentmon.bootstrap import open_services
from agentmon.domain.clock import SystemClock
from agentmon.domain.costs import CostFilter, CostGroup
from agentmon.runners.presets import agents_of, load_presets
from agentmon.schedule import local_zone_name
from agentmon.store.agents import AgentRepository
from agentmon.store.usage_costs import CostRepository
from agentmon.store.usage_days import WRITE_ZONE, days_of_zone, zone_row
from agentmon.store.usage_sums import RECOUNT, SUMMED, SUMS_OF_ANSWERS
from benchmarks.scratch_home import scratch_home

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agentmon.bootstrap import Services
    from agentmon.services.cost_reports import CostReport

ANSWERS = int(os.environ.get("AGENTMON_BENCHMARK_ANSWERS", "10000000"))
DAYS = 400
ANSWERS_OF_SESSION = 500
PROJECTS = 40
EXECUTED = 10
"""One session of so many was run here, by a task of its own."""
MODELS = ("claude-opus-4-8", "claude-sonnet-5-5", "gpt-6-codex", "gpt-6-mini", "gemini-4-pro", "gemini-4-flash")
AGENTS = ("claude", "codex", "gemini")
ROUNDS = 15
GOAL = 1000
_WITH_GOAL = (CostGroup.DAY, CostGroup.MODEL)
_MADE_BEFORE_COLLECTION = 50_000
_BYTES_OF_ANSWER = 1_000
"""What one takes of the disk at most, with what SQLite sorts on it."""
_DAY_MS = 86_400_000
_SCREEN_DAYS = 62
_SCREEN_MONTHS = 12
_NAMES = {
    CostGroup.DAY: "u.day_local",
    CostGroup.AGENT: "coalesce(a.slug, '')",
    CostGroup.MODEL: "u.model",
    CostGroup.PROJECT: "u.project",
    CostGroup.TASK: "coalesce(e.task_id, '')",
    CostGroup.SESSION: "u.session_id",
}
_ANSWERS = """
WITH RECURSIVE counted(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counted WHERE n + 1 < :answers)
INSERT INTO llm_interactions (id, key, session_id, execution_id, agent_id, model, provider, prompt_tokens,
    cache_read_tokens, cache_write_5m_tokens, response_tokens, reasoning_tokens, success, cost_nano, cost_source,
    price_version, at_ms, day_local, created_at, project)
SELECT printf('%08x-0000-7000-8000-%012x', n / 500, n), printf('msg_%024x', n),
    s.id, s.execution_id, s.agent_id, CASE WHEN n % 8 THEN s.model ELSE s.small_model END, 'anthropic',
    n * 7 % 900, n * 104729 % 150000, n * 31 % 5000, n * 13 % 2000, n % 500, 1,
    CASE WHEN n % 97 THEN n * 7919 % 200000000 END,
    CASE WHEN n % 97 THEN CASE WHEN n % 11 THEN 'list' ELSE 'reported' END ELSE 'none' END, '1',
    :begin_ms + n * :step_ms, day_of(:begin_ms + n * :step_ms), s.created_at, s.project
FROM counted JOIN made_sessions s ON s.number = n / :of_session
"""
_SESSIONS = """
CREATE TEMP TABLE made_sessions AS
WITH RECURSIVE counted(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counted WHERE (n + 1) * :of_session < :answers),
models(place, slug, model, small_model) AS (VALUES (0, :slug0, :model0, :model1), (1, :slug1, :model2, :model3),
    (2, :slug2, :model4, :model5))
SELECT n AS number, printf('%08x-0000-7000-8000-000000000001', n) AS id,
    CASE WHEN n % :executed = 0 THEN printf('%08x-0000-7000-8000-000000000002', n) END AS execution_id,
    CASE WHEN n % :executed = 0 THEN printf('%08x-0000-7000-8000-000000000003', n) END AS task_id,
    a.id AS agent_id, m.model, m.small_model, '/home/dev/project-' || (n * 7 % :projects) AS project,
    '2026-01-01T00:00:00.000Z' AS created_at
FROM counted JOIN models m ON m.place = n * 5 % 3 JOIN agents a ON a.slug = m.slug
"""
_FILL = (
    "CREATE UNIQUE INDEX temp.made ON made_sessions (number)",
    """
    INSERT INTO sessions (id, user_id, agent_id, title, workspace, session_ref, status, started_at, created_at,
        updated_at)
    SELECT id, (SELECT id FROM users), agent_id, 'conversation ' || number, project, id, 'completed', created_at,
        created_at, created_at FROM made_sessions
    """,
    """
    INSERT INTO tasks (id, number, owner_id, workspace_id, title, status, priority, sort_order, created_at, updated_at)
    SELECT task_id, number + 1, (SELECT id FROM users), (SELECT id FROM workspaces), 'task ' || number, 'done', 3,
        number, created_at, created_at FROM made_sessions WHERE task_id IS NOT NULL
    """,
    """
    INSERT INTO executions (id, task_id, agent_id, capability_id, session_id, requested_by, status, mode, queued_at,
        created_at, updated_at)
    SELECT s.execution_id, s.task_id, s.agent_id, min(c.id), s.id, (SELECT id FROM users), 'succeeded', 'stream-json',
        s.created_at, s.created_at, s.created_at
    FROM made_sessions s JOIN agent_capabilities c ON c.agent_id = s.agent_id WHERE s.task_id IS NOT NULL
    GROUP BY s.execution_id
    """,
)


class _Timed(NamedTuple):
    """What was read, and how long it took."""

    seconds: float
    report: CostReport


def measure() -> list[tuple[str, str, str]]:
    """Return the rows of what was measured, and the goals."""
    free_bytes = shutil.disk_usage(tempfile.gettempdir()).free
    if free_bytes < ANSWERS * _BYTES_OF_ANSWER:
        return [(f"costs over {ANSWERS:,} answers", f"left out: {free_bytes / 1e9:.0f} GB of the disk are free", "")]
    with scratch_home() as paths:
        asyncio.run(_make_place(paths.data_dir.parent / "project"))
        made_s, counted_s = _fill(paths.database_path)
        size_gb = paths.database_path.stat().st_size / 1e9
        plain = {group: _plain(paths.database_path, group) for group in _NAMES}
        rows = [
            (
                f"{ANSWERS:,} answers ({size_gb:.1f} GB): made, all sums counted once",
                f"{made_s:.0f} s, {counted_s:.0f} s",
                "",
            )
        ]
        rows += asyncio.run(_compare(plain))
        rows += [
            (
                f"`agentmon costs --by {group} --json`, the whole command",
                f"{_command_s(group) * 1000:,.0f} ms",
                "",
            )
            for group in (CostGroup.DAY, CostGroup.MODEL, CostGroup.SESSION)
        ]
    return rows


async def _make_place(project: Path) -> None:
    async with open_services() as services:
        await services.workspaces.open(project)
        presets = [preset for preset in load_presets() if preset.slug in AGENTS]
        await AgentRepository(services.database).add_missing(agents_of(presets), at=SystemClock().now())


def _fill(path: Path) -> tuple[float, float]:
    """Make the answers and count their sums; return how long each took."""
    zone_name = local_zone_name()
    days = days_of_zone(zone_name)
    now = SystemClock().now()
    end_ms = round(now.timestamp() * 1000)
    begin_ms = end_ms - DAYS * _DAY_MS
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        # Nothing of this has to outlive a crash.
        for setting in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -800000", "foreign_keys = OFF"):
            connection.execute(f"PRAGMA {setting}")
        begun = time.perf_counter()
        connection.create_function("day_of", 1, days.day_of, deterministic=True)
        indexes = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'llm_interactions' "
            "AND sql IS NOT NULL AND sql NOT LIKE 'CREATE UNIQUE%'"
        ).fetchall()
        for name, _ in indexes:
            connection.execute(f"DROP INDEX {name}")
        named = {f"slug{place}": slug for place, slug in enumerate(AGENTS)}
        named |= {f"model{place}": model for place, model in enumerate(MODELS)}
        counts = {"answers": ANSWERS, "of_session": ANSWERS_OF_SESSION, "executed": EXECUTED, "projects": PROJECTS}
        connection.execute("BEGIN")
        connection.execute(_SESSIONS, {**named, **counts})
        for statement in _FILL:
            connection.execute(statement)
        connection.execute(_ANSWERS, {**counts, "begin_ms": begin_ms, "step_ms": DAYS * _DAY_MS // ANSWERS})
        connection.execute(WRITE_ZONE, zone_row(zone_name, now))
        connection.execute("COMMIT")
        for _, sql in indexes:
            connection.execute(sql)
        made_s = time.perf_counter() - begun
        begun = time.perf_counter()
        for statement in RECOUNT:
            connection.execute(statement)
        counted_s = time.perf_counter() - begun
        connection.execute("PRAGMA journal_mode = WAL")
    return made_s, counted_s


def _plain(path: Path, group: CostGroup) -> tuple[float, list[tuple[object, ...]]]:
    """Return how long the plain statement takes that adds up all answers, and what it tells."""
    joined = "LEFT JOIN executions e ON e.id = u.execution_id " if group is CostGroup.TASK else ""
    with closing(sqlite3.connect(path)) as connection:
        begun = time.perf_counter()
        rows = connection.execute(
            f"SELECT {_NAMES[group]}, coalesce(a.slug, ''), u.model, {SUMS_OF_ANSWERS} FROM llm_interactions u "
            f"LEFT JOIN agents a ON a.id = u.agent_id {joined}GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        ).fetchall()
        return time.perf_counter() - begun, rows


async def _compare(plain: dict[CostGroup, tuple[float, list[tuple[object, ...]]]]) -> list[tuple[str, str, str]]:
    rows = []
    # As the program itself does: what is read is no garbage to look through.
    gc.set_threshold(_MADE_BEFORE_COLLECTION)
    async with open_services() as services:
        for group, (plain_s, expected) in plain.items():
            await _require_equal(services, group, expected)
            timed = await _timed(lambda group=group: services.costs.report(group, CostFilter()))  # type: ignore[misc]
            took = f"{timed.seconds * 1000:.1f} ms for {len(timed.report.buckets):,} rows ÷ {plain_s:.1f} s"
            rows.append(
                (
                    f"costs by {group}: the report ÷ the plain GROUP BY, equal to it",
                    f"1/{plain_s / timed.seconds:,.0f} ({took})",
                    f"≤ 1/{GOAL:,}" if group in _WITH_GOAL else "",
                )
            )
        rows += await _screen(services, plain[CostGroup.MODEL][0])
    return rows


async def _require_equal(services: Services, group: CostGroup, expected: list[tuple[object, ...]]) -> None:
    repository = CostRepository(services.database)
    days = days_of_zone(local_zone_name())
    parts = await repository.parts(group, CostFilter(), days, are_stored_days=True)
    found = [(one.group, one.agent_slug, one.model, *(getattr(one.sums, name) for name in SUMMED)) for one in parts]
    if found != [tuple(row) for row in expected]:
        raise AssertionError(f"the kept sums by {group} are not those of the answers")


async def _screen(services: Services, plain_s: float) -> list[tuple[str, str, str]]:
    """Return what the costs screen reads when it opens, and each of its tables over 12 months."""
    chosen = CostFilter()
    days = await _timed(lambda: services.costs.report(CostGroup.DAY, chosen, last=_SCREEN_DAYS))
    months = await _timed(lambda: services.costs.report(CostGroup.MONTH, chosen, last=_SCREEN_MONTHS))
    of_year = replace(chosen, since_day=months.report.since_day)
    tables = {
        group: await _timed(lambda group=group: services.costs.report(group, of_year))  # type: ignore[misc]
        for group in _NAMES
        if group is not CostGroup.DAY
    }
    opened_s = days.seconds + months.seconds + tables[CostGroup.MODEL].seconds
    told = ", ".join(
        f"{name} {timed.seconds * 1000:.1f}"
        for name, timed in (("62 days", days), ("12 months", months), *tables.items())
    )
    return [
        (
            "the costs screen with its table by model ÷ one plain GROUP BY by model",
            f"1/{plain_s / opened_s:,.0f} ({opened_s * 1000:.1f} ms)",
            f"≤ 1/{GOAL:,}",
        ),
        ("what it reads, in ms: its parts, and its tables over 12 months", told, ""),
    ]


async def _timed(read: Callable[[], Awaitable[CostReport]]) -> _Timed:
    """Return the median over some rounds, and what the last one told."""
    times = []
    report = await read()
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        report = await read()
        times.append(time.perf_counter() - begun)
    return _Timed(statistics.median(times), report)


def _command_s(group: CostGroup) -> float:
    script = str(Path(sys.executable).with_name("agentmon"))
    # The command without settings in its environment, which it would look at in earnest.
    without = ("PYTHONDONTWRITEBYTECODE", "AGENTMON_COSTS_")
    environ = {name: text for name, text in os.environ.items() if not name.startswith(without)}
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        subprocess.run(
            [script, "costs", "--by", group.value, "--json"], check=True, stdout=subprocess.DEVNULL, env=environ
        )
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


if __name__ == "__main__":
    for row in measure():
        print(" | ".join(row))
