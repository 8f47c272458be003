"""Worker and client killed without a word again and again, while runs print; afterwards every byte has to be there."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from agentmon.bootstrap import open_services
from agentmon.domain.execution_status import ExecutionStatus
from benchmarks.scratch_home import add_command, kill_worker, scratch_home

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.ids import TaskId
    from agentmon.domain.tasks import Task
    from agentmon.paths import Paths

RUNS = 200
KILLS = 50
LINES = 30
_ENDS_WITHIN_S = 600.0
_ENTRIES = ["host_started", "agent_started", "exited", "ended"]
_CLIENT = """
import asyncio, sys
from agentmon.bootstrap import open_services
from agentmon.services.actors import USER_ACTOR
from agentmon.domain.errors import ConflictError

async def main():
    async with open_services() as services:
        for task_id in sys.argv[1:]:
            try:
                await services.queue.run(task_id, actor=USER_ACTOR)
            except ConflictError:
                pass

asyncio.run(main())
"""


def measure(*, runs: int = RUNS, kills: int = KILLS, seed: int = 1) -> list[tuple[str, str, str]]:
    """Return one row of name, what was found, and the goal."""
    with scratch_home() as paths:
        killed, faults, seconds = asyncio.run(_measure(paths, runs=runs, kills=kills, seed=seed))
    found = "all exact" if not faults else f"{len(faults)} faults, such as {faults[0]}"
    return [
        (
            f"kill -9 of worker and client {killed} times during {runs} runs",
            f"output bytes, exit codes and event counts: {found} ({seconds:.0f} s)",
            "all exact",
        )
    ]


async def _measure(paths: Paths, *, runs: int, kills: int, seed: int) -> tuple[int, list[str], float]:
    randomness = random.Random(seed)
    started = time.perf_counter()
    async with open_services() as services:
        workspace = await services.workspaces.open(paths.data_dir.parent / "project")
        await services.settings.set("worker.max_running", "6", actor=services.actor)
        # Six of seven runs fail on purpose.
        await services.settings.set("worker.park_after_failures", "0", actor=services.actor)
        script = f'for i in $(seq {LINES}); do echo "$0 $i"; sleep 0.01; done; exit $0'
        tasks = [
            await add_command(services, workspace, "sh", "-c", script, str(number % 7), title=f"run {number}")
            for number in range(runs)
        ]
        killed = await _run_and_kill(services, paths, tasks, kills=kills, randomness=randomness)
        faults = [fault for number, task in enumerate(tasks) for fault in await _faults(services, task, number % 7)]
    return killed, faults, time.perf_counter() - started


async def _run_and_kill(
    services: Services, paths: Paths, tasks: list[Task], *, kills: int, randomness: random.Random
) -> int:
    killed = 0
    deadline = time.monotonic() + _ENDS_WITHIN_S
    batch = max(1, 2 * len(tasks) // max(1, kills))
    while True:
        waiting = [task.id for task in tasks if not await _has_run(services, task)]
        client = await asyncio.to_thread(_start_client, waiting[:batch]) if waiting else None
        await asyncio.sleep(randomness.uniform(0.4, 2.0))
        if killed < kills:
            if client is not None and client.poll() is None and randomness.random() < 0.7:
                os.kill(client.pid, signal.SIGKILL)
                killed += 1
            if kill_worker(paths):
                killed += 1
        if client is not None:
            await asyncio.to_thread(client.wait)
        await services.workers.ensure_running()
        open_ones = [listing for listing in await services.executions.list(None) if listing.execution.status.is_open]
        if not waiting and not open_ones:
            return killed
        if time.monotonic() >= deadline:
            raise RuntimeError(
                f"{len(waiting)} tasks without a run, {len(open_ones)} open runs after {_ENDS_WITHIN_S:g} s"
            )


def _start_client(task_ids: list[TaskId]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-P", "-c", _CLIENT, *task_ids])


async def _has_run(services: Services, task: Task) -> bool:
    return await services.executions.newest(task.id) is not None


async def _faults(services: Services, task: Task, code: int) -> list[str]:
    executions = await services.executions.of_task(task.id)
    if len(executions) != 1:
        return [f"#{task.number} has {len(executions)} executions"]
    (execution,) = executions
    expected = "".join(f"{code} {line}\n" for line in range(1, LINES + 1)).encode()
    status = ExecutionStatus.SUCCEEDED if code == 0 else ExecutionStatus.FAILED
    faults = []
    if (execution.status, execution.exit_code) != (status, code):
        faults.append(f"#{task.number} is {execution.status.value} {execution.exit_code} ({execution.error})")
    if services.executions.log_path(execution).read_bytes() != expected:
        faults.append(f"#{task.number} has other output")
    if execution.log_byte_size != len(expected):
        faults.append(f"#{task.number} counts {execution.log_byte_size} bytes")
    entries = [event.payload["entry"] for event in await services.executions.events(execution.id)]
    if entries != _ENTRIES:
        faults.append(f"#{task.number} has the events {entries}")
    return faults


if __name__ == "__main__":
    for row in measure():
        print(" | ".join(row))
