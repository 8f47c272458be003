"""The state a person sees: one glyph and one word for each, the same on cards, lists, logs and the command line."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from agentmon.domain.execution_status import ExecutionStatus


class LiveState(StrEnum):
    """What an execution is doing, in the words of the screens."""

    QUEUED = "queued"
    RUNNING = "running"
    NEEDS_YOU = "needs you"
    PARKED = "parked"
    STOPPING = "stopping"
    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def glyph(self) -> str:
        """One character that tells the state without colour."""
        return _GLYPHS[self]

    def with_cause(self, *, exit_code: int | None = None) -> str:
        """Return the word, with the exit code where it explains the state: ``failed (exit 1)``."""
        if self is LiveState.FAILED and exit_code is not None:
            return f"{self.value} (exit {exit_code})"
        return self.value


_GLYPHS: Final = {
    LiveState.QUEUED: "◌",
    LiveState.RUNNING: "●",
    LiveState.NEEDS_YOU: "◆",
    LiveState.PARKED: "⏸",
    LiveState.STOPPING: "◍",
    LiveState.DONE: "✓",
    LiveState.FAILED: "✗",
    LiveState.TIMED_OUT: "✗",
    LiveState.CANCELLED: "⊘",
    LiveState.UNKNOWN: "?",
}

_BY_STATUS: Final = {
    ExecutionStatus.QUEUED: LiveState.QUEUED,
    ExecutionStatus.RUNNING: LiveState.RUNNING,
    ExecutionStatus.CANCELLING: LiveState.STOPPING,
    ExecutionStatus.SUCCEEDED: LiveState.DONE,
    ExecutionStatus.FAILED: LiveState.FAILED,
    ExecutionStatus.CANCELLED: LiveState.CANCELLED,
    ExecutionStatus.TIMED_OUT: LiveState.TIMED_OUT,
}


def live_state(status: ExecutionStatus) -> LiveState:
    """Return the state that a person sees for an execution of this status."""
    return _BY_STATUS[status]
