"""Tasks as they are offered while somebody types a number or letters of a title."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agentmon.domain.task_status import TaskStatus


class TaskPick(NamedTuple):
    """A task to choose."""

    number: int
    title: str
    status: TaskStatus
