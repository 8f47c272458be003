"""Files: what is kept of one, and how one is written so that a kill leaves the old or the new one."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from agentmon.domain.errors import NoRoomError, SnapshotError
from agentmon.domain.plain_text import plain_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PLAIN: Final = 0o100644
EXECUTABLE: Final = 0o100755
"""All that git knows of the permissions of a file: whether its owner may run it."""
LINK: Final = 0o120000
NOT_KEPT: Final = 0o160000
"""The mode of an entry that stands for a file whose content is not kept; its id says whether it is the same."""


class FileState(NamedTuple):
    """What is at a path: type and permission bits, and the id of the content."""

    mode: int
    """As the system has it; ``LINK`` for a link, ``NOT_KEPT`` for content that is not kept."""
    ref: str

    @property
    def is_regular(self) -> bool:
        """Whether it is a file whose content is kept."""
        return stat.S_IFMT(self.mode) == stat.S_IFREG


def kept_mode(mode: int) -> int:
    """Return what is kept of the mode of a file or link: its type, and a file's permission bits."""
    return LINK if stat.S_ISLNK(mode) else stat.S_IFREG | stat.S_IMODE(mode)


def blob_id(content: bytes, hash_name: str) -> str:
    """Return the id that git gives to a content."""
    return hashlib.new(hash_name, b"blob %d\0" % len(content) + content).hexdigest()


def git_mode(mode: int) -> int:
    """Return the mode of a file or link as git knows it."""
    if not stat.S_ISREG(mode):
        return LINK if stat.S_ISLNK(mode) else mode
    return EXECUTABLE if mode & 0o100 else PLAIN


def as_replaced(state: FileState, by: FileState) -> FileState:
    """Return what a file becomes for git, with the permissions that it has, but for who may run it."""
    if not (state.is_regular and by.is_regular):
        return by
    readers = stat.S_IMODE(state.mode)
    # Whoever may read it may run it.
    runs = 0o100 | (0o111 & (readers >> 2)) if by.mode & 0o100 else 0
    return by._replace(mode=stat.S_IFREG | (readers & ~0o111) | runs)


class FolderModes(NamedTuple):
    """The modes of the regular files of a folder: of most by what git knows of them, of the others by their paths."""

    plain: int = PLAIN
    executable: int = EXECUTABLE
    others: Mapping[str, int] = MappingProxyType({})

    def mode_of(self, path: str, known_to_git: int) -> int:
        """Return the mode of a file with its permission bits; of what is no regular file, that which git has."""
        usual = {PLAIN: self.plain, EXECUTABLE: self.executable}.get(known_to_git)
        return known_to_git if usual is None else self.others.get(path, usual)


def leads_nowhere(path: str | Path) -> bool:
    """Return whether nothing can be at a path, for the links or the length of it."""
    try:
        os.lstat(path)
    except OSError as error:
        return error.errno in {errno.ELOOP, errno.ENAMETOOLONG}
    return False


@contextmanager
def refusals_told(folder: Path) -> Iterator[None]:
    """Raise what the system refuses as an error for a person.

    Args:
        folder: What it is about where the system names nothing.

    Raises:
        SnapshotError: Something cannot be read or written.
    """
    try:
        yield
    except OSError as error:
        place = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(folder)
        is_full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        raise (NoRoomError if is_full else SnapshotError)(
            f"{plain_line(place)} cannot be read or written: {error.strerror}",
            hint="Check permissions and free space there, then try again.",
        ) from error


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
