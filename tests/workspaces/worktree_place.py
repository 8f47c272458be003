"""A repository on the disk, and agentmon's folder of worktrees beside it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from agentmon.domain.ids import TaskId, WorkspaceId, WorktreeId, new_id
from agentmon.domain.worktrees import Worktree, WorktreePlaces, WorktreeStatus, branch_name
from agentmon.workspaces import worktrees

if TYPE_CHECKING:
    from pathlib import Path

_ENVIRONMENT: Final = {
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann", "GIT_COMMITTER_EMAIL": "ann@example.org",
}  # fmt: skip


def git(folder: Path | str, *words: str) -> str:
    """Return what the person's own git prints in a folder."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *words]
    done = subprocess.run(
        command, cwd=folder, env=environment | _ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def a_repository(folder: Path, **files: str) -> Path:
    """Make a repository with one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet")
    write(folder, **(files or {"readme": "hello\n"}))
    return commit(folder, "first")


def write(folder: Path, **files: str) -> None:
    """Write files; two underscores stand for a slash."""
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commit(folder: Path, subject: str) -> Path:
    """Commit all that is in a folder."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", subject)
    return folder


@dataclass
class WorktreePlace:
    """Makes and removes as the worker and the command do."""

    folder: Path
    said: list[str] = field(default_factory=list)

    def row(self, source: Path, *, number: int = 12, title: str = "Mend the door", base: str | None = None) -> Worktree:
        """Return what a claim writes down."""
        places = WorktreePlaces(folder=str(self.folder))
        return Worktree(
            id=WorktreeId(new_id()),
            workspace_id=WorkspaceId(new_id()),
            task_id=TaskId(new_id()),
            task_number=number,
            source=str(source),
            path=places.path_of(str(source), number=number, title=title),
            branch=branch_name(places.branch_template, number=number, title=title),
            base_branch=base,
            created_at=datetime.now(UTC),
        )

    def made(self, source: Path, *, folder: Path | None = None, number: int = 12, base: str | None = None) -> Worktree:
        """Return a worktree that is ready."""
        planned = worktrees.plan(self.row(source, number=number, base=base), str(folder or source)).worktree
        return self.make(planned)

    def make(self, planned: Worktree) -> Worktree:
        """Make what was planned."""
        with worktrees.held(planned) as lock:
            worktrees.make(planned, lock=lock, say=self.said.append)
        return replace(planned, status=WorktreeStatus.READY)

    def remove(self, worktree: Worktree) -> str | None:
        """Remove it, whatever would be lost."""
        with worktrees.held(worktree) as lock:
            return worktrees.remove(worktree, folder=self.folder, lock=lock)
