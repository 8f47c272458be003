"""What a running agent is doing, apart from the rest of its conversation: the first frame needs no more."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

DELIVERY_SOURCE: Final = "prompt delivery"
"""What tells an activity while a text is on its way into an agent's own screen."""


class Activity(StrEnum):
    """What a running agent is doing, as far as anybody can tell."""

    WORKING = "working"
    WAITING = "waiting"
    """It cannot go on without a person: a permission, a question, or nothing left to do.

    In the queue: what it waits for will not be done by itself.
    """
    UNKNOWN = "unknown"
    """No signal of it is to be trusted at present."""
