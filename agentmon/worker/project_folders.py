"""To which project a folder belongs: the repository around it; a worktree belongs to the one that it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from agentmon.paths import is_repository
from agentmon.workspaces import repositories

_MAX_POINTER_BYTES: Final = 4_096
_WORKTREES: Final = "worktrees"


class ProjectFolders:
    """Finds projects, and looks at each folder once; one that is gone is a project of its own."""

    def __init__(self) -> None:
        self._projects: dict[str, str] = {}

    def project_of(self, folder: str) -> str:
        """Return the absolute path of the project of a folder; the folder itself when it lies in no repository."""
        project = self._projects.get(folder)
        if project is None:
            project = self._projects[folder] = find_project(folder)
        return project


def find_repository(folder: str) -> str | None:
    """Return the top of the working tree around a folder, links followed; None where none has a commit."""
    try:
        start = Path(folder).resolve()
        top = next((place for place in (start, *start.parents) if is_repository(place)), None)
        found = None if top is None else repositories.find_repository(top)
        return str(top) if found is not None and found.has_commit() else None
    except (OSError, ValueError, RuntimeError):
        return None


def find_project(folder: str) -> str:
    """Return what ``ProjectFolders.project_of`` does; looks at the disk each time."""
    start = Path(folder)
    if not start.is_absolute():
        return folder
    try:
        for candidate in (start, *start.parents):
            if is_repository(candidate):
                mark = candidate / ".git"
                return str(candidate) if mark.is_dir() else _main_repository(candidate, mark)
    except (OSError, ValueError):
        pass
    return folder


def _main_repository(worktree: Path, mark: Path) -> str:
    """Return the repository whose worktree this is; a submodule stays what it is.

    Source: gitrepository-layout(5): ``.git`` of a worktree is a file that names ``<repository>/.git/worktrees/<name>``.
    """
    with mark.open("rb") as opened:
        words = opened.read(_MAX_POINTER_BYTES).decode("utf-8", "replace").partition("gitdir:")
    target = Path(words[2].strip())
    git_folder = target if target.is_absolute() else worktree / target
    if git_folder.parent.name == _WORKTREES and git_folder.parent.parent.name == ".git":
        return str(git_folder.parent.parent.parent.resolve())
    return str(worktree)
