"""Places inside a task's page that other screens open it at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSpot:
    """A place in the log of a run."""

    offset: int
    """A byte of the line that is meant, counted from 0; beyond the end it is the last line."""
    words: str = ""
    """What is marked there, as it was written; small letters alone stand for capitals too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TalkSpot:
    """A block of the conversation."""

    key: str
    """The id of the message or of the tool call."""
