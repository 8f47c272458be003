"""Copies of the database that are made before an upgrade and never removed."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import StoreError
from agentmon.store.errors import store_error
from agentmon.store.private_files import make_private_file, make_private_folder

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

FILE_TIME: Final = "%Y%m%dT%H%M%SZ"
"""UTC in a file name: no blank, no colon, and the newest sorts last."""


def back_up(path: Path, backups_dir: Path, *, revision: str, now: datetime) -> Path:
    """Copy the database, with what is still in its write-ahead log, to ``agentmon-<revision>-<UTC time>.db``.

    The copy appears under its name once it is complete and on the disk. The source may be in use.

    Raises:
        StoreError: The copy could not be made; a full disk is a ``DatabaseFullError``.
    """
    make_private_folder(backups_dir)
    backup = _free_name(backups_dir, f"{path.stem}-{revision}-{now.strftime(FILE_TIME)}")
    partial = backup.with_name(f".{backup.name}.{os.getpid()}")
    try:
        make_private_file(partial)
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(partial)) as copy:
            source.backup(copy)
        partial.rename(backup)
    except sqlite3.Error as error:
        raise store_error(error, backup) from error
    except OSError as error:
        raise StoreError(f"the backup {backup} cannot be written: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)
    return backup


def find_newest_backup(path: Path, backups_dir: Path) -> Path | None:
    """Return the newest backup of a database of this name, or None when there is none."""
    try:
        backups = [file for file in backups_dir.iterdir() if file.name.startswith(f"{path.stem}-")]
    except OSError:
        return None
    backups = [file for file in backups if file.suffix == ".db"]
    return max(backups, key=lambda file: file.stem.rpartition("-")[2], default=None)


def _free_name(folder: Path, stem: str) -> Path:
    backup = folder / f"{stem}.db"
    count = 1
    while backup.exists():
        count += 1
        backup = folder / f"{stem}.{count}.db"
    return backup
