"""Snapshots of 50,000 files, against ``git status`` in the same round; what they take, and a large comparison."""

from __future__ import annotations

import statistics
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from agentmon.workspaces.comparison import compare
from agentmon.workspaces.snapshots import SnapshotStore

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = 50_000
FOLDERS = 500
CHANGED = 100
COMPARED = 10_000
ROUNDS = 9
GOAL_UNCHANGED = 2.0
GOAL_CHANGED = 3.0
SMALL = 1_000
GOAL_KB = 10
GOAL_COMPARE_S = 3.0
_TEXT = "".join(f"line {number} of a file as long as many\n" for number in range(40))


def measure() -> list[tuple[str, str, str]]:
    """Return rows of name, what was measured, and the goal."""
    with TemporaryDirectory(prefix="agentmon-bench-") as scratch:
        folder = Path(scratch).resolve()
        root = _repository(folder / "repo", FILES)
        store = SnapshotStore(folder / "store")
        first_s = _seconds(lambda: store.take(root))
        unchanged = _ratio(store, root, changed=0)
        changed = _ratio(store, root, changed=CHANGED)
        before = store.take(root)
        _change(root, COMPARED, 1_000)
        large_s = _seconds(lambda: store.take(root))
        after = store.take(root)
        compare_s = _seconds(lambda: compare(store, before, after))
        small_kb = _growth_kb(folder)
    name = f"snapshot ÷ git status, {FILES:,} files"
    return [
        (f"{name}, unchanged", unchanged, f"≤ {GOAL_UNCHANGED:.1f}"),
        (f"{name}, {CHANGED} changed", changed, f"≤ {GOAL_CHANGED:.1f}"),
        (f"first snapshot of them · with {COMPARED:,} changed", f"{first_s:.2f} s · {large_s:.2f} s", ""),
        (f"comparison of {COMPARED:,} changed files", f"{compare_s:.2f} s", f"≤ {GOAL_COMPARE_S:g} s"),
        (f"store for a run of {SMALL:,} unchanged files", f"{small_kb:.1f} KB", f"≤ {GOAL_KB} KB"),
    ]


def _ratio(store: SnapshotStore, root: Path, *, changed: int) -> str:
    """Return the medians' ratio; both are measured by turns, in the same state of the folder."""
    status_s, snapshot_s = [], []
    for turn in range(ROUNDS):
        _change(root, changed, 2 * turn)
        status_s.append(_seconds(lambda: _git(root, "status", "--porcelain")))
        snapshot_s.append(_seconds(lambda: store.take(root)))
    status, snapshot = statistics.median(status_s), statistics.median(snapshot_s)
    return f"{snapshot / status:.2f} ({snapshot:.2f} s ÷ {status:.2f} s)"


def _growth_kb(folder: Path) -> float:
    root = _repository(folder / "small", SMALL)
    store = SnapshotStore(folder / "small store")
    store.take(root)
    size = _size(store.folder)
    # Before and after a run.
    store.take(root)
    store.take(root)
    return (_size(store.folder) - size) / 1_000


def _repository(root: Path, files: int) -> Path:
    for number in range(files):
        path = root / f"src/part{number % FOLDERS // 25}/module{number % FOLDERS}/file{number}.py"
        if number < FOLDERS:
            path.parent.mkdir(parents=True)
        path.write_text(f"{number}\n{_TEXT}", encoding="ascii")
    _git(root, "init", "-q")
    _git(root, "add", "-A")
    _git(root, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "first")
    return root


def _change(root: Path, count: int, turn: int) -> None:
    for number in range(count):
        path = root / f"src/part{number % FOLDERS // 25}/module{number % FOLDERS}/file{number}.py"
        path.write_text(f"{number}\nchanged in turn {turn}\n{_TEXT}", encoding="ascii")


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _git(root: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=root, check=True, stdout=subprocess.DEVNULL)


def _size(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))
