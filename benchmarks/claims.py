"""Claims: sixteen processes empty a queue of ten thousand in batches, as the worker does, and a small one by one."""

from __future__ import annotations

import asyncio
import multiprocessing
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.domain.agents import Agent, Capability
from agentmon.domain.clock import SystemClock
from agentmon.domain.ids import AgentId, CapabilityId, WorkerId, new_id
from agentmon.domain.tasks import TaskDraft
from agentmon.services.actors import USER_ACTOR
from agentmon.store.agents import AgentRepository
from agentmon.store.claims import ClaimRepository
from agentmon.store.database import Database, open_database
from agentmon.store.moments import moment_text
from agentmon.store.tasks import TaskRepository
from agentmon.store.workspaces import WorkspaceRepository

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

ROWS = 10_000
ROWS_ONE_BY_ONE = 1_000
PROCESSES = 16
BATCH = 100
RATE_GOAL = 5_000
_NO_LIMIT = 1_000_000


def measure() -> list[tuple[str, str, str]]:
    """Return rows of name, what was measured, and the goal."""
    return [
        _row(ROWS, BATCH, f"≥ {RATE_GOAL:,}/s, 0 twice"),
        _row(ROWS_ONE_BY_ONE, 1, "0 twice"),
    ]


def _row(rows: int, limit: int, goal: str) -> tuple[str, str, str]:
    folder = Path(tempfile.mkdtemp(prefix="amc-"))
    try:
        path = folder / "agentmon.db"
        asyncio.run(fill(path, rows))
        taken, errors, elapsed_s = _empty_at_once(path, limit)
    finally:
        shutil.rmtree(folder)
    doubles = len(taken) - len(set(taken))
    left = rows - len(set(taken))
    measured = f"{len(taken) / elapsed_s:,.0f}/s, {doubles} twice, {left} left, {errors} errors"
    what = f"{PROCESSES} processes claim {rows:,} queued rows, {limit} at a time"
    return what, measured, f"{goal}, 0 left, 0 errors"


def _empty_at_once(path: Path, limit: int) -> tuple[list[str], int, float]:
    """Return what all processes claimed, their errors, and the seconds from the first's begin to the last's end."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES)
    with context.Pool(PROCESSES, initializer=_remember, initargs=(barrier,)) as pool:
        outcomes = pool.starmap(_empty, [(path, f"w{number}", limit) for number in range(PROCESSES)], chunksize=1)
    begun_at, ended_at = min(one[2] for one in outcomes), max(one[3] for one in outcomes)
    return [one for taken, *_ in outcomes for one in taken], sum(one[1] for one in outcomes), ended_at - begun_at


_barriers: list[Barrier] = []


def _remember(barrier: Barrier) -> None:
    _barriers.append(barrier)


def _empty(path: Path, name: str, limit: int) -> tuple[list[str], int, float, float]:
    """Claim until nothing is left; returns the ids, the errors, and when it began and ended, in monotonic seconds."""
    return asyncio.run(_claim_all(path, name, limit))


async def _claim_all(path: Path, name: str, limit: int) -> tuple[list[str], int, float, float]:
    database, clock = Database(path), SystemClock()
    claims = ClaimRepository(database)
    taken: list[str] = []
    errors = 0
    # Opens the connections, so that only claims are measured.
    await claims.count_waiting()
    async with database.writing():
        pass
    for barrier in _barriers:
        await asyncio.to_thread(barrier.wait)
    begun_at = time.monotonic()
    while True:
        try:
            claimed = await claims.claim(
                worker_id=WorkerId(name), max_running=_NO_LIMIT, park_after=5, limit=limit, at=clock.now()
            )
        except Exception as error:  # noqa: BLE001 - each error is counted, whatever it is
            print(f"{name}: {error}")
            errors += 1
            continue
        if not claimed:
            break
        taken += [one.execution.id for one in claimed]
    ended_at = time.monotonic()
    await database.close()
    return taken, errors, begun_at, ended_at


async def fill(path: Path, count: int) -> None:
    """Make a database with one agent without a limit and so many queued executions, each of a task of its own."""
    now = SystemClock().now()
    agent_id = AgentId(new_id())
    capability = Capability(
        id=CapabilityId(new_id()), agent_id=agent_id, key="run", label="Run", command_tokens=("true",)
    )
    agent = Agent(id=agent_id, slug="any", name="any", max_concurrent=0, capabilities=(capability,))
    opened = await open_database(path, backups_dir=path.parent / "backups", release="1")
    workspace = await WorkspaceRepository(opened.database).register(root_path="/w", name="w", at=now)
    await AgentRepository(opened.database).add_missing([agent], at=now)
    first = await TaskRepository(opened.database).add(
        workspace.id, TaskDraft(title="a task"), after=(), next_run_at=None, actor=USER_ACTOR, at=now
    )
    await opened.database.close()
    at = moment_text(now)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.row_factory = sqlite3.Row
        task = dict(connection.execute("SELECT * FROM tasks WHERE id = ?", (first.id,)).fetchone())
        tasks = [task | {"id": new_id(), "number": number, "sort_order": number} for number in range(2, count + 1)]
        names = ", ".join(task)
        connection.executemany(f"INSERT INTO tasks ({names}) VALUES ({', '.join(f':{name}' for name in task)})", tasks)
        connection.executemany(
            "INSERT INTO executions (id, task_id, agent_id, capability_id, requested_by, status, mode, args, queued_at,"
            " created_at, updated_at) SELECT ?, id, ?, ?, owner_id, 'queued', 'template', ?, ?, ?, ? FROM tasks"
            " WHERE id = ?",
            [(new_id(), agent.id, capability.id, '{"argv":["true"]}', at, at, at, one["id"]) for one in [task, *tasks]],
        )


if __name__ == "__main__":
    for row in measure():
        print(" | ".join(row))
