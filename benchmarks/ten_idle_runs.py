"""Ten runs at a time in one repository that do nothing: what the worker, its git, the hosts and tmux need for that."""

from __future__ import annotations

import asyncio
import os
import subprocess
from typing import TYPE_CHECKING

from agentmon.bootstrap import open_services
from agentmon.services.actors import USER_ACTOR
from agentmon.worker.presence import read_presence
from benchmarks.hundred_agents import wait_for_hosts
from benchmarks.process_costs import processor_s
from benchmarks.scratch_home import add_command, scratch_home

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.paths import Paths

RUNS = 10
FILES = 5_000
WINDOW_S = 60.0
GOAL_PERCENT = 20
_SETTLE_S = 5.0
# Asked to end by a file, so that no run is over before the window is.
_SCRIPT = 'while [ ! -e "$0" ]; do sleep 5; done'


def measure(*, runs: int = RUNS, files: int = FILES, window_s: float = WINDOW_S) -> list[tuple[str, str, str]]:
    """Return rows of name, what was measured, and the goal; takes two minutes, and needs git, tmux and Linux."""
    with scratch_home() as paths:
        before, after = asyncio.run(_measure(paths, runs=runs, files=files, window_s=window_s))
    named = ", ".join(f"{name} {after[name] - before.get(name, 0.0):.1f}" for name in after)
    added = sum(after.values()) - sum(before.values())
    return [
        (
            f"{runs} runs that do nothing, in one repository of {files:,} files, over {window_s:.0f} s",
            f"+{added:.1f} % of one core ({named})",
            f"≤ {GOAL_PERCENT} %",
        )
    ]


async def _measure(
    paths: Paths, *, runs: int, files: int, window_s: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Return percents of a core by who needs them, without any run and with all of them."""
    folder = paths.data_dir.parent / "project"
    await asyncio.to_thread(_fill, folder, files)
    async with open_services() as services:
        workspace = await services.workspaces.open(folder)
        await services.settings.set("worker.max_running", str(runs), actor=services.actor)
        await services.settings.set("workspace.max_per_folder", "0", workspace=workspace, actor=services.actor)
        await services.workers.ensure_running()
        await asyncio.sleep(_SETTLE_S)
        before = await _percents(paths, [], window_s)
        end_file = folder / ".git" / "end"
        executions = []
        for number in range(runs):
            task = await add_command(services, workspace, "sh", "-c", _SCRIPT, str(end_file), title=f"run {number}")
            executions.append(await services.queue.run(task.id, actor=USER_ACTOR))
        hosts = await wait_for_hosts([services.executions.log_path(one).parent for one in executions])
        await asyncio.sleep(_SETTLE_S)
        after = await _percents(paths, hosts, window_s)
        end_file.touch()
        for execution in executions:
            await services.queue.wait(execution.id)
    return before, after


def _fill(folder: Path, files: int) -> None:
    for number in range(files):
        path = folder / f"part{number % 50}" / f"file{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"number = {number}\n" * 20, encoding="ascii")
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*who, "commit", "-q", "-m", "first")):
        subprocess.run(["git", *words], cwd=folder, check=True)


async def _percents(paths: Paths, hosts: list[int], window_s: float) -> dict[str, float]:
    worker = read_presence(paths.worker_lock).pid
    if worker is None:
        message = "the worker is gone"
        raise RuntimeError(message)
    parts: dict[str, list[int]] = {"worker and its git": [worker]}
    if hosts:
        asked = ["tmux", "-S", os.fspath(paths.tmux_socket), "display-message", "-p", "#{pid}"]
        server = int((await asyncio.to_thread(subprocess.run, asked, check=True, capture_output=True)).stdout)
        parts |= {"hosts": hosts, "tmux": [server]}

    def look() -> dict[str, float]:
        return {
            name: sum(processor_s(pid, with_children=pid == worker) for pid in pids) for name, pids in parts.items()
        }

    before = look()
    await asyncio.sleep(window_s)
    after = look()
    return {name: 100 * (after[name] - before[name]) / window_s for name in parts}


if __name__ == "__main__":
    for row in measure():
        print(" | ".join(row))
