"""The settings that every connection to the database gets, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

_READ_CACHE_KIB: Final = 500
"""A quarter of the usual, for each of several connections: that of the system behind it is as fast (measured)."""
_KEPT_WAL_BYTES: Final = 16 * 1024 * 1024
"""The write-ahead log is cut back to this size after a burst of writes."""


def set_pragmas(execute: Callable[[str], object], *, busy_timeout: timedelta, is_read_only: bool = False) -> None:
    """Set up a new connection; must run outside a transaction, where SQLite would ignore half of it."""
    # First, because the others may have to wait for a lock.
    set_busy_timeout(execute, busy_timeout)
    execute("PRAGMA journal_mode = WAL")
    # A crash of a process loses nothing; a power cut may lose the last commits but never damages the file.
    execute("PRAGMA synchronous = NORMAL")
    execute("PRAGMA foreign_keys = ON")
    execute("PRAGMA trusted_schema = OFF")
    execute(f"PRAGMA journal_size_limit = {_KEPT_WAL_BYTES}")
    if is_read_only:
        execute(f"PRAGMA cache_size = -{_READ_CACHE_KIB}")
        execute("PRAGMA query_only = ON")
    else:
        # Else what a statement with triggers may have to undo goes to a temporary file, once a few pages are changed.
        execute("PRAGMA temp_store = MEMORY")


def set_busy_timeout(execute: Callable[[str], object], busy_timeout: timedelta) -> None:
    """Let a connection wait so long for the locks of others; nothing can end that wait."""
    execute(f"PRAGMA busy_timeout = {int(busy_timeout.total_seconds() * 1000)}")
