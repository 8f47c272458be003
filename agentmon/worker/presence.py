"""Whether a worker lives: a lock that it holds for its whole life, with its particulars in the locked file.

Cheap to import. A lock cannot be mistaken for that of a stranger, as a process number can.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.private_folders import make_private_folder

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self


_FILE_BYTES: Final = 512
_READER_PATIENCE_S: Final = 0.2
"""Whoever looks whether the lock is held holds it for a moment, which must not pass for another worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """What is known of the worker of this machine and database."""

    is_running: bool
    pid: int | None = None
    version: str | None = None
    revision: str | None = None
    """The schema that it reads and writes."""
    started_at: str | None = None
    """UTC, ISO 8601."""


class WorkerLock:
    """The worker's own hold on the lock; released by the end of the process, however it ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self.is_announced = False
        """Whether the particulars stand in the locked file."""

    @classmethod
    def take(cls, path: Path) -> Self | None:
        """Return the lock, or None when another worker holds it."""
        descriptor = _lock(path)
        return None if descriptor is None else cls(path, descriptor)

    def announce(self, *, version: str, started_at: str, revision: str = "") -> None:
        """Write the particulars of this process: from now on clients take the worker as ready.

        On a full disk that may not work; ``is_announced`` tells.
        """
        particulars = {
            "pid": os.getpid(),
            "version": version,
            "revision": revision,
            "started_at": started_at,
        }
        self.is_announced = _write(self._descriptor, json.dumps(particulars).encode())

    @property
    def is_in_place(self) -> bool:
        """Whether the locked file is the one that others find at its path."""
        try:
            found = self._path.stat()
        except OSError:
            return False
        own = os.fstat(self._descriptor)
        return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)

    def take_again(self) -> bool:
        """Lock the file that is at the path now, made anew when it is missing; return False when another worker has."""
        descriptor = _lock(self._path)
        if descriptor is None:
            return False
        os.close(self._descriptor)
        self._descriptor = descriptor
        self.is_announced = False
        return True

    def release(self) -> None:
        """Give the lock up."""
        _write(self._descriptor, b"")
        os.close(self._descriptor)


def _lock(path: Path) -> int | None:
    make_private_folder(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + _READER_PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return None
            time.sleep(_READER_PATIENCE_S / 10)
        else:
            _write(descriptor, b"")
            return descriptor


def _write(descriptor: int, particulars: bytes) -> bool:
    """Write over the whole file, which keeps its size, so that a disk that is full later does not matter."""
    try:
        return os.pwrite(descriptor, particulars.ljust(_FILE_BYTES), 0) == _FILE_BYTES
    except OSError:
        return False


def read_presence(lock_path: Path) -> WorkerInfo:
    """Return what the lock tells: ``pid`` is None while a worker is only starting."""
    try:
        descriptor = os.open(lock_path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return WorkerInfo(is_running=False)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return _particulars(os.pread(descriptor, _FILE_BYTES, 0))
        return WorkerInfo(is_running=False)
    finally:
        os.close(descriptor)


def _particulars(text: bytes) -> WorkerInfo:
    try:
        particulars = json.loads(text)
    except ValueError:
        return WorkerInfo(is_running=True)
    return WorkerInfo(
        is_running=True,
        pid=particulars.get("pid"),
        version=particulars.get("version"),
        revision=particulars.get("revision"),
        started_at=particulars.get("started_at"),
    )
