"""Sixty sessions, most of them idle, and a held key on the board: how soon it paints, and how many processes start.

What the runs themselves start is left out: five print with the shell's own words and wait with one ``sleep`` a second
each, which is subtracted; the others wait for all of the time. Linux only.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.bootstrap import open_services
from agentmon.services.actors import USER_ACTOR
from benchmarks.board_speed import hold, percentiles
from benchmarks.first_frame import INSTALLED, environment
from benchmarks.hundred_agents import wait_for_hosts
from benchmarks.scratch_home import add_command, scratch_home
from benchmarks.timed_terminal import TimedTerminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.ids import TaskId
    from agentmon.paths import Paths

SESSIONS: Final = 60
BUSY: Final = 5
PRESSES: Final = 600
"""Twenty seconds of a held key."""
WATCHED_S: Final = 20.0
_WALK: Final = 25
_SETTLED_S: Final = 3.0
_BUSY_SCRIPT: Final = 'n=0; while :; do n=$((n + 1)); echo "line $n"; sleep 1; done'


def measure() -> list[tuple[str, str, str]]:
    """Return the rows of the table: what, measured, goal."""
    with scratch_home() as paths:
        project = paths.data_dir.parent / "project"
        tasks = asyncio.run(_start(paths, project))
        try:
            alone, watched, times = _watch(paths, project)
        finally:
            asyncio.run(_stop(paths, tasks))
    what = f"{SESSIONS} sessions, {SESSIONS - BUSY} of them idle"
    return [
        (f"{what}: key → repaint, j and k held: p50 · p95", percentiles(times), "≤ 100 ms"),
        (f"{what}: processes started a second, without the app · with it", f"{alone:z.1f} · {watched:z.1f}", ""),
    ]


def _watch(paths: Paths, project: Path) -> tuple[float, float, list[float]]:
    """Return the processes started a second without and with the app, and the seconds that each key took."""
    before = _processes_started()
    time.sleep(WATCHED_S)
    alone = (_processes_started() - before) / WATCHED_S - BUSY
    environ = {**environment(paths.data_dir.parent, paths.data_dir), "AGENTMON_AGENTS_SCAN_HOURS": "0"}
    with TimedTerminal([sys.executable, "-c", INSTALLED, str(project)], environ) as app:
        app.wait_for(b"In progress")
        time.sleep(_SETTLED_S)
        app.press(b"l")
        app.drain(1.0)
        before, began = _processes_started(), time.monotonic()
        times = hold(app, [*[b"j"] * _WALK, *[b"k"] * _WALK], PRESSES)
        watched = (_processes_started() - before) / (time.monotonic() - began) - BUSY
    return alone, watched, times


async def _start(paths: Paths, project: Path) -> list[TaskId]:
    async with open_services(paths) as services:
        workspace = await services.workspaces.open(project)
        await services.settings.set("worker.max_running", str(SESSIONS), actor=services.actor)
        tasks, executions = [], []
        for number in range(SESSIONS):
            words = ("sh", "-c", _BUSY_SCRIPT) if number < BUSY else ("sleep", "10000")
            task = await add_command(services, workspace, *words, title=f"session {number}")
            tasks.append(task.id)
            executions.append(await services.queue.run(task.id, actor=USER_ACTOR))
        await services.workers.ensure_running()
        await wait_for_hosts([services.executions.log_path(one).parent for one in executions])
        await asyncio.sleep(_SETTLED_S)
        return tasks


async def _stop(paths: Paths, tasks: Sequence[TaskId]) -> None:
    """End the runs: their hosts would outlive the worker and the tmux server."""
    async with open_services(paths) as services:
        stopped = [await services.queue.stop(task_id, actor=USER_ACTOR, kill=True) for task_id in tasks]
        for execution in stopped:
            await services.queue.wait(execution.id)


def _processes_started() -> int:
    """Return how many processes this machine has started since it booted (source: proc_stat(5))."""
    for line in Path("/proc/stat").read_text().splitlines():
        name, _, rest = line.partition(" ")
        if name == "processes":
            return int(rest)
    message = "this system does not count its processes"
    raise OSError(message)


if __name__ == "__main__":
    os.environ.pop("TMUX", None)
    for row in measure():
        print(" | ".join(row))
