"""Files: what git knows of one, and how one is written so that a kill leaves the old or the new one."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


PLAIN: Final = 0o100644
EXECUTABLE: Final = 0o100755
LINK: Final = 0o120000
NOT_KEPT: Final = 0o160000
"""The mode of an entry that stands for a file whose content is not kept; its id says whether it is the same."""


class FileState(NamedTuple):
    """What is at a path: mode as git knows it, and the id of the content."""

    mode: int
    ref: str


def git_mode(mode: int) -> int:
    """Return the mode of a file as git knows it."""
    if stat.S_ISLNK(mode):
        return LINK
    return EXECUTABLE if mode & 0o100 else PLAIN


def private_folder(folder: Path) -> None:
    """Make a folder of the store, and those around it, for their owner alone, whatever the umask."""
    if not folder.is_dir():
        private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def private_file(path: Path) -> BinaryIO:
    """Return a file of the store, empty and open for writing, for its owner alone, whatever the umask."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    return os.fdopen(descriptor, "wb")


def replace_file(path: Path, content: bytes, *, times_ns: tuple[int, int] | None = None, lasts: bool = False) -> None:
    """Write a file of the store anew; whoever reads it finds all of the old or all of the new content.

    Args:
        path: The file; only one process at a time writes it.
        content: What it holds then.
        times_ns: Times of access and change to give it.
        lasts: Whether it has to survive a loss of power.
    """
    new = path.with_name(f"{path.name}.new")
    with private_file(new) as file:
        file.write(content)
        if lasts:
            file.flush()
            os.fsync(file.fileno())
    if times_ns is not None:
        os.utime(new, ns=times_ns)
    new.replace(path)
    if lasts:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make what was made, renamed and removed in a folder survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
