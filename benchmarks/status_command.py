"""The commands that hooks, status bars, scripts and agents call often, against the start of Python itself."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from agentmon.bootstrap import open_services
from agentmon.cli.served import VARIABLE
from benchmarks.scratch_home import add_command, scratch_home

ROUNDS = 30
GOAL = 2.5
SERVED_ROUNDS = 10
SERVED_GOAL = 15
SERVED = (
    *(("task", "list"), ("task", "show", "1"), ("add", "another"), ("run", "2"), ("log", "2"), ("inbox",)),
    *(("approve", "bogus"), ("executions",), ("costs",), ("agents",)),
)
"""What a process that has everything imported carries out."""
_SERVER_WITHIN_S = 30.0


def measure() -> list[tuple[str, str, str]]:
    """Return one row of name, what was measured, and the goal."""
    script = str(Path(sys.executable).with_name("agentmon"))
    with scratch_home() as paths:
        project = paths.data_dir.parent / "project"
        asyncio.run(_fill(project))
        times: dict[str, list[float]] = {"bare": [], "status": []}
        for _ in range(ROUNDS):
            times["bare"].append(_milliseconds([sys.executable, "-I", "-c", "pass"]))
            times["status"].append(_milliseconds([script, "status"]))
        served = _measure_served(script, project, paths.run_dir / "commands.sock")
    bare, status = (statistics.median(times[name]) for name in ("bare", "status"))
    return [
        (
            "`agentmon status` ÷ `python -I -c pass`",
            f"{status / bare:.2f} ({status:.0f} ms ÷ {bare:.0f} ms)",
            f"≤ {GOAL}",
        ),
        *(
            (
                f"`agentmon {' '.join(words)}` ÷ `python -I -c pass`",
                f"{took / bare:.1f} ({took:.0f} ms)",
                f"≤ {SERVED_GOAL}",
            )
            for words, took in served.items()
        ),
    ]


def _measure_served(script: str, project: Path, place: Path) -> dict[tuple[str, ...], float]:
    """Return for each command the median of its milliseconds, once commands have followed each other."""
    os.environ.pop(VARIABLE)
    os.chdir(project)
    give_up_at = time.monotonic() + _SERVER_WITHIN_S
    while not place.exists():
        _milliseconds([script, "task", "list"])
        if time.monotonic() > give_up_at:
            raise SystemExit(f"no server at {place} within {_SERVER_WITHIN_S:g} s")
    return {
        words: statistics.median(
            _milliseconds([script, *words], is_wrong=words[0] == "approve") for _ in range(SERVED_ROUNDS)
        )
        for words in SERVED
    }


async def _fill(project: Path) -> None:
    async with open_services() as services:
        workspace = await services.workspaces.open(project)
        for number in range(100):
            await add_command(services, workspace, "true", title=f"task {number}")


def _milliseconds(command: list[str], *, is_wrong: bool = False) -> float:
    environ = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    subprocess.run(
        command,
        check=not is_wrong,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environ,
    )
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    for row in measure():
        print(" | ".join(row))
