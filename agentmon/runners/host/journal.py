"""The writer of ``journal.jsonl``: each entry is one complete line in one write, then the worker is told."""

from __future__ import annotations

import _socket
import os
import time

from agentmon.runners.host import documents
from agentmon.runners.host.reserve import Reserve

_MAX_WAITING_LINES = 1000


class Journal:
    """Writes numbered entries; keeps those that the full disk does not take, in order, until it does."""

    __slots__ = (
        "_execution_id",
        "_file",
        "_next_number",
        "_notify_socket",
        "_size_bytes",
        "_socket",
        "_waiting",
        "reserve",
    )

    def __init__(self, folder: str) -> None:
        """Open the journal of the folder.

        Raises:
            FileExistsError: It already has entries: this execution was run before.
            OSError: It cannot be opened.
        """
        self._file = os.open(
            os.path.join(folder, "journal.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        self._size_bytes = os.fstat(self._file).st_size
        if self._size_bytes:
            os.close(self._file)
            raise FileExistsError
        self._next_number = 1
        self._waiting: list[bytes] = []
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._notify_socket = b""
        self._execution_id = b""
        self.reserve = Reserve(folder)

    def notify_at(self, notify_socket: str, execution_id: str) -> None:
        """Tell this socket of every entry from now on."""
        self._notify_socket = notify_socket.encode("utf-8", "surrogateescape")
        self._execution_id = execution_id.encode("utf-8", "surrogateescape")

    @property
    def is_behind(self) -> bool:
        """Whether entries wait for space on the disk."""
        return bool(self._waiting)

    def add(self, entry_type: str, **fields: object) -> None:
        """Append one entry; when the disk is full even without the reserve, keep it for ``retry``."""
        if len(self._waiting) >= _MAX_WAITING_LINES:
            return
        entry = {"n": self._next_number, "at_ms": time.time_ns() // 1_000_000, "type": entry_type, **fields}
        self._next_number += 1
        self._waiting.append(documents.encode(entry).encode() + b"\n")
        self.retry()

    def retry(self) -> None:
        """Write what waits, as far as the disk takes it."""
        has_written = False
        while self._waiting and self._write(self._waiting[0]):
            del self._waiting[0]
            has_written = True
        if has_written:
            self._notify()

    def close(self) -> None:
        """Close what is open; what still waits is lost."""
        os.close(self._file)
        self._socket.close()

    def _write(self, line: bytes) -> bool:
        while True:
            try:
                written = os.write(self._file, line)
            except OSError:
                written = 0
            if written == len(line):
                self._size_bytes += written
                return True
            if written:
                os.ftruncate(self._file, self._size_bytes)
            if not self.reserve.release_piece():
                return False

    def _notify(self) -> None:
        if self._notify_socket:
            try:
                self._socket.sendto(self._execution_id, self._notify_socket)
            except OSError:
                pass  # nobody listens; the worker polls too
