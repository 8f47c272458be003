"""When the log of an execution was written, from the reports in its journal."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final

from agentmon.logs.log_times import LogTimes
from agentmon.runners.execution_folder import open_at_once
from agentmon.runners.journal import EndedEntry, OutputEntry, parse_entry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_REPORT: Final = b'"left_out_bytes"'


class LogTimesReader:
    """Reads the times of a log from its journal, each report once, from any thread.

    Args:
        journal: The journal, which may be missing and may grow.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._identity: tuple[int, int] | None = None
        self._offset = 0
        self._times = LogTimes(())
        self._lock = Lock()

    def read(self) -> LogTimes:
        """Return the times, with what was reported since the last call; the same object while the journal is the same.

        Raises:
            OSError: The journal is there and cannot be read.
        """
        with self._lock:
            identity = self._find_identity()
            if identity != self._identity:
                # The journal of the try before was set aside.
                self._identity, self._offset, self._times = identity, 0, LogTimes(())
            self._times.add(self._reports())
            return self._times

    def _find_identity(self) -> tuple[int, int] | None:
        try:
            status = self._journal.stat()
        except FileNotFoundError:
            return self._identity
        return status.st_dev, status.st_ino

    def _reports(self) -> Iterator[tuple[int, int]]:
        try:
            with open_at_once(self._journal) as file:
                file.seek(self._offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        return
                    self._offset += len(line)
                    # A conversation's journal is mostly other entries, which need not be taken apart.
                    entry = parse_entry(line) if _REPORT in line else None
                    if isinstance(entry, (OutputEntry, EndedEntry)):
                        yield entry.at_ms, entry.output_bytes
        except FileNotFoundError:
            return
