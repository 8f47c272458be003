"""Signals that agents give beside their screens, read from their own files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.json_values import read_object
from agentmon.domain.plain_text import plain_line
from agentmon.runners.execution_folder import open_at_once
from agentmon.runners.screens.states import Finding, ScreenState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    SignalReader = Callable[["Mapping[str, str]", int], "Finding | None"]

_MAX_BYTES: Final = 64 * 1024
_MAX_ANCESTORS: Final = 64
_MAX_REF_CHARACTERS: Final = 200
# Source: what Claude Code 2.1.197 and 2.1.332 wrote, 2026-11-27. A shell is a command in the background that goes on.
_CLAUDE_STATES: Final = {
    "busy": ScreenState.WORKING,
    "idle": ScreenState.READY,
    "waiting": ScreenState.PERMISSION,
    "shell": ScreenState.BACKGROUND,
}


def read_signal(name: str, environ: Mapping[str, str], pid: int) -> Finding | None:
    """Return what the signal of this name says of the program; None when it says nothing, or is not known here.

    Args:
        name: As the rules of the agent name it.
        environ: The environment that the program was given.
        pid: The program's process; it may have started the agent itself.
    """
    reader = _READERS.get(name)
    return reader(environ, pid) if reader is not None else None


def is_halted(pid: int) -> bool:
    """Return whether the process is halted by a signal; False where that cannot be told."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[:1] == ["T"]


def _read_claude(environ: Mapping[str, str], pid: int) -> Finding | None:
    home = environ.get("CLAUDE_CONFIG_DIR") or (f"{environ['HOME']}/.claude" if environ.get("HOME") else "")
    if not home:
        return None
    for path in _candidates(Path(home) / "sessions", pid):
        finding = _read_claude_file(path)
        if finding is not None:
            return finding
    return None


def _read_claude_file(path: Path) -> Finding | None:
    try:
        with open_at_once(path) as file:
            document = read_object(file.read(_MAX_BYTES)) or {}
    except OSError:
        return None
    status = document.get("status")
    state = _CLAUDE_STATES.get(status) if isinstance(status, str) else None
    if state is None:
        return None
    waiting_for = document.get("waitingFor")
    wanted = plain_line(waiting_for, max_characters=100) if isinstance(waiting_for, str) else ""
    note = ""
    if state is ScreenState.PERMISSION:
        state = ScreenState.PERMISSION if "permission" in wanted else ScreenState.QUESTION
        note = wanted or "waits for an answer"
    elif state is ScreenState.BACKGROUND:
        note = "works in the background: a shell"
    evidence = f"status {status}" + (f", waiting for {wanted}" if wanted else "")
    ref = document.get("sessionId")
    changed_at_ms = document.get("statusUpdatedAt")
    return Finding(
        state=state,
        note=note,
        source="claude session file",
        where=str(path),
        evidence=evidence,
        session_ref=ref if isinstance(ref, str) and len(ref) <= _MAX_REF_CHARACTERS and ref.isprintable() else "",
        changed_at_ms=changed_at_ms if isinstance(changed_at_ms, int) else 0,
    )


def _candidates(folder: Path, pid: int) -> Iterator[Path]:
    """Yield the files of the process and of those that it started, itself first."""
    own = folder / f"{pid}.json"
    if own.exists():
        yield own
        return
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.name.endswith(".json")]
    except OSError:
        return
    for name in names:
        stem = name.removesuffix(".json")
        if stem.isdecimal() and is_descendant(int(stem), pid):
            yield folder / name


def is_descendant(pid: int, ancestor: int) -> bool:
    """Return whether a process is another one, or was started by it or by one of those that it started."""
    for _ in range(_MAX_ANCESTORS):
        if pid == ancestor:
            return True
        if pid <= 1:
            return False
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
            pid = int(stat.rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False


_READERS: Final[Mapping[str, SignalReader]] = {"claude": _read_claude}
