"""Chooses the reader of the history in a source, and tells it what the place of a file says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.usage.fields import ref_in
from agentmon.usage.following import ReaderKinds, read_source
from agentmon.usage.history.claude import SIDECHAIN, ClaudeHistoryReader
from agentmon.usage.history.codex import CodexHistoryReader
from agentmon.usage.history.gemini import GeminiHistoryReader
from agentmon.usage.history.opencode import OpencodeHistoryTables
from agentmon.usage.history.reading import GatheredHistory
from agentmon.usage.opencode_database import read_tables
from agentmon.usage.sources import CLAUDE, CODEX, GEMINI, SourceKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentmon.usage.following import Cursor, Read
    from agentmon.usage.reading import Reader
    from agentmon.usage.sources import SourceFile

_KINDS: Final[dict[str, type[Reader]]] = {
    CLAUDE: ClaudeHistoryReader,
    CODEX: CodexHistoryReader,
    GEMINI: GeminiHistoryReader,
}
_MAX_FACTS_BYTES: Final = 65_536


def _reader_type(source: SourceFile) -> type[Reader]:
    return _KINDS[source.agent_slug]


def _open_reader(source: SourceFile) -> Reader:
    path = Path(source.path)
    if source.agent_slug == CLAUDE:
        if path.parent.name == "subagents":
            return ClaudeHistoryReader(session_ref=path.parent.parent.name, parent_ref=_call_of_subagent(path))
        return ClaudeHistoryReader(session_ref=path.stem)
    if source.agent_slug == CODEX:
        return CodexHistoryReader(thread_id=source.thread_key.removeprefix("archived/"))
    parent_ref = "" if path.parent.name == "chats" else path.parent.name
    return GeminiHistoryReader(session_ref=path.stem, parent_ref=parent_ref)


def _call_of_subagent(path: Path) -> str:
    """Return the call that made the subagent, which stands beside its transcript; older releases do not tell it."""
    try:
        with path.with_suffix(".meta.json").open("rb") as opened:
            facts = json.loads(opened.read(_MAX_FACTS_BYTES))
    except (OSError, ValueError, RecursionError):
        return SIDECHAIN
    return (ref_in(facts, "toolUseId") if isinstance(facts, dict) else "") or SIDECHAIN


HISTORY_READERS: Final = ReaderKinds(type_of=_reader_type, open=_open_reader, gather=GatheredHistory)
"""For ``read_source``: each reading is a ``HistoryReading``."""


def has_history(source: SourceFile) -> bool:
    """Return whether what was said and done is read of the source: of no folder of opencode before 1.2, for one."""
    return source.kind is SourceKind.DATABASE or (source.kind is SourceKind.FILE and source.agent_slug in _KINDS)


def history_version(source: SourceFile) -> int:
    """Return which version of the rules reads the history of the source."""
    if source.kind is SourceKind.DATABASE:
        return OpencodeHistoryTables.parser_version
    return HISTORY_READERS.type_of(source).parser_version


def read_history(source: SourceFile, cursor: Cursor | None) -> Iterator[Read]:
    """Yield what is new in a source that has changed since the cursor, piece by piece; see ``unread.read_unread``."""
    if source.kind is SourceKind.DATABASE:
        yield from read_tables(source, cursor, OpencodeHistoryTables)
    else:
        yield from read_source(source, cursor, HISTORY_READERS)
