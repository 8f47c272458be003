"""Pieces of files of agents on their way into rows, each with its cursor, over a connection of its own."""

from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from agentmon.domain.costs import FileCursor
from agentmon.domain.ids import new_id
from agentmon.store.column_types import json_text
from agentmon.store.database import BUSY_TIMEOUT, constraint_error, file_identity, require_same_file
from agentmon.store.errors import store_error
from agentmon.store.moments import moment_text
from agentmon.store.pragmas import set_pragmas
from agentmon.store.usage_days import READ_ZONE, WRITE_ZONE, days_of_zone, zone_of, zone_row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta
    from pathlib import Path
    from typing import ClassVar

    from agentmon.domain.clock import Clock
    from agentmon.domain.local_days import LocalDays

_FILE: Final = (
    *("agent_slug", "path", "thread_key", "inode", "size_bytes", "mtime_ns", "read_offset", "head_hash"),
    *("parser_version", "state"),
)


class FileImport:
    """Keeps up to where files were read, over a connection of its own, so that a thread can do it; every call blocks.

    Args:
        path: The database, which has to be there.
        zone_name: In which zone the days are, when none was chosen yet.
        clock: Tells the time of the rows.
        busy_timeout: How long a writer of another process is waited for.
    """

    files_table: ClassVar[str]
    """Where the cursors are."""

    def __init__(self, path: Path, *, zone_name: str, clock: Clock, busy_timeout: timedelta = BUSY_TIMEOUT) -> None:
        self._path = path
        self._zone_name = zone_name
        self._clock = clock
        self._file_at_start = file_identity(path)
        with self._translated():
            self._connection = sqlite3.connect(
                f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
            )
            self._connection.row_factory = sqlite3.Row
            set_pragmas(self._connection.execute, busy_timeout=busy_timeout)

    def close(self) -> None:
        """Close the connection; idempotent."""
        self._connection.close()

    def cursors(self) -> dict[str, FileCursor]:
        """Return up to where each file was read, by its path."""
        with self._translated():
            rows = self._connection.execute(f"SELECT * FROM {self.files_table}").fetchall()
        return {row["path"]: _cursor_of(row) for row in rows}

    def forget_cursors(self) -> None:
        """Let all files be read again from their beginning; what was told by them stays."""
        with self._transaction() as connection:
            connection.execute(
                f"UPDATE {self.files_table} SET read_offset = 0, size_bytes = 0, head_hash = '', state = '{{}}'"
            )

    def _keep_cursor(
        self, connection: sqlite3.Connection, before: FileCursor | None, after: FileCursor, at: datetime
    ) -> str | None:
        """Move the cursor and return the id of the file; None when it has moved since ``before``."""
        row = connection.execute(f"SELECT * FROM {self.files_table} WHERE path = ?", (after.path,)).fetchone()
        if (None if row is None else _cursor_of(row)) != before:
            return None
        file_id: str = new_id() if row is None else row["id"]
        now = moment_text(at)
        columns = {name: getattr(after, name) for name in _FILE} | {"state": json_text(after.state)}
        connection.execute(
            f"INSERT INTO {self.files_table} (id, {', '.join(_FILE)}, created_at, updated_at) "
            f"VALUES ({', '.join('?' * (len(_FILE) + 3))}) ON CONFLICT (path) DO UPDATE SET "
            f"{', '.join(f'{name} = excluded.{name}' for name in (*_FILE, 'updated_at'))}",
            (file_id, *(columns[name] for name in _FILE), now, now),
        )
        return file_id

    def _days(self, at: datetime) -> LocalDays:
        row = self._connection.execute(READ_ZONE).fetchone()
        zone_name = None if row is None else zone_of(row["value"])
        if zone_name is None:
            zone_name = self._zone_name
            self._connection.execute(WRITE_ZONE, zone_row(zone_name, at))
        return days_of_zone(zone_name)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
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


def _cursor_of(row: sqlite3.Row) -> FileCursor:
    columns = {name: row[name] for name in _FILE}
    return FileCursor(**columns | {"state": json.loads(row["state"])})
