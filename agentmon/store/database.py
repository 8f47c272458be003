"""The open database: transactions for repositories, and the counter that tells when another connection has written."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote
from weakref import WeakSet

from sqlalchemy import URL, PrimaryKeyConstraint, UniqueConstraint, event
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import create_async_engine

from agentmon.domain.errors import DatabaseBusyError, DatabaseMovedError, StoreError
from agentmon.store.connections import EndableConnection, connect
from agentmon.store.errors import ConstraintError, ConstraintKind, is_busy, store_error
from agentmon.store.pragmas import set_busy_timeout, set_pragmas
from agentmon.store.tables import metadata
from agentmon.store.upgrade import prepare_database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Connection
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from agentmon.domain.clock import Clock

_ResultT = TypeVar("_ResultT")

BUSY_TIMEOUT: Final = timedelta(seconds=5)
_BEGIN_WITHIN: Final = 3
"""Busy timeouts for which a write waits for those of other processes."""
_LONGEST_DEAF_WAIT: Final = timedelta(seconds=0.25)
"""How long SQLite waits for others at a time: meanwhile neither a cancelled write nor the end of the app is heard."""
_READERS: Final = 4
_END_WITHIN_S: Final = 5.0


class Database:
    """The SQLite database of one process: one writing connection, and a few that read.

    It belongs to one event loop and is closed by whoever made it. The file has to be there, as ``open_database`` makes
    it, and has to stay: when it is missing, moved or replaced, everything here raises ``DatabaseMovedError``, since
    writes to the file that was open would reach nobody.
    """

    def __init__(self, path: Path, *, busy_timeout: timedelta = BUSY_TIMEOUT) -> None:
        self.path = path
        self._file_at_start = file_identity(path)
        self._busy_timeout = busy_timeout
        self._connections: WeakSet[EndableConnection] = WeakSet()
        self._writer = self._engine(begin="BEGIN IMMEDIATE", connections=1, is_read_only=False)
        self._readers = self._engine(begin="BEGIN", connections=_READERS, is_read_only=True)
        self._write_lock = asyncio.Lock()
        self._writing_task: asyncio.Task[object] | None = None
        self._watcher: sqlite3.Connection | None = None
        self._is_closed = False

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """Hold the database for writing: commits when the block ends, rolls back when it raises or is cancelled.

        Writers of this process take turns; those of others are waited for at the beginning, up to three busy timeouts.
        Once the block runs, no lock can stop it. It awaits nothing but the database, and cannot be nested.

        Raises:
            DatabaseBusyError: Another process kept the database for too long; nothing was written.
            DatabaseFullError: The disk is full; nothing was written.
            DatabaseDamagedError: A page of the file cannot be read; nothing was written.
            ConstraintError: A statement broke a rule of the schema and the block did not catch SQLAlchemy's
                ``IntegrityError`` itself; nothing was written.
            StoreError: Anything else that the database refuses, or a block inside another one.
        """
        if self._writing_task is not None and self._writing_task is asyncio.current_task():
            raise StoreError("a write inside another write would wait for itself")
        async with self._write_lock:
            self._writing_task = asyncio.current_task()
            try:
                self._require_same_file()
                with self._translated():
                    async with self._writer.connect() as connection:
                        await self._begin(connection)
                        yield connection
                        await connection.commit()
            finally:
                self._writing_task = None

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Hold one unchanging view of the database, which neither waits for writers nor stops them; it cannot write.

        The view is taken at the first statement. Kept short, since the write-ahead log grows while a view is held.

        Raises:
            StoreError: As for ``writing``.
        """
        self._require_same_file()
        with self._translated():
            async with self._readers.connect() as connection:
                await connection.begin()
                yield connection

    async def read(self, work: Callable[[sqlite3.Connection], _ResultT]) -> _ResultT:
        """Return what the work reads from one unchanging view, all of it on the connection's thread.

        Of many statements each would else have the event loop wait for that thread, and a key for both.

        Raises:
            StoreError: As for ``writing``.
        """
        async with self.reading() as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            assert isinstance(driver, EndableConnection), "Database._connect makes all of them"
            return await driver.run(work)

    def data_version(self) -> int:
        """Return a number that differs from the last one when any connection has committed since; blocks for 5 µs.

        Commits of this process count too. The number says nothing on its own and starts anew with each ``Database``.

        Raises:
            StoreError: The database cannot be read.
        """
        self._require_same_file()
        try:
            if self._watcher is None:
                # Opened for writing, though it never writes: a read-only one that is closed last leaves files behind.
                uri = f"{self.path.as_uri()}?mode=rw"
                self._watcher = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
                set_pragmas(self._watcher.execute, busy_timeout=self._busy_timeout, is_read_only=True)
            version: int = self._watcher.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error
        return version

    async def close(self) -> None:
        """Close every connection for good; the last one of all processes folds the write-ahead log into the file.

        Idempotent. Whoever asks for a connection afterwards, as work that is still being cancelled may, gets an error.
        """
        self._is_closed = True
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None
        await self._readers.dispose()
        await self._writer.dispose()
        await self._end_connections()

    async def _end_connections(self) -> None:
        """End what was in use all the same: a thread that outlives the event loop has nobody to answer to."""
        living = [connection for connection in self._connections if connection.is_alive]
        for connection in living:
            connection.stop()
        for connection in living:
            await asyncio.to_thread(connection.wait, at_most_s=_END_WITHIN_S)

    def _connect(self, database: str, **options: Any) -> EndableConnection:  # noqa: ANN401 - those of sqlite3.connect
        if self._is_closed:
            # The pool would open it all the same, and nobody would close it any more.
            raise StoreError("the database is closed")
        connection = connect(database, **options)
        self._connections.add(connection)
        return connection

    def _engine(self, *, begin: str, connections: int, is_read_only: bool) -> AsyncEngine:
        url = URL.create(
            "sqlite+aiosqlite",
            database=f"file:{quote(str(self.path))}",
            query={"mode": "rw", "uri": "true"},
        )
        engine = create_async_engine(
            url,
            pool_size=connections,
            max_overflow=0,
            # An error would tell what people wrote, in logs and in reports that they pass on.
            hide_parameters=True,
            connect_args={"timeout": self._busy_timeout.total_seconds(), "async_creator_fn": self._connect},
        )

        def set_up(connection: DBAPIConnection, _record: object) -> None:
            # The driver would begin by itself, deferred and only before some statements.
            connection.isolation_level = None
            cursor = connection.cursor()
            try:
                set_pragmas(cursor.execute, busy_timeout=self._busy_timeout, is_read_only=is_read_only)
                if not is_read_only:
                    set_busy_timeout(cursor.execute, min(self._busy_timeout, _LONGEST_DEAF_WAIT))
            finally:
                cursor.close()

        def start(connection: Connection) -> None:
            connection.exec_driver_sql(begin)

        event.listen(engine.sync_engine, "connect", set_up)
        event.listen(engine.sync_engine, "begin", start)
        return engine

    def _require_same_file(self) -> None:
        require_same_file(self.path, self._file_at_start)

    async def _begin(self, connection: AsyncConnection) -> None:
        give_up_at = monotonic() + _BEGIN_WITHIN * self._busy_timeout.total_seconds()
        while True:
            try:
                await connection.begin()
            except DBAPIError as error:
                if monotonic() >= give_up_at or not is_busy(error.orig):
                    raise
                await asyncio.sleep(random.uniform(0.01, 0.05))
            else:
                return

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError as error:
            raise constraint_error(error) from error
        except PoolTimeoutError as error:
            raise DatabaseBusyError("every connection to the database is in use", hint="Try again.") from error
        except DBAPIError as error:
            raise store_error(error.orig or error, self.path) from error
        except SQLAlchemyError as error:
            raise StoreError(f"a statement to the database is wrong: {error}") from error
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedDatabase:
    """An open database and what a person should be told about it."""

    database: Database
    notices: tuple[str, ...]
    """Sentences to be shown once: an upgrade with its backup, or a fresh start after damage."""


async def open_database(
    location: str | Path,
    *,
    backups_dir: Path,
    release: str,
    clock: Clock | None = None,
    busy_timeout: timedelta = BUSY_TIMEOUT,
) -> OpenedDatabase:
    """Open the database at a path or SQLAlchemy URL, made or upgraded first when needed; the caller closes it.

    Raises:
        UsageError: The location is no SQLite file, or the file belongs to another program.
        DatabaseTooNewError: A later release made it; it is left untouched.
        DatabaseDamagedError: It was damaged and has been moved aside; the error is raised once.
        StoreError: It cannot be made, read, written or upgraded; see ``prepare_database``.
    """
    prepared = await asyncio.to_thread(
        prepare_database, location, backups_dir=backups_dir, release=release, clock=clock
    )
    return OpenedDatabase(database=Database(prepared.path, busy_timeout=busy_timeout), notices=prepared.notices)


def require_same_file(path: Path, opened: tuple[int, int] | None) -> None:
    """Refuse to go on with a file that is no longer the database.

    Raises:
        DatabaseMovedError: The file is missing, or another one than was opened.
    """
    if opened is None or file_identity(path) != opened:
        raise DatabaseMovedError(
            f"the database {path} is missing, or is no longer the file that was opened",
            hint="Start agentmon again once the file is in its place.",
        )


def file_identity(path: Path) -> tuple[int, int] | None:
    """Return what tells one file from another at the same path; None when it is missing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def constraint_error(error: IntegrityError | sqlite3.IntegrityError) -> ConstraintError:
    """Return the rule that a refused row broke; for repositories that catch the refusal of one statement."""
    message = str(error.orig if isinstance(error, IntegrityError) else error)
    words, _, subject = message.partition(" constraint failed")
    subject = subject.removeprefix(": ").removeprefix("index ").strip("'")
    match words:
        case "UNIQUE":
            return ConstraintError(kind=ConstraintKind.UNIQUE, constraint=_unique_name(subject))
        case "CHECK":
            return ConstraintError(kind=ConstraintKind.CHECK, constraint=subject)
        case "NOT NULL":
            return ConstraintError(kind=ConstraintKind.NOT_NULL, constraint=subject)
        case _:
            return ConstraintError(kind=ConstraintKind.FOREIGN_KEY, constraint="")


def _unique_name(subject: str) -> str:
    """Return the name of the rule over ``table.column, table.column``, which is all that SQLite tells."""
    columns = [column.partition(".")[2] for column in subject.split(", ")]
    table = metadata.tables.get(subject.partition(".")[0])
    if table is None:
        return subject
    for rule in table.constraints:
        if isinstance(rule, (UniqueConstraint, PrimaryKeyConstraint)) and rule.columns.keys() == columns:
            return str(rule.name)
    for index in table.indexes:
        if index.unique and index.columns.keys() == columns:
            return str(index.name)
    return subject
