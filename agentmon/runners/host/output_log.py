"""The file of what the program wrote: appended byte for byte, cut in the middle at its cap, patient on a full disk."""

from __future__ import annotations

import errno
import os

_COPY_BYTES = 256 * 1024


class OutputLog:
    """``output.log``, whose size stays below the cap plus one marker line and one ``append``.

    At the cap the file becomes its first half, a line that says how much was left out, and its last quarter.
    """

    __slots__ = (
        "_cap_bytes",
        "_file",
        "_marker_bytes",
        "_path",
        "_size_bytes",
        "_unwritten",
        "first_bytes",
        "left_out_bytes",
    )

    def __init__(self, path: str, cap_bytes: int, *, goes_on: bool = False) -> None:
        """Create the file, or go on behind what it holds; ``cap_bytes`` 0 means no cap.

        Raises:
            OSError: It cannot be created.
        """
        self._path = path
        self._cap_bytes = cap_bytes
        begin = 0 if goes_on else os.O_TRUNC
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | begin | os.O_CLOEXEC, 0o600)
        self._size_bytes = self.first_bytes = os.fstat(self._file).st_size
        self._marker_bytes = 0
        self._unwritten = b""
        self.left_out_bytes = 0

    @property
    def is_blocked(self) -> bool:
        """Whether bytes wait that the disk did not take."""
        return bool(self._unwritten)

    def append(self, chunk: bytes) -> bool:
        """Append the bytes; ``False`` when the disk did not take all of them and the rest waits for ``retry``."""
        self._unwritten = self._unwritten + chunk if self._unwritten else chunk
        return self.retry()

    def retry(self) -> bool:
        """Write what waits; ``False`` when some of it still has to."""
        while self._unwritten:
            try:
                written = self._write_at(self._file, self._unwritten, self._size_bytes)
            except OSError:
                return False
            self._size_bytes += written
            self._unwritten = self._unwritten[written:]
        if self._cap_bytes and self._size_bytes - self._marker_bytes >= self._cap_bytes:
            self._leave_out_middle()
        return True

    def give_up(self, further_bytes: int = 0) -> None:
        """Count what waits, and so many bytes beside it, as left out."""
        self.left_out_bytes += len(self._unwritten) + further_bytes
        self._unwritten = b""

    def _write_at(self, file: int, chunk: bytes, position: int) -> int:
        return os.pwrite(file, chunk, position)

    def _leave_out_middle(self) -> None:
        head_bytes = self._cap_bytes // 2
        tail_bytes = self._cap_bytes // 4
        left_out_bytes = self.left_out_bytes + self._size_bytes - self._marker_bytes - head_bytes - tail_bytes
        marker = f"\n[agentmon: {left_out_bytes:,} bytes left out here]\n".encode()
        try:
            try:
                self._cut_into_new_file(head_bytes, marker, tail_bytes)
            except OSError:
                self._cut_in_place(head_bytes, marker, tail_bytes)
        except OSError:
            return  # tried again at the next append
        self.left_out_bytes = left_out_bytes
        self._marker_bytes = len(marker)
        self._size_bytes = head_bytes + len(marker) + tail_bytes

    def _cut_into_new_file(self, head_bytes: int, marker: bytes, tail_bytes: int) -> None:
        new_path = self._path + ".new"
        new_file = os.open(new_path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            self._copy(new_file, 0, 0, head_bytes)
            self._write_whole(new_file, marker, head_bytes)
            self._copy(new_file, self._size_bytes - tail_bytes, head_bytes + len(marker), tail_bytes)
            os.rename(new_path, self._path)
        except OSError:
            os.close(new_file)
            self._unlink(new_path)
            raise
        os.close(self._file)
        self._file = new_file

    def _cut_in_place(self, head_bytes: int, marker: bytes, tail_bytes: int) -> None:
        """Copy the tail over what is left out: head and tail themselves stay, so that each failure can be repeated."""
        tail_start = self._size_bytes - tail_bytes
        end = head_bytes + len(marker) + tail_bytes
        if end > tail_start:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._write_whole(self._file, marker, head_bytes)
        self._copy(self._file, tail_start, head_bytes + len(marker), tail_bytes)
        os.ftruncate(self._file, end)

    def _copy(self, target: int, position: int, target_position: int, size_bytes: int) -> None:
        """Copy bytes of the file to where they are not."""
        while size_bytes:
            copied = self._copy_inside_kernel(target, position, target_position, size_bytes)
            if not copied:
                piece = os.pread(self._file, min(size_bytes, _COPY_BYTES), position)
                if not piece:
                    message = "the log was cut from outside"
                    raise OSError(message)
                self._write_whole(target, piece, target_position)
                copied = len(piece)
            position += copied
            target_position += copied
            size_bytes -= copied

    def _copy_inside_kernel(self, target: int, position: int, target_position: int, size_bytes: int) -> int:
        """Return how many bytes were copied without passing through this process; 0 where that cannot be done."""
        if target == self._file or not hasattr(os, "copy_file_range"):
            return 0
        try:
            return os.copy_file_range(self._file, target, size_bytes, position, target_position)
        except OSError:
            return 0

    def _write_whole(self, file: int, chunk: bytes, position: int) -> None:
        while chunk:
            written = self._write_at(file, chunk, position)
            chunk = chunk[written:]
            position += written

    def _unlink(self, path: str) -> None:
        try:
            os.unlink(path)
        except OSError:
            pass
