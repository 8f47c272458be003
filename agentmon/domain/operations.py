"""Operations: an agent's tool calls, with the closed sets of what they do, touch and leave behind."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from agentmon.domain.changes import CallChanges
    from agentmon.domain.ids import ExecutionId, OperationId, SessionId


class OperationType(StrEnum):
    """What a tool call does to the thing it is aimed at."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    QUERY = "query"


class OperationStatus(StrEnum):
    """Where a tool call stands; one that waits for a decision is pending."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILED = "failed"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"


class MessageRole(StrEnum):
    """Who speaks in a message."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class ArtifactKind(StrEnum):
    """What sort of thing a session left behind."""

    CODE = "code"
    NOTE = "note"
    LOG = "log"
    ATTACHMENT = "attachment"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One tool call."""

    id: OperationId
    session_id: SessionId
    execution_id: ExecutionId | None
    tool_name: str
    type: OperationType
    target: str
    """Path, command, URL or query."""
    input_summary: str = ""
    output_summary: str = ""
    input_tokens: int = 0
    """Of the answer that asked for it, shared among all calls of that answer."""
    output_tokens: int = 0
    cost_nano: int = 0
    status: OperationStatus
    error: str | None = None
    approved: bool = False
    approved_by: str | None = None
    parent_ref: str | None = None
    started_at: datetime
    finished_at: datetime | None = None
    duration_ms: int | None = None
    number: int | None = None
    """Its place among the calls of its run, from 1; None without a run, and for one that was just written."""
    changes: CallChanges | None = None
    """What it changed in the folder of its run; None where that is not known."""
