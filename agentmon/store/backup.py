"""Copies of the database that are made before an upgrade and never removed."""

from __future__ import annotations

import os
import re
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
DATED: Final = r"(\d{8}T\d{6}Z)(?:\.(\d+))?"
"""A time of that form, and the count behind it of those that are of the same second."""


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


def find_backups(path: Path, backups_dir: Path) -> list[Path]:
    """Return the backups of a database of exactly this name, oldest first."""
    return find_dated(backups_dir, rf"{re.escape(path.stem)}-\w+-{DATED}\.db")


def find_newest_backup(path: Path, backups_dir: Path) -> Path | None:
    """Return the newest backup of a database of exactly this name, or None when there is none."""
    return next(reversed(find_backups(path, backups_dir)), None)


def find_dated(folder: Path, form: str) -> list[Path]:
    """Return the files whose whole name has the form, oldest first; of a folder that cannot be read none.

    Args:
        folder: Where they are.
        form: A regular expression with ``DATED`` in it.
    """
    try:
        names = [re.fullmatch(form, file.name) for file in folder.iterdir()]
    except OSError:
        return []
    dated = sorted((name[1], int(name[2] or 1), name[0]) for name in names if name is not None)
    return [folder / name for _, _, name in dated]


def _free_name(folder: Path, stem: str) -> Path:
    backup = folder / f"{stem}.db"
    count = 1
    while backup.exists():
        count += 1
        backup = folder / f"{stem}.{count}.db"
    return backup
