"""The command that hooks and status bars call often, against the start of Python itself."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from agentmon.bootstrap import open_services
from benchmarks.scratch_home import add_command, scratch_home

ROUNDS = 30
GOAL = 2.5


def measure() -> list[tuple[str, str, str]]:
    """Return one row of name, what was measured, and the goal."""
    script = str(Path(sys.executable).with_name("agentmon"))
    with scratch_home() as paths:
        asyncio.run(_fill(paths.data_dir.parent / "project"))
        times: dict[str, list[float]] = {"bare": [], "status": []}
        for _ in range(ROUNDS):
            times["bare"].append(_milliseconds([sys.executable, "-I", "-c", "pass"]))
            times["status"].append(_milliseconds([script, "status"]))
    bare, status = (statistics.median(times[name]) for name in ("bare", "status"))
    return [
        (
            "`agentmon status` ÷ `python -I -c pass`",
            f"{status / bare:.2f} ({status:.0f} ms ÷ {bare:.0f} ms)",
            f"≤ {GOAL}",
        )
    ]


async def _fill(project: Path) -> None:
    async with open_services() as services:
        workspace = await services.workspaces.open(project)
        for number in range(100):
            await add_command(services, workspace, "true", title=f"task {number}")


def _milliseconds(command: list[str]) -> float:
    environ = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environ)
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    for row in measure():
        print(" | ".join(row))
