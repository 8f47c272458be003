"""What files of agents tell into rows: a piece of a file, its cursor and the sums that follow, in one transaction."""

from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.costs import FileCursor
from agentmon.domain.ids import new_id
from agentmon.domain.limit_readings import LimitSource
from agentmon.store.column_types import json_text
from agentmon.store.database import BUSY_TIMEOUT, constraint_error, file_identity, require_same_file
from agentmon.store.errors import store_error
from agentmon.store.limit_rows import context_statements, limit_statements
from agentmon.store.moments import moment_text
from agentmon.store.pragmas import set_pragmas
from agentmon.store.usage_answers import ToldAnswers
from agentmon.store.usage_conversations import HISTORY, Conversations
from agentmon.store.usage_days import READ_ZONE, WRITE_ZONE, days_of_zone, zone_of, zone_row
from agentmon.store.usage_stand_ins import STAND_IN_SPAN_MS, STAND_INS, drop_stand_ins
from agentmon.store.usage_sums import SumChanges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    from agentmon.domain.billing import HistorySession
    from agentmon.domain.clock import Clock
    from agentmon.domain.costs import PricedAnswer
    from agentmon.domain.limit_readings import ContextReading, LimitReading
    from agentmon.domain.local_days import LocalDays

_FILE: Final = (
    *("agent_slug", "path", "thread_key", "inode", "size_bytes", "mtime_ns", "read_offset", "head_hash"),
    *("parser_version", "state"),
)
_WRITE_FILE: Final = (
    f"INSERT INTO usage_files (id, {', '.join(_FILE)}, created_at, updated_at) "
    f"VALUES ({', '.join('?' * (len(_FILE) + 3))}) ON CONFLICT (path) DO UPDATE SET "
    f"{', '.join(f'{name} = excluded.{name}' for name in (*_FILE, 'updated_at'))}"
)
_OF_BOTH: Final = (
    "SELECT h.id AS history_id, s.id, s.agent_id FROM sessions h "
    "JOIN sessions s ON s.session_ref = h.session_ref AND s.agent_id = h.agent_id AND s.id <> h.id "
    "WHERE json_extract(h.metadata, '$.origin') = ? AND json_extract(s.metadata, '$.origin') IS NOT ? GROUP BY h.id"
)
"""Sessions of history with the one that ran here under the same name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePiece:
    """A piece of a file of an agent: what it tells, and the cursor before and after it."""

    before: FileCursor | None
    after: FileCursor
    answers: Sequence[PricedAnswer]
    """Each key once."""
    sessions: Sequence[HistorySession]
    limits: Sequence[LimitReading] = ()
    contexts: Sequence[ContextReading] = ()


class UsageImport:
    """Writes pieces of files over a connection of its own, so that a thread can do it; every call blocks.

    Args:
        path: The database, which has to be there.
        zone_name: In which zone the days are, when none was chosen yet.
        clock: Tells the time of the rows.
        busy_timeout: How long a writer of another process is waited for.
    """

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
            rows = self._connection.execute("SELECT * FROM usage_files").fetchall()
        return {row["path"]: _cursor_of(row) for row in rows}

    def forget_cursors(self) -> None:
        """Let all files be read again from their beginning; what was told by them stays."""
        with self._transaction() as connection:
            connection.execute("UPDATE usage_files SET read_offset = 0, size_bytes = 0, head_hash = '', state = '{}'")

    def write(self, piece: FilePiece) -> bool:
        """Write one piece with its cursor and its part of the sums, all or nothing.

        Of an answer that is there already the larger telling counts; a file wins over what a conversation here told
        before. See ``agentmon.domain.billing.merge_answers`` and ``Conversation.is_older_than`` for whose it is.

        Returns:
            False when the cursor has moved since ``piece.before``: somebody else has read the file, nothing is written.

        Raises:
            StoreError: Nothing was written; the kinds are those of ``Database.writing``.
        """
        at = self._clock.now()
        with self._transaction() as connection:
            row = connection.execute("SELECT * FROM usage_files WHERE path = ?", (piece.after.path,)).fetchone()
            if (None if row is None else _cursor_of(row)) != piece.before:
                return False
            file_id: str = new_id() if row is None else row["id"]
            _write_file(connection, file_id, piece.after, at)
            if piece.answers or piece.sessions:
                told = ToldAnswers(connection, piece.after.agent_slug, file_id, self._days(at), at)
                told.write(piece.answers, piece.sessions)
            _write_limits(connection, piece, at)
        return True

    def adopt_conversations(self) -> int:
        """Give answers of history to the sessions that turned out to have run here; return how many of these there are.

        A file may be read before the agent has told the worker its own id of the conversation.
        """
        with self._translated():
            pairs = self._connection.execute(_OF_BOTH, (HISTORY, HISTORY)).fetchall()
        if pairs:
            at = self._clock.now()
            with self._transaction() as connection:
                pairs = connection.execute(_OF_BOTH, (HISTORY, HISTORY)).fetchall()
                for pair in pairs:
                    _adopt(connection, pair["history_id"], pair["id"], pair["agent_id"], at)
        return len(pairs)

    def drop_stand_ins(self, *, since_ms: int) -> None:
        """Remove rows since then that stood in for what a file had told already when a conversation told it.

        See ``agentmon.store.usage_stand_ins.STAND_IN_SPAN_MS``.
        """
        with self._translated():
            rows = self._connection.execute(
                "SELECT DISTINCT session_id FROM llm_interactions WHERE at_ms >= ? AND is_provisional", (since_ms,)
            ).fetchall()
            dropped = [
                row["session_id"]
                for row in rows
                if self._connection.execute(
                    STAND_INS, (row["session_id"], row["session_id"], STAND_IN_SPAN_MS)
                ).fetchone()
            ]
        if dropped:
            sums = SumChanges()
            with self._transaction() as connection:
                for session_id in dropped:
                    drop_stand_ins(connection, session_id, sums)
                _write_sums(connection, sums)

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


def _adopt(connection: sqlite3.Connection, history_id: str, session_id: str, agent_id: str, at: datetime) -> None:
    conversations = Conversations(connection, agent_id)
    conversation = conversations.of_id(session_id)
    sums = SumChanges()
    moved = []
    for row in connection.execute("SELECT * FROM llm_interactions WHERE session_id = ?", (history_id,)).fetchall():
        execution_id = row["execution_id"] or conversation.execution_at(row["at_ms"])
        sums.take_away(row)
        sums.add(dict(row) | {"session_id": session_id, "execution_id": execution_id})
        moved.append((session_id, execution_id, row["id"]))
    connection.executemany("UPDATE llm_interactions SET session_id = ?, execution_id = ? WHERE id = ?", moved)
    _write_sums(connection, sums)
    connection.execute("DELETE FROM sessions WHERE id = ?", (history_id,))
    connection.execute("UPDATE sessions SET updated_at = ? WHERE id = ?", (moment_text(at), session_id))


def _write_sums(connection: sqlite3.Connection, sums: SumChanges) -> None:
    for statement, parameters in sums.statements():
        connection.executemany(statement, parameters)


def _write_limits(connection: sqlite3.Connection, piece: FilePiece, at: datetime) -> None:
    slug = piece.after.agent_slug
    for statement, parameters in limit_statements(slug, piece.limits, LimitSource.TRANSCRIPT, at):
        connection.execute(statement, parameters)
    for statement, parameters in context_statements(slug, piece.contexts):
        connection.execute(statement, parameters)


def _write_file(connection: sqlite3.Connection, file_id: str, cursor: FileCursor, at: datetime) -> None:
    now = moment_text(at)
    columns = {name: getattr(cursor, name) for name in _FILE} | {"state": json_text(cursor.state)}
    connection.execute(_WRITE_FILE, (file_id, *(columns[name] for name in _FILE), now, now))


def _cursor_of(row: sqlite3.Row) -> FileCursor:
    columns = {name: row[name] for name in _FILE}
    return FileCursor(**columns | {"state": json.loads(row["state"])})
