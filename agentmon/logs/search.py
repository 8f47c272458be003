"""Search through a log of any size in bounded steps: what a person sees in a line is what is matched."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from agentmon.logs.log_file import CUT_GRID_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentmon.logs.log_file import LogFile, LogLine
    from agentmon.logs.pattern import LogMatcher

STEP_BYTES: Final = 256 * 1024
"""So much of the file is searched between two steps: half a millisecond for a word, some for most expressions."""


class Direction(Enum):
    """Where a search goes from where it begins."""

    FORWARDS = "forwards"
    BACKWARDS = "backwards"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStep:
    """What one bounded piece of a search found."""

    scanned_bytes: int
    """How much of the file this search has looked at so far, this step included."""
    matches: tuple[int, ...]
    """The starts of the display lines that match, in the order of the search."""
    has_wrapped: bool = False
    """Whether the search went past the file's end (or beginning) and began at the other one."""


def search_log(
    log: LogFile,
    pattern: LogMatcher,
    *,
    start: int,
    stop: int | None = None,
    direction: Direction = Direction.FORWARDS,
    most: int | None = None,
) -> Iterator[SearchStep]:
    """Search from ``start`` (a display line's start, or the size) to ``stop`` in steps of at most ``STEP_BYTES``.

    Forwards the line at ``start`` is searched too and ``stop`` is where to end; backwards only what comes before
    ``start``, down to ``stop``. Without ``stop`` the search ends where the file does. It never looks at bytes that came
    after the log's last refresh. ``most`` bounds the matches of one step.
    """
    scanned = 0
    if direction is Direction.FORWARDS:
        limit = log.size if stop is None else min(stop, log.size)
        while start < limit:
            end = _step_end(log, start, limit)
            scanned += end - start
            yield SearchStep(scanned_bytes=scanned, matches=_matches(log, pattern, start, end, direction, most))
            start = end
    else:
        limit = 0 if stop is None else stop
        end = min(start, log.size)
        while end > limit:
            begin = max(limit, log.line_start(max(limit, end - STEP_BYTES)))
            scanned += end - begin
            yield SearchStep(scanned_bytes=scanned, matches=_matches(log, pattern, begin, end, direction, most))
            end = begin


def matching_starts(log: LogFile, pattern: LogMatcher, start: int, end: int) -> tuple[int, ...]:
    """Return the starts of the display lines from ``start`` up to ``end``, both of them starts, that match."""
    return _matches(log, pattern, start, end, Direction.FORWARDS, None) if start < end else ()


def find_next(
    log: LogFile, pattern: LogMatcher, *, origin: int, direction: Direction = Direction.FORWARDS
) -> Iterator[SearchStep]:
    """Search for the line nearest to the display line at ``origin``, that line last of all, around the file's end.

    The last step is the one with the match; no step has any when nothing matches.
    """
    origin = log.line_start(origin)
    here = log.lines_from(origin, 1)
    after = here[0].end if here else origin
    legs = ((after, log.size), (0, after)) if direction is Direction.FORWARDS else ((origin, 0), (log.size, origin))
    scanned = 0
    for leg, (start, stop) in enumerate(legs):
        covered = 0
        for step in search_log(log, pattern, start=start, stop=stop, direction=direction, most=1):
            covered = step.scanned_bytes
            yield SearchStep(scanned_bytes=scanned + covered, matches=step.matches, has_wrapped=leg == 1)
            if step.matches:
                return
        scanned += covered


def _step_end(log: LogFile, start: int, limit: int) -> int:
    if start + STEP_BYTES >= limit:
        return limit
    end = log.line_start(start + STEP_BYTES)
    if end <= start:
        # The line is longer than a step.
        here = log.lines_from(start, 1)
        end = here[0].end if here else limit
    return min(end, limit)


def _matches(
    log: LogFile, pattern: LogMatcher, start: int, end: int, direction: Direction, most: int | None
) -> tuple[int, ...]:
    block = log.read(start, end)
    cut_lines = _cut_lines(block, start)
    # What matches all of a line that is cut need not match any part of it, nor the other way round.
    found = [start + at for at, _ in pattern.matching_lines(block) if at not in cut_lines]
    for at, line_end in cut_lines.items():
        parts = _display_lines(log, start + at, start + line_end)
        found += [part.start for part in parts if pattern.matches(part.content)]
    if cut_lines:
        found.sort()
    if direction is Direction.BACKWARDS:
        found.reverse()
    return tuple(found[:most])


def _cut_lines(block: bytes, offset: int) -> dict[int, int]:
    """Return start and end of the lines of a block at this offset of the file that are cut into several."""
    found: dict[int, int] = {}
    for grid in range(-offset % CUT_GRID_BYTES, len(block) - CUT_GRID_BYTES + 1, CUT_GRID_BYTES):
        if block.find(b"\n", grid, grid + CUT_GRID_BYTES) < 0:
            end = block.find(b"\n", grid)
            found[block.rfind(b"\n", 0, grid) + 1] = end if end >= 0 else len(block)
    return found


def _display_lines(log: LogFile, start: int, end: int) -> Iterator[LogLine]:
    while lines := log.lines_from(start, 1):
        yield lines[0]
        start = lines[0].end
        if lines[0].is_whole or start >= end:
            return
