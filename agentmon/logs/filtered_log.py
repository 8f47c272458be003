"""The lines of a log that match: found block by block, and shown like a log of their own in bounded memory."""

from __future__ import annotations

import time
from array import array
from typing import TYPE_CHECKING, Final

from agentmon.logs.log_file import INDEX_BLOCK_BYTES
from agentmon.logs.search import matching_starts

if TYPE_CHECKING:
    from agentmon.logs.log_file import LogFile, LogLine
    from agentmon.logs.pattern import LogPattern

_MOST_KEPT: Final = 64
"""A block with more matches keeps their number only and is searched again when it is shown: a page needs few such."""
_MOST_FRESH: Final = 8
_UNKNOWN: Final = b"\0"


class FilteredLog:
    """The matching lines of a log file, for walking both ways; only what was searched is there.

    One gibibyte of log takes about 2 MB at most. What is found belongs to one generation of the log.

    Args:
        log: The log, which the owner refreshes.
        pattern: What the visible text of a line has to match.
    """

    def __init__(self, log: LogFile, pattern: LogPattern) -> None:
        self.pattern = pattern
        self._log = log
        self._generation = -1
        self._size = 0
        self._known = bytearray()
        self._counts = array("L")
        self._kept: dict[int, array[int]] = {}
        self._fresh: dict[int, array[int]] = {}
        self.match_count = 0
        """How many matching lines were found so far."""
        self.take_growth()

    @property
    def size(self) -> int:
        """The size of the log in bytes."""
        return self._log.size

    @property
    def is_complete(self) -> bool:
        """Whether the whole log was searched."""
        return self._known.find(_UNKNOWN) < 0

    @property
    def searched_share(self) -> float:
        """How much of the log was searched, from 0.0 to 1.0."""
        return self._known.count(1) / len(self._known) if self._known else 1.0

    def is_searched_after(self, offset: int) -> bool:
        """Return whether everything from ``offset`` to the end was searched."""
        return self._known.find(_UNKNOWN, offset // INDEX_BLOCK_BYTES) < 0

    def take_growth(self) -> None:
        """Take note of the log's size after a refresh; what grew has to be searched again."""
        log = self._log
        if log.generation != self._generation:
            self._generation = log.generation
            self._known, self._counts = bytearray(), array("L")
            self._kept, self._fresh = {}, {}
            self.match_count = self._size = 0
        if log.size == self._size:
            return
        # The last line may have begun in the block before and had no end yet.
        changed = max(0, log.line_start(self._size) if self._size else 0) // INDEX_BLOCK_BYTES
        for block in range(changed, len(self._known)):
            self._forget(block)
        missing = -(-log.size // INDEX_BLOCK_BYTES) - len(self._known)
        self._known.extend(bytes(missing))
        self._counts.extend([0] * missing)
        self._size = log.size

    def search_more(self, budget_s: float, *, near: int, backwards: bool) -> bool:
        """Search for about ``budget_s`` seconds, first from ``near`` in the direction; return whether all is searched.

        Args:
            budget_s: How long to search; one block at least.
            near: The offset that is shown.
            backwards: Whether what lies before it comes first.
        """
        deadline = time.monotonic() + budget_s
        block = near // INDEX_BLOCK_BYTES
        while True:
            found = self._known.rfind(_UNKNOWN, 0, block + 1) if backwards else self._known.find(_UNKNOWN, block)
            if found < 0:
                found = self._known.find(_UNKNOWN) if backwards else self._known.rfind(_UNKNOWN)
            if found < 0:
                return True
            self._search(found)
            if time.monotonic() >= deadline:
                return self.is_complete

    def line_start(self, offset: int) -> int:
        """Return the start of the display line that holds the byte at ``offset``, whether it matches or not."""
        return self._log.line_start(offset)

    def lines_from(self, start: int, count: int) -> list[LogLine]:
        """Return up to ``count`` of the lines found so far that begin at ``start`` or after it."""
        found: list[LogLine] = []
        for block in range(max(0, start) // INDEX_BLOCK_BYTES, len(self._known)):
            if len(found) >= count:
                break
            for offset in self._starts(block):
                if offset >= start:
                    found += self._log.lines_from(offset, 1)
                if len(found) >= count:
                    break
        return found

    def lines_before(self, end: int, count: int) -> list[LogLine]:
        """Return up to ``count`` of the lines found so far that begin before ``end``, first to last."""
        found: list[LogLine] = []
        for block in range(min((max(0, end - 1)) // INDEX_BLOCK_BYTES, len(self._known) - 1), -1, -1):
            if len(found) >= count:
                break
            for offset in reversed(self._starts(block)):
                if offset < end:
                    found += self._log.lines_from(offset, 1)
                if len(found) >= count:
                    break
        found.reverse()
        return found

    def _forget(self, block: int) -> None:
        if self._known[block]:
            self.match_count -= self._counts[block]
        self._known[block] = self._counts[block] = 0
        self._kept.pop(block, None)
        self._fresh.pop(block, None)

    def _search(self, block: int) -> array[int]:
        start, end = (self._first_start(edge * INDEX_BLOCK_BYTES) for edge in (block, block + 1))
        starts = array("Q", matching_starts(self._log, self.pattern, start, end))
        if not self._known[block]:
            self._known[block] = 1
            self._counts[block] = len(starts)
            self.match_count += len(starts)
        if 0 < len(starts) <= _MOST_KEPT:
            self._kept[block] = starts
        return starts

    def _starts(self, block: int) -> array[int]:
        if not self._counts[block]:
            return array("Q")
        starts = self._kept.get(block) or self._fresh.get(block)
        if starts is None:
            if len(self._fresh) >= _MOST_FRESH:
                del self._fresh[next(iter(self._fresh))]
            starts = self._fresh[block] = self._search(block)
        return starts

    def _first_start(self, offset: int) -> int:
        """Return where the first display line begins at ``offset`` or after it."""
        if offset >= self._log.size:
            return self._log.size
        start = self._log.line_start(offset)
        if start >= offset:
            return start
        here = self._log.lines_from(start, 1)
        return here[0].end if here else self._log.size
