"""The sandbox of a run: how much of this machine its program sees and writes."""

from __future__ import annotations

from enum import StrEnum

from agentmon.domain.errors import UsageError


class Sandbox(StrEnum):
    """How strict it is, from none on."""

    OFF = "off"
    AGENTMON = "agentmon"
    """Nothing of agentmon itself, but for its command line, and no tmux server of the person."""
    PROJECT = "project"
    """Besides that it writes in its project, in temporary folders and where it is allowed to, and nowhere else."""


def stricter(one: Sandbox | None, other: Sandbox | None) -> Sandbox | None:
    """Return the stricter of two; None for neither."""
    return max((told for told in (one, other) if told is not None), key=list(Sandbox).index, default=None)


def sandbox_of(stored: object) -> Sandbox | None:
    """Return what is stored of a sandbox; None for a word that is none."""
    return Sandbox(stored) if isinstance(stored, str) and stored in set(Sandbox) else None


def read_sandbox(text: str, *, name: str) -> Sandbox | None:
    """Return the sandbox that a person wrote; None for an empty text.

    Args:
        text: One of the words, or nothing.
        name: What it was written for, for the error.

    Raises:
        UsageError: It is another word.
    """
    written = text.strip().lower()
    if written and written not in set(Sandbox):
        raise UsageError(f"{name}: {text.strip()!r} is none of {', '.join(Sandbox)}")
    return Sandbox(written) if written else None
