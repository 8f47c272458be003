"""Measures the first frame of the board with 10,000 and 100,000 tasks against that of a bare Textual app.

Each start is a process in a pseudo-terminal of its own, from the start of the process to the marker of its first
frame in the terminal, with compiled bytecode in a cache of its own. The two alternate; the median of the ratios of
neighbours counts.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import statistics
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from agentmon.bootstrap import open_services  # noqa: E402 - the repository comes first on the path
from agentmon.domain.ids import LOCAL_USER_ID, new_id  # noqa: E402
from agentmon.domain.task_status import TaskStatus  # noqa: E402
from agentmon.paths import find_paths  # noqa: E402
from benchmarks.timed_terminal import TimedTerminal  # noqa: E402

TASKS: Final = (10_000, 100_000)
STARTS: Final = 15
GOAL: Final = 1.3
_STATUSES: Final = (TaskStatus.TODO, TaskStatus.TODO, TaskStatus.IN_PROGRESS, TaskStatus.BLOCKED, TaskStatus.DONE)

_BARE: Final = """
from textual.app import App
from textual.widgets import Static

class Bare(App):
    def compose(self):
        yield Static("the bare frame")

Bare().run()
"""

INSTALLED: Final = "from agentmon.__main__ import main; main()"
"""What the installed command ``agentmon`` is."""


def measure() -> list[tuple[str, str, str]]:
    """Return the rows of the table: what, measured, goal."""
    with tempfile.TemporaryDirectory(prefix="amb-") as name:
        folder = Path(name)
        homes = {tasks: make_board(folder / str(tasks), tasks) for tasks in TASKS}
        bare = [sys.executable, "-c", _BARE]
        bare_times: list[float] = []
        times: dict[int, list[float]] = {tasks: [] for tasks in TASKS}
        for start in range(STARTS + 2):
            environ = environment(folder, folder)
            elapsed_s = {0: _time_to(bare, b"the bare frame", environ)}
            for tasks, root in homes.items():
                argv = [sys.executable, "-c", INSTALLED, str(root)]
                elapsed_s[tasks] = _time_to(argv, first_title(tasks), environment(folder, root.parent / "home"))
            if start >= 2:
                # The first two write the bytecode and warm the disk.
                bare_times.append(elapsed_s[0])
                for tasks in TASKS:
                    times[tasks].append(elapsed_s[tasks])
    rows = [("first frame of a bare Textual app", f"{statistics.median(bare_times) * 1000:.0f} ms", "")]
    for tasks, board_times in times.items():
        # Neighbours are compared, so that a machine that grows busy meanwhile slows both of a pair.
        ratio = statistics.median(board / bare for bare, board in zip(bare_times, board_times, strict=True))
        rows += [
            (f"first frame of the board, {tasks:,} tasks", f"{statistics.median(board_times) * 1000:.0f} ms", ""),
            ("the board's ÷ the bare app's", f"{ratio:.2f}", f"≤ {GOAL}"),
        ]
    return rows


def environment(folder: Path, home: Path) -> dict[str, str]:
    """Return what a program is started with: a home of its own, bytecode in the folder, a terminal of all colours."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AGENTMON", "TEXTUAL", "PYTHONDONTWRITE"))
    } | {
        "AGENTMON_HOME": str(home),
        "AGENTMON_APP_WELCOME": "false",
        "PYTHONPATH": str(REPOSITORY),
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
    }


def first_title(tasks: int) -> bytes:
    """Return the title of the uppermost card of the column that is read last."""
    return f"title of {tasks - 1}".encode()


def _time_to(argv: list[str], marker: bytes, environ: dict[str, str]) -> float:
    with TimedTerminal(argv, environ) as terminal:
        return terminal.wait_for(marker)


def make_board(folder: Path, tasks: int) -> Path:
    """Make a home with the tasks of one workspace, and return the folder of the workspace."""
    home, root = folder / "home", folder / "project"
    root.mkdir(parents=True)
    paths = find_paths({"AGENTMON_HOME": str(home)})

    async def make() -> str:
        async with open_services(paths) as services:
            return (await services.workspaces.open(root)).id

    workspace_id = asyncio.run(make())
    present = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.000Z}"
    rows = [
        (
            new_id(),
            number,
            LOCAL_USER_ID,
            workspace_id,
            f"title of {number}",
            _STATUSES[number % len(_STATUSES)].value,
            1 + number % 5,
            -number * 1000,
            present,
            present,
        )
        for number in range(1, tasks + 1)
    ]
    connection = sqlite3.connect(paths.database_path)
    with connection:
        connection.executemany(
            "INSERT INTO tasks (id, number, owner_id, workspace_id, title, status, priority, sort_order, created_at,"
            " updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return root


if __name__ == "__main__":
    for row in measure():
        print(" | ".join(row))
