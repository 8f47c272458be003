"""Changes: what happened to one file between two snapshots of a folder."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from agentmon.domain.plain_text import plain_line


class ChangeType(StrEnum):
    """What happened to a file."""

    CREATE = "create"
    MODIFY = "modify"
    DELETE = "delete"
    RENAME = "rename"
    """It has another path; its content and mode may differ too."""
    MODE = "mode"
    """Nothing but its mode differs."""


_LONGEST_PATH: Final = 4_096


def stored_path(path: str) -> str:
    """Return a path as it is stored and drawn: bytes that are no text, and control codes, are shown as such."""
    return plain_line(path, max_characters=_LONGEST_PATH)


def amount_text(files: int, lines_added: int, lines_removed: int) -> str:
    """Return how much was changed, for a card or a heading: ``+120 −8 · 5 files``; nothing for no file."""
    if not files:
        return ""
    return f"+{lines_added} −{lines_removed} · {files} {'file' if files == 1 else 'files'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """What happened to one file.

    Paths are relative to the root of the snapshots, with ``/``; bytes that are no UTF-8 are lone surrogates
    (``os.fsencode`` gives them back; ``domain.plain_text`` makes them safe to draw and to store).
    """

    path: str
    """Where it is now, or where it was when it is deleted."""
    change_type: ChangeType
    old_path: str | None = None
    """Where a renamed file was."""
    before_ref: str | None
    """The hash of its content as a git blob of its raw bytes; None where it was not there."""
    after_ref: str | None
    before_mode: int | None
    """As git knows modes: 0o100644, 0o100755, 0o120000 for a link, 0o160000 for content that was not kept."""
    after_mode: int | None
    lines_added: int
    """0 for binary content."""
    lines_removed: int
    is_binary: bool
    can_undo: bool
    why_not: str = ""
    """Why it cannot be undone; empty where it can."""
