"""A connection beside that of the event loop, so that a thread can write; every call blocks."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agentmon.store.database import BUSY_TIMEOUT, constraint_error, file_identity, require_same_file
from agentmon.store.errors import store_error
from agentmon.store.pragmas import set_pragmas

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta
    from pathlib import Path


class OwnConnection:
    """What writes over such a connection is built on this; belongs to one thread at a time.

    Args:
        path: The database, which has to be there.
        busy_timeout: How long a writer of another process is waited for.
    """

    def __init__(self, path: Path, *, busy_timeout: timedelta = BUSY_TIMEOUT) -> None:
        self._path = path
        self._file_at_start = file_identity(path)
        with self._translated():
            self._connection = sqlite3.connect(
                f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
            )
            try:
                set_pragmas(self._connection.execute, busy_timeout=busy_timeout)
            except sqlite3.Error:
                self.close()
                raise

    def close(self) -> None:
        """Close the connection; idempotent."""
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Write all of it or nothing.

        Raises:
            StoreError: The database refused it, or another file is in its place.
        """
        require_same_file(self._path, self._file_at_start)
        with self._translated():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise constraint_error(error) from error
        except sqlite3.Error as error:
            raise store_error(error, self._path) from error
