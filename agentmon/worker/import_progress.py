"""How far an import of usage is, told in a small file that needs no database and wakes nobody; and what one did."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.usage.sources import SourceFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportProgress:
    """How much of what is new was read."""

    files: int
    """Those that were finished."""
    all_files: int
    read_bytes: int
    all_bytes: int
    elapsed_s: float

    @property
    def percent(self) -> int | None:
        """The share of the bytes that were read, rounded down; None when there is nothing to read."""
        return min(100, self.read_bytes * 100 // self.all_bytes) if self.all_bytes else None

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at the speed so far; None when that cannot be told."""
        if not self.read_bytes or self.read_bytes >= self.all_bytes:
            return 0.0 if self.read_bytes else None
        return self.elapsed_s * (self.all_bytes - self.read_bytes) / self.read_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningImport:
    """An import of another process."""

    pid: int
    progress: ImportProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProblem:
    """Something in a file of an agent, or a folder, that could not be read."""

    path: str
    offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOutcome:
    """What an import did."""

    files: int
    """Those that had something new."""
    all_files: int
    """Those that were found."""
    read_bytes: int
    answers: int
    """Tellings of answers, also of those that were known."""
    elapsed_s: float
    look_s: float = 0.0
    """How long it took to see which files have something new."""
    problems: tuple[FileProblem, ...] = ()
    """At most one hundred."""
    sources: tuple[SourceFile, ...] = ()
    """The files that had something new."""


def write_progress(file: Path, progress: ImportProgress) -> None:
    """Tell how far the import of this process is; a full disk or a missing folder is no reason to stop it."""
    new = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        new.write_text(json.dumps({"pid": os.getpid(), **asdict(progress)}), encoding="utf-8")
        new.chmod(0o600)
        new.replace(file)
    except OSError:
        new.unlink(missing_ok=True)


def clear_progress(file: Path) -> None:
    """Tell that nothing is being imported."""
    file.unlink(missing_ok=True)


def find_running_import(file: Path) -> RunningImport | None:
    """Return the import that is going on; None when there is none, or its process is dead."""
    try:
        written = json.loads(file.read_text(encoding="utf-8"))
        pid = int(written.pop("pid"))
        os.kill(pid, 0)
        return RunningImport(pid=pid, progress=ImportProgress(**written))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
