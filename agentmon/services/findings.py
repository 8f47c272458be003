"""What the doctor finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FindingLevel(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    name: str
    level: FindingLevel
    text: str
    hint: str = ""


def fine(name: str, text: str) -> Finding:
    """Return that nothing is wrong."""
    return Finding(name=name, level=FindingLevel.OK, text=text)


def warning(name: str, text: str, *, hint: str) -> Finding:
    """Return something to look after, with what to do."""
    return Finding(name=name, level=FindingLevel.WARN, text=text, hint=hint)
