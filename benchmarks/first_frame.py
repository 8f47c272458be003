"""Measures the first frame of the board with 10,000 tasks against that of a bare Textual app.

Each start is a process in a pseudo-terminal of its own, from the start of the process to the marker of its first
frame in the terminal, with compiled bytecode in a cache of its own. The two alternate; the median of the ratios of
neighbours counts.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import select
import signal
import sqlite3
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from agentmon.bootstrap import open_services  # noqa: E402 - the repository comes first on the path
from agentmon.domain.ids import LOCAL_USER_ID, new_id  # noqa: E402
from agentmon.domain.task_status import TaskStatus  # noqa: E402
from agentmon.paths import find_paths  # noqa: E402

TASKS: Final = 10_000
STARTS: Final = 15
COLUMNS: Final = 120
ROWS: Final = 40
GOAL: Final = 1.3
TIMEOUT_S: Final = 60.0
_STATUSES: Final = (TaskStatus.TODO, TaskStatus.TODO, TaskStatus.IN_PROGRESS, TaskStatus.BLOCKED, TaskStatus.DONE)

_BARE: Final = """
from textual.app import App
from textual.widgets import Static

class Bare(App):
    def compose(self):
        yield Static("the bare frame")

Bare().run()
"""

_INSTALLED: Final = "from agentmon.__main__ import main; main()"
"""What the installed command ``agentmon`` is."""


def measure() -> list[tuple[str, str, str]]:
    """Return the rows of the table: what, measured, goal."""
    with tempfile.TemporaryDirectory(prefix="amb-") as folder:
        home, root = Path(folder) / "home", Path(folder) / "project"
        root.mkdir()
        _fill(home, root)
        environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AGENTMON", "TEXTUAL", "PYTHONDONTWRITE"))
        } | {
            "AGENTMON_HOME": str(home),
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONPYCACHEPREFIX": str(Path(folder) / "bytecode"),
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
        }
        bare = [sys.executable, "-c", _BARE], b"the bare frame"
        board = [sys.executable, "-c", _INSTALLED, str(root)], b"title of 9999"
        times: dict[str, list[float]] = {"bare": [], "board": []}
        for start in range(STARTS + 2):
            for name, (argv, marker) in (("bare", bare), ("board", board)):
                elapsed_s = time_to_marker(argv, marker, environ)
                if start >= 2:
                    # The first two write the bytecode and warm the disk.
                    times[name].append(elapsed_s)
    bare_s, board_s = (statistics.median(times[name]) for name in ("bare", "board"))
    # Neighbours are compared, so that a machine that grows busy meanwhile slows both of a pair.
    ratio = statistics.median(board / bare for bare, board in zip(times["bare"], times["board"], strict=True))
    return [
        ("first frame of a bare Textual app", f"{bare_s * 1000:.0f} ms", ""),
        (f"first frame of the board, {TASKS:,} tasks", f"{board_s * 1000:.0f} ms", ""),
        ("the board's ÷ the bare app's", f"{ratio:.2f}", f"≤ {GOAL}"),
    ]


def time_to_marker(argv: list[str], marker: bytes, environ: dict[str, str]) -> float:
    """Return the seconds from the start of the program to the marker in its terminal; ends the program."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    started = time.monotonic()
    process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env=environ, start_new_session=True)
    os.close(slave)
    output = b""
    try:
        while marker not in output:
            if time.monotonic() - started > TIMEOUT_S:
                message = f"{argv[1:]} never showed {marker!r}: {output[-500:]!r}"
                raise RuntimeError(message)
            if select.select([master], [], [], 1.0)[0]:
                output += os.read(master, 65536)
        return time.monotonic() - started
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(master)


def _fill(home: Path, root: Path) -> None:
    """Make a database with the tasks of one workspace."""
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
        for number in range(1, TASKS + 1)
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


if __name__ == "__main__":
    for row in measure():
        print(" | ".join(row))
