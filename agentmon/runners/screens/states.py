"""The states in which an agent's screen can be, and what one source says of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ScreenState(StrEnum):
    """What an agent does, as its screen or its own signal tells."""

    WORKING = "working"
    BACKGROUND = "background"
    """Its turn is over, and something that it started goes on."""
    RETRY = "retry"
    """It tries again what its vendor refused."""
    PERMISSION = "permission"
    QUESTION = "question"
    DIALOG = "dialog"
    """A dialog of its own: trust, login, update, theme."""
    READY = "ready"
    """It takes a prompt."""
    ERROR = "error"
    """Its turn ended with an error, and it takes a prompt."""

    @property
    def is_busy(self) -> bool:
        """Whether it works by itself."""
        return self in {ScreenState.WORKING, ScreenState.BACKGROUND, ScreenState.RETRY}

    @property
    def is_asking(self) -> bool:
        """Whether it cannot go on without an answer."""
        return self in {ScreenState.PERMISSION, ScreenState.QUESTION, ScreenState.DIALOG}

    @property
    def is_free(self) -> bool:
        """Whether it takes a prompt."""
        return self in {ScreenState.READY, ScreenState.ERROR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one source says."""

    state: ScreenState
    note: str = ""
    """What it waits for or does, in a few words."""
    source: str
    """The signal or rule: ``claude session file``, ``rule claude/trust``."""
    where: str = ""
    """The file of the signal, or file and line of the rule."""
    evidence: str = ""
    """What was read there, one line, without secrets."""
    session_ref: str = ""
    """The agent's own id of the conversation that it has there; empty where the source does not tell it."""
    changed_at_ms: int = 0
    """When the agent itself last changed its state, of any states; 0 where the source does not tell it."""
