"""When the bytes of a log were written, as far as the host reported it."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class LogTimes:
    """Reports of how many bytes had come at which moment; the host makes one every 0.5 to 2 s while output comes.

    Args:
        reports: Milliseconds since 1970 and the bytes written by then, oldest first.
    """

    def __init__(self, reports: Iterable[tuple[int, int]]) -> None:
        self._moments = array("q")
        self._bytes = array("q")
        self.add(reports)

    def add(self, reports: Iterable[tuple[int, int]]) -> None:
        """Take later reports."""
        for moment_ms, byte_count in reports:
            # A report without new bytes tells nothing; a clock that was set back must not break the order.
            if byte_count > (self._bytes[-1] if self._bytes else 0):
                moment_ms = max(moment_ms, self._moments[-1] if self._moments else moment_ms)  # noqa: PLW2901
                self._moments.append(moment_ms)
                self._bytes.append(byte_count)

    @property
    def first(self) -> datetime | None:
        """When the first output was reported; None without any."""
        return _moment(self._moments[0]) if self._moments else None

    @property
    def newest(self) -> datetime | None:
        """When the newest output was reported; None without any."""
        return _moment(self._moments[-1]) if self._moments else None

    def moment_at(self, offset: int, *, size: int) -> datetime | None:
        """Return when the output at ``offset`` of a log of ``size`` bytes had come, up to 2 s late; None if unknown."""
        index = bisect_right(self._bytes, self._written(offset, size))
        return _moment(self._moments[index]) if index < len(self._moments) else None

    def offset_at(self, moment: datetime, *, size: int) -> int:
        """Return where in a log of ``size`` bytes the output begins that came at the moment or after it.

        Where a capped log left bytes out, what was written meanwhile is the place where they are missing.
        """
        index = bisect_left(self._moments, int(moment.timestamp() * 1000))
        written = self._bytes[index - 1] if index else 0
        return self._in_file(written, size)

    def _in_file(self, written: int, size: int) -> int:
        total = self._bytes[-1] if self._bytes else 0
        if total <= size:
            return min(written, size)
        head_bytes = self._head_bytes(size)
        return written if written <= head_bytes else max(head_bytes, size - (total - written))

    def _written(self, offset: int, size: int) -> int:
        """Return how many bytes had been written before the one at ``offset``, those left out among them."""
        total = self._bytes[-1] if self._bytes else 0
        return offset if total <= size or offset < self._head_bytes(size) else total - (size - offset)

    @staticmethod
    def _head_bytes(size: int) -> int:
        # A capped log keeps half of its cap as the head; with a quarter or more behind it, half of the file at least.
        return size // 2


def _moment(moment_ms: int) -> datetime:
    return datetime.fromtimestamp(moment_ms / 1000, UTC)
