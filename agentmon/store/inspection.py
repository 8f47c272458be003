"""A look at the database file that leaves it as it is: missing, current, old, newer, foreign or damaged.

Every start pays for this look: the schema, the revision and the length of the file. SQLite's check of every page runs
on files up to 2 MB and before an upgrade; at 1 GB it would take seconds. An unclean end is no reason for it, because
SQLite repairs that by itself. Damage deep in a large file is reported by the statement that meets it.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import StoreError, UsageError
from agentmon.store.errors import is_damage, store_error, writing_hint
from agentmon.store.untouched import connect_reading, connect_untouched

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_CHECKED_BYTES: Final = 2 * 1024 * 1024


class FileState(Enum):
    """What is at the database's path."""

    MISSING = auto()
    CURRENT = auto()
    OLD = auto()
    NEWER = auto()
    FOREIGN = auto()
    """An SQLite database of some other program."""
    DAMAGED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What a look at the database found."""

    state: FileState
    revision: str = ""
    """What the file says of itself, whether or not this release knows it."""
    damage: str = ""
    """What is wrong, in a few words, when it is damaged."""


def inspect(path: Path, revisions: Sequence[str], *, thoroughly: bool = False) -> Inspection:
    """Return what is at the path; ``revisions`` are the known ones, oldest first.

    Raises:
        UsageError: Something that is no file is at the path, or the path leads through one.
        StoreError: The file or its folder may not be read, or another process holds the database.
    """
    size_bytes = _file_size(path)
    if size_bytes is None:
        return Inspection(state=FileState.MISSING)
    if size_bytes == 0:
        return Inspection(state=FileState.DAMAGED, damage="the file is empty")
    thoroughly = thoroughly or size_bytes <= _CHECKED_BYTES
    seen = _read(path, revisions, thoroughly=thoroughly, are_locks_obeyed=False)
    if seen.state is FileState.DAMAGED:
        # The first look takes no locks, so another process that wrote meanwhile could make sound pages look torn.
        seen = _read(path, revisions, thoroughly=thoroughly, are_locks_obeyed=True)
    return seen


def require_writable(path: Path) -> None:
    """Return when the file, if it is there, and its folder can be written.

    Raises:
        StoreError: One of them cannot.
    """
    if path.exists() and not _may(path, os.W_OK):
        raise StoreError(
            f"the database {path} cannot be written",
            hint=writing_hint(path, otherwise=f"Make it writable: chmod u+w '{path}'"),
        )
    if not _may(path.parent, os.W_OK | os.X_OK):
        raise StoreError(
            f"the folder of the database, {path.parent}, cannot be written",
            hint=writing_hint(
                path.parent,
                otherwise="SQLite needs to make files beside the database. Make it writable, or use another place.",
            ),
        )


def _file_size(path: Path) -> int | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        raise UsageError(f"the path of the database, {path}, leads through something that is no folder") from error
    except OSError as error:
        raise StoreError(f"the database {path} cannot be looked at: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "no ordinary file"
        raise UsageError(f"the database {path} is {kind}", hint="Name a file; agentmon makes it when it is missing.")
    if not _may(path, os.R_OK):
        raise StoreError(f"the database {path} cannot be read", hint=f"Make it readable: chmod u+r '{path}'")
    return found.st_size


def _read(path: Path, revisions: Sequence[str], *, thoroughly: bool, are_locks_obeyed: bool) -> Inspection:
    try:
        opened = connect_reading(path) if are_locks_obeyed else connect_untouched(path)
        with closing(opened) as connection:
            # Parses the whole schema, and compares the file's length with the one in its header.
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0] if thoroughly else "ok"
            if damage != "ok":
                return Inspection(state=FileState.DAMAGED, damage=" ".join(str(damage).split()))
            if not tables:
                return Inspection(state=FileState.DAMAGED, damage="it holds no tables")
            found: list[tuple[str]] = []
            if "alembic_version" in tables:
                found = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    except sqlite3.Error as error:
        if is_damage(error):
            return Inspection(state=FileState.DAMAGED, damage=str(error))
        raise store_error(error, path) from error
    if len(found) != 1:
        return Inspection(state=FileState.FOREIGN)
    revision = str(found[0][0])
    if revision not in revisions:
        return Inspection(state=FileState.NEWER, revision=revision)
    return Inspection(state=FileState.CURRENT if revision == revisions[-1] else FileState.OLD, revision=revision)


def _may(path: Path, access: int) -> bool:
    return os.access(path, access, effective_ids=os.access in os.supports_effective_ids)
