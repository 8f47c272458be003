"""Chooses the reader of a file, and tells it what the file's place says."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.usage.amp import AmpReader
from agentmon.usage.claude import ClaudeReader
from agentmon.usage.codex import CodexReader, find_parent_thread, running_totals
from agentmon.usage.compressed import UNREADABLE, open_file
from agentmon.usage.copilot import CopilotReader
from agentmon.usage.gemini import GeminiReader
from agentmon.usage.lines import pieces_of
from agentmon.usage.long_lines import LongLine
from agentmon.usage.qwen import QwenReader
from agentmon.usage.sources import AMP, CLAUDE, CODEX, COPILOT, GEMINI, QWEN

if TYPE_CHECKING:
    from agentmon.usage.codex import Totals
    from agentmon.usage.reading import Reader
    from agentmon.usage.sources import SourceFile

_KINDS: Final[dict[str, type[Reader]]] = {
    CLAUDE: ClaudeReader,
    CODEX: CodexReader,
    GEMINI: GeminiReader,
    QWEN: QwenReader,
    COPILOT: CopilotReader,
    AMP: AmpReader,
}
_HEAD_LINES: Final = 5
"""A rollout begins with its own beginning and, when it is a fork, with that of its parent."""
_MAX_HEAD_BYTES: Final = 1_048_576
_MAX_PARENTS: Final = 32


def reader_type(source: SourceFile) -> type[Reader]:
    """Return the kind of reader that the agent's files need.

    Raises:
        KeyError: No release here reads the files of that agent.
    """
    return _KINDS[source.agent_slug]


def open_reader(source: SourceFile) -> Reader:
    """Return a reader for the beginning of the file."""
    path = Path(source.path)
    if source.agent_slug == CLAUDE:
        is_subagent = path.parent.name == "subagents"
        session_ref = path.parent.parent.name if is_subagent else path.stem
        return ClaudeReader(session_ref=session_ref, is_subagent=is_subagent)
    if source.agent_slug == CODEX:
        return CodexReader(thread_id=source.thread_key.removeprefix("archived/"), inherited=_inherited_totals(path))
    if source.agent_slug == QWEN:
        return QwenReader(session_ref=path.stem)
    if source.agent_slug == COPILOT:
        return CopilotReader(session_ref=path.parent.name if path.stem == "events" else path.stem)
    if source.agent_slug == AMP:
        return AmpReader(session_ref=path.stem)
    parent_ref = "" if path.parent.name == "chats" else path.parent.name
    return GeminiReader(session_ref=path.stem, parent_ref=parent_ref, cwd=source.project_hint)


def _inherited_totals(path: Path) -> frozenset[Totals] | None:
    """Return the running totals of the thread whose history the rollout copied; None when there is none."""
    with open_file(str(path)) as opened:
        parent_id = find_parent_thread(opened.read(_MAX_HEAD_BYTES).split(b"\n", _HEAD_LINES)[:_HEAD_LINES])
    if not parent_id:
        return None
    root = next((folder.parent for folder in path.parents if folder.name in {"sessions", "archived_sessions"}), None)
    totals: set[Totals] = set()
    for rollout in _rollouts_of(parent_id, root):
        try:
            facts = rollout.stat()
            totals |= _totals_in(str(rollout), facts.st_size, facts.st_mtime_ns)
        except UNREADABLE:
            continue
    return frozenset(totals) or None


def _rollouts_of(thread_id: str, root: Path | None) -> list[Path]:
    if root is None:
        return []
    return [
        Path(folder) / name
        for place in ("sessions", "archived_sessions")
        for folder, _, names in os.walk(root / place)
        for name in names
        if thread_id in name and name.startswith("rollout-") and name.endswith((".jsonl", ".jsonl.zst"))
    ]


@lru_cache(maxsize=_MAX_PARENTS)
def _totals_in(path: str, _size: int, _mtime_ns: int) -> frozenset[Totals]:
    """Return the running totals in a rollout; its size and time make it another one when it has changed."""
    totals: set[Totals] = set()
    with open_file(path) as opened:
        for piece in pieces_of(opened, 0):
            totals |= running_totals(piece.shortened() if isinstance(piece, LongLine) else piece[1])
    return frozenset(totals)
