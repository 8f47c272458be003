"""The statuses of executions, apart from their values: the first frame needs no more than these."""

from __future__ import annotations

from enum import StrEnum


class ExecutionStatus(StrEnum):
    """Where an execution stands."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    FINALIZING = "finalizing"
    """Its processes are gone; what belongs to its end is being done before its outcome counts."""
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
        """Whether a worker has it: a process may exist for it, or its end is not settled."""
        return self in LIVE_STATUSES


LIVE_STATUSES = frozenset({ExecutionStatus.RUNNING, ExecutionStatus.CANCELLING, ExecutionStatus.FINALIZING})
OPEN_STATUSES = LIVE_STATUSES | {ExecutionStatus.QUEUED}


class EndReason(StrEnum):
    """Why a try came to its end."""

    EXITED = "exited"
    """The program ended by itself; its exit code tells how."""
    FINISHED = "finished"
    """Its agent had done its work and did not end by itself, so it was ended."""
    STOPPED = "stopped"
    TIMED_OUT = "timed_out"
    START_FAILED = "start_failed"
    """The program could not be started at all."""
    TERMINATED = "terminated"
    """The host was asked to end by something other than agentmon."""
    LOST = "lost"
    """The host ended without a word: it was killed, or the machine went down."""
    REFUSED = "refused"
    """The vendor refused to serve it, and waiting does not help: a bad login."""
    BUDGET = "budget"
    """A budget was spent, and it could not wait for a person."""
    UNVERIFIED = "unverified"
    """Its program succeeded, and what its work is verified with did not pass."""


class WaitReason(StrEnum):
    """Why a queued execution may not start before a certain time."""

    RETRY = "retry"
    """Its last try failed."""
    USAGE_LIMIT = "usage_limit"
    """The vendor's quota is used up until then."""
    RATE_LIMIT = "rate_limit"
    """The vendor asked for a short wait."""
    FAILURES = "failures"
    """The same command failed too often in a row."""
    NOT_STARTED = "not_started"
    """agentmon could not start it: tmux, a disk or its host did not answer, which is no failure of the program."""
    SCHEDULED = "scheduled"
    """Whoever queued it named the time."""
    BUDGET = "budget"
    """What may be spent on it is spent."""

    @property
    def is_parking(self) -> bool:
        """Whether it is held back for a reason that lies outside the task's own plan."""
        return self in {WaitReason.BUDGET, WaitReason.NOT_STARTED} or self.is_released

    @property
    def is_released(self) -> bool:
        """Whether it goes on when a person lets its agent start again."""
        return self in {WaitReason.USAGE_LIMIT, WaitReason.RATE_LIMIT, WaitReason.FAILURES}
