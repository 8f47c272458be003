"""The ledgers that the programs kept, read back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a process had given to standard output at one moment, from its start."""

    bytes: int = 0
    lines: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLedger:
    """What one process said of itself; times are those of the monotonic clock, in seconds."""

    execution_id: str
    writer: str
    """The first word of each of its lines; ``m`` is the program itself."""
    pid: int
    born: str
    """Its start time in ticks since the machine's start."""
    parent_pid: int
    """Of the program itself: the pid of its host."""
    main_pid: int
    kind: str
    secret_sha256: str
    started_at: float
    last_at: float
    """Of the last line: the process lived at least until then."""
    written: Mark
    """What it certainly wrote."""
    announced: Mark
    """What it had begun to write."""
    exit_code: int | None
    """None: it was killed."""

    @property
    def is_main(self) -> bool:
        """Whether it is the program itself and none of what that started."""
        return self.pid == self.main_pid


def read_ledgers(folder: Path) -> tuple[ProcessLedger, ...]:
    """Return the ledgers of a folder in the order of their starts; a half last line is that of a killed process."""
    found = [ledger for path in folder.glob("*.jsonl") if (ledger := _read(path)) is not None]
    return tuple(sorted(found, key=lambda ledger: ledger.started_at))


def _read(path: Path) -> ProcessLedger | None:
    entries = []
    for line in path.read_bytes().splitlines():
        try:
            entries.append(json.loads(line))
        except ValueError:
            break
    if not entries:
        return None
    start = entries[0]
    written = announced = Mark()
    exit_code = None
    for entry in entries[1:]:
        mark = Mark(bytes=entry["bytes"], lines=entry["lines"], sha256=entry["sha256"])
        if entry["type"] == "will":
            announced = mark
        elif entry["type"] == "wrote":
            written = mark
        else:
            # One that nobody listened to any more ended by itself, but not with all of its output.
            exit_code = entry["code"]
    return ProcessLedger(
        execution_id=start["execution"],
        writer=start["writer"],
        pid=start["pid"],
        born=start["born"],
        parent_pid=start["parent"],
        main_pid=start["main"],
        kind=start["kind"],
        secret_sha256=start["secret"],
        started_at=start["at"],
        last_at=entries[-1]["at"],
        written=written,
        announced=announced,
        exit_code=exit_code,
    )
