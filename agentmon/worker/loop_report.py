"""How the worker's loops fare, in a small file that needs no database and no free disk space.

It keeps its size, and is written over in place: a disk that is full later does not matter.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from agentmon.domain.background_loops import LoopState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

REPORT_EVERY_S: Final = 5.0
_FILE_BYTES: Final = 16 * 1024
_TIMES: Final = ("ok_at", "failed_at", "next_try_at", "busy_since")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopReport:
    """What the worker last said of its loops."""

    pid: int
    beat_at: datetime
    """When it said so; aware UTC. A worker that works says so every few seconds."""
    loops: tuple[LoopState, ...]


def write_loop_report(file: Path, loops: Sequence[LoopState], *, at: datetime) -> None:
    """Say how the loops of this process fare; a missing folder or a full disk is no reason to stop."""
    written = json.dumps(
        {"pid": os.getpid(), "beat_at": at.isoformat(), "loops": [_written(loop) for loop in loops]}
    ).encode()
    if len(written) > _FILE_BYTES:
        return
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(descriptor, written.ljust(_FILE_BYTES), 0)
        finally:
            os.close(descriptor)
    except OSError:
        return


def read_loop_report(file: Path) -> LoopReport | None:
    """Return what was said last; None when nothing was, or it cannot be read."""
    try:
        told = json.loads(file.read_bytes())
        return LoopReport(
            pid=int(told["pid"]),
            beat_at=datetime.fromisoformat(told["beat_at"]),
            loops=tuple(_read(loop) for loop in told["loops"]),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _written(loop: LoopState) -> dict[str, object]:
    fields = asdict(loop)
    return fields | {name: None if fields[name] is None else fields[name].isoformat() for name in _TIMES}


def _read(told: Mapping[str, str | float | None]) -> LoopState:
    times = {name: datetime.fromisoformat(str(told[name])) if told[name] else None for name in _TIMES}
    return LoopState(**{**told, **times})  # type: ignore[arg-type] # a wrong name raises TypeError, which is caught
