"""Sessions: conversations with an agent, and their small registry row."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import ROLE_MARK
from agentmon.domain.live_state import LiveState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agentmon.domain.ids import AgentId, ExecutionId, MessageId, SessionId, TaskId
    from agentmon.domain.operations import MessageRole


CANNOT_RESUME: Final = "cannot_resume"
"""Key of a session's metadata: why its agent cannot go on with it."""
CANNOT_FORK: Final = "cannot_fork"
"""Key of a session's metadata: why its agent cannot copy it."""


class SessionStatus(StrEnum):
    """Where a conversation stands."""

    PLANNING = "planning"
    RUNNING = "running"
    WAITING_FOR_INPUT = "waiting_for_input"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RegistryStatus(StrEnum):
    """What the registry says of a session."""

    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"
    ERROR = "error"


STATES: Final = {
    SessionStatus.PLANNING: LiveState.QUEUED,
    SessionStatus.RUNNING: LiveState.RUNNING,
    SessionStatus.WAITING_FOR_INPUT: LiveState.NEEDS_YOU,
    SessionStatus.PAUSED: LiveState.PAUSED,
    SessionStatus.COMPLETED: LiveState.DONE,
    SessionStatus.FAILED: LiveState.FAILED,
    SessionStatus.CANCELLED: LiveState.CANCELLED,
}
"""How a conversation of which agentmon ran nothing is shown."""


def registry_status(status: SessionStatus) -> RegistryStatus:
    """Return how the registry shows a session of this status."""
    match status:
        case SessionStatus.PLANNING | SessionStatus.RUNNING | SessionStatus.WAITING_FOR_INPUT:
            return RegistryStatus.ACTIVE
        case SessionStatus.FAILED | SessionStatus.CANCELLED:
            return RegistryStatus.ERROR
        case SessionStatus.PAUSED:
            return RegistryStatus.PAUSED
        case SessionStatus.COMPLETED:
            return RegistryStatus.COMPLETED


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation with an agent; several executions may go on with it."""

    id: SessionId
    agent_id: AgentId
    task_id: TaskId | None
    title: str = ""
    workspace: str
    """Absolute path of the folder it works in."""
    session_ref: str | None = None
    """The agent's own id, by which it is resumed; None until it is known."""
    status: SessionStatus
    model: str | None = None
    model_tier: int | None = None
    temperature: float | None = None
    initial_prompt: str = ""
    started_at: datetime
    ended_at: datetime | None = None
    total_tokens: int = 0
    total_cost_nano: int = 0
    operation_count: int = 0
    context_tokens: int | None = None
    """How full its context was at its last answer; None when nobody told."""
    context_limit_tokens: int | None = None
    """How much the context holds; None when that is not known."""
    permission_mode: str | None = None
    models: tuple[str, ...] = ()
    """Models that the agent offered."""
    permission_modes: tuple[str, ...] = ()
    forked_from: SessionId | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)

    @property
    def cannot_resume(self) -> str:
        """Why nobody can go on with it; empty when somebody can, as far as is known."""
        if self.session_ref is None:
            return "Its agent never named it."
        return str(self.metadata.get(CANNOT_RESUME) or "")

    @property
    def cannot_fork(self) -> str:
        """Why nobody can go on with a copy of it; empty when somebody can, as far as is known."""
        return self.cannot_resume or str(self.metadata.get(CANNOT_FORK) or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionListing:
    """A session with what a list shows beside it."""

    session: Session
    agent_slug: str
    task_number: int | None
    task_title: str
    asked: str
    """What the person asked first, without the role and the instructions that the agent was given before it."""
    newest_execution_id: ExecutionId | None
    is_live: bool
    """Whether an execution of it runs or waits."""
    state: LiveState
    """Of its newest execution, or of the conversation itself where agentmon ran none."""
    exit_code: int | None = None
    """Of its newest execution."""
    match: str = ""
    """The piece of a message or an operation in which a search found its words."""

    @property
    def title(self) -> str:
        """What it is called: its title, else the first line of what the person asked first, else its task."""
        first = next(iter(self.asked.splitlines()), "").rstrip()
        if self.session.initial_prompt.startswith(ROLE_MARK):
            # As sessions of releases up to 0.7 have it, with instructions that the agent may not have any more.
            first = self.task_title or first
        return self.session.title or first or self.task_title or "without a word"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation."""

    id: MessageId
    session_id: SessionId
    execution_id: ExecutionId | None
    role: MessageRole
    content: str
    is_thinking: bool = False
    parent_ref: str | None = None
    """The tool call of the subagent that speaks."""
    message_ref: str | None = None
    """Its name in its execution; None where its agent gave it none."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A message that an agent is writing, as far as it has come."""

    execution_id: ExecutionId
    message_ref: str
    """That of the message which it becomes."""
    text: str
    """The word that is being written is left out: it may be half a secret."""
    is_thinking: bool = False
    parent_ref: str | None = None
    begun_at: datetime
