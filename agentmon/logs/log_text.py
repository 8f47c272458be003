"""The clean text of a whole log, line by line and with constant memory: for printing, exporting and searching."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from agentmon.logs.line_text import plain_text
from agentmon.logs.log_file import MAX_LINE_BYTES, LogFile
from agentmon.logs.rewritten_lines import newest_states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MAX_TEXT_LINE_BYTES: Final = 1024 * 1024
"""A longer line comes in several parts, unless it is rewritten again and again: then its newest states come."""

_READ_BYTES: Final = 256 * 1024
_NEEDLE_BYTES: Final = 4096
_UTF8_TAIL_BYTES: Final = 3
_CONTINUATION_BYTES: Final = range(0x80, 0xC0)  # RFC 3629, 3
_MARKER_LINE: Final = re.compile(rb"\n\[agentmon: [\d,]{1,26} bytes left out here\]\n")


def iter_clean_lines(
    path: Path, *, first_offset: int = 0, wait_for_more: Callable[[], bool] | None = None
) -> Iterator[str]:
    """Yield the lines of a log from ``first_offset`` on as plain text; follows and ends like ``iter_line_bytes``."""
    return map(plain_text, iter_line_bytes(path, first_offset=first_offset, wait_for_more=wait_for_more))


def iter_line_bytes(
    path: Path,
    *,
    first_offset: int = 0,
    stop_offset: int | None = None,
    wait_for_more: Callable[[], bool] | None = None,
    take_unfinished: Callable[[bytes], None] | None = None,
) -> Iterator[bytes]:
    """Yield the lines of a log from ``first_offset`` up to ``stop_offset`` as they are, without line feeds.

    Without ``wait_for_more`` it ends at the end of the file, an unfinished last line included. With it, it follows:
    whenever nothing more is there, ``wait_for_more`` is called, which waits as it sees fit and returns whether to look
    again; after False whatever is there by then still comes. Before each wait ``take_unfinished`` is given the last
    line as far as it has come, which is yielded once it is finished. A file that a capped one replaces is followed
    without losing or repeating lines; a file that is missing or cannot be opened has no lines yet.
    """
    source = _Source(path, first_offset)
    rest = b""
    left = None if stop_offset is None else stop_offset - first_offset
    is_over = wait_for_more is None
    try:
        while left is None or left > 0:
            block = source.read()[:left]
            if left is not None:
                left -= len(block)
            if block:
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    shown = line if len(line) <= MAX_LINE_BYTES else newest_states(line, MAX_LINE_BYTES)
                    while len(shown) > MAX_TEXT_LINE_BYTES:
                        part, shown = _cut(shown)
                        yield part
                    yield shown
                rest = newest_states(rest, MAX_LINE_BYTES)
                while len(rest) > MAX_TEXT_LINE_BYTES:
                    part, rest = _cut(rest)
                    yield part
            elif is_over or wait_for_more is None:
                break
            else:
                if rest and take_unfinished is not None:
                    take_unfinished(rest)
                is_over = not wait_for_more()
        if rest:
            yield rest
    finally:
        source.close()


def iter_raw_chunks(
    path: Path, *, first_offset: int = 0, wait_for_more: Callable[[], bool] | None = None
) -> Iterator[bytes]:
    """Yield the bytes of a log from ``first_offset`` on as they are; follows and ends like ``iter_line_bytes``."""
    source = _Source(path, first_offset)
    is_over = wait_for_more is None
    try:
        while True:
            block = source.read()
            if block:
                yield block
            elif is_over or wait_for_more is None:
                return
            else:
                is_over = not wait_for_more()
    finally:
        source.close()


def tail_lines(path: Path, count: int) -> list[str]:
    """Return the last ``count`` display lines of a log as plain text, first to last; none when there is no file."""
    with LogFile(path) as log:
        return [plain_text(line.content) for line in log.lines_before(log.size, count)]


def _cut(line: bytes) -> tuple[bytes, bytes]:
    end = MAX_TEXT_LINE_BYTES
    while end > MAX_TEXT_LINE_BYTES - _UTF8_TAIL_BYTES and line[end] in _CONTINUATION_BYTES:
        end -= 1
    return line[:end], line[end:]


class _Source:
    """The bytes of a log in order, across its replacement by a capped one."""

    def __init__(self, path: Path, offset: int) -> None:
        self._path = path
        self._offset = offset
        self._descriptor = -1
        self._needle = b""

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def read(self) -> bytes:
        """Return the next bytes, or none when nothing more is there at present."""
        if self._descriptor < 0 and not self._open():
            return b""
        was_replaced = self._was_replaced()
        # The file is read once more after it was seen to be replaced: nothing is written to it any longer.
        block = os.pread(self._descriptor, _READ_BYTES, self._offset)
        if not block and was_replaced:
            self._change_over()
            block = os.pread(self._descriptor, _READ_BYTES, self._offset) if self._descriptor >= 0 else b""
        self._offset += len(block)
        self._needle = (self._needle + block)[-_NEEDLE_BYTES:]
        return block

    def _open(self) -> bool:
        try:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            # What cannot be read now is looked at again.
            return False
        return True

    def _was_replaced(self) -> bool:
        try:
            present = self._path.stat()
        except OSError:
            return False
        known = os.fstat(self._descriptor)
        if (present.st_dev, present.st_ino) != (known.st_dev, known.st_ino):
            return True
        if present.st_size < self._offset:
            self._offset = 0
        return False

    def _change_over(self) -> None:
        self.close()
        if self._open():
            self._offset = _resume_offset(self._descriptor, self._needle)


def _resume_offset(descriptor: int, needle: bytes) -> int:
    """Return where a capped file goes on after ``needle``, the last bytes read from the file that it replaced.

    The capped file is the first half of the old one, a marker line, the last quarter, and what came since.
    """
    head_bytes, resume = _marker_span(descriptor)
    if head_bytes < 0:
        return 0
    expected = resume + head_bytes // 2
    # No more than the last quarter is in both files.
    overlap = needle[-(head_bytes // 2) :] if head_bytes > 1 else b""
    if os.pread(descriptor, len(overlap), expected - len(overlap)) == overlap:
        return expected
    position = resume
    while needle:
        block = os.pread(descriptor, _READ_BYTES + len(needle), position)
        found = block.find(needle)
        if found >= 0:
            return position + found + len(needle)
        if len(block) < _READ_BYTES + len(needle):
            break
        position += _READ_BYTES
    return head_bytes + 1


def _marker_span(descriptor: int) -> tuple[int, int]:
    """Return where the first marker line begins and ends, or a negative offset when there is none."""
    overlap = 64
    position = 0
    while block := os.pread(descriptor, _READ_BYTES + overlap, position):
        match = _MARKER_LINE.search(block)
        if match:
            return position + match.start(), position + match.end()
        position += _READ_BYTES
    return -1, -1
