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

    def path(self, output_log: Path) -> Path:
        """Return the file of the stream beside a run's output log; it need not exist."""
        return output_log.with_name(_NAMES.get(self, output_log.name))


_NAMES = {LogStream.ERRORS: "errors.log", LogStream.PROTOCOL: "protocol.jsonl"}


# What moves the cursor out of its line, or clears the screen. Source: ECMA-48, 8.3; xterm for the other screen.
_REPAINT: Final = re.compile(rb"\x1b(?:\[[0-9;]*[AFHdfr]|\[2?J|\[\?(?:1049|1047|47)h|[Mc])")
_LOOKED_AT_BYTES: Final = 64 * 1024


def repaints(output_log: Path) -> bool:
    """Return whether the end of the output is painted over a screen, so that its lines alone mean little."""
    try:
        descriptor = os.open(output_log, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        size = os.fstat(descriptor).st_size
        end = os.pread(descriptor, _LOOKED_AT_BYTES, max(0, size - _LOOKED_AT_BYTES))
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return _REPAINT.search(end) is not None


def streams_of(output_log: Path) -> tuple[LogStream, ...]:
    """Return the streams that a run has by now, the one to be shown first; the output always."""
    screen = (LogStream.SCREEN,) if repaints(output_log) else ()
    files = (stream for stream in _NAMES if stream.path(output_log).exists())
    return (*screen, LogStream.OUTPUT, *files)
