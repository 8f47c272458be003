"""Keeps of a line that is too long to be held what a reader needs of it: all but its long texts."""

from __future__ import annotations

import re
from typing import Final

ENDS_BYTES: Final = 1_024
MAX_TEXT_BYTES: Final = 65_536
"""A longer text within the line becomes an empty one; no field that is read is as long."""
MAX_KEPT_BYTES: Final = 4 * 1_048_576
"""A line of which more is left is given up."""
_TEXT: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*', re.DOTALL)


class LongLine:
    """A line of JSON while it streams by; memory stays bounded."""

    __slots__ = ("_is_escaped", "_is_given_up", "_kept", "_tail", "_text_begin", "_text_bytes", "end", "head", "offset")

    def __init__(self, offset: int) -> None:
        """Begin at the offset of the line in its file."""
        self.offset = offset
        self.end = offset
        """Behind the last byte so far; behind its newline when it has one."""
        self.head = b""
        """Its first ``ENDS_BYTES``."""
        self._tail = b""
        self._kept = bytearray()
        self._text_begin = -1
        self._text_bytes = 0
        self._is_escaped = False
        self._is_given_up = False

    @property
    def tail(self) -> bytes:
        """Its last ``ENDS_BYTES``."""
        return self._tail

    def shortened(self) -> bytes:
        """Return the line with its long texts emptied; nothing when too much of it is left."""
        return b"" if self._is_given_up else bytes(self._kept)

    def add(self, block: bytes) -> None:
        """Take the bytes that follow."""
        self.end += len(block)
        self.head = self.head if len(self.head) >= ENDS_BYTES else (self.head + block[:ENDS_BYTES])[:ENDS_BYTES]
        self._tail = (self._tail + block[-ENDS_BYTES:])[-ENDS_BYTES:]
        at = 0
        while at < len(block) and not self._is_given_up:
            at = self._add_others(block, at) if self._text_begin < 0 else self._add_text(block, at)
            if len(self._kept) > MAX_KEPT_BYTES:
                self._is_given_up = True
                self._kept.clear()

    def _add_others(self, block: bytes, at: int) -> int:
        """Keep what comes before the next text, with its quote; return where that ends."""
        end = block.find(b'"', at) + 1
        self._kept += block[at : end or len(block)]
        if end:
            self._text_begin, self._text_bytes = len(self._kept), 0
        return end or len(block)

    def _add_text(self, block: bytes, at: int) -> int:
        """Keep the text up to its quote or the end of the block, unless it is long; return where that is."""
        found = _TEXT.match(block, at + self._is_escaped)
        end = at if found is None else found.end()
        has_ended = block[end : end + 1] == b'"'
        # What stopped the match otherwise is the block's end, or a backslash before it.
        self._is_escaped = not has_ended and end < len(block)
        end = end if has_ended else len(block)
        self._text_bytes += end - at
        if self._text_bytes > MAX_TEXT_BYTES:
            del self._kept[self._text_begin :]
        else:
            self._kept += block[at:end]
        if not has_ended:
            return end
        self._kept += b'"'
        self._text_begin = -1
        return end + 1
