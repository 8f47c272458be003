"""Changes: what happened to one file between two snapshots of a folder."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from agentmon.domain.amounts import size_text
from agentmon.domain.operations import ArtifactKind
from agentmon.domain.plain_text import plain_line


class ChangeType(StrEnum):
    """What happened to a file."""

    CREATE = "create"
    MODIFY = "modify"
    DELETE = "delete"
    RENAME = "rename"
    """It has another path; its content and mode may differ too."""
    MODE = "mode"
    """Nothing but its permissions differ."""


_LONGEST_PATH: Final = 4_096
_SUFFIXES: Final = {
    ArtifactKind.CODE: "c cc cpp cs go h java js jsx kt lua php pl py rb rs sh sql swift ts tsx",
    ArtifactKind.NOTE: "adoc markdown md org rst txt",
    ArtifactKind.LOG: "log",
    ArtifactKind.ATTACHMENT: "gif htm html jpeg jpg pdf png svg webp zip",
}
_KINDS: Final = {suffix: kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
MOST_PATHS: Final = 20


def stored_path(path: str) -> str:
    """Return a path as it is stored and drawn: bytes that are no text, and control codes, are shown as such."""
    return plain_line(path, max_characters=_LONGEST_PATH)


def amount_text(files: int, lines_added: int, lines_removed: int) -> str:
    """Return how much was changed, for a card or a heading: ``+120 −8 · 5 files``; nothing for no file."""
    if not files:
        return ""
    return f"+{lines_added} −{lines_removed} · {files} {'file' if files == 1 else 'files'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallChanges:
    """What one tool call changed, in short."""

    files: int
    lines_added: int
    lines_removed: int
    paths: tuple[str, ...]
    """As they are stored; at most ``MOST_PATHS``."""
    note: str = ""
    """What is not known of it; empty when that is nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file that a run wrote outside of version control, as it is now."""

    path: str
    """Absolute, as it is stored."""
    kind: ArtifactKind
    size_bytes: int | None
    """None where the file is gone."""


def artifact_text(artifact: Artifact) -> str:
    """Return a file that a run wrote outside of version control in a few words: ``/tmp/report.md 12 KB``."""
    size = "gone" if artifact.size_bytes is None else size_text(artifact.size_bytes)
    return f"{artifact.path} {size}"


def artifact_kind(path: str) -> ArtifactKind:
    """Return what sort of thing a file is, by its name."""
    _, dot, suffix = path.rpartition("/")[2].rpartition(".")
    return _KINDS.get(suffix.lower(), ArtifactKind.OTHER) if dot else ArtifactKind.OTHER


def call_amount_text(changes: CallChanges | None) -> str:
    """Return what a tool call changed, in a few words: ``+3 −1 a.py``, ``+3 −1 · 2 files``; nothing for no file."""
    if changes is None or not changes.files:
        return ""
    if changes.files == 1 and changes.paths:
        return f"+{changes.lines_added} −{changes.lines_removed} {changes.paths[0].rpartition('/')[2]}"
    return amount_text(changes.files, changes.lines_added, changes.lines_removed)


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
    """Type and permission bits: 0o100644, 0o100600, 0o120000 for a link, 0o160000 for content that was not kept."""
    after_mode: int | None
    lines_added: int
    """0 for binary content."""
    lines_removed: int
    is_binary: bool
    can_undo: bool
    why_not: str = ""
    """Why it cannot be undone; empty where it can."""
