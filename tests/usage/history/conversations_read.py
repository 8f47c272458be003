"""Reads what files of agents tell of conversations, and shows it in the order of their time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agentmon.domain.history import HistoryMessage, HistoryOperation
from agentmon.usage.history.openings import has_history, read_history
from agentmon.usage.history.reading import HistoryReading
from agentmon.usage.sources import find_sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

Part = HistoryMessage | HistoryOperation


def line(**fields: object) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def parts_of(reading: HistoryReading) -> list[Part]:
    """Return messages and calls, the earliest first."""
    return in_order([*reading.messages, *reading.operations])


def in_order(parts: Iterable[Part]) -> list[Part]:
    return sorted(parts, key=_time)


def told(parts: Iterable[Part]) -> list[tuple[str, str]]:
    """Return who says what, and which tool does what."""
    return [_words(part) for part in parts]


def read_home(environ: Mapping[str, str]) -> dict[str, list[Part]]:
    """Return what all files tell, by conversation."""
    parts: dict[tuple[str, str], Part] = {}
    for source in filter(has_history, find_sources(environ)):
        for read in read_history(source, None):
            assert isinstance(read.reading, HistoryReading)
            parts |= {(source.agent_slug, part.ref): part for part in parts_of(read.reading)}
    sessions: dict[str, list[Part]] = {}
    for part in in_order(parts.values()):
        sessions.setdefault(part.session_ref, []).append(part)
    return sessions


def write(path: Path, *lines: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))


def _time(part: Part) -> tuple[int, int]:
    return (part.at_ms if isinstance(part, HistoryMessage) else part.started_at_ms, part.place)


def _words(part: Part) -> tuple[str, str]:
    if isinstance(part, HistoryOperation):
        return part.tool_name, f"{part.type} {part.target}: {part.status}"
    return ("thought" if part.is_thinking else part.role.value), part.text
