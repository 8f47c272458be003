"""A damaged database moved out of the way, never deleted and never replaced without a word."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import DatabaseDamagedError
from agentmon.store.backup import DATED, FILE_TIME, find_dated, find_newest_backup

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

_COMPANIONS: Final = ("-wal", "-shm", "-journal")
"""Files that belong to a database by their name; SQLite would play a log left behind into the next database."""


def set_aside(path: Path, backups_dir: Path, *, damage: str, now: datetime) -> DatabaseDamagedError:
    """Move a damaged database and its companion files aside and return the error that says where it is.

    When they cannot be moved they stay, and the error says that. The caller holds the opening lock.
    """
    aside = path.with_name(f"{path.name}.damaged-{now.strftime(FILE_TIME)}")
    count = 1
    while aside.exists():
        count += 1
        aside = path.with_name(f"{path.name}.damaged-{now.strftime(FILE_TIME)}.{count}")
    try:
        # The companions go first: a crash in between leaves a database that is still found to be damaged.
        for ending in _COMPANIONS:
            companion = path.with_name(path.name + ending)
            if companion.exists():
                companion.rename(aside.with_name(aside.name + ending))
        path.rename(aside)
    except OSError as error:
        return DatabaseDamagedError(
            f"the database {path} is damaged ({damage}) and could not be moved aside: {error.strerror}",
            hint=_way_back(path, path, backups_dir),
        )
    return DatabaseDamagedError(
        f"the database {path} is damaged ({damage}); it was moved to {aside} and nothing was deleted",
        hint=_way_back(path, aside, backups_dir),
    )


def find_set_aside(path: Path) -> Path | None:
    """Return the database that was set aside last at this place, or None."""
    return next(reversed(find_dated(path.parent, rf"{re.escape(path.name)}\.damaged-{DATED}")), None)


def _way_back(path: Path, damaged: Path, backups_dir: Path) -> str:
    backup = find_newest_backup(path, backups_dir)
    if backup is not None:
        restoring = f"The newest backup is {backup}. To go back to it: cp {_quoted(backup)} {_quoted(path)}"
    else:
        restoring = (
            f"There is no backup in {backups_dir}. What can be read may be saved with: "
            f"sqlite3 {_quoted(damaged)} .recover | sqlite3 {_quoted(path)}"
        )
    if damaged == path:
        return restoring
    return f"{restoring}\nTo begin with an empty board instead, start agentmon again."


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
