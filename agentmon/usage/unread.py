"""Reads what is new in a source, whatever its kind: lines of a file, rows of a database, or files of a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.usage import opencode
from agentmon.usage.following import read_source
from agentmon.usage.opencode_database import read_database
from agentmon.usage.opencode_files import read_session_folder
from agentmon.usage.openings import reader_type
from agentmon.usage.sources import SourceKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentmon.usage.following import Cursor, Read
    from agentmon.usage.sources import SourceFile


def parser_version(source: SourceFile) -> int:
    """Return which version of the rules reads the source; what an older one read is read again."""
    return reader_type(source).parser_version if source.kind is SourceKind.FILE else opencode.PARSER_VERSION


def read_unread(source: SourceFile, cursor: Cursor | None) -> Iterator[Read]:
    """Yield what is new in the source since the cursor, piece by piece; nothing when it did not change.

    Each piece can be kept on its own with its cursor: reading goes on behind it. What cannot be read is a problem of a
    piece, never an error.
    """
    if source.kind is SourceKind.FILE:
        yield from read_source(source, cursor)
    elif cursor is None or _facts(source) != (cursor.inode, cursor.size, cursor.mtime_ns, cursor.parser_version):
        yield from read_database(source, cursor) if source.kind is SourceKind.DATABASE else read_session_folder(source)


def _facts(source: SourceFile) -> tuple[int, int, int, int]:
    return source.inode, source.size, source.mtime_ns, parser_version(source)
