"""The lock of a person's index, held as git holds it, so that no other git changes what is checked out meanwhile.

It is a link whose target says whose it is, so that what a kill leaves is known to be ours. The locks of refs are git's
own: what a git of ours left that was killed is known by its time, since one that lives holds them for an instant.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import ConflictError, GitError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Self

    from agentmon.workspaces.repositories import Repository


_INSTANT_S: Final = 1.0
"""Longer than any git that lives holds the lock of a ref."""


class IndexLock:
    """The lock of one working tree's index.

    Args:
        repository: Of the working tree.
        mark: Says whose lock it is.
    """

    def __init__(self, repository: Repository, mark: str) -> None:
        self._index = repository.index
        self._lock = repository.git_dir / "index.lock"
        self._new = repository.git_dir / mark
        self._mark = mark

    def __enter__(self) -> Self:
        """Take it.

        Raises:
            ConflictError: Another git has it.
            GitError: It cannot be made.
        """
        try:
            self._lock.symlink_to(self._mark)
        except FileExistsError as error:
            if not self.is_held:
                raise ConflictError(
                    f"another git works in {self._index.parent}",
                    hint=f"try again when it has ended; one that crashed leaves {self._lock}",
                ) from error
        except OSError as error:
            raise GitError(f"{self._lock} cannot be made: {error.strerror}") from error
        return self

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        self.release()

    @property
    def is_held(self) -> bool:
        """Whether it is held under this mark, by this process or by one that was killed."""
        try:
            return str(self._lock.readlink()) == self._mark
        except OSError:
            return False

    def install(self, index: Path) -> None:
        """Put a copy of an index in the place of the one that is locked, whole or not at all."""
        shutil.copy2(index, self._new)
        if self._index.exists():
            shutil.copymode(self._index, self._new)
        descriptor = os.open(self._new, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._new.replace(self._index)

    def release(self) -> None:
        """Give it back where it is ours."""
        self._new.unlink(missing_ok=True)
        if self.is_held:
            self._lock.unlink()


def copy_index(repository: Repository, to: Path) -> None:
    """Copy the index of a working tree, with its time, by which git tells what may have changed unseen.

    One without any entry may have none.
    """
    to.unlink(missing_ok=True)
    if repository.index.exists():
        shutil.copy2(repository.index, to)


def locks_of(repository: Repository, branch: str, *, deletes: bool = False) -> list[Path]:
    """Return the locks that a git takes which moves a branch, and HEAD with it, or deletes the branch."""
    common = repository.common_dir
    beside = [common / "packed-refs.lock", common / "config.lock"] if deletes else [repository.git_dir / "HEAD.lock"]
    return [common / "refs" / "heads" / f"{branch}.lock", *beside]


def remove_left_locks(locks: Iterable[Path], *, since: float) -> None:
    """Remove the locks that a git of ours left which was killed; takes a second where there are any.

    Args:
        locks: Where it may have left one.
        since: When a file was written before it began, by the clock of the disk; older locks are somebody else's.
    """
    left = {}
    for lock in locks:
        with contextlib.suppress(OSError):
            found = lock.lstat()
            if found.st_mtime >= since:
                left[lock] = found
    if left:
        time.sleep(_INSTANT_S)
    for lock, found in left.items():
        with contextlib.suppress(OSError):
            now = lock.lstat()
            if (now.st_ino, now.st_mtime_ns) == (found.st_ino, found.st_mtime_ns):
                lock.unlink()
