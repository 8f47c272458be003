"""What an open app and its worker need while nothing happens, over a board of a thousand tasks. Linux only."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from agentmon.bootstrap import open_services
from agentmon.domain.tasks import TaskDraft
from agentmon.services.actors import USER_ACTOR
from agentmon.worker.presence import read_presence
from benchmarks.process_costs import memory_mb, processor_s
from benchmarks.scratch_home import scratch_home

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agentmon.paths import Paths

TASKS = 1000
WINDOW_S = 60.0
GOAL_PERCENT = 1.0
_SETTLE_S = 5.0
_READY_WITHIN_S = 60.0
_COLUMNS, _ROWS = 120, 40


def measure(*, tasks: int = TASKS, window_s: float = WINDOW_S) -> list[tuple[str, str, str]]:
    """Return rows of name, what was measured, and the goal; takes a good minute, and needs tmux."""
    with scratch_home() as paths:
        project = paths.data_dir.parent / "project"
        asyncio.run(_fill(project, tasks))
        tmux = ["tmux", "-S", os.fspath(paths.data_dir.parent / "terminal"), "-f", "/dev/null"]
        app = [sys.executable, "-P", "-m", "agentmon", os.fspath(project)]
        size = ["-x", str(_COLUMNS), "-y", str(_ROWS)]
        # The private server hands this process's environment on to the app.
        subprocess.run([*tmux, "new-session", "-d", "-s", "app", *size, *app], check=True)
        try:
            return _measure(paths, tmux, tasks, window_s)
        finally:
            subprocess.run([*tmux, "kill-server"], check=False, capture_output=True)


async def _fill(project: Path, tasks: int) -> None:
    async with open_services() as services:
        workspace = await services.workspaces.open(project)
        for number in range(tasks):
            await services.tasks.add(workspace, TaskDraft(title=f"title of {number}"), actor=USER_ACTOR)
        await services.workers.ensure_running()


def _measure(paths: Paths, tmux: list[str], tasks: int, window_s: float) -> list[tuple[str, str, str]]:
    _wait_for(lambda: "title of" in _ask(tmux, "capture-pane", "-p", "-t", "app"), "the board")
    app = int(_ask(tmux, "display-message", "-p", "-t", "app", "#{pane_pid}"))
    worker = read_presence(paths.worker_lock).pid
    if worker is None:
        message = "there is no worker"
        raise RuntimeError(message)
    pids = {"worker": worker, "app": app}
    time.sleep(_SETTLE_S)
    before, began = _look(pids), time.monotonic()
    time.sleep(window_s)
    after, elapsed_s = _look(pids), time.monotonic() - began
    percents = {name: 100 * (after[name] - before[name]) / elapsed_s for name in pids}
    named = ", ".join(f"{name} {percent:.2f}" for name, percent in percents.items())
    proportional_mb, _ = memory_mb(pids.values())
    return [
        (
            f"idle worker and app, {tasks:,} tasks, over {elapsed_s:.0f} s",
            f"{sum(percents.values()):.2f} % of one core ({named})",
            f"≤ {GOAL_PERCENT:g} %",
        ),
        (f"idle worker and app, {tasks:,} tasks: memory, shared pages counted once", f"{proportional_mb:.0f} MB", ""),
    ]


def _look(pids: dict[str, int]) -> dict[str, float]:
    return {name: processor_s(pid, with_children=True) for name, pid in pids.items()}


def _ask(tmux: list[str], *arguments: str) -> str:
    return subprocess.run([*tmux, *arguments], check=True, capture_output=True, text=True).stdout


def _wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _READY_WITHIN_S
    while not condition():
        if time.monotonic() > deadline:
            message = f"not within {_READY_WITHIN_S:g} s: {what}"
            raise TimeoutError(message)
        time.sleep(0.1)


if __name__ == "__main__":
    for row in measure():
        print(" | ".join(row))
