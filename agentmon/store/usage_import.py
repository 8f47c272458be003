"""What files of agents tell into rows: a piece of a file, its cursor and the sums that follow, in one transaction."""

from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from agentmon.domain.costs import FileCursor
from agentmon.domain.ids import new_id
from agentmon.store.column_types import json_text
from agentmon.store.database import BUSY_TIMEOUT, constraint_error, file_identity, require_same_file
from agentmon.store.errors import store_error
from agentmon.store.moments import moment_text
from agentmon.store.pragmas import set_pragmas
from agentmon.store.told_conversation import in_pieces
from agentmon.store.usage_conversations import HISTORY, Conversations
from agentmon.store.usage_days import READ_ZONE, WRITE_ZONE, days_of_zone, zone_of, zone_row
from agentmon.store.usage_rows import COUNTED, STAND_IN_SPAN_MS
from agentmon.store.usage_sums import SumChanges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    from agentmon.domain.billing import HistorySession
    from agentmon.domain.clock import Clock
    from agentmon.domain.costs import PricedAnswer
    from agentmon.domain.local_days import LocalDays
    from agentmon.store.usage_conversations import Conversation

_ANSWER: Final = (
    *("id", "key", "session_id", "execution_id", "agent_id", "model", "provider"),
    *("prompt_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens"),
    *("response_tokens", "reasoning_tokens", "success", "cost_nano", "cost_source", "price_version"),
    *("is_provisional", "at_ms", "day_local", "created_at", "project", "is_owner_marked", "web_searches", "speed"),
    *("geo", "is_subagent", "reported_cost_nano", "confidence", "source_file_id", "source_offset"),
)
_NEVER_CHANGED: Final = frozenset({"id", "key", "agent_id", "created_at", "success"})
_CHANGED: Final = tuple(name for name in _ANSWER if name not in _NEVER_CHANGED)
_INSERT: Final = f"INSERT INTO llm_interactions ({', '.join(_ANSWER)}) VALUES ({', '.join('?' * len(_ANSWER))})"
_UPDATE: Final = f"UPDATE llm_interactions SET {', '.join(f'{name} = ?' for name in _CHANGED)} WHERE id = ?"
_FILE: Final = (
    *("agent_slug", "path", "thread_key", "inode", "size_bytes", "mtime_ns", "read_offset", "head_hash"),
    *("parser_version", "state"),
)
_WRITE_FILE: Final = (
    f"INSERT INTO usage_files (id, {', '.join(_FILE)}, created_at, updated_at) "
    f"VALUES ({', '.join('?' * (len(_FILE) + 3))}) ON CONFLICT (path) DO UPDATE SET "
    f"{', '.join(f'{name} = excluded.{name}' for name in (*_FILE, 'updated_at'))}"
)
_STAND_INS: Final = (
    "SELECT * FROM llm_interactions WHERE session_id = ? AND is_provisional AND at_ms <= "
    "(SELECT max(at_ms) FROM llm_interactions WHERE session_id = ? AND source_file_id IS NOT NULL) + ?"
)
_OF_BOTH: Final = (
    "SELECT h.id AS history_id, s.id, s.agent_id FROM sessions h "
    "JOIN sessions s ON s.session_ref = h.session_ref AND s.agent_id = h.agent_id AND s.id <> h.id "
    "WHERE json_extract(h.metadata, '$.origin') = ? AND json_extract(s.metadata, '$.origin') IS NOT ? GROUP BY h.id"
)
"""Sessions of history with the one that ran here under the same name."""
_columns_of_answer: Final = itemgetter(*_ANSWER)
_changed_columns: Final = itemgetter(*_CHANGED)
_counted: Final = itemgetter(*COUNTED)
_TOLD: Final = (
    *("cost_nano", "cost_source", "price_version", "confidence", "source_file_id", "source_offset"),
    *("prompt_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens"),
    *("response_tokens", "reasoning_tokens", "web_searches", "model", "provider", "speed", "geo"),
)
"""What belongs to the telling that counts, and stays when another one is smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePiece:
    """A piece of a file of an agent: what it tells, and the cursor before and after it."""

    before: FileCursor | None
    after: FileCursor
    answers: Sequence[PricedAnswer]
    """Each key once."""
    sessions: Sequence[HistorySession]


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
                _Answers(connection, piece.after.agent_slug, file_id, self._days(at), at).write(piece)
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

        See ``agentmon.store.usage_rows.STAND_IN_SPAN_MS``.
        """
        with self._translated():
            rows = self._connection.execute(
                "SELECT DISTINCT session_id FROM llm_interactions WHERE at_ms >= ? AND is_provisional", (since_ms,)
            ).fetchall()
            dropped = [
                row["session_id"]
                for row in rows
                if self._connection.execute(
                    _STAND_INS, (row["session_id"], row["session_id"], STAND_IN_SPAN_MS)
                ).fetchone()
            ]
        if dropped:
            sums, totals = SumChanges(), _Totals()
            with self._transaction() as connection:
                for session_id in dropped:
                    _drop_stand_ins(connection, session_id, sums, totals)
                for statement, parameters in sums.statements():
                    connection.executemany(statement, parameters)
                totals.write(connection)

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


class _Answers:
    """The answers of one piece on their way into rows."""

    def __init__(
        self, connection: sqlite3.Connection, agent_slug: str, file_id: str, days: LocalDays, at: datetime
    ) -> None:
        self._connection = connection
        self._agent_id: str = connection.execute("SELECT id FROM agents WHERE slug = ?", (agent_slug,)).fetchone()["id"]
        self._file_id = file_id
        self._days = days
        self._at = at
        self._created_at = moment_text(at)
        self._conversations = Conversations(connection, self._agent_id)
        self._sums = SumChanges()
        self._totals = _Totals()

    def write(self, piece: FilePiece) -> None:
        self._conversations.load(piece.sessions, [priced.answer for priced in piece.answers])
        self._conversations.write(self._at)
        present = self._present([priced.answer.key for priced in piece.answers])
        added, changed, touched = [], [], dict[str, "Conversation"]()
        for priced in piece.answers:
            teller = self._conversations.of_ref(priced.answer.session_ref)
            earlier = present.get(priced.answer.key)
            row = self._row(priced, teller) if earlier is None else self._merge(earlier, priced, teller)
            if earlier is None:
                added.append(_columns_of_answer(row))
            elif _changed_columns(row) == _changed_columns(earlier):
                continue
            else:
                changed.append((*_changed_columns(row), row["id"]))
                self._count(earlier, -1)
            self._count(row, 1)
            if not teller.is_history:
                touched[teller.id] = teller
        self._connection.executemany(_INSERT, added)
        self._connection.executemany(_UPDATE, changed)
        for one in touched.values():
            _drop_stand_ins(self._connection, one.id, self._sums, self._totals)
        for statement, parameters in self._sums.statements():
            self._connection.executemany(statement, parameters)
        self._totals.write(self._connection)

    def _present(self, keys: Sequence[str]) -> dict[str, sqlite3.Row]:
        found: dict[str, sqlite3.Row] = {}
        for some in in_pieces(keys):
            marks = ", ".join("?" * len(some))
            rows = self._connection.execute(
                f"SELECT * FROM llm_interactions WHERE agent_id = ? AND key IN ({marks})", (self._agent_id, *some)
            )
            found.update((row["key"], row) for row in rows)
        return found

    def _row(self, priced: PricedAnswer, teller: Conversation) -> dict[str, object]:
        answer = priced.answer
        return {
            "id": new_id(),
            "key": answer.key,
            "session_id": teller.id,
            "execution_id": teller.execution_at(answer.at_ms) if teller.executions else None,
            "agent_id": self._agent_id,
            "model": answer.model,
            "provider": answer.provider,
            "prompt_tokens": answer.prompt_tokens,
            "cache_read_tokens": answer.cache_read_tokens,
            "cache_write_5m_tokens": answer.cache_write_5m_tokens,
            "cache_write_1h_tokens": answer.cache_write_1h_tokens,
            "response_tokens": answer.response_tokens,
            "reasoning_tokens": answer.reasoning_tokens,
            "success": 1,
            "cost_nano": priced.cost_nano,
            "cost_source": priced.cost_source,
            "price_version": priced.price_version,
            "is_provisional": 0,
            "at_ms": answer.at_ms,
            "day_local": self._days.day_of(answer.at_ms),
            "created_at": self._created_at,
            "project": priced.project or teller.workspace,
            "is_owner_marked": int(answer.is_owner_marked),
            "web_searches": answer.web_searches,
            "speed": answer.speed,
            "geo": answer.geo,
            "is_subagent": int(answer.is_subagent),
            "reported_cost_nano": answer.reported_cost_nano,
            "confidence": answer.confidence.value,
            "source_file_id": self._file_id,
            "source_offset": answer.offset,
        }

    def _merge(self, earlier: sqlite3.Row, priced: PricedAnswer, teller: Conversation) -> dict[str, object]:
        row = self._row(priced, teller) | {"id": earlier["id"], "created_at": earlier["created_at"]}
        kept_owner = self._conversations.of_id(earlier["session_id"])
        is_told_again = earlier["source_file_id"] is not None
        if is_told_again:
            row |= self._merge_tellings(earlier, row)
        is_taken = kept_owner.id != teller.id and (
            priced.answer.is_owner_marked > bool(earlier["is_owner_marked"])
            or (priced.answer.is_owner_marked == bool(earlier["is_owner_marked"]) and teller.is_older_than(kept_owner))
        )
        if not is_taken:
            row["session_id"] = kept_owner.id
            row["execution_id"] = earlier["execution_id"] or kept_owner.execution_at(int(str(row["at_ms"])))
            if is_told_again:
                row |= {name: earlier[name] for name in ("project", "is_subagent", "is_owner_marked")}
                row["project"] = earlier["project"] or priced.project or teller.workspace
        return row

    def _merge_tellings(self, earlier: sqlite3.Row, row: Mapping[str, object]) -> dict[str, object]:
        """Return the columns that an earlier telling of a file decides: that counts which is larger."""
        is_same_file = earlier["source_file_id"] == self._file_id
        is_read_again = is_same_file and int(str(row["source_offset"])) <= earlier["source_offset"]
        before, now = _size(earlier), _size(row)
        times = [int(str(at_ms)) for at_ms in (earlier["at_ms"], row["at_ms"]) if at_ms]
        at_ms = min(times, default=0)
        columns: dict[str, object] = {"at_ms": at_ms, "day_local": self._days.day_of(at_ms)}
        if not is_read_again and (now < before or (now == before and not is_same_file)):
            columns |= {name: earlier[name] for name in _TOLD}
        if earlier["reported_cost_nano"] is not None and (columns.keys() & _TOLD or row["reported_cost_nano"] is None):
            columns["reported_cost_nano"] = earlier["reported_cost_nano"]
        return columns

    def _count(self, row: Mapping[str, object] | sqlite3.Row, sign: int) -> None:
        if sign > 0:
            self._sums.add(row)
        else:
            self._sums.take_away(row)
        session_id = str(row["session_id"])
        self._totals.add(row, sign, has_cost=self._conversations.of_id(session_id).is_history)


class _Totals:
    """By how much the totals of sessions and executions change."""

    def __init__(self) -> None:
        self._sessions: dict[str, list[int]] = {}
        self._executions: dict[str, int] = {}

    def add(self, row: Mapping[str, object] | sqlite3.Row, sign: int, *, has_cost: bool) -> None:
        tokens: int = sign * sum(_counted(row))
        totals = self._sessions.setdefault(str(row["session_id"]), [0, 0])
        totals[0] += tokens
        cost = row["cost_nano"]
        if has_cost and isinstance(cost, int):
            totals[1] += sign * cost
        execution_id = row["execution_id"]
        if isinstance(execution_id, str):
            self._executions[execution_id] = self._executions.get(execution_id, 0) + tokens

    def write(self, connection: sqlite3.Connection) -> None:
        connection.executemany(
            "UPDATE sessions SET total_tokens = max(0, total_tokens + ?), "
            "total_cost_nano = max(0, total_cost_nano + ?) WHERE id = ?",
            [(*totals, session_id) for session_id, totals in self._sessions.items() if any(totals)],
        )
        connection.executemany(
            "UPDATE executions SET tokens_used = max(0, tokens_used + ?) WHERE id = ?",
            [(tokens, execution_id) for execution_id, tokens in self._executions.items() if tokens],
        )


def _drop_stand_ins(connection: sqlite3.Connection, session_id: str, sums: SumChanges, totals: _Totals) -> None:
    """Remove what a conversation told under keys of its own, up to where the agent's file has been read."""
    rows = connection.execute(_STAND_INS, (session_id, session_id, STAND_IN_SPAN_MS)).fetchall()
    for row in rows:
        sums.take_away(row)
        totals.add(row, -1, has_cost=False)
    connection.executemany("DELETE FROM llm_interactions WHERE id = ?", [(row["id"],) for row in rows])


def _adopt(connection: sqlite3.Connection, history_id: str, session_id: str, agent_id: str, at: datetime) -> None:
    conversations = Conversations(connection, agent_id)
    conversation = conversations.of_id(session_id)
    totals = _Totals()
    moved = []
    for row in connection.execute("SELECT * FROM llm_interactions WHERE session_id = ?", (history_id,)).fetchall():
        execution_id = row["execution_id"] or conversation.execution_at(row["at_ms"])
        totals.add(dict(row) | {"session_id": session_id, "execution_id": execution_id}, 1, has_cost=False)
        moved.append((session_id, execution_id, row["id"]))
    connection.executemany("UPDATE llm_interactions SET session_id = ?, execution_id = ? WHERE id = ?", moved)
    totals.write(connection)
    connection.execute("DELETE FROM sessions WHERE id = ?", (history_id,))
    connection.execute("UPDATE sessions SET updated_at = ? WHERE id = ?", (moment_text(at), session_id))


def _size(row: Mapping[str, object] | sqlite3.Row) -> tuple[int, int, int]:
    """Return by what tellings of one answer are compared, as ``agentmon.domain.billing.merge_answers`` does."""
    tokens: int = sum(_counted(row))
    return int(str(row["response_tokens"])), tokens, int(str(row["web_searches"]))


def _write_file(connection: sqlite3.Connection, file_id: str, cursor: FileCursor, at: datetime) -> None:
    now = moment_text(at)
    columns = {name: getattr(cursor, name) for name in _FILE} | {"state": json_text(cursor.state)}
    connection.execute(_WRITE_FILE, (file_id, *(columns[name] for name in _FILE), now, now))


def _cursor_of(row: sqlite3.Row) -> FileCursor:
    columns = {name: row[name] for name in _FILE}
    return FileCursor(**columns | {"state": json.loads(row["state"])})
