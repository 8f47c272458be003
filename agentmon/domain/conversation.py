"""What an agent says and does while it works, in the words of no protocol: one value for each kind of news.

The host's adapters write these as JSON objects into the journal, under the same field names and with ``kind``; texts
that follow here are cleaned of secrets. Times are those of the journal entry that carries the news.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from agentmon.domain.agents import DangerLevel
from agentmon.domain.billing import Confidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.activity import Activity
    from agentmon.domain.changes import ChangeType
    from agentmon.domain.events import EventLevel
    from agentmon.domain.operations import MessageRole, OperationStatus, OperationType


class TurnOutcome(StrEnum):
    """How one turn of an agent ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    LIMIT = "limit"
    """It reached the limit of turns or money that it was given."""


class AskKind(StrEnum):
    """What an agent wants of a person."""

    PERMISSION = "permission"
    QUESTION = "question"
    PLAN = "plan"
    """It shows a plan and asks whether to carry it out."""
    START = "start"
    """A capability that is dangerous waits before it starts; no agent asks this."""
    DIALOG = "dialog"
    """A dialog of its own screen that is about no tool: trust, a login, or one that no rule knows whole."""
    BUDGET = "budget"
    """A budget is spent: may the run go on? No agent asks this."""

    @property
    def is_question(self) -> bool:
        """Whether it is answered by one of its choices or in words."""
        return self in {AskKind.QUESTION, AskKind.BUDGET}


class AskDecision(StrEnum):
    """What can be decided on what an agent wants to do."""

    ALLOW = "allow"
    ALLOW_FOR_SESSION = "allow_for_session"
    DENY = "deny"


class AskOutcome(StrEnum):
    """What became of a request."""

    ALLOWED = "allowed"
    DENIED = "denied"
    ANSWERED = "answered"
    WITHDRAWN = "withdrawn"
    """The agent no longer asks: it was interrupted, ended, or took back its request."""


class PlanStatus(StrEnum):
    """Where one step of a plan stands."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionNews:
    """The agent named its conversation, or something about it changed; what is None did not."""

    session_ref: str | None = None
    """The agent's own id of the conversation, by which it is resumed."""
    title: str | None = None
    model: str | None = None
    permission_mode: str | None = None
    agent_version: str | None = None
    models: tuple[str, ...] = ()
    """Models that the agent offers; empty when it did not say."""
    permission_modes: tuple[str, ...] = ()
    transcript_path: str | None = None
    """The file in which the agent keeps the conversation, where it says so."""
    cannot_resume: str | None = None
    """Why the agent cannot go on with the conversation, told with its id or when it refuses to."""
    cannot_fork: str | None = None
    """Why the agent cannot copy it, told with its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityNews:
    """The agent works, or waits for a person."""

    activity: Activity
    note: str = ""
    """What it waits for, or why it is unknown, in a few words."""
    source: str = ""
    """The signal or rule that decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageNews:
    """One message, whole; long ones come in parts."""

    message_ref: str
    """Unique in its execution."""
    role: MessageRole
    text: str
    continues: bool = False
    """Whether the text goes on from that of the same ``message_ref``."""
    is_thinking: bool = False
    parent_tool_ref: str | None = None
    """The tool call of the subagent that speaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One step of a plan."""

    text: str
    status: PlanStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNews:
    """The agent's plan as it is now, all of it."""

    steps: tuple[PlanStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStartedNews:
    """The agent calls one of its tools; it may come again with more detail before the call runs."""

    tool_ref: str
    """Unique in its execution."""
    tool_name: str
    type: OperationType
    target: str
    """Path, command, URL or query; at most 1,000 characters."""
    input_summary: str = ""
    """At most 4,000 characters."""
    parent_tool_ref: str | None = None
    answer_key: str | None = None
    """``UsageNews.key`` of the answer that asked for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinishedNews:
    """A tool call is over."""

    tool_ref: str
    status: OperationStatus
    output_summary: str = ""
    """At most 4,000 characters."""
    error: str | None = None
    duration_ms: int | None = None
    """As the agent says; None when it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffNews:
    """The agent changed a file."""

    path: str
    change_type: ChangeType
    diff: str
    """Unified hunks, at most 40,000 characters; empty when the agent does not show them."""
    added_lines: int
    removed_lines: int
    tool_ref: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskChoice:
    """One answer that can be chosen."""

    key: str
    """What the answer names: unique in its question."""
    label: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskQuestion:
    """One question with its choices; one without choices is answered in free text."""

    question: str
    header: str = ""
    choices: tuple[AskChoice, ...] = ()
    is_multiple: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AskNews:
    """The agent asks a person and cannot go on without the answer."""

    request_id: str
    """Unique in its execution; an answer names it."""
    ask_kind: AskKind
    tool_ref: str | None = None
    tool_name: str = ""
    type: OperationType | None = None
    target: str = ""
    title: str
    """One line that says what is asked."""
    detail: str = ""
    """All that is to be decided on: the whole command, the diff, the plan; at most 40,000 characters."""
    reason: str = ""
    """Why the agent wants it, in its own words."""
    tool_input: Mapping[str, object] = field(default_factory=dict)
    """The tool's input, cleaned; empty when it is too long to be edited."""
    input_digest: str = ""
    """SHA-256 of the input as the agent sent it: an answer names it, and another input is never approved."""
    can_allow_for_session: bool = False
    can_edit_input: bool = False
    questions: tuple[AskQuestion, ...] = ()
    """Of a dialog of its own screen one, whose choices are named by the decisions that choose them."""
    danger_level: DangerLevel = DangerLevel.SAFE
    """As the rules here say; no agent tells it."""
    danger_name: str = ""
    """What a person types to allow level 3."""
    danger_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskClosedNews:
    """A request is settled; it comes once for every ``AskNews``."""

    request_id: str
    outcome: AskOutcome
    command_id: str | None = None
    """The command that answered it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageNews:
    """One billed answer of a model; the same key again replaces what was said before."""

    key: str
    """The one under which the agent's own transcript has the answer."""
    model: str
    provider: str
    prompt_tokens: int = 0
    """Not from a cache."""
    cache_read_tokens: int = 0
    cache_write_5m_tokens: int = 0
    cache_write_1h_tokens: int = 0
    response_tokens: int = 0
    """With those of reasoning."""
    reasoning_tokens: int = 0
    latency_ms: int | None = None
    is_final: bool = True
    """False while the answer is being written, when the agent says its size only later."""
    error: str = ""
    """Why the call brought no answer, in one line; empty for an answer."""
    error_status: int | None = None
    is_key_provisional: bool = False
    """Whether the protocol does not tell the key of the transcript, so that this one is the adapter's own."""
    confidence: Confidence = Confidence.EXACT


@dataclass(frozen=True, slots=True, kw_only=True)
class CostNews:
    """What the agent says the conversation has cost since its beginning; never added up."""

    cost_nano: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStartedNews:
    """The agent begins to work on a message."""

    prompt_refs: tuple[str, ...] = ()
    """Ids of the commands whose messages it works on, where that can be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEndedNews:
    """The agent has finished what it was asked, one way or another."""

    outcome: TurnOutcome
    text: str = ""
    """Its last words, at most 4,000 characters."""
    error: str | None = None
    """One line, when it failed or reached a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeNews:
    """Something a person may want to know: a retry, a warning, a message that no release here understands."""

    level: EventLevel
    text: str
    topic: str = ""
    """A word that names the kind of notice: ``retry``, ``unknown_message``, ``rate_limit``, ``stderr`` …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandNews:
    """What became of a command of a client."""

    command_id: str
    was_obeyed: bool
    is_queued: bool = False
    """A message that the agent takes up when it has finished what it does now; obeyed later."""
    error: str | None = None


ConversationNews = (
    SessionNews
    | ActivityNews
    | MessageNews
    | PlanNews
    | ToolStartedNews
    | ToolFinishedNews
    | DiffNews
    | AskNews
    | AskClosedNews
    | UsageNews
    | CostNews
    | TurnStartedNews
    | TurnEndedNews
    | NoticeNews
    | CommandNews
)
