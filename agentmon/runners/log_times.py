"""When the log of an execution was written, from the reports in its journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.logs.log_times import LogTimes
from agentmon.runners.journal import EndedEntry, OutputEntry, parse_entry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_REPORT: Final = b'"left_out_bytes"'


def read_log_times(journal: Path) -> LogTimes:
    """Return the times of a log, none when the journal is missing.

    Raises:
        OSError: The journal is there and cannot be read.
    """
    return LogTimes(_reports(journal))


def _reports(journal: Path) -> Iterator[tuple[int, int]]:
    try:
        with journal.open("rb") as file:
            for line in file:
                # A conversation's journal is mostly other entries, which need not be taken apart.
                entry = parse_entry(line) if _REPORT in line else None
                if isinstance(entry, (OutputEntry, EndedEntry)):
                    yield entry.at_ms, entry.output_bytes
    except FileNotFoundError:
        return
