"""Waking the worker by datagram; a lost one costs no more than one poll."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

_DATAGRAM_MAX_BYTES = 256


def wake_worker(socket_path: Path, message: str = "") -> None:
    """Send the worker a word without waiting; that nobody listens is no error."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender, contextlib.suppress(OSError):
        sender.setblocking(False)
        sender.sendto(message.encode(), str(socket_path))


class WakeSocket:
    """The worker's end: bound at its path, read without waiting."""

    def __init__(self, socket_: socket.socket, path: Path) -> None:
        self._socket = socket_
        self._path = path
        self._identity = _identity(path)

    @classmethod
    def bind(cls, path: Path) -> Self:
        """Take the place of whatever an earlier worker left at the path."""
        path.unlink(missing_ok=True)
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        receiver.setblocking(False)
        receiver.bind(str(path))
        path.chmod(0o600)
        return cls(receiver, path)

    @property
    def is_in_place(self) -> bool:
        """Whether this is the socket at the path; a cleaner of old files may have taken it away."""
        return self._identity is not None and _identity(self._path) == self._identity

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._socket.fileno()

    def drain(self) -> set[str]:
        """Return the distinct messages that have arrived."""
        messages = set()
        while True:
            try:
                messages.add(self._socket.recv(_DATAGRAM_MAX_BYTES).decode("ascii", "replace"))
            except OSError:
                return messages

    def close(self) -> None:
        """Stop listening and remove the path, unless another worker's socket is there by now."""
        if self.is_in_place:
            self._path.unlink(missing_ok=True)
        self._socket.close()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
