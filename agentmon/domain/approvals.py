"""Approvals: what waits for a person's decision, what was decided, and the rules that decide without one."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import DangerLevel
from agentmon.domain.conversation import AskDecision, AskKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agentmon.domain.conversation import AskChoice, AskQuestion
    from agentmon.domain.events import Actor
    from agentmon.domain.ids import (
        AgentId,
        ApprovalId,
        ApprovalRuleId,
        ExecutionId,
        OperationId,
        SessionId,
        TaskId,
        WorkspaceId,
    )
    from agentmon.domain.operations import OperationType


SCREEN_REQUEST: Final = "screen:"
"""So begins the id of a request that an agent makes in its own screen."""


class ApprovalStatus(StrEnum):
    """Where a request stands."""

    PENDING = "pending"
    ALLOWED = "allowed"
    DENIED = "denied"
    ANSWERED = "answered"
    """A question got its answer, or a dialog of an own screen was answered there and does not tell how."""
    WITHDRAWN = "withdrawn"
    """Nobody asks any more."""
    EXPIRED = "expired"
    """Nobody decided within the time that is set, so it was denied."""


class ApprovalScope(StrEnum):
    """How far a decision reaches."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"
    """By a rule that was made of it."""


class RuleDecision(StrEnum):
    """What a rule does with a request; of several that fit, the strictest counts: deny, then ask, then allow."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One request of an agent, or of a capability that is dangerous, with its decision."""

    id: ApprovalId
    execution_id: ExecutionId
    session_id: SessionId | None = None
    operation_id: OperationId | None = None
    request_id: str
    ask_kind: AskKind
    tool_name: str = ""
    type: OperationType | None = None
    target: str = ""
    title: str
    detail: str = ""
    reason: str = ""
    tool_input: Mapping[str, object] = field(default_factory=dict)
    input_digest: str = ""
    can_allow_for_session: bool = False
    can_edit_input: bool = False
    questions: tuple[AskQuestion, ...] = ()
    danger_level: DangerLevel = DangerLevel.SAFE
    danger_name: str = ""
    danger_reason: str = ""
    """What it would do, as the rules about command lines say; empty when they say nothing."""
    status: ApprovalStatus = ApprovalStatus.PENDING
    scope: ApprovalScope | None = None
    decided_by: Actor | None = None
    decision_reason: str | None = None
    """Why it was decided that way. While it is pending again: why the last decision did not reach the agent."""
    rule_id: ApprovalRuleId | None = None
    """The rule that decided."""
    asked_at: datetime
    decided_at: datetime | None = None

    @property
    def name_to_type(self) -> str:
        """What a person types to allow it; empty for what needs no more than a key."""
        return (self.danger_name or self.tool_name) if self.danger_level is DangerLevel.DESTRUCTIVE else ""

    @property
    def is_in_screen(self) -> bool:
        """Whether the agent asks in its own screen, so that an answer is typed there."""
        return self.request_id.startswith(SCREEN_REQUEST)

    @property
    def typed(self) -> Mapping[str, AskChoice]:
        """By decision: the option of the agent's own screen that it chooses; its description names the keys.

        What is missing there can only be decided by attaching.
        """
        return {choice.key: choice for one in self.questions for choice in one.choices} if self.is_in_screen else {}

    @property
    def hears_reason(self) -> bool:
        """Whether the agent can be told why it was denied."""
        return not (self.is_in_screen and self.ask_kind is AskKind.DIALOG)

    def takes(self, decision: AskDecision | None) -> bool:
        """Return whether this can be decided from outside of the agent's terminal; None is the answer to a question."""
        if self.is_in_screen:
            return decision in self.typed
        return self.ask_kind is not AskKind.DIALOG


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalListing:
    """An approval with the words that the inbox shows beside it."""

    approval: Approval
    task_id: TaskId
    task_number: int
    task_title: str
    workspace_id: WorkspaceId
    workspace_name: str
    agent_slug: str
    working_dir: str
    more: int = 0
    """How many requests of the same run wait behind this one and are not listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRule:
    """Decides requests that fit all of what it names."""

    id: ApprovalRuleId
    decision: RuleDecision
    tool: str = "*"
    """Name of a tool, with ``*`` and ``?``."""
    path: str | None = None
    """Glob of the path that the tool touches; a relative one counts from the workspace's root."""
    command_prefix: str | None = None
    """First words of the command; it allows a single simple command only."""
    workspace_id: WorkspaceId | None = None
    """None means every workspace."""
    agent_id: AgentId | None = None
    """None means every agent."""
    note: str = ""
    is_enabled: bool = True
    created_at: datetime
