"""Connections that only read, from the standard library alone, since the first frame needs one."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_TIMEOUT_S: Final = 5.0


FIRST_FRAME_TIMEOUT_S: Final = 0.1
"""How long the first frame waits for a database that is held: it is drawn without it, and filled later."""


def connect_untouched(path: Path, *, timeout_s: float = _TIMEOUT_S) -> sqlite3.Connection:
    """Return a reading connection that leaves the folder as it is: no write-ahead log or index file comes into being.

    While another connection is open, or after a crash, those files are there and their locks and content are obeyed.

    Args:
        path: The database.
        timeout_s: How long to wait for whoever holds it.

    Raises:
        sqlite3.Error: The file cannot be opened.
    """
    is_alone = not path.with_name(f"{path.name}-wal").exists()
    return _connect(path, options="mode=ro&immutable=1" if is_alone else "mode=ro", timeout_s=timeout_s)


def connect_reading(path: Path) -> sqlite3.Connection:
    """Return a reading connection that takes the locks which reading takes.

    Raises:
        sqlite3.Error: The file cannot be opened.
    """
    return _connect(path, options="mode=ro", timeout_s=_TIMEOUT_S)


def _connect(path: Path, *, options: str, timeout_s: float) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?{options}", uri=True, timeout=timeout_s, isolation_level=None)
