"""How conversations in the files of agents began: where, when, and with which words of the person."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.operations import MessageRole
from agentmon.usage.codex import parent_thread
from agentmon.usage.fields import milliseconds_in, moment_in, object_in, parse_record, ref_in, text_in
from agentmon.usage.history.openings import HISTORY_READERS, has_history
from agentmon.usage.history.reading import HistoryReading
from agentmon.usage.opencode_database import begun_sessions
from agentmon.usage.sources import CODEX, SourceKind, find_sources_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentmon.usage.sources import SourceFile

_HEAD_BYTES: Final = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The beginning of one conversation."""

    session_ref: str
    """The agent's own id of it."""
    path: str
    """The file in which it stands; empty for a database, in which it stands with others."""
    folder: str
    """Where the agent worked; empty where that is not told."""
    begun_ms: int
    """UTC."""
    prompt: str
    """What the person said first; empty as long as nothing was said."""
    parent_ref: str = ""
    """The conversation of which it is a copy, where that is told."""


def find_beginnings(agent_slug: str, environ: Mapping[str, str], *, since_ms: int) -> list[Beginning]:
    """Return the conversations of an agent that began since then, as far as its files tell how they began.

    Args:
        agent_slug: One whose messages are read; of others nothing is found.
        environ: Says where the agent keeps its files.
        since_ms: UTC; files that were not written since are not opened.
    """
    found: list[Beginning] = []
    for source in find_sources_of(agent_slug, environ):
        if has_history(source) and source.mtime_ns // 1_000_000 >= since_ms:
            found += _beginnings_in(source, since_ms)
    return [one for one in found if one.session_ref and one.begun_ms >= since_ms]


def _beginnings_in(source: SourceFile, since_ms: int) -> Iterator[Beginning]:
    try:
        if source.kind is SourceKind.DATABASE:
            yield from _in_database(source, since_ms)
        else:
            yield from _in_file(source)
    except OSError:
        return


def _in_file(source: SourceFile) -> Iterator[Beginning]:
    if source.path.endswith(".zst"):
        return
    with Path(source.path).open("rb") as opened:
        head = opened.read(_HEAD_BYTES)
    head = head[: head.rfind(b"\n") + 1]
    first = parse_record(head.partition(b"\n")[0]) or {}
    reading = HISTORY_READERS.open(source).read(head, 0)
    messages = reading.messages if isinstance(reading, HistoryReading) else ()
    said = [one for one in messages if one.role is MessageRole.USER and not one.is_thinking]
    about = object_in(first, "payload") if source.agent_slug == CODEX else first
    yield Beginning(
        session_ref=ref_in(about, "id") or ref_in(about, "sessionId"),
        path=source.path,
        folder=text_in(about, "cwd") or source.project_hint,
        begun_ms=moment_in(about, "timestamp") or moment_in(about, "startTime"),
        prompt=said[0].text if said else "",
        parent_ref=parent_thread(about) if source.agent_slug == CODEX else "",
    )


def _in_database(source: SourceFile, since_ms: int) -> Iterator[Beginning]:
    for facts in begun_sessions(source.path, since_ms=since_ms):
        yield Beginning(
            session_ref=ref_in(facts, "id"),
            path="",
            folder=text_in(facts, "directory"),
            begun_ms=milliseconds_in(facts, "time_created"),
            prompt=text_in(facts, "prompt", _HEAD_BYTES),
            parent_ref=ref_in(facts, "forked_from"),
        )
