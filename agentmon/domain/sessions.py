"""Sessions: conversations with an agent, and their small registry row."""

from __future__ import annotations

from enum import StrEnum


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
