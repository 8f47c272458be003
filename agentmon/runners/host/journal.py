"""The writer of ``journal.jsonl``: each entry is one complete line, then the worker is told."""

from __future__ import annotations

import _socket
import os
import time

from agentmon.runners.host import documents
from agentmon.runners.host.reserve import Reserve

_MAX_WAITING_BYTES = 4 * 1024 * 1024
"""When more waits for space, what is decoration is left out."""
_DECORATION = frozenset({"activity", "diff", "message", "notice", "output", "plan"})
"""Types of entries and kinds of events on which neither how a run ends depends nor what a person is asked."""


class Journal:
    """Writes numbered entries; keeps those that the full disk does not take, in order, until it does."""

    __slots__ = (
        "_execution_id",
        "_file",
        "_left_out",
        "_next_number",
        "_notify_socket",
        "_socket",
        "_waiting",
        "_waiting_bytes",
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
        if os.fstat(self._file).st_size:
            os.close(self._file)
            raise FileExistsError
        self._next_number = 1
        self._waiting: list[bytes] = []
        """Lines that the disk has not taken; of the first one, what it has not taken."""
        self._waiting_bytes = 0
        self._left_out = 0
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

    @property
    def size_bytes(self) -> int:
        """How long the journal is with what still waits."""
        return os.fstat(self._file).st_size + self._waiting_bytes

    def add(self, entry_type: str, **fields: object) -> None:
        """Append one entry; when the disk is full even without the reserve, keep it for ``retry``.

        When too much waits already, decoration is left out; ``left_out`` then says of how many entries.
        """
        event = fields.get("event")
        kind = event.get("kind") if isinstance(event, dict) else entry_type
        if self._waiting_bytes > _MAX_WAITING_BYTES and kind in _DECORATION:
            self._left_out += 1
            return
        if self._left_out:
            self._keep("left_out", {"entries": self._left_out})
            self._left_out = 0
        self._keep(entry_type, fields)
        self.retry()

    def retry(self) -> None:
        """Write what waits, as far as the disk takes it."""
        has_written = False
        while self._waiting:
            try:
                written = os.write(self._file, self._waiting[0])
            except OSError:
                if not self.reserve.release_piece():
                    break
                continue
            self._waiting_bytes -= written
            if written < len(self._waiting[0]):
                self._waiting[0] = self._waiting[0][written:]
            else:
                del self._waiting[0]
                has_written = True
        if has_written:
            self._notify()

    def close(self) -> None:
        """Close what is open; what still waits is lost."""
        os.close(self._file)
        self._socket.close()

    def _keep(self, entry_type: str, fields: dict[str, object]) -> None:
        entry = {"n": self._next_number, "at_ms": time.time_ns() // 1_000_000, "type": entry_type, **fields}
        self._next_number += 1
        self._waiting.append(documents.encode(entry).encode() + b"\n")
        self._waiting_bytes += len(self._waiting[-1])

    def _notify(self) -> None:
        if self._notify_socket:
            try:
                self._socket.sendto(self._execution_id, self._notify_socket)
            except OSError:
                pass  # nobody listens; the worker polls too
