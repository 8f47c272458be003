"""Measures how the board answers with 100 and with 100,000 tasks, what memory it takes, and kanban-tui beside it.

All in pseudo-terminals of 120×40. A key is answered with the first bytes that are drawn after it. The tool to compare
with is the command that ``AGENTMON_KANBAN_TUI`` names; without it, it is installed into a folder for the measurement,
and left out where that cannot be done.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.first_frame import INSTALLED, environment, first_title, make_board
from benchmarks.process_costs import memory_mb, processor_s
from benchmarks.timed_terminal import TimedTerminal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SMALL: Final = 100
LARGE: Final = 100_000
COMPARED: Final = 1_000
PRESSES: Final = 300
"""Ten seconds of a held key."""
WALK: Final = 30
"""Cards down and up again: fewer than the small board has in a column, more than are in view."""
LONG_PRESSES: Final = 1_500
HELD_S: Final = 1 / 30
"""Between two presses of a held key."""
WORD: Final = "title9"
MEMORY_GOAL_MB: Final = 90
_SETTLED_S: Final = 1.5
_RESTING_S: Final = 0.1
"""Processor time in that while, below which what comes after the first frame has been imported and opened."""
_INSTALL_TIMEOUT_S: Final = 180.0
_P95: Final = 95

_Row = tuple[str, str, str]


def measure() -> list[_Row]:
    """Return the rows of the table: what, measured, goal."""
    with tempfile.TemporaryDirectory(prefix="amb-") as name:
        folder = Path(name)
        boards = {tasks: make_board(folder / str(tasks), tasks) for tasks in (SMALL, COMPARED, LARGE)}
        held = {tasks: _measure_keys(folder, boards[tasks], tasks) for tasks in (SMALL, LARGE)}
        rows = _rows_of_keys(held)
        rows += _measure_long_walk(folder, boards[LARGE], LARGE)
        rows += _measure_filter(folder, boards[LARGE], LARGE)
        rows += _measure_memory(folder, boards[LARGE], LARGE)
        return [*rows, *_compare(folder, boards[COMPARED])]


def _open(folder: Path, root: Path, tasks: int) -> tuple[TimedTerminal, float]:
    """Return a board that has come to rest, and the seconds to its first frame."""
    terminal = TimedTerminal([sys.executable, "-c", INSTALLED, str(root)], environment(folder, root.parent / "home"))
    first_s = terminal.wait_for(first_title(tasks))
    while True:
        used_s = processor_s(terminal.pid)
        terminal.wait_until_quiet(_SETTLED_S)
        if processor_s(terminal.pid) - used_s < _RESTING_S:
            return terminal, first_s


def _measure_keys(folder: Path, root: Path, tasks: int) -> dict[str, list[float]]:
    """Return the times of each kind of key; after each the board is left as it was."""
    terminal, _ = _open(folder, root, tasks)
    with terminal:
        walk = hold(terminal, [*[b"j"] * WALK, *[b"k"] * WALK], PRESSES)
        moves = hold(terminal, [b"L", b"H"], PRESSES // 3, gap_s=0.15)
        ends = hold(terminal, [b"G", b"g"], PRESSES // 10, gap_s=0.3)
    return {"j and k held": walk, "H and L": moves, "G and g": ends}


def _measure_long_walk(folder: Path, root: Path, tasks: int) -> list[_Row]:
    terminal, _ = _open(folder, root, tasks)
    with terminal:
        walk = hold(terminal, [b"j"], LONG_PRESSES, gap_s=HELD_S)
    return [(f"key → repaint, j held over {LONG_PRESSES:,} cards: p50 · p95", percentiles(walk), "p95 ≤ 25 ms")]


def hold(terminal: TimedTerminal, keys: Sequence[bytes], presses: int, *, gap_s: float = HELD_S) -> list[float]:
    """Return the times of so many presses of the keys in turn, each once the one before was answered."""
    times = []
    for press in range(presses):
        elapsed_s = terminal.press(keys[press % len(keys)])
        times.append(elapsed_s)
        # What is drawn later, such as a page that was read, belongs to this key and not to the next.
        ends = time.monotonic() + max(0.0, gap_s - elapsed_s)
        while (left_s := ends - time.monotonic()) > 0:
            terminal.drain(left_s)
    return times


def _rows_of_keys(held: Mapping[int, Mapping[str, list[float]]]) -> list[_Row]:
    rows = []
    for kind in held[SMALL]:
        small, large = held[SMALL][kind], held[LARGE][kind]
        ratio = statistics.median(large) / statistics.median(small)
        rows += [
            (f"key → repaint, {kind}: p50 · p95 with {SMALL} tasks", percentiles(small), ""),
            (f"key → repaint, {kind}: p50 · p95 with {LARGE:,} tasks", percentiles(large), "p95 ≤ 25 ms"),
            (f"the one with {LARGE:,} ÷ the one with {SMALL}", f"{ratio:.2f}", "≤ 1.1"),
        ]
    return rows


def _measure_filter(folder: Path, root: Path, tasks: int) -> list[_Row]:
    """Type a word letter by letter: each is answered in the box, and at last with the cards."""
    echoes, cards = [], []
    terminal, _ = _open(folder, root, tasks)
    with terminal:
        for _round in range(10):
            terminal.press(b"/")
            terminal.wait_until_quiet(_SETTLED_S / 3)
            for letter in WORD:
                began = time.monotonic()
                echoes.append(terminal.press(letter.encode()))
                cards.append(terminal.time_of_last(_SETTLED_S / 3) - began)
            terminal.press(b"\x1b")
            terminal.wait_until_quiet(_SETTLED_S)
    return [
        (f"filter, letter → repaint: p50 · p95 with {tasks:,} tasks", percentiles(echoes), "p95 ≤ 25 ms"),
        (f"filter, letter → cards: p50 · p95 with {tasks:,} tasks", percentiles(cards), "≤ 100 ms"),
    ]


def _measure_memory(folder: Path, root: Path, tasks: int) -> list[_Row]:
    terminal, _ = _open(folder, root, tasks)
    with terminal:
        before_mb, _resident = memory_mb([terminal.pid])
        hold(terminal, [b"j", b"j", b"j", b"l", b"j", b"h"], LONG_PRESSES, gap_s=0.0)
        terminal.wait_until_quiet(_SETTLED_S)
        after_mb, _resident = memory_mb([terminal.pid])
    goal = f"≤ {MEMORY_GOAL_MB} MB"
    return [
        (f"memory of the app, {tasks:,} tasks", f"{before_mb:.0f} MB", goal),
        (f"… after {LONG_PRESSES:,} keys", f"{after_mb:.0f} MB", goal),
    ]


def _compare(folder: Path, root: Path) -> list[_Row]:
    """Measure kanban-tui and the board in turn, on as many tasks."""
    name = f"kanban-tui, {COMPARED:,} tasks"
    command = _find_kanban_tui(folder)
    if command is None:
        return [(name, "not installed", "")]
    environ = _fill_kanban_tui(folder, command)
    firsts: dict[str, list[float]] = {"theirs": [], "ours": []}
    keys: dict[str, list[float]] = {"theirs": [], "ours": []}
    for start in range(4):
        with TimedTerminal([str(command)], environ) as theirs:
            first_s = theirs.wait_for(b"title of 1")
            theirs.wait_until_quiet(_SETTLED_S)
            own = hold(theirs, [b"j"], 40, gap_s=0.1)
        ours, our_first_s = _open(folder, root, COMPARED)
        with ours:
            our_keys = hold(ours, [b"j"], 40, gap_s=0.1)
        if start:
            # The first writes the bytecode of both.
            firsts["theirs"].append(first_s)
            firsts["ours"].append(our_first_s)
            keys["theirs"] += own
            keys["ours"] += our_keys
    return [
        (f"{name}: first frame", f"{statistics.median(firsts['theirs']) * 1000:.0f} ms", ""),
        (f"{name}: that of agentmon's board is so many times as fast", _times(firsts), "≥ 5"),
        (f"{name}: key → repaint", percentiles(keys["theirs"]), ""),
        (f"{name}: that of agentmon's board is so many times as fast", _times(keys), "≥ 3"),
    ]


def _find_kanban_tui(folder: Path) -> Path | None:
    named = os.environ.get("AGENTMON_KANBAN_TUI")
    if named:
        return Path(named)
    venv = folder / "kanban-tui"
    try:
        for argv in (
            [sys.executable, "-m", "venv", str(venv)],
            [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "kanban-tui"],
        ):
            subprocess.run(argv, check=True, capture_output=True, timeout=_INSTALL_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return None
    return venv / "bin" / "ktui"


def _fill_kanban_tui(folder: Path, command: Path) -> dict[str, str]:
    """Make its board with its own commands, fill it as those do, and return the environment to start it in."""
    home = folder / "kanban-tui-home"
    environ = {
        **{name: value for name, value in environment(folder, home).items() if name != "PYTHONPATH"},
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
    }
    home.mkdir()
    for words in (("board", "create", "--set-active", "measured"), ("task", "create", "title of 1")):
        subprocess.run([command, *words], env=environ, check=True, capture_output=True, timeout=_INSTALL_TIMEOUT_S)
    connection = sqlite3.connect(home / "data" / "kanban_tui" / "kanban_tui.db")
    with connection:
        columns = [
            row[0] for row in connection.execute("SELECT column_id FROM columns WHERE visible ORDER BY position")
        ]
        created_at = connection.execute("SELECT creation_date FROM tasks").fetchone()[0]
        connection.executemany(
            "INSERT INTO tasks (title, \"column\", description, creation_date, position) VALUES (?, ?, '', ?, ?)",
            [
                (f"title of {number}", columns[number % len(columns)], created_at, number)
                for number in range(2, COMPARED + 1)
            ],
        )
    connection.close()
    return environ


def _times(seconds: Mapping[str, list[float]]) -> str:
    return f"{statistics.median(seconds['theirs']) / statistics.median(seconds['ours']):.1f}"


def percentiles(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, len(ordered) * _P95 // 100)]
    return f"{statistics.median(ordered) * 1000:.1f} ms · {p95 * 1000:.1f} ms"


if __name__ == "__main__":
    for row in measure():
        print(" | ".join(row))
