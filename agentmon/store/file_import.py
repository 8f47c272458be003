"""Pieces of files of agents on their way into rows, each with its cursor, over a connection of its own."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Final

from agentmon.domain.costs import FileCursor
from agentmon.domain.ids import new_id
from agentmon.store.column_types import json_text
from agentmon.store.database import BUSY_TIMEOUT
from agentmon.store.moments import moment_text
from agentmon.store.own_connection import OwnConnection
from agentmon.store.usage_days import READ_ZONE, WRITE_ZONE, days_of_zone, zone_of, zone_row

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from pathlib import Path
    from typing import ClassVar

    from agentmon.domain.clock import Clock
    from agentmon.domain.local_days import LocalDays

_FILE: Final = (
    *("agent_slug", "path", "thread_key", "inode", "size_bytes", "mtime_ns", "read_offset", "head_hash"),
    *("parser_version", "state"),
)


class FileImport(OwnConnection):
    """Keeps up to where files were read.

    Args:
        path: The database, which has to be there.
        zone_name: In which zone the days are, when none was chosen yet.
        clock: Tells the time of the rows.
        busy_timeout: How long a writer of another process is waited for.
    """

    files_table: ClassVar[str]
    """Where the cursors are."""

    def __init__(self, path: Path, *, zone_name: str, clock: Clock, busy_timeout: timedelta = BUSY_TIMEOUT) -> None:
        super().__init__(path, busy_timeout=busy_timeout)
        self._connection.row_factory = sqlite3.Row
        self._zone_name = zone_name
        self._clock = clock

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


def _cursor_of(row: sqlite3.Row) -> FileCursor:
    columns = {name: row[name] for name in _FILE}
    return FileCursor(**columns | {"state": json.loads(row["state"])})
