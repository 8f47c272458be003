"""What a run wrote outside of version control, as far as its tool calls name it: all else would be mostly noise."""

from __future__ import annotations

import hashlib
import os
import stat
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.workspaces.git import Git, joined, names
from agentmon.workspaces.repositories import find_repository, find_root

if TYPE_CHECKING:
    from collections.abc import Iterable

_CLOCK_LAG_S: Final = 1.0
"""Some file systems count whole seconds."""
_MOST_HASHED: Final = 64 << 20


def find_artifacts(folder: Path, targets: Iterable[str], *, since: float) -> tuple[str, ...]:
    """Return the files that were written outside of version control, absolute and without links on the way.

    Args:
        folder: In which the run works.
        targets: What its tool calls wrote: a path, or several with commas between them.
        since: When it began, in seconds since 1970.

    Raises:
        SnapshotError: The folder is gone, or git failed.
    """
    root = find_root(folder)
    inside: defaultdict[Path, dict[str, str]] = defaultdict(dict)
    found: set[str] = set()
    for name in {name for target in targets for name in (target, *target.split(", ")) if name and "\0" not in name}:
        named = Path(os.path.normpath(folder / name))
        path = Path(os.path.realpath(named.parent), named.name)
        if not _was_written(path, since):
            continue
        if path.is_relative_to(root):
            # A repository in it says itself what it ignores.
            top = next(above for above in path.parents if above == root or (above / ".git").exists())
            inside[top][path.relative_to(top).as_posix()] = str(path)
        else:
            found.add(str(path))
    for top, paths in inside.items():
        found |= {paths[path] for path in _ignored(top, paths)}
    return tuple(sorted(found))


def size_of(path: str) -> int | None:
    """Return the size of a file in bytes; None of one that is gone."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def sha256_of(path: str) -> str | None:
    """Return the SHA-256 of a file in hexadecimal digits; None of one that is gone, or over 64 MiB."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_HASHED:
                return None
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _was_written(path: Path, since: float) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_ctime >= since - _CLOCK_LAG_S


def _ignored(root: Path, paths: Iterable[str]) -> list[str]:
    """Return which files git leaves out; in a folder without a repository it is none."""
    repository, asked = find_repository(root), sorted(paths)
    if repository is None or not asked:
        return []
    git = Git(git_dir=repository.git_dir, work_tree=root, reads_settings_of_person=True, takes_paths_literally=False)
    return names(git.run("check-ignore", "-z", "--stdin", data=joined(asked), fine=(0, 1)))
