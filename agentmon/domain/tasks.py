"""Tasks: the cards of the board."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agentmon.domain.task_status import Priority, TaskStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from agentmon.domain.ids import AgentId, TaskId, UserId, WorkspaceId
    from agentmon.domain.task_status import AwaitedState
    from agentmon.domain.worktrees import Isolation

TITLE_MAX_CHARACTERS: Final = 10_000
SORT_ORDER_GAP: Final = 1000
"""Distance between neighbours of a column, so that a card can be put between two without touching others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputContext:
    """What a task gives to its executions."""

    capability_key: str | None = None
    """The capability of the assignee to run; None means its default."""
    args: Mapping[str, object] = field(default_factory=dict)
    working_dir: str | None = None
    """Absolute path; None means the root of the workspace."""
    isolation: Isolation | None = None
    """Whether its runs get a worktree of their own; None leaves it to the agent and the workspace."""
    base: str | None = None
    """What a worktree is made from: a branch, tag or commit; None means the present commit of the folder."""
    env_overrides: Mapping[str, str] = field(default_factory=dict)
    env_passed: tuple[str, ...] = ()
    """Names of variables whose values are taken from the environment of whoever starts the run, and never stored."""
    prompt_additions: str = ""
    max_retries: int = 0
    verify: str | None = None
    """The command that has to pass before its work counts as done; empty for none, None leaves it to the others."""
    verify_retries: int | None = None
    """How often its agent is sent back when that fails; None leaves it to the settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a task runs by itself, again and again."""

    cron: str
    """Five fields, or a word such as ``@daily``."""
    zone: str
    """IANA name of the time zone in which the fields are read."""


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
    labels: tuple[str, ...] = ()
    """In the order of the alphabet."""
    schedule: Schedule | None = None
    next_run_at: datetime | None = None
    """The next time of its schedule."""
    version: int = 1
    """Grows with every change; an edit names the version it was made on, so that none overwrites another unseen."""
    archived_at: datetime | None = None
    """Off the board since then, with everything kept; None while it is on the board."""
    deleted_at: datetime | None = None
    alternatives_id: TaskId | None = None
    """The first of the tasks that are alternatives of each other, itself included; None without any."""
    created_at: datetime
    updated_at: datetime

    @property
    def state_label(self) -> str:
        """Its column, or that it was deleted."""
        return self.status.label if self.deleted_at is None else "Deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedTask(Task):
    """One card as what another one waits for."""

    awaited_state: AwaitedState | None
    """Why the other one may not start; None when it may."""

    @property
    def releases(self) -> bool:
        """Whether the other one may start."""
        return self.awaited_state is None

    @property
    def is_given_up(self) -> bool:
        """Whether it will not be done as things stand, so that a person has to decide about the other one."""
        return self.awaited_state is not None and self.awaited_state.is_given_up

    @property
    def awaited_name(self) -> str:
        """Its number, and behind it why it will not be done by itself: ``#8 (cancelled)``."""
        return f"#{self.number}" if self.awaited_state is None else self.awaited_state.named(self.number)


def awaited_text(tasks: Iterable[AwaitedTask]) -> str:
    """Return the names of those of the tasks that keep another one from starting: ``#7, #8 (cancelled)``."""
    return ", ".join(task.awaited_name for task in tasks if not task.releases)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDraft:
    """What a person fills in to make or change a task; already checked."""

    title: str
    description: str = ""
    priority: Priority = Priority.NORMAL
    assignee_agent_id: AgentId | None = None
    input_context: InputContext = field(default_factory=InputContext)
    due_at: datetime | None = None
    parent_task_id: TaskId | None = None
    schedule: Schedule | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A project folder whose tasks share one board."""

    id: WorkspaceId
    owner_id: UserId
    name: str
    root_path: str


def draft_of(task: Task) -> TaskDraft:
    """Return the draft that holds all that a person can change of the task."""
    return TaskDraft(
        title=task.title,
        description=task.description,
        priority=task.priority,
        assignee_agent_id=task.assignee_agent_id,
        input_context=task.input_context,
        due_at=task.due_at,
        parent_task_id=task.parent_task_id,
        schedule=task.schedule,
        labels=task.labels,
    )
