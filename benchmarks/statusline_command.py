"""The status line that Claude Code asks for with every message, against the start of Python itself."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from agentmon.bootstrap import open_services
from benchmarks.scratch_home import scratch_home

ROUNDS: Final = 30
GOAL: Final = 2.5
GOAL_MS: Final = 60.0
_STATUS: Final = {
    "session_id": "cf50f1a1-c6d7-4a97-8c71-1ef42079a8db",
    "model": {"id": "claude-opus-5-5", "display_name": "Opus 5.5"},
    "cost": {"total_cost_usd": 0.42},
    "context_window": {"context_window_size": 1_000_000, "current_usage": {"input_tokens": 6130}},
    "rate_limits": {"five_hour": {"used_percentage": 37.4, "resets_at": 4_000_000_000}},
}


def measure() -> list[tuple[str, str, str]]:
    """Return rows of name, what was measured, and the goal; times are medians on a machine that does nothing else."""
    script = str(Path(sys.executable).with_name("agentmon"))
    written = json.dumps(_STATUS).encode()
    with scratch_home():
        asyncio.run(_open_once())
        times: dict[str, list[float]] = {"bare": [], "line": []}
        for _ in range(ROUNDS):
            times["bare"].append(_milliseconds([sys.executable, "-I", "-c", "pass"], b""))
            times["line"].append(_milliseconds([script, "statusline"], written))
    bare, line = (statistics.median(times[name]) for name in ("bare", "line"))
    return [
        (
            "`agentmon statusline` ÷ `python -I -c pass`",
            f"{line / bare:.2f} ({line:.0f} ms ÷ {bare:.0f} ms)",
            f"≤ {GOAL}",
        ),
        ("`agentmon statusline`", f"{line:.0f} ms", f"≤ {GOAL_MS:.0f} ms"),
    ]


async def _open_once() -> None:
    async with open_services():
        pass


def _milliseconds(command: list[str], written: bytes) -> float:
    environ = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    subprocess.run(command, check=True, input=written, stdout=subprocess.DEVNULL, env=environ)
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    for row in measure():
        print(" | ".join(row))
