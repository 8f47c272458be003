"""The closed sets of what an agent's tool calls do, touch and leave behind."""

from __future__ import annotations

from enum import StrEnum


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


class ChangeType(StrEnum):
    """What happened to a file."""

    CREATE = "create"
    MODIFY = "modify"
    DELETE = "delete"


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
