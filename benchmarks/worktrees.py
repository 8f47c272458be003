"""A worktree of a repository of 50,000 files, as agentmon makes it, beside a plain ``git worktree add``."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.domain.ids import TaskId, WorkspaceId, WorktreeId, new_id
from agentmon.domain.worktrees import Worktree, WorktreePlaces, branch_name
from agentmon.workspaces import worktree_filling, worktrees

if TYPE_CHECKING:
    from collections.abc import Sequence

FILES = 50_000
TIMES = 3
GOAL = 1.1


def measure() -> list[tuple[str, str, str]]:
    """Return rows of name, what was measured, and the goal."""
    with tempfile.TemporaryDirectory(prefix="agentmon-bench-") as folder:
        plain_s, own_s = _compare(Path(folder))
    ratio = statistics.median(own / plain for own, plain in zip(own_s, plain_s, strict=True))
    return [
        (
            f"worktree of {FILES:,} files, {TIMES} times in turn with `git worktree add`",
            f"{statistics.median(own_s):.2f} s, {ratio:.2f} × plain ({statistics.median(plain_s):.2f} s)",
            f"≤ {GOAL} ×",
        )
    ]


def _compare(folder: Path) -> tuple[Sequence[float], Sequence[float]]:
    source = folder / "source"
    for number in range(FILES):
        path = source / f"{number % 100}" / f"{number // 100 % 10}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"file {number}\n" * 20)
    _git(source, "init", "--quiet")
    _git(source, "add", "--all")
    _git(source, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", "all")
    plain_s, own_s = [], []
    for number in range(TIMES):
        began_at = time.perf_counter()
        _git(source, "worktree", "add", "--quiet", "-b", f"plain-{number}", str(folder / f"plain-{number}"))
        plain_s.append(time.perf_counter() - began_at)
        began_at = time.perf_counter()
        _make(folder, source, number)
        own_s.append(time.perf_counter() - began_at)
    return plain_s, own_s


def _make(folder: Path, source: Path, number: int) -> None:
    places = WorktreePlaces(folder=str(folder / "worktrees"))
    claimed = Worktree(
        id=WorktreeId(new_id()),
        workspace_id=WorkspaceId(new_id()),
        task_id=TaskId(new_id()),
        task_number=number,
        source=str(source),
        path=places.path_of(str(source), number=number, title="Mend the door"),
        branch=branch_name(places.branch_template, number=number, title="Mend the door"),
        created_at=datetime.now(UTC),
    )
    planned = worktrees.plan(claimed, str(source)).worktree
    with worktrees.held(planned) as lock:
        worktrees.make(planned, lock=lock, say=lambda _: None)
        worktree_filling.fill_submodules(Path(planned.path), source, lock=lock, say=lambda _: None)
        worktree_filling.bring_along(Path(planned.path), source, say=lambda _: None)


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
