"""Which process of opencode made a session, by ``log/opencode.log`` (1.18.33), since its database names no process.

All processes write into one file, and each line has a name of its process: ``timestamp=… level=… run=29eaa3a4 …``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.usage.fields import moment_of
from agentmon.usage.sources import OPENCODE, list_places

if TYPE_CHECKING:
    from collections.abc import Mapping

_READ_BYTES: Final = 4 * 1_048_576
_LINE: Final = re.compile(r"timestamp=(\S+) level=\S+ run=(\w+) ")
_PAIR: Final = re.compile(r'([\w.]+)=("[^"\\]*(?:\\.[^"\\]*)*"|\S*)(?: |$)')


def made_by_process_of(session_ref: str, environ: Mapping[str, str], *, since_ms: int) -> set[str]:
    """Return the sessions that the process has made which works on a session; none where several work on it.

    Args:
        session_ref: That on which it works.
        environ: Says where opencode keeps its files.
        since_ms: When the process started, UTC; what it wrote longer ago than the end of the log is not known.
    """
    workers: set[str] = set()
    made: dict[str, set[str]] = {}
    for place in list_places(environ):
        if place.agent_slug == OPENCODE:
            for line in _end_of(Path(place.path) / "log" / "opencode.log").splitlines():
                found = _LINE.match(line)
                if found is None or moment_of(found[1]) < since_ms:
                    continue
                said = _pairs_in(line, found.end())
                is_created = said.get("message") == "created"
                told = said.get("id" if is_created else "session.id", "")
                if told == session_ref:
                    workers.add(found[2])
                if is_created:
                    made.setdefault(found[2], set()).add(told)
    return made.get(workers.pop(), set()) if len(workers) == 1 else set()


def _pairs_in(line: str, at: int) -> dict[str, str]:
    """Return what a line says, by name, from a place on; what is quoted in a value is no name of its own."""
    said: dict[str, str] = {}
    while found := _PAIR.match(line, at):
        said.setdefault(found[1], found[2])
        at = found.end()
        if at == len(line):
            break
    return said


def _end_of(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            opened.seek(max(0, path.stat().st_size - _READ_BYTES))
            return opened.read().decode("utf-8", "replace")
    except OSError:
        return ""
