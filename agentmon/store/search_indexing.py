"""Brings the indexes of words up to the rows and logs that are there, over a connection of its own; every call blocks.

The index of a log tells in which pieces of the file a word stands. Of a long log the beginning and the end are in it.
"""

from __future__ import annotations

import os
import time
import zlib
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.search import distinct_words
from agentmon.logs.log_pieces import PIECE_BYTES, count_lines, piece_text, read_pieces
from agentmon.store.database import BUSY_TIMEOUT
from agentmon.store.message_index import MESSAGES
from agentmon.store.own_connection import OwnConnection
from agentmon.store.search_index import ROW_INDEXES, register_words

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import timedelta
    from pathlib import Path

    from agentmon.logs.log_pieces import LogPiece

_PIECES_AT_ONCE: Final = 16
_SIZE_SLACK: Final = 4 * PIECE_BYTES
"""So much less of a log may be in the index, since its pieces end where lines do."""
_HASHED_BYTES: Final = 64
_NOTED: Final = """
SELECT u.execution_id, e.log_file_path, e.log_removed_at IS NOT NULL, e.ended_at IS NOT NULL,
    i.inode, i.end_byte, i.end_line, i.end_hash, i.skipped_bytes
FROM unindexed_logs u JOIN executions e ON e.id = u.execution_id LEFT JOIN log_indexes i ON i.execution_id = e.id
ORDER BY u.execution_id DESC LIMIT 500
"""
_DONE: Final = (
    "DELETE FROM unindexed_logs WHERE execution_id = ? AND "
    "EXISTS (SELECT 1 FROM executions WHERE id = ? AND ended_at IS NOT NULL)"
)
_KEEP: Final = """
INSERT INTO log_indexes (execution_id, inode, end_byte, end_line, end_hash, skipped_bytes) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (execution_id) DO UPDATE SET inode = excluded.inode, end_byte = excluded.end_byte,
    end_line = excluded.end_line, end_hash = excluded.end_hash, skipped_bytes = excluded.skipped_bytes
"""
_OUTDATED: Final = -1
"""The inode of no file: what is in the index of that log is forgotten before it is taken up anew."""
_OUTDATE_SMALL: Final = f"""
UPDATE log_indexes SET inode = {_OUTDATED} WHERE skipped_bytes > 0 AND end_byte - skipped_bytes + :slack <
    min(:log_bytes, (SELECT log_byte_size FROM executions WHERE id = log_indexes.execution_id))
"""
_NOTE_SMALL: Final = f"""
INSERT INTO unindexed_logs (execution_id) SELECT e.id FROM executions e LEFT JOIN log_indexes i ON i.execution_id = e.id
WHERE e.log_byte_size > 0 AND e.log_removed_at IS NULL AND e.log_file_path IS NOT NULL
    AND (i.execution_id IS NULL OR i.inode = {_OUTDATED})
ON CONFLICT DO NOTHING
"""
_NOTE_ALL: Final = (
    "INSERT INTO unindexed_logs (execution_id) SELECT execution_id FROM log_indexes WHERE true ON CONFLICT DO NOTHING"
)
_FORGET_WORDS: Final = "INSERT INTO log_words (log_words, rowid, content) VALUES ('delete', ?, ?)"


class _Place(NamedTuple):
    """How far a log is in the index."""

    inode: int
    end: int
    line: int
    end_hash: int
    skipped: int


class _NotedLog(NamedTuple):
    """A log that is not in the index as it is now."""

    execution_id: str
    path: str | None
    is_removed: bool
    has_ended: bool
    place: _Place | None


class SearchIndexing(OwnConnection):
    """Takes up what the triggers noted; belongs to one thread at a time.

    Args:
        path: The database, which has to be there.
        busy_timeout: How long a writer of another process is waited for.
    """

    def __init__(self, path: Path, *, busy_timeout: timedelta = BUSY_TIMEOUT) -> None:
        super().__init__(path, busy_timeout=busy_timeout)
        register_words(self._connection)
        self._log_bytes: int | None = None

    def take_up_some(self, *, most_s: float, log_bytes: int) -> bool:
        """Take up rows, then logs, newest first, for about ``most_s`` seconds.

        Args:
            most_s: After so long no further piece is begun.
            log_bytes: Most of one log that is in the index; 0 takes all logs out of it.

        Returns:
            Whether there is more to do at once.

        Raises:
            StoreError: The rest is taken up by a later call.
        """
        deadline = time.monotonic() + most_s
        for index in (MESSAGES, *ROW_INDEXES):
            while self._has(index.has_unindexed):
                if time.monotonic() >= deadline:
                    return True
                with self._transaction() as connection:
                    for statement in index.index_some:
                        connection.execute(statement)
        self._note_other_size(log_bytes)
        with self._translated():
            noted = [
                _NotedLog(row[0], row[1], bool(row[2]), bool(row[3]), None if row[4] is None else _Place(*row[4:]))
                for row in self._connection.execute(_NOTED).fetchall()
            ]
        for log in noted:
            place: _Place | None = log.place
            while True:
                if time.monotonic() >= deadline:
                    return True
                place, is_done = self._take_up(log, place, log_bytes)
                if is_done:
                    break
        return False

    def _note_other_size(self, log_bytes: int) -> None:
        """Note the logs of which less is in the index than may be, or anything at all where nothing may.

        That is looked for once, and when it changes.
        """
        if log_bytes == self._log_bytes:
            return
        with self._transaction() as connection:
            if log_bytes:
                connection.execute(_OUTDATE_SMALL, {"log_bytes": log_bytes, "slack": _SIZE_SLACK})
                connection.execute(_NOTE_SMALL)
            else:
                connection.execute(_NOTE_ALL)
        self._log_bytes = log_bytes

    def _take_up(self, log: _NotedLog, place: _Place | None, log_bytes: int) -> tuple[_Place | None, bool]:
        """Take up some pieces of a log; return how far it is now, and whether there is nothing more for the moment."""
        descriptor = -1 if log.is_removed or log.path is None or not log_bytes else _open(log.path)
        if descriptor < 0:
            self._forget_log(log.execution_id)
            return None, True
        try:
            status = os.fstat(descriptor)
            size = status.st_size
            if place is not None and not _is_same(descriptor, status, place):
                self._forget_log(log.execution_id, is_done=False)
                place = None
            place = place or _Place(status.st_ino, 0, 0, 0, 0)
            if not log.has_ended and size - place.end < PIECE_BYTES:
                return place, True
            half = log_bytes // 2
            place = _skip_middle(descriptor, place, size, half)
            pieces = _first(
                read_pieces(descriptor, place.end, size, first_line=place.line, is_last=log.has_ended), _PIECES_AT_ONCE
            )
            end = pieces[-1].end if pieces else place.end
            line = place.line + sum(piece.content.count(b"\n") for piece in pieces)
            after = _Place(status.st_ino, end, line, _hash_before(descriptor, end), place.skipped)
        finally:
            os.close(descriptor)
        is_done = end >= size or not pieces
        return self._write(log, after, pieces, size, half, is_done=is_done), is_done

    def _write(
        self, log: _NotedLog, place: _Place, pieces: Sequence[LogPiece], size: int, half: int, *, is_done: bool
    ) -> _Place:
        worded = [(piece, distinct_words(piece_text(piece.content))) for piece in pieces]
        with self._transaction() as connection:
            surplus = connection.execute(
                "SELECT id, words, end_byte - start_byte FROM log_pieces "
                "WHERE execution_id = ? AND start_byte >= ? AND end_byte <= ?",
                (log.execution_id, half, size - half),
            ).fetchall()
            if size > 2 * half and surplus:
                _forget(connection, ((piece_id, words) for piece_id, words, _ in surplus))
                place = place._replace(skipped=place.skipped + sum(length for _, _, length in surplus))
            for piece, words in worded:
                piece_id = connection.execute(
                    "INSERT INTO log_pieces (execution_id, start_byte, end_byte, first_line, words) "
                    "VALUES (?, ?, ?, ?, ?)",
                    (log.execution_id, piece.start, piece.end, piece.first_line, zlib.compress(words.encode(), 1)),
                ).lastrowid
                connection.execute("INSERT INTO log_words (rowid, content) VALUES (?, ?)", (piece_id, words))
            connection.execute(_KEEP, (log.execution_id, *place))
            if is_done and log.has_ended:
                connection.execute(_DONE, (log.execution_id, log.execution_id))
        return place

    def _forget_log(self, execution_id: str, *, is_done: bool = True) -> None:
        with self._transaction() as connection:
            held = connection.execute("SELECT id, words FROM log_pieces WHERE execution_id = ?", (execution_id,))
            _forget(connection, held.fetchall())
            connection.execute("DELETE FROM log_indexes WHERE execution_id = ?", (execution_id,))
            if is_done:
                connection.execute("DELETE FROM unindexed_logs WHERE execution_id = ?", (execution_id,))

    def _has(self, question: str) -> bool:
        with self._translated():
            return bool(self._connection.execute(question).fetchone()[0])


def _forget(connection: sqlite3.Connection, held: Iterable[tuple[int, bytes]]) -> None:
    for piece_id, words in held:
        connection.execute(_FORGET_WORDS, (piece_id, zlib.decompress(words).decode()))
        connection.execute("DELETE FROM log_pieces WHERE id = ?", (piece_id,))


def _skip_middle(descriptor: int, place: _Place, size: int, half: int) -> _Place:
    """Go on at the end of a long log, behind a line feed, when the beginning is in the index."""
    if size <= 2 * half or place.end < half or size - place.end <= half:
        return place
    begin = size - half
    block = os.pread(descriptor, PIECE_BYTES, begin)
    begin += block.find(b"\n") + 1
    return place._replace(
        end=begin,
        line=place.line + count_lines(descriptor, place.end, begin),
        skipped=place.skipped + begin - place.end,
    )


def _open(path: str) -> int:
    """Return the descriptor of a log; negative when it cannot be read."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return -1


def _is_same(descriptor: int, status: os.stat_result, place: _Place) -> bool:
    return (
        status.st_ino == place.inode
        and status.st_size >= place.end
        and _hash_before(descriptor, place.end) == place.end_hash
    )


def _hash_before(descriptor: int, end: int) -> int:
    begin = max(0, end - _HASHED_BYTES)
    return zlib.crc32(os.pread(descriptor, end - begin, begin)) if end else 0


def _first(pieces: Iterator[LogPiece], count: int) -> list[LogPiece]:
    return list(islice(pieces, count))
