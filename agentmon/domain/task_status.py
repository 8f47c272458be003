"""Where a task stands and how soon it should run, apart from the tasks: the first frame needs no more than these."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final


class TaskStatus(StrEnum):
    """The columns of the board, in their order from left to right."""

    TODO = "todo"
    IN_PROGRESS = "in_progress"
    BLOCKED = "blocked"
    REVIEW = "review"
    """An agent has done its part, and a person has not looked at it yet."""
    DONE = "done"
    CANCELLED = "cancelled"

    @property
    def is_open(self) -> bool:
        """Whether work on the task may still happen."""
        return self not in {TaskStatus.DONE, TaskStatus.CANCELLED}

    @property
    def label(self) -> str:
        """The column's heading."""
        return _LABELS[self]


_LABELS: Final = {
    TaskStatus.TODO: "Todo",
    TaskStatus.IN_PROGRESS: "In progress",
    TaskStatus.BLOCKED: "Blocked",
    TaskStatus.REVIEW: "Review",
    TaskStatus.DONE: "Done",
    TaskStatus.CANCELLED: "Cancelled",
}


class AwaitedState(StrEnum):
    """Why what waits for a task may not start: only a task that is done, of which nothing runs, lets others start."""

    OPEN = ""
    """It is queued or runs, or a person has to do it."""
    NOT_QUEUED = "not queued"
    """It may still be done, but its program runs only when somebody queues it."""
    RUNNING = "still running"
    """Somebody said that it is done while it runs; how the run ends decides."""
    IN_REVIEW = "in review"
    """A person has to look at what was done before it is done."""
    CANCELLED = "cancelled"
    DELETED = "deleted"
    ARCHIVED = "archived"
    FAILED = "failed"
    LOST = "lost"
    TIMED_OUT = "timed out"
    STOPPED = "stopped"
    BUDGET_SPENT = "budget spent"
    SAME_FOLDER = "same folder"
    """No dependency: an AI agent works on it in the folder in which another one would."""

    @property
    def is_given_up(self) -> bool:
        """Whether it will not be done as things stand: a person has to decide what becomes of what waits."""
        return self not in {
            *(AwaitedState.OPEN, AwaitedState.NOT_QUEUED, AwaitedState.RUNNING, AwaitedState.IN_REVIEW),
            AwaitedState.SAME_FOLDER,
        }

    def named(self, number: int) -> str:
        """Return the number of the task with this state behind it: ``#8 (cancelled)``."""
        return f"#{number} ({self.value})" if self.value else f"#{number}"


class Priority(IntEnum):
    """How soon a task should run; 1 comes first."""

    URGENT = 1
    HIGH = 2
    NORMAL = 3
    LOW = 4
    LOWEST = 5
