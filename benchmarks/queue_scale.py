"""What the worker does about a long queue and a long history, at 1,000 and at 100,000 rows."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.domain.clock import SystemClock
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.ids import WorkerId, new_id
from agentmon.store import tables
from agentmon.store.budget_enforcing import BudgetEnforcement
from agentmon.store.database import Database
from agentmon.store.live_executions import LiveExecutionRepository
from agentmon.store.moments import moment_text
from agentmon.store.parking import count_ending
from benchmarks.claims import fill

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

FEW, MANY = 1_000, 100_000
FLAT = 3.0
"""What may be noise between two medians that should be alike."""
_TRIES = 15
_LOOP_LOOKS_EVERY_S = 0.005


def measure() -> list[tuple[str, str, str]]:
    """Return rows of name, what was measured, and the goal."""
    few, many = _measured(FEW), _measured(MANY)
    rows = [
        _ratio("a look of a spent budget at a queue that has not changed", few["unchanged"], many["unchanged"]),
        _ratio("a failure of a command counted and its streak found", few["streak"], many["streak"]),
        _ratio("commands that no host has got, beside so many delivered", few["undelivered"], many["undelivered"]),
    ]
    held = f"{many['held'] / MANY * 1e6:,.0f} µs a row, of {FEW:,} {few['held'] / FEW * 1e6:,.0f} µs"
    rows.append((f"a budget holds back {MANY:,} queued rows", held, f"≤ {FLAT:.0f} times as much a row"))
    rows.append(("longest time that this keeps the event loop", f"{many['loop'] * 1000:,.0f} ms", "≤ 100 ms"))
    return rows


def _ratio(what: str, few_s: float, many_s: float) -> tuple[str, str, str]:
    measured = f"{many_s * 1000:.2f} ms at {MANY:,} rows, {few_s * 1000:.2f} ms at {FEW:,}: {many_s / few_s:.1f} times"
    return what, measured, f"≤ {FLAT:.0f} times"


def _measured(rows: int) -> dict[str, float]:
    folder = Path(tempfile.mkdtemp(prefix="amq-"))
    try:
        path = folder / "agentmon.db"
        asyncio.run(fill(path, rows))
        return asyncio.run(_measure(path))
    finally:
        shutil.rmtree(folder)


async def _measure(path: Path) -> dict[str, float]:
    now = SystemClock().now()
    at, until = moment_text(now), moment_text(now + timedelta(days=1))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE agents SET tool_type = 'ai-agent'")
        connection.execute(
            "INSERT INTO budgets (id, scope, period, unit, amount, action, spent_until, created_at, updated_at)"
            " VALUES (?, 'all', 'day', 'money', 1, 'block', ?, ?, ?)",
            (new_id(), until, at, at),
        )
    database = Database(path)
    enforcement = BudgetEnforcement(database)
    loop_s: list[float] = []
    watch = asyncio.create_task(_watch_loop(loop_s))
    begun_at = time.monotonic()
    await enforcement.hold_back(at=now)
    measured = {"held": time.monotonic() - begun_at}
    watch.cancel()
    later = now + timedelta(minutes=1)
    await enforcement.hold_back(at=later)
    measured |= {"loop": max(loop_s), "unchanged": await _median_s(lambda: enforcement.hold_back(at=later))}
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE agents SET tool_type = 'cli-tool'")
        # A prompt of some size, as most rows have.
        connection.execute(
            "UPDATE executions SET status = 'failed', end_reason = 'exited', ended_at = ?, prompt = ?",
            (at, "word " * 200),
        )
        connection.execute(
            "INSERT INTO execution_commands (id, execution_id, actor_type, cause, type, created_at, delivered_at)"
            " SELECT id, id, 'user', 'person', 'stop', ?, ? FROM executions",
            (at, at),
        )
    async with database.reading() as reader:
        row = (await reader.execute(tables.executions.select().limit(1))).mappings().one()

    async def count() -> None:
        async with database.writing() as connection:
            await count_ending(
                connection, row, ExecutionStatus.FAILED, EndReason.EXITED, park_after=1_000_000, at=later
            )

    live = LiveExecutionRepository(database)
    measured["streak"] = await _median_s(count)
    measured["undelivered"] = await _median_s(lambda: live.undelivered_commands(WorkerId("w")))
    await database.close()
    return measured


async def _median_s(work: Callable[[], Awaitable[object]]) -> float:
    taken = []
    for _ in range(_TRIES):
        begun_at = time.monotonic()
        await work()
        taken.append(time.monotonic() - begun_at)
    return sorted(taken)[_TRIES // 2]


async def _watch_loop(late_s: list[float]) -> None:
    while True:
        begun_at = time.monotonic()
        await asyncio.sleep(_LOOP_LOOKS_EVERY_S)
        late_s.append(time.monotonic() - begun_at - _LOOP_LOOKS_EVERY_S)


if __name__ == "__main__":
    for row in measure():
        print(" | ".join(row))
