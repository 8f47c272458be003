"""Tasks: the cards of the board."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agentmon.domain.ids import AgentId, TaskId, UserId, WorkspaceId

TITLE_MAX_CHARACTERS: Final = 10_000
SORT_ORDER_GAP: Final = 1000
"""Distance between neighbours of a column, so that a card can be put between two without touching others."""


class TaskStatus(StrEnum):
    """The columns of the board, in their order from left to right."""

    TODO = "todo"
    IN_PROGRESS = "in_progress"
    BLOCKED = "blocked"
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
    TaskStatus.DONE: "Done",
    TaskStatus.CANCELLED: "Cancelled",
}


class Priority(IntEnum):
    """How soon a task should run; 1 comes first."""

    URGENT = 1
    HIGH = 2
    NORMAL = 3
    LOW = 4
    LOWEST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class InputContext:
    """What a task gives to its executions."""

    capability_key: str | None = None
    """The capability of the assignee to run; None means its default."""
    args: Mapping[str, object] = field(default_factory=dict)
    working_dir: str | None = None
    """Absolute path; None means the root of the workspace."""
    env_overrides: Mapping[str, str] = field(default_factory=dict)
    env_passed: tuple[str, ...] = ()
    """Names of variables whose values are taken from the environment of whoever starts the run, and never stored."""
    prompt_additions: str = ""
    max_retries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One card."""

    id: TaskId
    number: int
    workspace_id: WorkspaceId
    title: str
    description: str = ""
    status: TaskStatus = TaskStatus.TODO
    priority: Priority = Priority.NORMAL
    sort_order: int = 0
    parent_task_id: TaskId | None = None
    assignee_agent_id: AgentId | None = None
    input_context: InputContext = field(default_factory=InputContext)
    due_at: datetime | None = None
    version: int = 1
    """Grows with every change; an edit names the version it was made on, so that none overwrites another unseen."""
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDraft:
    """What a person fills in to make or change a task; already checked."""

    title: str
    description: str = ""
    priority: Priority = Priority.NORMAL
    assignee_agent_id: AgentId | None = None
    input_context: InputContext = field(default_factory=InputContext)
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A project folder whose tasks share one board."""

    id: WorkspaceId
    owner_id: UserId
    name: str
    root_path: str
