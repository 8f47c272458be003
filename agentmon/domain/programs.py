"""Programs: what a scan finds on the PATH of this machine, whether or not anybody has made an agent of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


class ProgramKind(StrEnum):
    """What stands at a program's place."""

    BINARY = "binary"
    SCRIPT = "script"
    """A text with an interpreter in its first line."""
    WRAPPER = "wrapper"
    """A short script whose only work is to start another program."""
    SHIM = "shim"
    """The placeholder of a version manager, which chooses a program at each start."""
    ALIAS = "alias"
    """A word that a start-up file of the person's shell defines; no other program can start it."""
    BROKEN = "broken"
    """A link whose end is not there, or a file that cannot be executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One entry of a folder of the PATH."""

    path: str
    """As it stands on the PATH, before links are followed; an alias is ``alias:NAME``."""
    name: str
    real_path: str
    """Where its links end, as far as that can be told; for a wrapper, a shim or an alias what it starts."""
    kind: ProgramKind
    shadowed_by: str | None = None
    """The path of the program of this name that comes earlier on the PATH."""
    size_bytes: int = 0
    modified_ms: int = 0
    """Milliseconds since 1970."""
    package_manager: str | None = None
    """``dpkg``, ``rpm``, ``brew``, ``npm``, ``pipx``, ``cargo`` …"""
    package_name: str | None = None
    package_section: str | None = None
    package_version: str | None = None
    first_seen_at: datetime | None = None
    last_seen_at: datetime | None = None
    changed_at: datetime | None = None
    missing_since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanProgress:
    """How far a scan is."""

    step: str
    """What is done now, such as ``reading folders`` or ``asking for versions``."""
    done: int
    total: int
    """0 while it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanOutcome:
    """What a scan found, beside what the one before it had found."""

    programs: int
    folders: int
    came: tuple[str, ...] = ()
    """Paths, sorted."""
    changed: tuple[str, ...] = ()
    went: tuple[str, ...] = ()
    agents_added: tuple[str, ...] = ()
    """Slugs."""
    agents_missing: tuple[str, ...] = ()
    agents_back: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Sentences, such as a folder that could not be read."""
    elapsed_s: float = 0.0
    is_first: bool = False
    """Whether no scan had been before, so that all has come."""
