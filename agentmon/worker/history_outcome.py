"""What an import of conversations did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmon.worker.import_progress import FileProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOutcome:
    """What an import of conversations did."""

    files: int
    """Those that were finished."""
    all_files: int
    """Those that had something new."""
    read_bytes: int
    messages: int
    """Tellings, also of messages that were known."""
    operations: int
    """Tellings, also of calls that were known."""
    elapsed_s: float
    is_finished: bool = True
    """False when there was no more time."""
    problems: tuple[FileProblem, ...] = ()
    """At most one hundred."""
