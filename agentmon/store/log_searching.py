"""The search through logs: the index names pieces, and each piece is read again from the file as it is now."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.search import FoundOfKind, SearchHit, SearchKind
from agentmon.logs.log_pieces import count_lines, line_offset, piece_text
from agentmon.store.moments import parse_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentmon.domain.search import TextMatcher

_MOST_OF_PIECE: Final = 5
_MOST_PASSED_OVER: Final = 200
"""So often the rest of a run of which enough was found is passed over before the search ends."""
_PAST_ALL: Final = 2**62
_MOST_OPEN: Final = 32
"""A process may have only so many files open, and the search is not all that it does."""
_TAILS: Final = 32
_TAIL_BYTES: Final = 128 * 1024
"""So much of the end of a log that is not in the index yet is looked through."""
_COUNTED_BYTES: Final = 64 * 1024 * 1024
"""Lines farther behind what the index knows have no number."""
_PAINTED_BYTES: Final = 16 * 1024
"""So far behind a line something may be painted over it: about a screenful."""
_CONTEXT_LINES: Final = 12
_LONGEST_CONTEXT_LINE: Final = 500

_RUN: Final = """
e.id, e.log_file_path, coalesce(e.log_updated_at, e.ended_at, e.started_at, e.created_at), a.slug, e.session_id,
t.id, t.number, t.title, w.root_path, t.archived_at IS NOT NULL, i.inode, coalesce(i.skipped_bytes, 0)
"""
_RUN_JOINS: Final = """
JOIN agents a ON a.id = e.agent_id JOIN tasks t ON t.id = e.task_id JOIN workspaces w ON w.id = t.workspace_id
LEFT JOIN log_indexes i ON i.execution_id = e.id
WHERE e.log_removed_at IS NULL AND e.log_file_path IS NOT NULL AND t.deleted_at IS NULL
AND (:workspace_id IS NULL OR t.workspace_id = :workspace_id)
"""
_BY_INDEX: Final = f"""
SELECT p.id, p.start_byte, p.end_byte, p.first_line, {_RUN} FROM log_words
CROSS JOIN log_pieces p ON p.id = log_words.rowid CROSS JOIN executions e ON e.id = p.execution_id {_RUN_JOINS}
AND log_words MATCH :match AND log_words.rowid < :before ORDER BY log_words.rowid DESC
"""
_ALL: Final = f"""
SELECT p.id, p.start_byte, p.end_byte, p.first_line, {_RUN} FROM log_pieces p
CROSS JOIN executions e ON e.id = p.execution_id {_RUN_JOINS} AND p.id < :before ORDER BY p.id DESC
"""
_BEFORE_RUN: Final = (
    "SELECT coalesce((SELECT max(id) FROM log_pieces WHERE id < :piece AND execution_id <> :execution_id), 0) + 1"
)
"""The number below which the next pieces of other runs are."""
_NOT_INDEXED: Final = f"""
SELECT 0, coalesce(i.end_byte, 0), NULL, coalesce(i.end_line, 0), {_RUN} FROM unindexed_logs u
CROSS JOIN executions e ON e.id = u.execution_id {_RUN_JOINS} ORDER BY u.execution_id DESC LIMIT 1000
"""


class _Span(NamedTuple):
    """A piece of a log, or what is behind the last one."""

    piece: int
    start: int
    end: int | None
    first_line: int | None
    execution_id: str
    path: str
    at: str
    agent: str
    session_id: str | None
    task_id: str
    number: int
    title: str
    root: str
    is_archived: int
    inode: int | None
    skipped: int


class LogSearch:
    """One search through the logs.

    Args:
        connection: An open connection to the database.
        matcher: What is looked for, in each line.
        workspace_id: Only runs of its tasks; None means all.
        has_to_stop: Asked between pieces.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        matcher: TextMatcher,
        workspace_id: str | None,
        has_to_stop: Callable[[], bool],
    ) -> None:
        self._connection = connection
        self._matcher = matcher
        self._workspace_id = workspace_id
        self._has_to_stop = has_to_stop
        self._descriptors: dict[str, int] = {}
        self._hits: dict[str, SearchHit] = {}
        self._of_run: dict[str, int] = {}
        self._unindexed = 0
        self._has_more = False

    def find(self, match: str, *, limit: int, most_of_run: int) -> FoundOfKind:
        """Return the lines that were found, those of the newest output first.

        Args:
            match: The search of the index; empty when only looking helps.
            limit: Most lines.
            most_of_run: Most lines of one run.

        Raises:
            sqlite3.Error: The database cannot be read.
        """
        is_cut = False
        try:
            for span in self._spans(match, most_of_run):
                if self._has_to_stop():
                    is_cut = True
                    break
                self._take(span, most_of_run)
                if len(self._hits) > limit:
                    self._has_more = True
                    break
        except sqlite3.OperationalError as error:
            if "interrupted" not in str(error):
                raise
            is_cut = True
        finally:
            for descriptor in self._descriptors.values():
                self._close(descriptor)
        ordered = sorted(
            self._hits.values(), key=lambda hit: "" if hit.at is None else hit.at.isoformat(), reverse=True
        )
        return FoundOfKind(
            kind=SearchKind.LOGS,
            hits=tuple(ordered[:limit]),
            has_more=self._has_more,
            is_cut=is_cut and not self._has_more,
            unindexed=self._unindexed,
        )

    def _take(self, span: _Span, most_of_run: int) -> None:
        """Take the lines of a piece that match, as many as its run may have."""
        found = self._of_run.get(span.execution_id, 0)
        descriptor = self._descriptor(span.path)
        if descriptor < 0:
            return
        shown, is_whole = _bounded(descriptor, span)
        self._unindexed += not is_whole
        for hit in self._lines(descriptor, shown):
            if found >= most_of_run:
                self._has_more = True
            elif hit.key not in self._hits:
                self._hits[hit.key] = hit
                found += 1
        self._of_run[span.execution_id] = found

    def _spans(self, match: str, most_of_run: int) -> Iterator[_Span]:
        """Yield what runs wrote last and no index knows, then the pieces; of a run until enough of it was found."""
        scope: dict[str, object] = {"workspace_id": self._workspace_id}
        tails = [_Span(*row) for row in self._connection.execute(_NOT_INDEXED, scope)]
        self._unindexed += max(0, len(tails) - _TAILS)
        yield from tails[:_TAILS]
        statement = _BY_INDEX if match else _ALL
        before = _PAST_ALL
        for _ in range(_MOST_PASSED_OVER):
            wanted = scope | {"before": before} | ({"match": match} if match else {})
            before = 0
            for span in map(_Span._make, self._connection.execute(statement, wanted)):
                if self._of_run.get(span.execution_id, 0) >= most_of_run:
                    self._has_more = True
                    passed = {"piece": span.piece, "execution_id": span.execution_id}
                    before = self._connection.execute(_BEFORE_RUN, passed).fetchone()[0]
                    break
                yield span
            if before <= 1:
                return
        self._has_more = True

    def _descriptor(self, path: str) -> int:
        """Return the open file; negative when there is none."""
        if path not in self._descriptors:
            if len(self._descriptors) == _MOST_OPEN:
                self._close(self._descriptors.pop(next(iter(self._descriptors))))
            try:
                opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
            except OSError:
                opened = -1
            self._descriptors[path] = opened
        return self._descriptors[path]

    @staticmethod
    def _close(descriptor: int) -> None:
        if descriptor >= 0:
            os.close(descriptor)

    def _lines(self, descriptor: int, span: _Span) -> Iterator[SearchHit]:
        try:
            content = os.pread(descriptor, (span.end or 0) - span.start, span.start)
            following = os.pread(descriptor, _PAINTED_BYTES, span.start + len(content))
            is_known = span.inode in (None, os.fstat(descriptor).st_ino)
        except OSError:
            return
        # What is painted over these lines may be in the next piece.
        texts = piece_text(content + following).split("\n")
        text = "\n".join(texts[: content.count(b"\n") + (not content.endswith(b"\n"))])
        lines = self._matcher.matching_lines(text)
        if not lines:
            return
        self._has_more = self._has_more or len(lines) > _MOST_OF_PIECE
        for at in lines[-_MOST_OF_PIECE:]:
            offset = span.start + line_offset(content, at)
            around = texts[max(0, at - _CONTEXT_LINES) : at + _CONTEXT_LINES + 1]
            yield SearchHit(
                kind=SearchKind.LOGS,
                key=f"{span.execution_id}:{offset}",
                where=span.agent,
                at=parse_moment(span.at),
                snippet=self._matcher.snippet(texts[at]),
                context="\n".join(line[:_LONGEST_CONTEXT_LINE] for line in around),
                task_id=span.task_id,
                task_number=span.number,
                title=span.title,
                workspace_root=span.root,
                is_archived=bool(span.is_archived),
                session_id=span.session_id,
                execution_id=span.execution_id,
                offset=offset,
                line=span.first_line + at + 1 if is_known and span.first_line is not None else None,
                log_path=span.path,
                is_partial=span.skipped > 0,
            )


def _bounded(descriptor: int, span: _Span) -> tuple[_Span, bool]:
    """Return the span with its end, cut to what is looked through, and whether that is all of it."""
    if span.end is not None:
        return span, True
    size = os.fstat(descriptor).st_size
    begin = span.start if span.start <= size else 0
    if size - begin <= _TAIL_BYTES:
        return span._replace(start=begin, end=size), True
    cut = size - _TAIL_BYTES
    cut += os.pread(descriptor, _TAIL_BYTES, cut).find(b"\n") + 1
    first_line = None
    if span.first_line is not None and cut - begin <= _COUNTED_BYTES:
        first_line = span.first_line + count_lines(descriptor, begin, cut)
    return span._replace(start=cut, end=size, first_line=first_line), False
