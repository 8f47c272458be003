"""The database file made ready for this release: made new, upgraded after a backup, refused, or set aside."""

from __future__ import annotations

import fcntl
import os
import random
import re
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import AgentmonError, DatabaseBusyError, DatabaseTooNewError, StoreError, UsageError
from agentmon.paths import find_database
from agentmon.store.backup import back_up
from agentmon.store.damage import find_set_aside, set_aside
from agentmon.store.errors import store_error
from agentmon.store.inspection import FileState, Inspection, inspect, require_writable
from agentmon.store.private_files import keep_private, make_private_file, make_private_folder, require_own_file
from agentmon.store.revision import REVISIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentmon.domain.clock import Clock

LOCK_DEADLINE_S: Final = 120.0
"""How long an opener waits for another one that makes or upgrades the same database."""
_LOCK_POLL_S: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrations:
    """The way from any earlier schema to the newest."""

    folder: Path = Path(__file__).parent / "migrations"
    revisions: Sequence[str] = REVISIONS
    """Oldest first; a test proves that they are the ones in the folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDatabase:
    """A database file that this release can use."""

    path: Path
    """Absolute, with symbolic links followed."""
    notices: tuple[str, ...] = ()
    """What a person should be told once: an upgrade with its backup, or a fresh start after damage."""


def prepare_database(
    location: str | Path,
    *,
    backups_dir: Path,
    release: str,
    clock: Clock | None = None,
    migrations: Migrations | None = None,
) -> PreparedDatabase:
    """Make the database at a path or URL usable by this release; blocks, and may be called by many processes at once.

    A current database costs one look, without SQLAlchemy or Alembic. A missing one is made whole beside its place and
    then moved there, so no other process ever sees half of it. An old one is backed up and upgraded in one transaction.

    Raises:
        UsageError: The location is no SQLite file, or the file belongs to another program; it is left untouched.
        DatabaseTooNewError: A later release made it; it is left untouched.
        DatabaseDamagedError: It was damaged and has been moved aside; raised once, since the path is free afterwards.
        DatabaseBusyError: Another process is at it for longer than the deadline.
        DatabaseFullError: The disk is full; what was there is unchanged.
        StoreError: It cannot be read, written or upgraded; what was there is unchanged.
    """
    clock = clock or SystemClock()
    migrations = migrations or Migrations()
    path = Path(
        os.path.realpath(find_database(location) if isinstance(location, str) else location.expanduser().absolute())
    )
    require_own_file(path)
    seen = inspect(path, migrations.revisions)
    notices: tuple[str, ...] = ()
    if seen.state not in _REFUSED | {FileState.CURRENT}:
        if seen.state is FileState.MISSING:
            make_private_folder(path.parent)
        if seen.state is not FileState.DAMAGED:
            require_writable(path)
        with _opening_lock(path):
            # Another process may have done the work while this one waited for the lock.
            seen = inspect(path, migrations.revisions, thoroughly=seen.state is FileState.OLD)
            if seen.state is FileState.MISSING:
                notices = _make(path, migrations)
            elif seen.state is FileState.OLD:
                backup = back_up(path, backups_dir, revision=seen.revision, now=clock.now())
                _upgrade(path, migrations, backup)
                notices = (f"The database was upgraded for agentmon {release}. A copy from before is kept: {backup}",)
            elif seen.state is FileState.DAMAGED:
                raise set_aside(path, backups_dir, damage=seen.damage, now=clock.now())
    if seen.state in _REFUSED:
        raise _refusal(path, seen, release)
    require_writable(path)
    keep_private(path)
    return PreparedDatabase(path=path, notices=notices)


_REFUSED: Final = frozenset({FileState.NEWER, FileState.FOREIGN})


def _refusal(path: Path, seen: Inspection, release: str) -> AgentmonError:
    if seen.state is FileState.NEWER:
        return DatabaseTooNewError(
            f"a later release of agentmon made the database {path} (revision {seen.revision}); it was left untouched",
            hint=f"This is agentmon {release}. Update it, or set AGENTMON_HOME to another folder.",
        )
    return UsageError(
        f"{path} is a database of some other program; it was left untouched",
        hint="Set AGENTMON_DATABASE_URL to another file, or unset it.",
    )


@contextmanager
def _opening_lock(path: Path) -> Iterator[None]:
    lock = path.with_name(path.name + ".lock")
    try:
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"the lock {lock} cannot be made: {error.strerror}") from error
    try:
        _wait_for_lock(descriptor, path)
        yield
    finally:
        # The file stays: removing it would let a third process lock a new one while a second still waits for this.
        os.close(descriptor)


def _wait_for_lock(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + LOCK_DEADLINE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise DatabaseBusyError(
                    f"another process is still making or upgrading the database {path}",
                    hint="Wait for it to finish, then try again.",
                ) from error
            time.sleep(_LOCK_POLL_S * random.uniform(0.5, 1.5))
        else:
            return


def _make(path: Path, migrations: Migrations) -> tuple[str, ...]:
    from agentmon.store.schema import fresh_schema  # noqa: PLC0415 - imports SQLAlchemy, which a current database spares

    for file in path.parent.iterdir():
        if re.fullmatch(rf"\.{re.escape(path.name)}\.new-\d+", file.name):
            file.unlink()
    new = path.with_name(f".{path.name}.new-{os.getpid()}")
    try:
        make_private_file(new)
        with closing(sqlite3.connect(new, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute("BEGIN")
            for statement in fresh_schema(migrations.revisions[-1]):
                connection.execute(statement)
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = WAL")
        new.rename(path)
    except sqlite3.Error as error:
        raise store_error(error, path) from error
    except OSError as error:
        raise StoreError(f"the database {path} cannot be made: {error.strerror}") from error
    finally:
        with suppress(FileNotFoundError):
            new.unlink()
    damaged = find_set_aside(path)
    if damaged is None:
        return ()
    return (f"A new, empty database was made. The damaged one from before is kept: {damaged}",)


def _upgrade(path: Path, migrations: Migrations, backup: Path) -> None:
    from agentmon.store.migrations import MigrationError, run_migrations  # noqa: PLC0415 - imports Alembic

    try:
        run_migrations(path, migrations.folder)
    except MigrationError as error:
        raise StoreError(
            f"the database {path} could not be upgraded and is as it was: {error}",
            hint=f"Nothing was lost. A copy from before is kept: {backup}",
        ) from error
    except sqlite3.Error as error:
        raise store_error(error, path) from error
