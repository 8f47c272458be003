"""A growing log file seen through offsets: display lines, a sparse line index, and nothing kept of its text.

A display line is a line of the file or, where a line is very long, a part of it. Where such a line is cut depends on
the bytes before the cut alone, so that reading forwards and backwards from anywhere agrees without looking for the
beginning of the line. A line that is rewritten again and again, as progress is, stays whole for longer, and only its
newest states are read.
"""

from __future__ import annotations

import os
import stat
import time
from array import array
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.logs.rewritten_lines import is_rewritten, whole_states

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

INDEX_BLOCK_BYTES: Final = 256 * 1024
"""One entry of the line index stands for so many bytes: 32 KiB of index for 1 GiB of log."""

CUT_GRID_BYTES: Final = 16 * 1024
"""Long lines are cut at multiples of this, when no line ends in the whole grid block before."""

MAX_LINE_BYTES: Final = 2 * CUT_GRID_BYTES + 3
"""No display line has more content; the three bytes keep a UTF-8 character whole."""

REWRITTEN_GRID_BYTES: Final = 128 * CUT_GRID_BYTES
"""Rewritten lines are cut at multiples of this, when no line ends in all of it before: they have twice as much."""

INDEX_SLICE_S: Final = 0.012
_READ_BYTES: Final = 64 * 1024
_NEAR_BYTES: Final = 4096
_UTF8_TAIL_BYTES: Final = 3
_CONTINUATION_BYTES: Final = range(0x80, 0xC0)  # RFC 3629, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One display line and where it stands in the file."""

    start: int
    """The offset of its first byte."""
    end: int
    """The offset of the display line after it; the line feed lies before it."""
    content: bytes
    """Its bytes without the line feed; of a long line that is rewritten, those of its newest states."""
    is_whole: bool
    """Whether it ends in a line feed; a cut line and the unfinished last line do not."""


class LogFile:
    """A follower of one file that may be missing, grow, be replaced, be cut short, or be deleted.

    It knows the file as it was at the last ``refresh``; nothing else looks at the file's size. All methods belong to
    one thread. A file that was deleted stays readable until ``close``.

    Attributes:
        path: The file, which need not exist.
        size: How many bytes it had at the last refresh; 0 when there is none.
        generation: Counts how often the text before ``size`` became another one; offsets of an earlier generation
            mean nothing.
        problem: Why an existing file cannot be read, for a person; empty when it can or when there is none.
        is_detached: Whether what is read has no name any more: it was removed, or cannot be read where it was.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.generation = 0
        self.problem = ""
        self.is_detached = False
        self._descriptor = -1
        self._identity: tuple[int, int] | None = None
        self._window = b""
        self._window_start = 0
        self._line_feeds = array("Q")
        self._indexed_bytes = 0
        self._indexed_line_feeds = 0

    def __enter__(self) -> Self:
        self.refresh()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; the next refresh opens it again. Doing it twice is harmless."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self._identity = None
        self.is_detached = False
        self._begin_generation(0)

    def twin(self) -> LogFile:
        """Return another reader of the same bytes, also where their name is gone; whoever asked closes it."""
        twin = LogFile(self.path)
        if self._descriptor >= 0:
            twin._descriptor = os.dup(self._descriptor)
            twin._identity = self._identity
            twin.size, twin.generation = self.size, self.generation
        return twin

    def refresh(self) -> bool:
        """Look at the file again and return whether size, generation or problem changed."""
        before = (self.size, self.generation, self.problem)
        try:
            status = self.path.stat()
        except OSError as error:
            self._refresh_without_name(error)
        else:
            if (status.st_dev, status.st_ino) == self._identity:
                self.is_detached, self.problem = False, ""
                self._take_size(status.st_size)
            else:
                self._open()
        return before != (self.size, self.generation, self.problem)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` up to ``end``, fewer where the known size or the file ends."""
        start = max(0, start)
        end = min(end, self.size)
        if end <= start or self._descriptor < 0:
            return b""
        if self._window_start <= start and end <= self._window_start + len(self._window):
            return self._window[start - self._window_start : end - self._window_start]
        return self._read_file(start, end)

    def line_start(self, offset: int) -> int:
        """Return the start of the display line that holds the byte at ``offset``; the last one's beyond the end."""
        position = max(0, min(offset, self.size - 1))
        return self._start_before(position + 1)

    def lines_from(self, start: int, count: int) -> list[LogLine]:
        """Return up to ``count`` display lines from ``start`` on, which must be the start of one."""
        found: list[LogLine] = []
        while len(found) < count and 0 <= start < self.size:
            line = self._line_at(start)
            if line is None:
                break
            found.append(line)
            start = line.end
        return found

    def lines_before(self, end: int, count: int) -> list[LogLine]:
        """Return up to ``count`` display lines that come before ``end``, first to last.

        ``end`` must be the start of a display line or the size.
        """
        found: list[LogLine] = []
        end = min(end, self.size)
        while len(found) < count and end > 0:
            line = self._line_between(self._start_before(end), end)
            if line is None:
                break
            found.append(line)
            end = line.start
        found.reverse()
        return found

    @property
    def is_indexed(self) -> bool:
        """Whether the line index reaches the known end of the file."""
        return self._indexed_bytes >= self.size

    @property
    def indexed_share(self) -> float:
        """How much of the file the line index covers, from 0.0 to 1.0."""
        return min(1.0, self._indexed_bytes / self.size) if self.size else 1.0

    @property
    def line_count(self) -> int | None:
        """How many lines the file has, an unfinished last one included; None until it is indexed."""
        if not self.is_indexed:
            return None
        return self._indexed_line_feeds + int(self.size > 0 and self.read(self.size - 1, self.size) != b"\n")

    def index_more(self, budget_s: float = INDEX_SLICE_S) -> bool:
        """Extend the line index for about ``budget_s`` seconds and return whether it is complete."""
        deadline = time.monotonic() + budget_s
        buffer = bytearray(INDEX_BLOCK_BYTES)
        while self._indexed_bytes < self.size:
            wanted = min(self.size, (self._indexed_bytes // INDEX_BLOCK_BYTES + 1) * INDEX_BLOCK_BYTES)
            view = memoryview(buffer)[: wanted - self._indexed_bytes]
            count = self._read_into(view, self._indexed_bytes)
            if count == 0:
                # Cut short since the last refresh, which will start a new generation.
                return True
            self._indexed_line_feeds += buffer.count(b"\n", 0, count)
            self._indexed_bytes += count
            if self._indexed_bytes % INDEX_BLOCK_BYTES == 0:
                self._line_feeds.append(self._indexed_line_feeds)
            if time.monotonic() >= deadline:
                break
        return self.is_indexed

    def line_number(self, offset: int) -> int | None:
        """Return the number, counted from 1, of the line that holds ``offset``; None where the index is not yet."""
        if offset > self._indexed_bytes:
            return None
        block = max(0, offset) // INDEX_BLOCK_BYTES
        before = self._line_feeds[block - 1] if block else 0
        return 1 + before + self._read_file(block * INDEX_BLOCK_BYTES, offset).count(b"\n")

    def line_offset(self, number: int) -> int | None:
        """Return where line ``number`` (counted from 1) begins; None when the index knows no such line."""
        if number <= 1:
            return 0
        skipped = number - 1
        if skipped > self._indexed_line_feeds:
            return None
        block = bisect_left(self._line_feeds, skipped)
        left = skipped - (self._line_feeds[block - 1] if block else 0)
        start = block * INDEX_BLOCK_BYTES
        content = self._read_file(start, min(self.size, start + INDEX_BLOCK_BYTES))
        position = -1
        for _ in range(left):
            position = content.find(b"\n", position + 1)
            if position < 0:
                return None
        return start + position + 1

    def _open(self) -> None:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        try:
            descriptor = os.open(self.path, flags)
        except OSError as error:
            self._refresh_without_name(error)
            return
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            self._drop("it is not a file")
            return
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = descriptor
        self._identity = (status.st_dev, status.st_ino)
        self.is_detached, self.problem = False, ""
        self._begin_generation(status.st_size)

    def _refresh_without_name(self, error: OSError) -> None:
        # The name is gone but the open file is not: what was written can still be read.
        is_missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
        self.problem = "" if is_missing else (error.strerror or type(error).__name__).lower()
        self.is_detached = self._descriptor >= 0
        if self.is_detached:
            self._take_size(os.fstat(self._descriptor).st_size)

    def _drop(self, problem: str) -> None:
        if self._descriptor >= 0:
            self.close()
        self.problem = problem

    def _take_size(self, size: int) -> None:
        if size < self.size:
            self._begin_generation(size)
        self.size = size

    def _begin_generation(self, size: int) -> None:
        self.generation += 1
        self.size = size
        self._window = b""
        self._window_start = 0
        self._line_feeds = array("Q")
        self._indexed_bytes = 0
        self._indexed_line_feeds = 0

    def _line_at(self, start: int) -> LogLine | None:
        limit = self._cut_after(start)
        position = self._find(start, limit)
        while position < 0 and limit < self.size and not self._is_cut(limit):
            limit += CUT_GRID_BYTES
            position = self._find(limit - CUT_GRID_BYTES, limit)
        end = position + 1 if position >= 0 else min(self._character_boundary(limit), self.size)
        return self._line_between(start, end)

    def _line_between(self, start: int, end: int) -> LogLine | None:
        """Return the display line with these bytes; None where they cannot be read."""
        is_long = end - start > MAX_LINE_BYTES
        content = self.read(end - MAX_LINE_BYTES if is_long else start, end)
        if not content:
            return None
        end = end if is_long else start + len(content)
        is_whole = content.endswith(b"\n")
        content = content[:-1] if is_whole else content
        return LogLine(start=start, end=end, content=whole_states(content) if is_long else content, is_whole=is_whole)

    def _cut_after(self, start: int) -> int:
        """Return the first grid offset where the line that begins at ``start`` may be cut, unless it ends before."""
        block = start - start % CUT_GRID_BYTES
        is_cut = start > 0 and self.read(start - 1, start) != b"\n"
        if start == block or (is_cut and start - block <= _UTF8_TAIL_BYTES):
            return block + CUT_GRID_BYTES
        return block + 2 * CUT_GRID_BYTES

    def _is_cut(self, grid: int) -> bool:
        """Return whether a line is cut at a grid offset; no line ends in the grid block before it."""
        if not self._is_rewritten_before(grid):
            return True
        # Looking for the beginning of a line must end somewhere.
        return grid % REWRITTEN_GRID_BYTES == 0 and self._find_last(grid - REWRITTEN_GRID_BYTES, grid) < 0

    def _is_rewritten_before(self, grid: int) -> bool:
        return is_rewritten(self.read(grid - CUT_GRID_BYTES, grid))

    def _start_before(self, end: int) -> int:
        """Return the start of the display line whose last byte lies at ``end - 1``."""
        last = end - 1
        if last <= 0:
            return 0
        # The byte at `last` may be the line's own line feed, so the search ends before it.
        grid = last - last % CUT_GRID_BYTES
        if grid and self._character_boundary(grid) > last:
            grid -= CUT_GRID_BYTES
        position = self._find_last(grid, last)
        while position < 0 and grid > 0:
            position = self._find_last(grid - CUT_GRID_BYTES, grid)
            if position < 0 and self._is_cut(grid):
                return self._character_boundary(grid)
            grid -= CUT_GRID_BYTES
        return position + 1

    def _character_boundary(self, offset: int) -> int:
        for byte in self.read(offset, offset + _UTF8_TAIL_BYTES):
            if byte not in _CONTINUATION_BYTES:
                break
            offset += 1
        return offset

    def _find(self, start: int, end: int) -> int:
        """Return the offset of the first line feed from ``start`` up to ``end``, or -1."""
        end = min(end, self.size)
        first_end = min(end, start + _NEAR_BYTES)
        for low, high in ((start, first_end), (first_end, end)):
            if low < high:
                self._show(low, high, forwards=True)
                position = self._window.find(b"\n", low - self._window_start, high - self._window_start)
                if position >= 0:
                    return position + self._window_start
        return -1

    def _find_last(self, start: int, end: int) -> int:
        """Return the offset of the last line feed from ``start`` up to ``end``, or -1."""
        start = max(0, start)
        last_start = max(start, end - _NEAR_BYTES)
        for low, high in ((last_start, end), (start, last_start)):
            if low < high:
                self._show(low, high, forwards=False)
                position = self._window.rfind(b"\n", low - self._window_start, high - self._window_start)
                if position >= 0:
                    return position + self._window_start
        return -1

    def _show(self, start: int, end: int, *, forwards: bool) -> None:
        """Have the window hold ``start`` up to ``end``, and more in the direction that is read next."""
        if self._window_start <= start and end <= self._window_start + len(self._window):
            return
        window_start = max(0, start - _NEAR_BYTES) if forwards else max(0, min(start, end - _READ_BYTES))
        window_end = min(self.size, max(end, window_start + _READ_BYTES))
        self._window = self._read_file(window_start, window_end)
        self._window_start = window_start

    def _read_file(self, start: int, end: int) -> bytes:
        if self._descriptor < 0 or end <= start:
            return b""
        try:
            return os.pread(self._descriptor, end - start, start)
        except OSError:
            return b""

    def _read_into(self, view: memoryview, offset: int) -> int:
        if self._descriptor < 0:
            return 0
        try:
            return os.preadv(self._descriptor, [view], offset)
        except OSError:
            return 0
