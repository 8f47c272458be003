"""Which conversations a process of Gemini CLI has begun, by ``logs.json`` (0.61), since its chats name no process.

A process logs what is typed under the id of its first conversation, whichever it has by then. All of one folder write
into one file: ``[{"sessionId": …, "type": "user", "message": "/clear", "timestamp": …}, …]``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from agentmon.usage.fields import moment_in, ref_in, text_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentmon.usage.beginnings import Beginning

_MAX_BYTES: Final = 16 * 1_048_576
_WITHIN_MS: Final = 2_000
_BEGINS_ANEW: Final = frozenset({"/clear", "/new"})


class _Anew(NamedTuple):
    """A ``/clear`` or ``/new`` that somebody typed."""

    process: str
    at_ms: int
    said: set[str]
    """What was typed in it since, without blanks."""


def begun_by_process_of(session_ref: str, conversations: Sequence[Beginning]) -> set[str]:
    """Return the conversations that the process of one of them started by ``/clear`` or ``/new``; blocks.

    Each of them begins right behind such a command of that process, and of no other, with words that were typed there.
    """
    logs = {Path(one.path).parent.parent / "logs.json" for one in conversations}
    typed = [entry for log in logs for entry in _entries_of(log)]
    anew = list(_begun_anew(typed))
    first = {ref_in(entry, "sessionId") for entry in typed}
    processes: dict[str, str] = {}
    for one in conversations:
        fitting = {
            told.process
            for told in anew
            if 0 <= one.begun_ms - told.at_ms <= _WITHIN_MS and _without_blanks(one.prompt) in told.said
        }
        if one.session_ref not in first and len(fitting) == 1:
            processes[one.session_ref] = fitting.pop()
    own = processes.get(session_ref, session_ref)
    return {ref for ref, process in processes.items() if process == own}


def _begun_anew(typed: Iterable[dict[str, object]]) -> Iterable[_Anew]:
    """Yield each ``/clear`` and ``/new`` with all that was typed after it."""
    latest: dict[str, _Anew] = {}
    for entry in sorted(typed, key=lambda entry: moment_in(entry, "timestamp")):
        process, message = ref_in(entry, "sessionId"), text_in(entry, "message", _MAX_BYTES)
        if message.strip() in _BEGINS_ANEW:
            if process in latest:
                yield latest[process]
            latest[process] = _Anew(process, moment_in(entry, "timestamp"), set())
        elif process in latest:
            latest[process].said.add(_without_blanks(message))
    yield from latest.values()


def _entries_of(log: Path) -> list[dict[str, object]]:
    try:
        with log.open("rb") as opened:
            written = orjson.loads(opened.read(_MAX_BYTES))
    except (OSError, orjson.JSONDecodeError):
        return []
    return [entry for entry in written if isinstance(entry, dict)] if isinstance(written, list) else []


def _without_blanks(text: str) -> str:
    return "".join(text.split())
