"""A little disk space set aside, given up in pieces when the disk is full so that the last journal lines still fit."""

from __future__ import annotations

import os

SIZE_BYTES = 64 * 1024
_PIECE_BYTES = 8 * 1024


class Reserve:
    """The file ``reserve`` of the execution folder."""

    __slots__ = ("_path", "_size_bytes")

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "reserve")
        self._size_bytes = 0

    def fill(self) -> bool:
        """Take the whole reserve, or what is missing of it; ``False`` when the disk has no room for it."""
        if self._size_bytes == SIZE_BYTES:
            return True
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file, 0, SIZE_BYTES)
            else:
                os.pwrite(file, bytes(SIZE_BYTES - self._size_bytes), self._size_bytes)
            self._size_bytes = os.fstat(file).st_size
        except OSError:
            os.ftruncate(file, self._size_bytes)
        finally:
            os.close(file)
        return self._size_bytes == SIZE_BYTES

    def release_piece(self) -> bool:
        """Give a piece back to the disk; ``False`` when nothing is left to give."""
        if self._size_bytes <= 0:
            return False
        self._size_bytes -= _PIECE_BYTES
        try:
            os.truncate(self._path, self._size_bytes)
        except OSError:
            self._size_bytes = 0
            return False
        return True

    def drop(self) -> None:
        """Delete the file."""
        self._size_bytes = 0
        try:
            os.unlink(self._path)
        except OSError:
            pass
