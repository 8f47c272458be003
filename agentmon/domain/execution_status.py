"""The statuses of executions, apart from their values: the first frame needs no more than these."""

from __future__ import annotations

from enum import StrEnum


class ExecutionStatus(StrEnum):
    """Where an execution stands."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"

    @property
    def is_open(self) -> bool:
        """Whether the execution waits or runs."""
        return self in OPEN_STATUSES

    @property
    def is_live(self) -> bool:
        """Whether a process may exist for it."""
        return self in LIVE_STATUSES


LIVE_STATUSES = frozenset({ExecutionStatus.RUNNING, ExecutionStatus.CANCELLING})
OPEN_STATUSES = LIVE_STATUSES | {ExecutionStatus.QUEUED}
