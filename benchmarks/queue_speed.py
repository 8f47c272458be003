"""From the queue to the record: ``true`` two hundred times, alone and four at a time."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import time
from typing import TYPE_CHECKING

from agentmon.bootstrap import open_services
from agentmon.services.actors import USER_ACTOR
from benchmarks.scratch_home import add_command, scratch_home

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import ExecutionId

RUNS = 200
LATENCY_GOAL_MS = 200
RATE_GOAL = 8


def measure() -> list[tuple[str, str, str]]:
    """Return rows of name, what was measured, and the goal."""
    with scratch_home():
        latencies_ms, rate, plain_rate = asyncio.run(_measure())
    median = statistics.median(latencies_ms)
    p95 = statistics.quantiles(latencies_ms, n=20)[-1]
    return [
        (
            f"`true` from enqueue to recorded success, {RUNS} of them one after another",
            f"median {median:.0f} ms, p95 {p95:.0f} ms",
            f"median ≤ {LATENCY_GOAL_MS} ms",
        ),
        (
            f"`true` in the queue, {RUNS} of them, cap 4",
            f"{rate:.1f}/s, {rate / plain_rate:.2f} × bare `tmux new-session` with wait",
            f"≥ {RATE_GOAL}/s",
        ),
    ]


async def _measure() -> tuple[list[float], float, float]:
    async with open_services() as services:
        workspace = await services.workspaces.open(services.paths.data_dir.parent / "project")
        tasks = [await add_command(services, workspace, "true", title=f"true {number}") for number in range(2 * RUNS)]
        await services.settings.set("worker.max_running", "4", actor=services.actor)
        await services.workers.ensure_running()
        latencies_ms = []
        for task in tasks[:RUNS]:
            started = time.perf_counter()
            execution = await services.queue.run(task.id, actor=USER_ACTOR)
            await _over(services, execution.id)
            latencies_ms.append((time.perf_counter() - started) * 1000)
        started = time.perf_counter()
        executions = [await services.queue.run(task.id, actor=USER_ACTOR) for task in tasks[RUNS:]]
        for execution in executions:
            await _over(services, execution.id)
        rate = RUNS / (time.perf_counter() - started)
        plain_rate = await asyncio.to_thread(_plain_rate, str(services.paths.run_dir / "plain.sock"))
        return latencies_ms, rate, plain_rate


async def _over(services: Services, execution_id: ExecutionId) -> Execution:
    seen = None
    while True:
        version = services.data_version()
        if version != seen:
            seen = version
            execution = await services.executions.get(execution_id)
            if not execution.status.is_open:
                return execution
        await asyncio.sleep(0.002)


def _plain_rate(socket: str, runs: int = 40) -> float:
    """Return how many bare tmux sessions with ``true`` this machine starts and sees end per second, one by one."""
    base = ["tmux", "-S", socket, "-f", "/dev/null"]
    # A session that stays, so that the server does not end and start again in between.
    subprocess.run([*base, "new-session", "-d", "sleep 600"], check=True)
    try:
        started = time.perf_counter()
        for number in range(runs):
            command = f"true; tmux -S {socket} wait-for -S done{number}"
            subprocess.run([*base, "new-session", "-d", command], check=True)
            subprocess.run([*base, "wait-for", f"done{number}"], check=True)
        return runs / (time.perf_counter() - started)
    finally:
        subprocess.run([*base, "kill-server"], check=True)


if __name__ == "__main__":
    for row in measure():
        print(" | ".join(row))
