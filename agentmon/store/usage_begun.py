"""Whether any file of an agent was read into a database; standard library only, since it is asked first of all."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def is_usage_begun(path: Path) -> bool:
    """Return whether the database knows how far some file was read; also when it cannot be asked."""
    if not path.exists():
        return False
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT 1 FROM usage_files LIMIT 1").fetchone() is not None
    except sqlite3.Error:
        return True
