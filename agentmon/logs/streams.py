"""The streams that a run's output can be told apart by: what its host records in files of their own."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class LogStream(Enum):
    """One file of a run; a program in a terminal has the output alone, since its two outputs arrive as one."""

    OUTPUT = "output"
    """All that was shown, errors and conversation among it."""
    ERRORS = "errors"
    """What an agent of a conversation wrote to its error output."""
    PROTOCOL = "protocol"
    """What was said to such an agent and by it, as it was sent."""

    def path(self, output_log: Path) -> Path:
        """Return the file of the stream beside a run's output log; it need not exist."""
        return output_log if self is LogStream.OUTPUT else output_log.with_name(_NAMES[self])


_NAMES = {LogStream.ERRORS: "errors.log", LogStream.PROTOCOL: "protocol.jsonl"}


def streams_of(output_log: Path) -> tuple[LogStream, ...]:
    """Return the streams that a run has by now; the output always."""
    return tuple(stream for stream in LogStream if stream is LogStream.OUTPUT or stream.path(output_log).exists())
