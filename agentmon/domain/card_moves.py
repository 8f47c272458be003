"""How a card moves by itself when its execution starts or ends, and when what it waits for is done."""

from __future__ import annotations

from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.task_status import TaskStatus


def status_at_start(present: TaskStatus) -> TaskStatus:
    """Return the column of a card whose execution starts; a card that a person closed meanwhile stays closed."""
    return TaskStatus.IN_PROGRESS if present.is_open else present


def status_at_end(
    present: TaskStatus, outcome: ExecutionStatus, *, is_card_cancelled: bool = False, is_reviewed: bool = False
) -> TaskStatus:
    """Return the column of a card whose execution is over; only one that is in progress moves, or was called done.

    A failed or timed-out one is blocked, since a person has to decide what to do, whoever called it done before; a
    cancelled one is to do again, unless the card was cancelled or called done. One that succeeded is done, unless a
    person looks at what it did first, or chooses between it and others (``is_reviewed``).
    """
    if is_card_cancelled and present.is_open:
        return TaskStatus.CANCELLED
    if present is TaskStatus.DONE and outcome in {ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT}:
        return TaskStatus.BLOCKED
    if present is not TaskStatus.IN_PROGRESS:
        return present
    match outcome:
        case ExecutionStatus.SUCCEEDED:
            return TaskStatus.REVIEW if is_reviewed else TaskStatus.DONE
        case ExecutionStatus.FAILED | ExecutionStatus.TIMED_OUT:
            return TaskStatus.BLOCKED
        case ExecutionStatus.CANCELLED:
            return TaskStatus.TODO
        case _:
            return present
