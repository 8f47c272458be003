"""Begins to read a long history while this process still imports what it needs to keep it."""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING, Final

from agentmon.paths import find_paths
from agentmon.store.usage_begun import is_usage_begun
from agentmon.usage.reading_processes import ReadingProcesses
from agentmon.usage.sources import find_sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.usage.reading_processes import Job

APART_FROM_BYTES: Final = 32_000_000
"""So much is read by other processes."""
PROCESSES: Final = 2

_begun: list[ReadingProcesses] = []


def begin_reading() -> None:
    """Begin where nothing was read before and there is much of it; what is never asked for ends with this process."""
    if is_usage_begun(find_paths().database_path):
        return
    sources = find_sources(os.environ)
    if len(sources) >= PROCESSES and sum(source.size for source in sources) >= APART_FROM_BYTES:
        processes = ReadingProcesses([(source, None) for source in sources], PROCESSES)
        atexit.register(processes.close)
        _begun.append(processes)


def start_reading(jobs: Sequence[Job]) -> ReadingProcesses:
    """Return processes that read the jobs, those that have begun where there are some; the caller closes them."""
    return _begun.pop() if _begun else ReadingProcesses(jobs, PROCESSES)
