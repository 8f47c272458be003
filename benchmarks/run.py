"""All benchmarks, one after another, as a table: ``make bench``; names on the command line choose some of them."""

from __future__ import annotations

import importlib
import os
import platform
import sys

BENCHMARKS = (
    "first_frame",
    "board_speed",
    "status_command",
    "statusline_command",
    "queue_speed",
    "claims",
    "queue_scale",
    "host",
    "kills",
    "log_view",
    "diff_view",
    "search_speed",
    "path_scan",
    "snapshots",
    "protocol_speed",
    "usage_reading",
    "usage_import",
    "usage_sums",
    "asked",
    "worktrees",
    "ten_idle_runs",
    "hundred_agents",
    "sixty_sessions",
    "idle",
)


def main() -> None:
    chosen = sys.argv[1:] or BENCHMARKS
    print(f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}\n")
    print("| what | measured | goal |\n|---|---|---|", flush=True)
    for name in chosen:
        for row in importlib.import_module(f"benchmarks.{name}").measure():
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
