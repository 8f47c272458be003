"""A hundred runs at a time, each printing two lines a second: what the worker, the hosts and tmux need for that."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from typing import TYPE_CHECKING

from agentmon.bootstrap import open_services
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.services.actors import USER_ACTOR
from agentmon.worker.presence import read_presence
from benchmarks.process_costs import memory_mb, processor_s
from benchmarks.scratch_home import add_command, scratch_home

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.bootstrap import Services
    from agentmon.domain.executions import Execution
    from agentmon.paths import Paths

RUNS = 100
WINDOW_S = 60.0
PROCESSOR_GOAL_PERCENT = 40
MEMORY_GOAL_MB = 700
_SETTLE_S = 5.0
"""From the last start to the window: what starting costs is none of its matter."""
_START_WITHIN_S = 180.0
_END_WITHIN_S = 60.0
# Asked to end by a file, so that no run is over before the window is.
_SCRIPT = 'n=0; while [ ! -e "$0" ]; do n=$((n + 1)); echo "line $n of a program that works"; sleep 0.5; done'


def measure(*, runs: int = RUNS, window_s: float = WINDOW_S) -> list[tuple[str, str, str]]:
    """Return rows of name, what was measured, and the goal; takes a minute and a half, and needs tmux and Linux."""
    with scratch_home() as paths:
        return asyncio.run(_measure(paths, runs=runs, window_s=window_s))


async def _measure(paths: Paths, *, runs: int, window_s: float) -> list[tuple[str, str, str]]:
    folder = paths.data_dir.parent / "project"
    async with open_services() as services:
        workspace = await services.workspaces.open(folder)
        await services.settings.set("worker.max_running", str(runs), actor=services.actor)
        end_file = folder / "end"
        executions = []
        for number in range(runs):
            task = await add_command(services, workspace, "sh", "-c", _SCRIPT, str(end_file), title=f"run {number}")
            executions.append(await services.queue.run(task.id, actor=USER_ACTOR))
        await services.workers.ensure_running()
        hosts = await wait_for_hosts([services.executions.log_path(one).parent for one in executions])
        await asyncio.sleep(_SETTLE_S)
        shares, elapsed_s, lines = await _watch(paths, executions, services, hosts, window_s=window_s)
        worker, server = _worker_pid(paths), _server_pid(paths)
        proportional_mb, resident_mb = memory_mb([worker, server, *hosts])
        end_file.touch()
        succeeded = await _count_successes(services, executions)
    percents = {name: 100 * seconds / elapsed_s for name, seconds in shares.items()}
    named = ", ".join(f"{name} {percent:.1f}" for name, percent in percents.items())
    what = f"{runs} runs, {lines / elapsed_s:.0f} lines/s in all"
    return [
        (
            f"{what}: worker, hosts and tmux over {elapsed_s:.0f} s",
            f"{sum(percents.values()):.1f} % of one core ({named})",
            f"≤ {PROCESSOR_GOAL_PERCENT} %",
        ),
        (
            f"{what}: memory of the same, shared pages counted once",
            f"{proportional_mb:.0f} MB",
            f"≤ {MEMORY_GOAL_MB} MB",
        ),
        (f"{what}: memory of the same, shared pages counted in each", f"{resident_mb:.0f} MB", ""),
        (f"{what}: recorded as succeeded", f"{succeeded} of {runs}", f"{runs} of {runs}"),
    ]


async def wait_for_hosts(folders: list[Path]) -> list[int]:
    """Return the pids of the hosts once every program runs."""
    deadline = time.monotonic() + _START_WITHIN_S
    while True:
        journals = [folder / "journal.jsonl" for folder in folders]
        texts = [journal.read_text() if journal.exists() else "" for journal in journals]
        if all('"agent_started"' in text for text in texts):
            return [int(json.loads(text.splitlines()[0])["pid"]) for text in texts]
        if time.monotonic() > deadline:
            message = f"not all programs ran within {_START_WITHIN_S:g} s"
            raise TimeoutError(message)
        await asyncio.sleep(0.1)


async def _watch(
    paths: Paths, executions: list[Execution], services: Services, hosts: list[int], *, window_s: float
) -> tuple[dict[str, float], float, int]:
    """Return the processor seconds of each part over the window, its length, and the lines printed meanwhile."""
    worker, server = _worker_pid(paths), _server_pid(paths)

    def look() -> dict[str, float]:
        return {
            "worker": processor_s(worker, with_children=True),
            "hosts": sum(processor_s(host) for host in hosts),
            "tmux": processor_s(server),
        }

    def count_lines() -> int:
        return sum(services.executions.log_path(one).read_bytes().count(b"\n") for one in executions)

    lines_before, before, began = count_lines(), look(), time.monotonic()
    await asyncio.sleep(window_s)
    after, elapsed_s = look(), time.monotonic() - began
    return {name: after[name] - before[name] for name in after}, elapsed_s, count_lines() - lines_before


async def _count_successes(services: Services, executions: list[Execution]) -> int:
    deadline = time.monotonic() + _END_WITHIN_S
    while True:
        present = [await services.executions.get(one.id) for one in executions]
        if time.monotonic() > deadline or not any(one.status.is_open for one in present):
            return sum(one.status is ExecutionStatus.SUCCEEDED for one in present)
        await asyncio.sleep(0.2)


def _worker_pid(paths: Paths) -> int:
    pid = read_presence(paths.worker_lock).pid
    if pid is None:
        message = "the worker is gone"
        raise RuntimeError(message)
    return pid


def _server_pid(paths: Paths) -> int:
    command = ["tmux", "-S", os.fspath(paths.tmux_socket), "display-message", "-p", "#{pid}"]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    for row in measure():
        print(" | ".join(row))
