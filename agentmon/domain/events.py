"""Events: the stream of what an execution did, and the audit trail of who changed a task."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agentmon.domain.ids import ExecutionId, SessionId, TaskId


class EventType(StrEnum):
    """What kind of thing happened."""

    LOG = "log"
    PLAN_UPDATE = "plan_update"
    TOOL_STARTED = "tool_started"
    TOOL_FINISHED = "tool_finished"
    DIFF = "diff"
    STATUS_CHANGE = "status_change"
    MESSAGE = "message"
    USAGE = "usage"
    APPROVAL = "approval"
    ERROR = "error"


class EventLevel(StrEnum):
    """How loud an event is."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"


class ActorType(StrEnum):
    """Who made a change."""

    USER = "user"
    AGENT = "agent"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The one who made a change."""

    type: ActorType
    id: str | None = None


UNSEEN_ACTOR: Final = Actor(type=ActorType.AGENT, id="unseen")
"""One behind whom nobody can look, and who is therefore taken for an agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One entry of an execution's stream."""

    id: int = 0
    """Assigned by the database, growing; 0 before."""
    execution_id: ExecutionId | None
    session_id: SessionId | None = None
    trace_id: str
    type: EventType
    level: EventLevel | None = None
    timestamp_ms: int
    """UTC, milliseconds since 1970."""
    payload: Mapping[str, object] = field(default_factory=dict)


class TaskEventType(StrEnum):
    """What changed: about a task, one of its executions, the queue, an agent or a setting."""

    TASK_CREATED = "task_created"
    TASK_EDITED = "task_edited"
    TASK_MOVED = "task_moved"
    TASK_DELETED = "task_deleted"
    TASK_RESTORED = "task_restored"
    TASK_ARCHIVED = "task_archived"
    TASK_UNARCHIVED = "task_unarchived"
    DEPENDENCY_ADDED = "dependency_added"
    DEPENDENCY_REMOVED = "dependency_removed"
    EXECUTION_QUEUED = "execution_queued"
    EXECUTION_STARTED = "execution_started"
    EXECUTION_STOP_REQUESTED = "execution_stop_requested"
    EXECUTION_ENDED = "execution_ended"
    EXECUTION_REQUEUED = "execution_requeued"
    EXECUTION_HASTENED = "execution_hastened"
    """Somebody let it start before the time it waited for."""
    EXECUTION_HELD = "execution_held"
    """What it waits for in the queue will not be done by itself."""
    EXECUTION_PARKED = "execution_parked"
    """It went back to the queue until the vendor serves it again."""
    EXECUTION_LOG_REMOVED = "execution_log_removed"
    SCHEDULE_PASSED_OVER = "schedule_passed_over"
    """A time of its cron line came while it could not be queued."""
    QUEUE_PAUSED = "queue_paused"
    QUEUE_RESUMED = "queue_resumed"
    AGENT_PARKED = "agent_parked"
    AGENT_RELEASED = "agent_released"
    AGENT_CHANGED = "agent_changed"
    SETTING_CHANGED = "setting_changed"
    APPROVAL_ASKED = "approval_asked"
    APPROVAL_DECIDED = "approval_decided"
    APPROVAL_WITHDRAWN = "approval_withdrawn"
    APPROVAL_RULE_CHANGED = "approval_rule_changed"
    BUDGET_CHANGED = "budget_changed"
    BUDGET_REACHED = "budget_reached"
    """A share of a budget that a person is told of is used, or all of it."""
    AUDIT_THINNED = "audit_thinned"
    """Lines of this trail were removed that are older than a person keeps them."""
    CHANGES_UNDONE = "changes_undone"
    """Somebody took back what a run changed in its folder, or some of it."""
    RUNS_OVERLAP = "runs_overlap"
    """Two live runs get into each other's way."""
    EDITS_DISCARDED = "edits_discarded"
    """Another run took back what a live one had changed."""
    MESSAGE_SENT = "message_sent"
    MESSAGE_UNHEARD = "message_unheard"
    """A message reached nobody: its agent had ended, and nothing of the task goes on."""
    WORKTREE_MADE = "worktree_made"
    WORKTREE_REMOVED = "worktree_removed"
    BRANCH_MERGED = "branch_merged"
    MERGE_UNDONE = "merge_undone"
    MERGE_BROKEN_OFF = "merge_broken_off"
    """A kill came before the base had moved: all is as it was."""
    PULL_REQUEST_OPENED = "pull_request_opened"
    WORKTREE_RESTORED = "worktree_restored"
    """Made again after its folder had vanished."""
    WORKSPACE_MOVED = "workspace_moved"
    """A person said where the folder of a workspace is now."""
    AGENT_COMMANDED = "agent_commanded"
    """Somebody interrupted an agent, or changed its model or permission mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvent:
    """One line of the audit trail."""

    id: int
    task_id: TaskId | None
    """None for what concerns no single task."""
    actor: Actor
    event_type: TaskEventType
    payload: Mapping[str, object]
    created_at: datetime
