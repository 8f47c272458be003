"""A mark that an open app leaves, so that the next one knows when it was ended without a word: kill -9, a power cut."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from agentmon.private_folders import make_private_folder

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

_PATTERN: Final = "app-*.mark"


class AppMark:
    """A locked file; the end of the process lets the lock go, however it ends."""

    def __init__(self, file: Path, descriptor: int) -> None:
        self._file = file
        self._descriptor = descriptor

    @classmethod
    def leave(cls, run_dir: Path) -> Self | None:
        """Return the mark of this process; None where none can be made, as on a full disk."""
        file = run_dir / f"app-{os.getpid()}.mark"
        try:
            make_private_folder(run_dir)
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        mark = cls(file, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # An empty one is just being made.
            os.pwrite(descriptor, b"open\n", 0)
        except OSError:
            mark.remove()
            return None
        return mark

    def remove(self) -> None:
        """Say that the app ended well."""
        with suppress(OSError):
            self._file.unlink()
        os.close(self._descriptor)


def take_unclean_ends(run_dir: Path) -> int:
    """Return how many apps were ended without a word since somebody last asked."""
    count = 0
    for file in run_dir.glob(_PATTERN):
        with suppress(OSError):
            descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(descriptor).st_size:
                    file.unlink()
                    count += 1
            finally:
                os.close(descriptor)
    return count
