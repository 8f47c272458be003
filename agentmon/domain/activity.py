"""What a running agent is doing, apart from the rest of its conversation: the first frame needs no more."""

from __future__ import annotations

from enum import StrEnum


class Activity(StrEnum):
    """What a running agent is doing, as far as anybody can tell."""

    WORKING = "working"
    WAITING = "waiting"
    """It cannot go on without a person: a permission, a question, or nothing left to do.

    In the queue: what it waits for will not be done by itself.
    """
    UNKNOWN = "unknown"
    """No signal of it is to be trusted at present."""
