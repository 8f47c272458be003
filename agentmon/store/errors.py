"""The library's errors made into the store's own; no sqlite3 or SQLAlchemy error leaves this room."""

from __future__ import annotations

import os
import sqlite3
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import (
    DatabaseBusyError,
    DatabaseDamagedError,
    DatabaseFullError,
    StoreError,
)

if TYPE_CHECKING:
    from pathlib import Path

_PRIMARY_CODE: Final = 0xFF
"""An extended result code keeps its primary code in the low byte. Source: sqlite.org/rescode.html, 2024."""
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PERHAPS_FULL: Final = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
_OF_ONE_ROW: Final = frozenset(
    {
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_TOOBIG,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_RANGE,
    }
)
_LEAST_FREE_BYTES: Final = 64 * 1024
"""SQLite grows its shared-memory file by 32 KiB at a time, and reports a failure of that as an I/O error."""


class ConstraintKind(StrEnum):
    """What sort of rule of the schema a row broke."""

    UNIQUE = "unique"
    CHECK = "check"
    FOREIGN_KEY = "foreign key"
    NOT_NULL = "not null"


class ConstraintError(StoreError):
    """A row breaks a rule of the schema; nothing of the statement was written.

    Attributes:
        kind: What sort of rule it is.
        constraint: The rule's name in the schema; ``table.column`` for NOT NULL, empty for a foreign key, which SQLite
            does not name.
    """

    def __init__(self, *, kind: ConstraintKind, constraint: str) -> None:
        super().__init__(f"the database refused a row: {kind.value} {constraint}".rstrip())
        self.kind = kind
        self.constraint = constraint


def is_busy(error: BaseException | None) -> bool:
    """Whether another connection's lock is the cause, so that trying again may help."""
    return _code(error) in _BUSY


def is_damage(error: BaseException | None) -> bool:
    """Whether the file's content is the cause."""
    return _code(error) in _DAMAGED


def store_error(error: BaseException, path: Path) -> StoreError:
    """Return the store's error for one of the library; raise it ``from`` the original."""
    code = _code(error)
    if code in _BUSY:
        return DatabaseBusyError(
            f"the database {path} is held by another process",
            hint="Try again; nothing was written.",
        )
    if code == sqlite3.SQLITE_FULL or (code in _PERHAPS_FULL and _is_disk_full(path)):
        return full_error(path)
    if code in _DAMAGED:
        return DatabaseDamagedError(
            f"the database {path} is damaged ({error}); it was left as it is",
            hint="Start agentmon again: it sets the file aside and offers the newest backup.",
        )
    is_read_only = code == sqlite3.SQLITE_CANTOPEN and is_on_read_only_disk(path)
    if code == sqlite3.SQLITE_READONLY or is_read_only:
        return StoreError(
            f"the database {path} cannot be written",
            hint=writing_hint(path, otherwise="Make the file and its folder writable for you."),
        )
    return StoreError(f"the database {path} cannot be used: {error}")


def refusal_of_a_row(error: Exception) -> Exception | None:
    """Return the error when it is the content of one row that cannot be written; None when the database cannot be."""
    original = getattr(error, "orig", None) or error
    code = _code(original)
    if code is not None and (code not in _OF_ONE_ROW or "no such savepoint" in str(original)):
        # SQLite itself rolled the whole transaction back, as on a full disk: what came before is not written either.
        return None
    if isinstance(original, sqlite3.Error):
        return StoreError(f"the database refuses it: {original}")
    return original


def full_error(path: Path) -> DatabaseFullError:
    """Return the error for a full disk below the path."""
    return DatabaseFullError(
        f"the disk that holds {path} is full; nothing of this change was written",
        hint="Free some space, then try again.",
    )


def writing_hint(path: Path, *, otherwise: str) -> str:
    """Return what to do when the path cannot be written: ``otherwise``, unless no permission would help."""
    if is_on_read_only_disk(path):
        return "It is on a disk that is read-only: mount that for writing, or set AGENTMON_HOME to a folder elsewhere."
    return otherwise


def is_on_read_only_disk(path: Path) -> bool:
    """Whether the file system of the path, or of the nearest folder above it that is there, takes no writing."""
    for place in (path, *path.parents):
        try:
            return bool(os.statvfs(place).f_flag & os.ST_RDONLY)
        except OSError:
            continue
    return False


def _code(error: BaseException | None) -> int | None:
    # Errors that Python's own module makes, without SQLite, carry no code.
    if not isinstance(error, sqlite3.Error) or not hasattr(error, "sqlite_errorcode"):
        return None
    return error.sqlite_errorcode & _PRIMARY_CODE


def _is_disk_full(path: Path) -> bool:
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _LEAST_FREE_BYTES
