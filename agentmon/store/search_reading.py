"""The search: candidates by the indexes, newest first, each looked at again in its row or log before it is shown.

Plain ``sqlite3`` over a connection of its own, so that a thread of the app and a command run the same search, and
whoever asks anew can break off the one that runs.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import StoreError
from agentmon.domain.search import FoundOfKind, SearchHit, SearchKind, TextMatcher
from agentmon.store.errors import store_error
from agentmon.store.first_words import asked_first
from agentmon.store.log_searching import LogSearch
from agentmon.store.message_index import MESSAGES, index_query
from agentmon.store.moments import parse_moment
from agentmon.store.revision import HEAD_REVISION
from agentmon.store.search_index import DOCUMENTS, OPERATIONS, SESSIONS, TASKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from agentmon.domain.search import SearchQuery, SearchWord
    from agentmon.store.word_index import WordIndex

_TIMEOUT_S: Final = 5.0
_STEPS_BETWEEN_LOOKS: Final = 2_000
"""Steps of SQLite's machine between two looks at the clock: some 0.1 ms."""
_UNINDEXED_ROWS: Final = 2_000
"""So many rows that the index does not know yet are looked through, newest first."""
_SHARES_OF_KIND: Final = 2
_LABELLED_TASKS: Final = 1_000
_LONGEST_NUMBER: Final = 15
_IS_NO_ASCII: Final = "{} GLOB '*[^ -~]*'"

_SCOPE: Final = "t.deleted_at IS NULL AND (:workspace_id IS NULL OR t.id IS NULL OR t.workspace_id = :workspace_id)"
_OF_TASK: Final = "t.id, t.number, t.title, w.root_path, t.archived_at IS NOT NULL"
_TITLE: Final = f"coalesce(s.title, substr({asked_first('s', 'a')}, 1, 200))"
_OF_SESSION: Final = (
    "JOIN sessions s ON s.id = {row}.session_id JOIN agents a ON a.id = s.agent_id "
    "LEFT JOIN tasks t ON t.id = s.task_id LEFT JOIN workspaces w ON w.id = t.workspace_id"
)


class SearchInterruptedError(StoreError):
    """Another search took its place, or nobody waits for it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """How rows of one kind are read."""

    kind: SearchKind
    index: WordIndex | None
    """None where rows are so small that all are looked through."""
    key: str
    text: str
    """What is looked through and shown, as SQL."""
    raw: str
    """A column that is quickly looked through for words that no index knows."""
    where: str
    at: str
    of_session: str
    """Its session, its run and the title beside it where there is no task, as SQL."""
    joins: str


_MESSAGES: Final = _Rows(
    kind=SearchKind.MESSAGES,
    index=MESSAGES,
    key="messages.id",
    text="messages.content",
    raw="messages.content",
    where="a.slug || CASE messages.role WHEN 'user' THEN ', you' ELSE '' END",
    at="messages.created_at",
    of_session=f"messages.session_id, messages.execution_id, {_TITLE}",
    joins=_OF_SESSION.format(row="messages"),
)
_OPERATIONS: Final = _Rows(
    kind=SearchKind.OPERATIONS,
    index=OPERATIONS,
    key="operations.id",
    text="operations.tool_name || ' ' || operations.target || char(10) || operations.input_summary || char(10) || "
    "operations.output_summary || char(10) || coalesce(operations.error, '')",
    raw="operations.tool_name || operations.target || operations.input_summary || operations.output_summary",
    where="operations.tool_name",
    at="operations.started_at",
    of_session=f"operations.session_id, operations.execution_id, {_TITLE}",
    joins=_OF_SESSION.format(row="operations"),
)
_CHANGES: Final = _Rows(
    kind=SearchKind.CHANGES,
    index=None,
    key="changes.id",
    text="changes.path || coalesce(char(10) || changes.old_path, '')",
    raw="changes.path || coalesce(char(10) || changes.old_path, '')",
    where="changes.change_type",
    at="changes.created_at",
    of_session="NULL, changes.execution_id, t.title",
    joins="JOIN executions e ON e.id = changes.execution_id JOIN tasks t ON t.id = e.task_id "
    "JOIN workspaces w ON w.id = t.workspace_id",
)
_DOCUMENTS: Final = _Rows(
    kind=SearchKind.DOCUMENTS,
    index=DOCUMENTS,
    key="documents.id",
    text="documents.title || char(10) || coalesce(documents.source_url || char(10), '') || documents.content",
    raw="documents.title || documents.content",
    where="coalesce(documents.source_url, documents.content_type)",
    at="documents.created_at",
    of_session="documents.session_id, NULL, documents.title",
    joins=_OF_SESSION.format(row="documents"),
)
_SESSIONS: Final = _Rows(
    kind=SearchKind.SESSIONS,
    index=SESSIONS,
    key="sessions.id",
    text="coalesce(sessions.title || char(10), '') || sessions.initial_prompt",
    raw="coalesce(sessions.title, '') || sessions.initial_prompt",
    where="a.slug",
    at="sessions.started_at",
    of_session=f"sessions.id, NULL, coalesce(sessions.title, substr({asked_first('sessions', 'a')}, 1, 200))",
    joins="JOIN agents a ON a.id = sessions.agent_id LEFT JOIN tasks t ON t.id = sessions.task_id "
    "LEFT JOIN workspaces w ON w.id = t.workspace_id",
)
_TASKS: Final = _Rows(
    kind=SearchKind.TASKS,
    index=TASKS,
    key="tasks.id",
    text="tasks.title || char(10) || '#' || tasks.number || coalesce((SELECT group_concat(' #' || label, '') "
    "FROM task_labels WHERE task_id = tasks.id), '') || char(10) || coalesce(tasks.description, '')",
    raw="tasks.title || coalesce(tasks.description, '')",
    where="tasks.status",
    at="tasks.updated_at",
    of_session="NULL, NULL, tasks.title",
    joins="JOIN tasks t ON t.id = tasks.id JOIN workspaces w ON w.id = t.workspace_id",
)
_ROWS: Final = {rows.kind: rows for rows in (_TASKS, _SESSIONS, _MESSAGES, _OPERATIONS, _CHANGES, _DOCUMENTS)}


class SearchReader:
    """Searches over a connection of its own; one search at a time, which ``interrupt`` of any thread breaks off.

    Args:
        path: The database, which has to be there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_interrupted = False
        self._deadline = 0.0
        with self._translated():
            self._connection = sqlite3.connect(
                f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False, timeout=_TIMEOUT_S
            )
            try:
                self._connection.execute("PRAGMA trusted_schema = OFF")
            except sqlite3.Error:
                self.close()
                raise
            self._connection.set_progress_handler(self._has_to_stop, _STEPS_BETWEEN_LOOKS)

    def close(self) -> None:
        """Close the connection; no search is going on."""
        self._connection.close()

    def begin(self) -> None:
        """Forget that an earlier search was interrupted; called by who calls ``interrupt``, before the next search."""
        self._is_interrupted = False

    def interrupt(self) -> None:
        """Let the search that runs, or begins, end soon with ``SearchInterruptedError``."""
        self._is_interrupted = True

    def search(
        self, query: SearchQuery, *, workspace_id: str | None, limit: int, most_s: float
    ) -> tuple[FoundOfKind, ...]:
        """Return what was found of each kind that was asked for, in the order of the kinds; blocks.

        Args:
            query: What is looked for; an empty one finds nothing.
            workspace_id: Only what belongs to its tasks, or to none; None means all.
            limit: Most hits of each kind.
            most_s: After so many seconds what was found is enough; kinds that were not looked through say so. A kind
                takes at most twice its share of what is left.

        Raises:
            SearchInterruptedError: ``interrupt`` was called meanwhile.
            StoreError: The database cannot be read.
        """
        if query.is_empty:
            return ()
        matcher = TextMatcher(query)
        found = []
        end = time.monotonic() + most_s
        kinds = [kind for kind in SearchKind if kind in query.kinds]
        with self._translated():
            for at, kind in enumerate(kinds):
                now = time.monotonic()
                share = (end - now) / (len(kinds) - at)
                self._deadline = min(end, now + _SHARES_OF_KIND * share)
                found.append(self._find(kind, query, matcher, workspace_id, limit))
        return tuple(found)

    def is_current(self) -> bool:
        """Return whether this release made or upgraded the database.

        Raises:
            StoreError: The database cannot be read.
        """
        self._deadline = float("inf")
        with self._translated():
            row = self._connection.execute("SELECT version_num FROM alembic_version").fetchone()
        return row is not None and str(row[0]) == HEAD_REVISION

    def find_workspace(self, root_paths: Sequence[str]) -> tuple[str, str] | None:
        """Return id and root of the registered workspace with the longest of these root paths.

        Raises:
            StoreError: The database cannot be read.
        """
        self._deadline = float("inf")
        marks = ", ".join("?" * len(root_paths))
        statement = f"SELECT id, root_path FROM workspaces WHERE root_path IN ({marks}) ORDER BY length(root_path) DESC"
        with self._translated():
            row = self._connection.execute(statement, root_paths).fetchone()
        return None if row is None else (str(row[0]), str(row[1]))

    def document(self, key: str) -> tuple[str, str] | None:
        """Return title and text of a document; None when there is none.

        Raises:
            StoreError: The database cannot be read.
        """
        self._deadline = float("inf")
        with self._translated():
            row = self._connection.execute(
                "SELECT title, coalesce(source_url || char(10) || char(10), '') || content FROM documents WHERE id = ?",
                (key,),
            ).fetchone()
        return None if row is None else (row[0], row[1])

    def _find(
        self, kind: SearchKind, query: SearchQuery, matcher: TextMatcher, workspace_id: str | None, limit: int
    ) -> FoundOfKind:
        if kind is SearchKind.LOGS:
            search = LogSearch(self._connection, matcher, workspace_id, self._has_to_stop)
            most_of_run = limit if query.kinds == {SearchKind.LOGS} else max(1, limit // 5)
            match = _match(replace(query, without=()), _usual)
            found = search.find(match, limit=limit, most_of_run=most_of_run)
            self._raise_if_interrupted()
            return found
        rows = _ROWS[kind]
        hits: dict[str, SearchHit] = {}
        is_cut = False
        try:
            for row in self._candidates(rows, query, workspace_id):
                key, text = str(row[0]), str(row[1])
                if key not in hits and matcher.matches(text):
                    hits[key] = _hit(rows, row, matcher)
                    if len(hits) > limit:
                        break
                if self._has_to_stop():
                    is_cut = True
                    break
        except sqlite3.OperationalError as error:
            if "interrupted" not in str(error):
                raise
            is_cut = True
        self._raise_if_interrupted()
        ordered = sorted(hits.values(), key=lambda hit: "" if hit.at is None else hit.at.isoformat(), reverse=True)
        if kind is SearchKind.TASKS:
            ordered.sort(key=lambda hit: not matcher.matches(hit.title))
        return FoundOfKind(
            kind=kind,
            hits=tuple(ordered[:limit]),
            has_more=len(hits) > limit,
            is_cut=is_cut and len(hits) <= limit,
            unindexed=0 if is_cut or rows.index is None else self._count_unindexed(rows.index),
        )

    def _candidates(self, rows: _Rows, query: SearchQuery, workspace_id: str | None) -> Iterator[tuple[object, ...]]:
        index = rows.index
        select = (
            f"SELECT {rows.key}, {rows.text}, {rows.where}, {rows.at}, {_OF_TASK}, {rows.of_session} FROM "
            f"{{source}} {rows.joins} WHERE {_SCOPE} AND "
        )
        scope: dict[str, object] = {"workspace_id": workspace_id}
        if index is None:
            # The database compares what has no accents; all else is for who looks at the rows.
            parts = [part for word in query.words for part in word.parts if part.isascii()]
            held = {f"part{at}": part for at, part in enumerate(parts)}
            has_parts = "".join(
                f" AND (instr(lower({rows.raw}), :{name}) OR {_IS_NO_ASCII.format(rows.raw)})" for name in held
            )
            yield from self._connection.execute(
                select.format(source=rows.kind) + f"true{has_parts} ORDER BY {rows.kind}.rowid DESC", scope | held
            )
            return
        joined = f"CROSS JOIN {index.rows} ON {index.rows}.rowid = "
        if rows is _TASKS:
            yield from self._tasks_by_number_or_label(select, query, scope)
        match = _match(query, _usual if index is not MESSAGES else _of_messages)
        if match:
            source = f"{index.words} {joined}{index.words}.rowid"
            by_index = select.format(source=source) + f"{index.words} MATCH :match ORDER BY {index.words}.rowid DESC"
            if rows is _TASKS:
                yield from self._connection.execute(by_index, scope | {"match": f"title : ({match})"})
            yield from self._connection.execute(by_index, scope | {"match": match})
            source = (
                f"(SELECT {index.row_column} AS row FROM {index.unindexed} ORDER BY 1 DESC LIMIT {_UNINDEXED_ROWS}) n "
                f"{joined}n.row"
            )
            yield from self._connection.execute(select.format(source=source) + "true ORDER BY n.row DESC", scope)
        else:
            signs = {f"sign{at}": word.text for at, word in enumerate(query.words) if word.text.upper() == word.text}
            has_signs = "".join(f" AND instr({rows.raw}, :{name})" for name in signs)
            yield from self._connection.execute(
                select.format(source=index.rows) + f"true{has_signs} ORDER BY {index.rows}.rowid DESC", scope | signs
            )

    def _tasks_by_number_or_label(
        self, select: str, query: SearchQuery, scope: dict[str, object]
    ) -> Iterator[tuple[object, ...]]:
        by_number = select.format(source="tasks") + "tasks.number = :number ORDER BY tasks.rowid DESC"
        labelled = (
            f"(SELECT task_id FROM task_labels WHERE label >= :label AND label < :past LIMIT {_LABELLED_TASKS}) l"
        )
        by_label = select.format(source=f"{labelled} CROSS JOIN tasks ON tasks.id = l.task_id") + "true"
        for word in query.words:
            name = word.text.removeprefix("#")
            if name.isdecimal() and len(name) <= _LONGEST_NUMBER:
                yield from self._connection.execute(by_number, scope | {"number": int(name)})
            if name:
                past = name + ("\U0010ffff" if word.is_open else "\0")
                yield from self._connection.execute(by_label, scope | {"label": name, "past": past})

    def _count_unindexed(self, index: WordIndex) -> int:
        """Return how many rows are neither in the index nor were looked through."""
        statement = f"SELECT count(*) FROM {index.unindexed}"
        try:
            counted = int(self._connection.execute(statement).fetchone()[0])
        except sqlite3.OperationalError as error:
            if "interrupted" not in str(error):
                raise
            return 0
        return max(0, counted - _UNINDEXED_ROWS)

    def _has_to_stop(self) -> bool:
        return self._is_interrupted or time.monotonic() > self._deadline

    def _raise_if_interrupted(self) -> None:
        if self._is_interrupted:
            raise SearchInterruptedError("another search took its place")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            self._raise_if_interrupted()
            raise store_error(error, self._path) from error


@contextmanager
def opened_search(path: Path) -> Iterator[SearchReader]:
    """Open the database for one search, and close it behind it.

    Raises:
        StoreError: The database cannot be read.
    """
    with closing(SearchReader(path)) as reader:
        yield reader


def _hit(rows: _Rows, row: tuple[object, ...], matcher: TextMatcher) -> SearchHit:
    key, text, where, at, task_id, number, title, root, is_archived, session_id, execution_id, own_title = row
    text = str(text)
    hit = SearchHit(
        kind=rows.kind,
        key=str(key),
        where=str(where),
        at=parse_moment(str(at)),
        snippet=matcher.snippet(text),
        context=matcher.context(text),
        task_id=None if task_id is None else str(task_id),
        task_number=None if not isinstance(number, int) else number,
        title=str(title or own_title or ""),
        workspace_root=str(root or ""),
        is_archived=bool(is_archived),
        session_id=None if session_id is None else str(session_id),
        execution_id=None if execution_id is None else str(execution_id),
    )
    if rows is _TASKS and matcher.matches(hit.title):
        return replace(hit, snippet=matcher.snippet(hit.title))
    return hit


def _match(query: SearchQuery, parts_of: Callable[[SearchWord], str | None]) -> str:
    """Return the search of an index that finds all that can match; empty when only looking helps."""
    wanted = [part for word in query.words if (part := parts_of(word))]
    if not wanted:
        return ""
    match = " ".join(wanted)
    unwanted = [parts for word in query.without if word.is_plain and not word.is_open and (parts := parts_of(word))]
    return f"({match}) NOT ({' OR '.join(unwanted)})" if unwanted else match


def _usual(word: SearchWord) -> str | None:
    parts = [f'"{part}"' for part in word.parts[:16]]
    if not parts:
        return None
    if word.is_prefix and len(parts) == len(word.parts):
        parts[-1] += "*"
    return " ".join(parts)


def _of_messages(word: SearchWord) -> str | None:
    return index_query(word.text[:500], is_last=word.is_open)
