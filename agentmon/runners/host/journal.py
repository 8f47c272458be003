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
_SAID = frozenset({"diff", "message", "notice", "plan"})
_DONE = frozenset({"tool_finished", "tool_started"})
"""Kinds of events of which a run may have a few times as many bytes as of its output, twice that of what it does."""
_MAX_OF_CAP = 5
_FULL = "more was said than is kept of a run; from here on only what it does, costs and asks is recorded"


class Journal:
    """Writes numbered entries; keeps those that the full disk does not take, in order, until it does."""

    __slots__ = (
        "_added_bytes",
        "_cap_bytes",
        "_execution_id",
        "_file",
        "_is_capped",
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
        self._added_bytes = 0
        self._cap_bytes = 0
        self._is_capped = False
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

    def bound(self, output_bytes: int) -> None:
        """Take no more than a few times as much as this cap of the output; 0 is no bound."""
        self._cap_bytes = _MAX_OF_CAP * output_bytes

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

        When too much waits already, or the run has said more than is kept of one, decoration is left out; ``left_out``
        then says of how many entries. A run that does several times more than that is no longer followed at each step.
        """
        event = fields.get("event")
        kind = event.get("kind") if isinstance(event, dict) else entry_type
        is_over = self._cap_bytes > 0 and self._added_bytes > self._cap_bytes
        if is_over and not self._is_capped:
            self._is_capped = True
            self._keep("agent_event", {"event": {"kind": "notice", "level": "warning", "text": _FULL, "topic": None}})
        is_flood = is_over and (kind in _SAID or (kind in _DONE and self._added_bytes > 2 * self._cap_bytes))
        if is_flood or (kind in _DECORATION and self._waiting_bytes > _MAX_WAITING_BYTES):
            self._left_out += 1
            return
        if self._left_out and (not is_over or entry_type == "ended"):
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
        self._added_bytes += len(self._waiting[-1])

    def _notify(self) -> None:
        if self._notify_socket:
            try:
                self._socket.sendto(self._execution_id, self._notify_socket)
            except OSError:
                pass  # nobody listens; the worker polls too
