"""How far files of agents were read, between the readers and the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.domain.costs import FileCursor
from agentmon.usage.following import Cursor
from agentmon.usage.sources import SourceKind

if TYPE_CHECKING:
    from agentmon.usage.sources import SourceFile


_PROJECT_HINT: Final = "project_hint"
"""Key of a cursor's state: the folder of the project with which the file was read."""


def is_changed(source: SourceFile, known: FileCursor | None, parser_version: int) -> bool:
    """Return whether the file has something that was not read, or not by this version of its reader."""
    return known is None or (source.inode, source.size, source.mtime_ns, parser_version) != (
        known.inode,
        known.size_bytes,
        known.mtime_ns,
        known.parser_version,
    )


def is_of_new_project(source: SourceFile, known: FileCursor | None) -> bool:
    """Return whether the file was read before it was known of which project it is: its beginning tells that too."""
    return known is not None and source.project_hint not in {"", known.state.get(_PROJECT_HINT)}


def unread_bytes(source: SourceFile, known: FileCursor | None) -> int:
    """Return how much of the file was not read, as far as that can be told without opening it."""
    if known is None or known.inode != source.inode:
        return source.size
    if source.kind is SourceKind.DATABASE:
        # It gets shorter when its log is taken into it.
        return max(0, source.size - known.read_offset)
    return source.size - known.read_offset if known.read_offset <= source.size else source.size


def stored_path(path: str) -> str:
    """Return the path as the database can hold it: of a name that is no UTF-8 the odd bytes are written out."""
    return path.encode("utf-8", "backslashreplace").decode()


def reader_cursor(source: SourceFile, known: FileCursor) -> Cursor:
    """Return where the readers go on."""
    return Cursor(
        path=source.path,
        inode=known.inode,
        size=known.size_bytes,
        mtime_ns=known.mtime_ns,
        offset=known.read_offset,
        head_hash=known.head_hash,
        parser_version=known.parser_version,
        state=known.state,
    )


def stored_cursor(source: SourceFile, cursor: Cursor) -> FileCursor:
    """Return where the readers are, as it is kept."""
    return FileCursor(
        agent_slug=source.agent_slug,
        path=stored_path(cursor.path),
        thread_key=stored_path(source.thread_key),
        inode=cursor.inode,
        size_bytes=cursor.size,
        mtime_ns=cursor.mtime_ns,
        read_offset=cursor.offset,
        head_hash=cursor.head_hash,
        parser_version=cursor.parser_version,
        state={**cursor.state, **({_PROJECT_HINT: source.project_hint} if source.project_hint else {})},
    )
