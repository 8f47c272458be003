"""Reads what is new in a database of opencode, ``opencode.db`` (1.2 to 1.18.33).

The only SQL outside the store: it is that of a foreign file, which is never written, locked or given a companion.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import quote

from agentmon.usage.fields import count_in, milliseconds_in, objects_in, parse_record, ref_in, text_in
from agentmon.usage.following import UNFINISHED, Cursor, Read
from agentmon.usage.opencode import (
    PARSER_VERSION,
    answer_in,
    created_ms,
    failure_in,
    has_ended,
    ids_of_original,
    is_answer,
    is_copy,
    key_of_copy,
)
from agentmon.usage.reading import Answers, Reading, ReadingProblem
from agentmon.usage.session_notes import SessionNotes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentmon.domain.billing import FailedCall
    from agentmon.usage.sources import SourceFile

ROWS_AT_ONCE: Final = 1_000
"""So many messages are told at once."""
MAX_MESSAGE_CHARACTERS: Final = 8 * 1_048_576
GIVEN_UP_AFTER_MS: Final = 3_600_000
"""A message without an end is as it stays once another one is so much newer."""
_MESSAGE_TABLES: Final = ("message", "session_message")
_SESSION_TABLES: Final = ("session", "session_v2")
_BEGUN: Final = "SELECT id, directory, time_created FROM session WHERE time_created >= ? AND parent_id IS NULL"
_SAID_FIRST: Final = """
SELECT m.id, m.data, p.data FROM message m JOIN part p ON p.message_id = m.id
WHERE m.session_id = ? AND CASE WHEN json_valid(m.data) THEN json_extract(m.data, '$.role') END = 'user'
    AND CASE WHEN json_valid(p.data) THEN json_extract(p.data, '$.type') END = 'text'
ORDER BY m.time_created, m.id, p.id LIMIT 1
"""
_MAX_PARENTS: Final = 16
_MAX_UNENDED: Final = 500
_WAIT_S: Final = 1.0

_Row = tuple[int, object, object, object, object]
_FileFacts = tuple[int, int, int]
"""Inode, size and time of a file."""


@dataclass(slots=True)
class _Progress:
    """How far the tables were read."""

    read_to: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By table the number and the id of the last row."""
    unended: dict[str, list[int]] = field(default_factory=dict)
    """By table the numbers of answers that had not ended."""
    sessions_ms: int = 0
    newest_ms: int = 0
    is_first: bool = False
    """Whether the database was never read to its end: later the originals of all copies have been told."""

    @classmethod
    def restore(cls, state: Mapping[str, object]) -> _Progress:
        """Return the progress that ``state`` wrote."""
        progress = cls(
            sessions_ms=milliseconds_in(state, "sessions_ms"),
            newest_ms=milliseconds_in(state, "newest_ms"),
            is_first=state.get("is_first") is True,
        )
        for table in objects_in(state, "tables"):
            name, unended = text_in(table, "name"), table.get("unended")
            progress.read_to[name] = count_in(table, "row"), text_in(table, "id")
            progress.unended[name] = [row for row in unended if type(row) is int] if isinstance(unended, list) else []
        return progress

    def state(self) -> dict[str, object]:
        """Return it as JSON values."""
        tables = [
            {"name": name, "row": row, "id": row_id, "unended": list(self.unended.get(name, ()))}
            for name, (row, row_id) in self.read_to.items()
        ]
        return {
            "tables": tables,
            "sessions_ms": self.sessions_ms,
            "newest_ms": self.newest_ms,
            "is_first": self.is_first,
        }


def read_database(source: SourceFile, cursor: Cursor | None) -> Iterator[Read]:
    """Yield the answers that are new in the database since the cursor; see ``read_tables``."""
    return read_tables(source, cursor, _AnswerTables)


def read_tables(source: SourceFile, cursor: Cursor | None, kind: type[OpencodeTables]) -> Iterator[Read]:
    """Yield what is new in the database since the cursor, piece by piece; see ``following.read_source``.

    Rows are read behind the last one; those of what had not ended are read again. A database in which the last row is
    another one is read from its beginning.
    """
    begun = Cursor(
        path=source.path,
        inode=source.inode,
        size=source.size,
        mtime_ns=source.mtime_ns,
        offset=0,
        head_hash="",
        parser_version=kind.parser_version,
        state={},
    )
    is_same = cursor is not None and (cursor.inode, cursor.parser_version) == (begun.inode, begun.parser_version)
    progress = _Progress.restore(cursor.state if cursor is not None and is_same else {})
    progress.is_first |= cursor is None
    before = _facts(source.path)
    has_log = before[1] is not None and before[1][1] > 0
    try:
        with closing(_open(source.path, has_log=has_log)) as connection:
            for reading, is_last in kind(connection, progress).read():
                if not has_log and _facts(source.path) != before:
                    # It was written while it was read without a lock; the next look finds it changed.
                    return
                moved = replace(begun, state=progress.state())
                yield Read(
                    reading=reading,
                    cursor=replace(moved, offset=begun.size) if is_last else replace(moved, mtime_ns=UNFINISHED),
                )
    except (OSError, sqlite3.Error) as error:
        if has_log or _facts(source.path) == before:
            reason = f"its database cannot be read: {error}"
            if has_log and not Path(f"{source.path}-shm").exists():
                reason = "its log cannot be read before opencode has run again"
            yield Read(reading=Reading(problems=(ReadingProblem(offset=0, reason=reason),)), cursor=None)


def begun_sessions(path: str, *, since_ms: int) -> list[dict[str, object]]:
    """Return id, ``directory``, ``time_created`` and first ``prompt`` of the sessions that began since then.

    A copy has the session in which its first words were said as ``forked_from``, or a name for one that is gone. A
    database that cannot be read, or has other tables, tells none.
    """
    log = _facts(path)[1]
    try:
        with closing(_open(path, has_log=log is not None and log[1] > 0)) as connection:
            return [
                {
                    "id": text_of(session_id),
                    "directory": text_of(directory),
                    "time_created": created,
                    **_said_first(connection, text_of(session_id)),
                }
                for session_id, directory, created in connection.execute(_BEGUN, (since_ms,)).fetchall()
            ]
    except sqlite3.Error:
        return []


def _said_first(connection: sqlite3.Connection, session_id: str) -> dict[str, object]:
    found = connection.execute(_SAID_FIRST, (session_id,)).fetchone()
    message_id, message, part = (b"", b"", b"") if found is None else found
    record = parse_record(message) or {}
    prompt = (parse_record(part) or {}).get("text")
    if not is_copy(text_of(message_id), record):
        return {"prompt": prompt}
    original = _find_original(connection, "message", record)
    return {"prompt": prompt, "forked_from": original[1] if original else key_of_copy(record)}


def _find_original(connection: sqlite3.Connection, table: str, copy: Mapping[str, object]) -> tuple[str, str] | None:
    """Return id and session of the message of which this one is a copy; None when it is not there."""
    key = key_of_copy(copy)
    rows = connection.execute(
        f"SELECT id, session_id, data FROM {table} WHERE id BETWEEN ? AND ?", ids_of_original(copy)
    )
    for message_id, session_id, written in rows:
        record = parse_record(written) if isinstance(written, bytes) else None
        if record and key_of_copy(record) == key and not is_copy(text_of(message_id), record):
            return text_of(message_id), text_of(session_id)
    return None


def _facts(path: str) -> tuple[_FileFacts | None, _FileFacts | None]:
    """Return what tells whether the database and its log, in which its newest changes are, were written."""
    return _file_facts(Path(path)), _file_facts(Path(f"{path}-wal"))


def _file_facts(path: Path) -> _FileFacts | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _open(path: str, *, has_log: bool) -> sqlite3.Connection:
    """Return a connection that changes no file.

    With a log its index, ``-shm``, is read as the agent left it. Without one there is nothing but the database itself,
    and even to lock it SQLite would make both.
    """
    how = "readonly_shm=1" if has_log else "immutable=1"
    connection = sqlite3.connect(
        f"file:{quote(path)}?mode=ro&{how}", uri=True, isolation_level=None, timeout=_WAIT_S, check_same_thread=False
    )
    connection.text_factory = bytes
    return connection


class OpencodeTables(ABC):
    """The tables of one database, read on from where they were left."""

    parser_version: ClassVar[int]
    tables: ClassVar[tuple[str, ...]]
    """Those that are read row by row."""

    def __init__(self, connection: sqlite3.Connection, progress: _Progress) -> None:
        self.connection = connection
        self._progress = progress
        self._names = {
            text_of(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        self._session_tables = {name: self.columns(name) for name in _SESSION_TABLES if name in self._names}
        self._roots: dict[str, str] = {}

    @abstractmethod
    def reading(self, table: str, where: str, parameters: list[int]) -> tuple[Reading, tuple[int, str] | None, int]:
        """Return what the rows tell, number and id of the last of them, and how many they were."""

    def about_sessions(self) -> Reading:
        """Return what is told before all rows."""
        return Reading()

    def read(self) -> Iterator[tuple[Reading, bool]]:
        """Yield what is new, each with whether it is the last piece; the progress is moved before each."""
        tables = [name for name in self.tables if name in self._names]
        yield self.about_sessions(), not tables
        for table in tables:
            if not self._is_where_it_was(table):
                self._progress.read_to[table] = 0, ""
                self._progress.unended[table] = []
            is_whole = False
            while not is_whole:
                reading, is_whole = self._read_next(table)
                yield reading, False
        for table in tables:
            reading, is_last = self._read_unended(table), table == tables[-1]
            self._progress.is_first &= not is_last
            yield reading, is_last

    def columns(self, table: str) -> set[str]:
        """Return the names of the columns of a table."""
        return {text_of(row[1]) for row in self.connection.execute(f"PRAGMA table_info({table})")}

    def _read_next(self, table: str) -> tuple[Reading, bool]:
        """Return what the next rows tell, and whether there are no more."""
        where = f"rowid > ? ORDER BY rowid LIMIT {ROWS_AT_ONCE}"
        reading, last, rows = self.reading(table, where, [self._progress.read_to[table][0]])
        if last is not None:
            self._progress.read_to[table] = last
        return reading, rows < ROWS_AT_ONCE

    def _read_unended(self, table: str) -> Reading:
        """Return what is told by now of what had not ended when its rows were read."""
        rows = self._progress.unended[table][-_MAX_UNENDED:]
        self._progress.unended[table] = []
        return self.reading(table, f"rowid IN ({', '.join('?' * len(rows))}) ORDER BY rowid", rows)[0]

    def _is_where_it_was(self, table: str) -> bool:
        row, row_id = self._progress.read_to.get(table, (0, ""))
        found = self.connection.execute(f"SELECT id FROM {table} WHERE rowid = ?", (row,)).fetchone()
        # As the cursor keeps them: an id of any length may have been cut there.
        return found is not None and text_in({"id": text_of(found[0])}, "id") == text_in({"id": row_id}, "id")

    def is_read_again(self, table: str, row: int, at_ms: int, *, has_ended: bool) -> bool:
        """Return whether the row says more later: what it is about goes on, as far as newer rows tell."""
        self._progress.newest_ms = max(self._progress.newest_ms, at_ms)
        is_open = not has_ended and at_ms > self._progress.newest_ms - GIVEN_UP_AFTER_MS
        if is_open:
            self._progress.unended[table].append(row)
        return is_open

    def key_of(self, message_id: str, record: Mapping[str, object]) -> str:
        """Return by what a message is known; empty when it is a copy of one that has been told."""
        if not is_copy(message_id, record):
            return message_id
        return key_of_copy(record) if self._progress.is_first and not self._has_original(record) else ""

    def _has_original(self, copy: Mapping[str, object]) -> bool:
        """Return whether the message is there of which this one is a copy; a deleted session took it along."""
        tables = self._names.intersection(_MESSAGE_TABLES)
        return any(_find_original(self.connection, table, copy) for table in tables)

    def root_of(self, session_id: str) -> str:
        """Return the conversation for which a session works as a subagent; itself when it is none."""
        if session_id not in self._roots:
            root = session_id
            for _ in range(_MAX_PARENTS):
                parent = self._parent_of(root)
                if not parent:
                    break
                root = parent
            self._roots[session_id] = root
        return self._roots[session_id]

    def _parent_of(self, session_id: str) -> str:
        for table, columns in self._session_tables.items():
            if "parent_id" not in columns:
                continue
            found = self.connection.execute(f"SELECT parent_id FROM {table} WHERE id = ?", (session_id,)).fetchone()
            if found is not None:
                return text_of(found[0])
        return ""


class _AnswerTables(OpencodeTables):
    """Reads billed answers, and what is known of the sessions."""

    parser_version = PARSER_VERSION
    tables = _MESSAGE_TABLES

    def about_sessions(self) -> Reading:
        """Return what the sessions say of themselves that changed."""
        notes = SessionNotes()
        newest = self._progress.sessions_ms
        for table, columns in self._session_tables.items():
            wanted = ("parent_id", "title", "directory", "time_created", "time_updated")
            listed = ", ".join(name if name in columns else "NULL" for name in wanted)
            since = "WHERE time_updated >= ?" if "time_updated" in columns else "WHERE ? >= 0"
            rows = self.connection.execute(f"SELECT id, {listed} FROM {table} {since}", (self._progress.sessions_ms,))
            for session_id, parent_id, title, directory, created, updated in rows:
                facts = {"id": text_of(session_id), "title": text_of(title), "directory": text_of(directory)}
                times = {"created": created, "updated": updated}
                newest = max(newest, milliseconds_in(times, "updated"))
                if text_of(parent_id):
                    continue
                ref = ref_in(facts, "id")
                notes.note(
                    ref,
                    at_ms=milliseconds_in(times, "created"),
                    title=text_in(facts, "title"),
                    cwd=text_in(facts, "directory"),
                )
                if milliseconds_in(times, "updated"):
                    notes.touch(ref, milliseconds_in(times, "updated"))
        self._progress.sessions_ms = newest
        return Reading(sessions=notes.sessions())

    def reading(self, table: str, where: str, parameters: list[int]) -> tuple[Reading, tuple[int, str] | None, int]:
        """Return the answers in the rows; see ``OpencodeTables.reading``."""
        answers, problems = Answers(), []
        failures: list[FailedCall] = []
        last, count = None, 0
        has_type = "type" in self.columns(table)
        kind = "type" if has_type else "NULL"
        body = f"CASE WHEN length(data) <= {MAX_MESSAGE_CHARACTERS} THEN data END"
        rows: Iterator[_Row] = self.connection.execute(
            f"SELECT rowid, id, session_id, {kind}, {body} FROM {table} WHERE {where}", parameters
        )
        for row, message_id, session_id, row_type, written in rows:
            count += 1
            last = row, text_of(message_id)
            if has_type and text_of(row_type) != "assistant":
                continue
            if written is None:
                problems.append(ReadingProblem(offset=row, reason="a message that is too long"))
                continue
            data = written if isinstance(written, bytes) else b""
            record = parse_record(data) if b'"tokens"' in data else {"role": "none"}
            if record is None:
                problems.append(ReadingProblem(offset=row, reason="a damaged message"))
            elif is_answer(record):
                self._take(table, record, row, text_of(message_id), text_of(session_id), answers, failures)
        told = Reading(answers=tuple(answers.by_key.values()), failures=tuple(failures), problems=tuple(problems))
        return told, last, count

    def _take(
        self,
        table: str,
        record: Mapping[str, object],
        row: int,
        message_id: str,
        session_id: str,
        answers: Answers,
        failures: list[FailedCall],
    ) -> None:
        if self.is_read_again(table, row, created_ms(record), has_ended=has_ended(record)):
            return
        key = self.key_of(message_id, record)
        if not key:
            return
        root = self.root_of(session_id)
        answer = answer_in(
            record,
            key=ref_in({"id": key}, "id"),
            session_ref=ref_in({"id": root}, "id"),
            is_subagent=root != session_id,
            offset=row,
        )
        if answer is not None:
            answers.add(answer)
        failure = failure_in(
            record,
            key=ref_in({"id": message_id}, "id"),
            session_ref=ref_in({"id": root}, "id"),
            is_subagent=root != session_id,
            offset=row,
        )
        if failure is not None and key == message_id:
            failures.append(failure)


def text_of(value: object) -> str:
    """Return a value of a column that holds text; empty when it holds something else."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
