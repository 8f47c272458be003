"""The state a person sees: one glyph and one word for each, the same on cards, lists, logs and the command line."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from agentmon.domain.activity import Activity
from agentmon.domain.execution_status import EndReason, ExecutionStatus


class LiveState(StrEnum):
    """What an execution is doing, in the words of the screens."""

    QUEUED = "queued"
    RUNNING = "running"
    NEEDS_YOU = "needs you"
    PARKED = "parked"
    PAUSED = "paused"
    STOPPING = "stopping"
    FINALIZING = "finalizing"
    STUCK = "could not stop"
    DONE = "done"
    FAILED = "failed"
    LOST = "lost"
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
    LiveState.PAUSED: "‖",
    LiveState.STOPPING: "◍",
    LiveState.FINALIZING: "◍",
    LiveState.STUCK: "◍",
    LiveState.DONE: "✓",
    LiveState.FAILED: "✗",
    LiveState.LOST: "✗",
    LiveState.TIMED_OUT: "✗",
    LiveState.CANCELLED: "⊘",
    LiveState.UNKNOWN: "?",
}

_BY_STATUS: Final = {
    ExecutionStatus.QUEUED: LiveState.QUEUED,
    ExecutionStatus.RUNNING: LiveState.RUNNING,
    ExecutionStatus.CANCELLING: LiveState.STOPPING,
    ExecutionStatus.FINALIZING: LiveState.FINALIZING,
    ExecutionStatus.SUCCEEDED: LiveState.DONE,
    ExecutionStatus.FAILED: LiveState.FAILED,
    ExecutionStatus.CANCELLED: LiveState.CANCELLED,
    ExecutionStatus.TIMED_OUT: LiveState.TIMED_OUT,
}

_BY_ACTIVITY: Final = {Activity.WAITING: LiveState.NEEDS_YOU, Activity.UNKNOWN: LiveState.UNKNOWN}


def live_state(
    status: ExecutionStatus,
    *,
    end_reason: EndReason | None = None,
    is_parked: bool = False,
    is_paused: bool = False,
    is_stuck: bool = False,
    is_held: bool = False,
    activity: Activity | None = None,
) -> LiveState:
    """Return the state that a person sees.

    Args:
        status: Of the execution.
        end_reason: Why it is over.
        is_parked: Whether it waits in the queue for a vendor or a parked agent.
        is_paused: Whether its processes are halted.
        is_stuck: Whether some of its processes could not be stopped.
        is_held: Whether it waits in the queue for a person's leave to start.
        activity: What its agent is doing.
    """
    if status is ExecutionStatus.QUEUED and is_held:
        return LiveState.NEEDS_YOU
    if status is ExecutionStatus.QUEUED and is_parked:
        return LiveState.PARKED
    if status.is_live and is_stuck:
        return LiveState.STUCK
    if status is ExecutionStatus.RUNNING and is_paused:
        return LiveState.PAUSED
    if status is ExecutionStatus.RUNNING and activity in _BY_ACTIVITY:
        return _BY_ACTIVITY[activity]
    if status is ExecutionStatus.FAILED and end_reason is EndReason.LOST:
        return LiveState.LOST
    return _BY_STATUS[status]
