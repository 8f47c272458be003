"""Commands: from ``control.jsonl``, and from the FIFO ``wake``, which needs no space on the disk."""

from __future__ import annotations

import os

from agentmon.runners.host import documents

_MAX_READ_BYTES = 8 * 1024 * 1024
"""More than any message has; a longer line is passed over."""
_MAX_WOKEN_BYTES = 256 * 1024


class Command:
    """One command; ``kind`` is whatever its ``type`` says, ``document`` all of it."""

    __slots__ = ("command_id", "document", "kind")

    def __init__(self, command_id: str, kind: str, document: dict[str, object]) -> None:
        self.command_id = command_id
        self.kind = kind
        self.document = document


class ControlChannel:
    """Where commands come in. Each command id is returned once, however often and wherever it was written."""

    __slots__ = ("_offset", "_path", "_seen_ids", "_wake_path", "_woken_by", "wake_file")

    def __init__(self, folder: str) -> None:
        """Make the FIFO; without one (a full disk) commands are found a second later."""
        self._path = os.path.join(folder, "control.jsonl")
        self._wake_path = os.path.join(folder, "wake")
        self._offset = 0
        self._seen_ids: set[str] = set()
        self._woken_by = b""
        self.wake_file: int | None = None
        try:
            try:
                os.mkfifo(self._wake_path, 0o600)
            except FileExistsError:
                # Left by a host that was killed, or no FIFO at all, which would always be readable and never empty.
                os.unlink(self._wake_path)
                os.mkfifo(self._wake_path, 0o600)
            # Also open for writing, so that it never reads as ended when a writer goes.
            self.wake_file = os.open(self._wake_path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            pass

    def clear_wake(self) -> None:
        """Empty the FIFO; ``read_commands`` returns what stood in it."""
        try:
            while self.wake_file is not None:
                self._woken_by = (self._woken_by + os.read(self.wake_file, 4096))[-_MAX_WOKEN_BYTES:]
        except OSError:
            pass

    def read_commands(self) -> list[Command]:
        """Return the commands in complete lines that were not returned before; anything else is passed over."""
        told, _, self._woken_by = self._woken_by.rpartition(b"\n")
        commands = []
        for line in [*self._read_lines(), *told.split(b"\n")]:
            command = _parse(line)
            if command is not None and command.command_id not in self._seen_ids:
                self._seen_ids.add(command.command_id)
                commands.append(command)
        return commands

    def _read_lines(self) -> list[bytes]:
        try:
            if os.stat(self._path).st_size <= self._offset:
                return []
            with open(self._path, "rb", buffering=0) as file:
                file.seek(self._offset)
                chunk = file.read(_MAX_READ_BYTES) or b""
        except OSError:
            return []
        complete, line_feed, _ = chunk.rpartition(b"\n")
        if not line_feed and len(chunk) < _MAX_READ_BYTES:
            return []
        self._offset += len(complete) + 1 if line_feed else len(chunk)
        return complete.split(b"\n")

    def close(self) -> None:
        """Remove the FIFO."""
        try:
            if self.wake_file is not None:
                os.close(self.wake_file)
            os.unlink(self._wake_path)
        except OSError:
            pass


def _parse(line: bytes) -> Command | None:
    try:
        document = documents.parse(line.decode())
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    command_id, kind = document.get("id"), document.get("type")
    if not isinstance(command_id, str) or not isinstance(kind, str):
        return None
    return Command(command_id, kind, document)
