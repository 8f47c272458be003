"""The streams of a run's output: the files of its host, and the screen that a terminal makes of them."""

from __future__ import annotations

import os
import re
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path


class LogStream(Enum):
    """One view of a run; a program in a terminal has one file, since its two outputs arrive as one."""

    SCREEN = "screen"
    """What a terminal shows of the output of a program that repaints: scrolled lines, then the screen."""
    OUTPUT = "output"
    """All that was shown, errors and conversation among it."""
    ERRORS = "errors"
    """What an agent of a conversation wrote to its error output."""
    PROTOCOL = "protocol"
    """What was said to such an agent and by it, as it was sent."""
    VERIFICATION = "verification"
    """What the newest verification of the run said."""

    def path(self, output_log: Path) -> Path:
        """Return the file of the stream beside a run's output log; it need not exist."""
        if self is LogStream.VERIFICATION:
            first = output_log.with_name("verification-1.log")
            return max(output_log.parent.glob("verification-*.log"), key=_attempt, default=first)
        return output_log.with_name(_NAMES.get(self, output_log.name))


def _attempt(verification_log: Path) -> int:
    digits = verification_log.stem.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0


_NAMES = {LogStream.ERRORS: "errors.log", LogStream.PROTOCOL: "protocol.jsonl"}


# What moves the cursor out of its line, or clears the screen. Source: ECMA-48, 8.3; xterm for the other screen.
_REPAINT: Final = re.compile(rb"\x1b(?:\[[0-9;]*[AFHdfr]|\[2?J|\[\?(?:1049|1047|47)h|[Mc])")
_LONGEST_REPAINT: Final = 64
_LOOKED_AT_BYTES: Final = 8 * 1024 * 1024
"""Behind so many plain bytes what was painted before means little."""
_CHUNK_BYTES: Final = 64 * 1024
_MOST_KNOWN: Final = 64
_known: dict[tuple[str, int], tuple[int, int | None]] = {}
"""By path and number of a log how far it was looked through, and where it was repainted last."""


def find_repaint(output_log: Path) -> int | None:
    """Return behind which byte of the output nothing is painted over a screen; None when its lines say it all.

    Of a log that was looked through before only what is new is read.
    """
    try:
        descriptor = os.open(output_log, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        stat = os.fstat(descriptor)
        key, size = (str(output_log), stat.st_ino), stat.st_size
        looked_to, place = _known.pop(key, (0, None))
        if looked_to > size:
            looked_to, place = 0, None
        begin = max(0, looked_to - _LONGEST_REPAINT, size - _LOOKED_AT_BYTES)
        newest = _last_repaint(descriptor, begin, size)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    place = place if newest is None else newest
    _known[key] = size, place
    for oldest in list(_known)[:-_MOST_KNOWN]:
        _known.pop(oldest, None)
    return None if place is None or place < size - _LOOKED_AT_BYTES else place


def _last_repaint(descriptor: int, begin: int, end: int) -> int | None:
    """Return where the last repaint between two places ends, looking backwards."""
    while end > begin:
        start = max(begin, end - _CHUNK_BYTES)
        found = None
        for found in _REPAINT.finditer(os.pread(descriptor, end - start, start)):  # noqa: B007 - the last one is wanted
            pass
        if found is not None:
            return start + found.end()
        end = start if start == begin else start + _LONGEST_REPAINT
    return None


def repaints(output_log: Path) -> bool:
    """Return whether some of the output is painted over a screen, so that its lines alone mean little."""
    return find_repaint(output_log) is not None


def streams_of(output_log: Path) -> tuple[LogStream, ...]:
    """Return the streams that a run has by now, the one to be shown first; the output always."""
    screen = (LogStream.SCREEN,) if repaints(output_log) else ()
    files = (stream for stream in (*_NAMES, LogStream.VERIFICATION) if stream.path(output_log).exists())
    return (*screen, LogStream.OUTPUT, *files)
