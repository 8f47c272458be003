"""Imports of conversations that agents had without agentmon: behind the import of their answers, and gentler."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agentmon.store.errors import ConstraintError
from agentmon.store.history_import import HistoryImport, HistoryPiece
from agentmon.usage.history.codex_names import MAX_FILE_BYTES, name_files, thread_names
from agentmon.usage.history.openings import has_history, history_version, read_history
from agentmon.usage.history.reading import HistoryReading
from agentmon.usage.sources import CODEX, find_sources
from agentmon.worker.file_cursors import is_changed, reader_cursor, stored_cursor, stored_path, unread_bytes
from agentmon.worker.history_outcome import HistoryOutcome
from agentmon.worker.import_progress import FileProblem, ImportProgress
from agentmon.worker.refusals import Refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from agentmon.domain.clock import Clock
    from agentmon.domain.costs import FileCursor
    from agentmon.domain.history import HistoryOperation
    from agentmon.paths import Paths
    from agentmon.usage.following import Read
    from agentmon.usage.sources import SourceFile

_MAX_PROBLEMS: Final = 100
_TELL_EVERY_S: Final = 0.2
_WITH_MESSAGES: Final = "with_messages"
"""In the state of a cursor: whether what was said up to there is kept as well."""


class HistoryImporter:
    """Reads what files tell of conversations; ``close`` ends it. Its calls block, and one thread makes them.

    Only files whose answers were imported are read: so the conversations are there, and costs come first.

    Args:
        paths: Where the database is.
        environ: Says where the agents keep their files.
        zone_name: In which zone days are when none was chosen yet.
        clock: Tells the time of the rows.
        keeps_messages: Whether what was said is kept; calls are in any case.
        report: Hears of the progress, some times a second, in the thread of the import.
        on_calls: Hears of tool calls of an agent before they are written, in the thread of the import.
    """

    def __init__(
        self,
        *,
        paths: Paths,
        environ: Mapping[str, str],
        zone_name: str,
        clock: Clock,
        keeps_messages: bool,
        report: Callable[[ImportProgress], None] | None = None,
        on_calls: Callable[[str, Sequence[HistoryOperation]], None] = lambda *_: None,
    ) -> None:
        self._paths = paths
        self._environ = environ
        self._zone_name = zone_name
        self._clock = clock
        self._report = report
        self._on_calls = on_calls
        self.keeps_messages = keeps_messages
        self._store: HistoryImport | None = None
        self._cursors: dict[str, FileCursor] | None = None
        self._refused = Refusals()
        self._names_seen: dict[Path, tuple[int, int]] = {}
        self._is_stopping = threading.Event()

    def stop(self) -> None:
        """Let the import that is going on end behind the piece that it reads; may be called by any thread."""
        self._is_stopping.set()

    def close(self) -> None:
        """Close the connection to the database."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def forget_cursors(self) -> None:
        """Let everything be read again from its beginning."""
        self._open().forget_cursors()
        self._cursors = None

    def look_anew(self) -> None:
        """Take it that another process has read files meanwhile."""
        self._cursors = None

    def find_changed(self) -> list[SourceFile]:
        """Return the files whose answers were imported and that have something new, newest first."""
        sources = [one for one in find_sources(self._environ) if has_history(one)]
        if not sources:
            return []
        billed = self._open().paths_with_answers()
        return self.changed_of([one for one in reversed(sources) if stored_path(one.path) in billed])

    def changed_of(self, sources: Sequence[SourceFile]) -> list[SourceFile]:
        """Return which of the files, whose answers were imported, have something new."""
        return [source for source in sources if self._is_changed(source) and not self._refused.has(source)]

    def take_names(self) -> None:
        """Take what Codex calls its threads, where that has changed.

        Raises:
            StoreError: The database refused it.
        """
        for file in name_files(self._environ):
            try:
                facts = file.stat()
                stamp = (facts.st_mtime_ns, facts.st_size)
                if self._names_seen.get(file) == stamp or facts.st_size > MAX_FILE_BYTES:
                    continue
                names = thread_names(file.read_bytes())
            except OSError:
                continue
            self._open().name_conversations(CODEX, names)
            self._names_seen[file] = stamp

    def unread_bytes(self, sources: Sequence[SourceFile]) -> int:
        """Return how much is new in the files."""
        return sum(unread_bytes(source, self._cursor(source)) for source in sources)

    def read(
        self, sources: Sequence[SourceFile], *, most_s: float = float("inf"), rest_share: float = 0.0
    ) -> HistoryOutcome:
        """Read the files and write what they tell.

        Args:
            sources: What ``find_changed`` found.
            most_s: After so many seconds no further piece is begun.
            rest_share: How long to rest after each piece, in parts of what it took.

        Raises:
            StoreError: The database refused a piece; all before it is kept.
        """
        run = _Run(self.unread_bytes(sources), len(sources), self._report)
        for source in sources:
            try:
                is_read = self._read_one(source, run, most_s=most_s, rest_share=rest_share)
            except ConstraintError as error:
                # One file must not keep all others away; it is looked at again when it changes.
                self._refused.add(source)
                run.problems.append(FileProblem(path=source.path, offset=0, reason=str(error)))
                is_read = True
            if not is_read:
                return run.outcome(is_finished=False)
            run.files += 1
        return run.outcome(is_finished=True)

    def _read_one(self, source: SourceFile, run: _Run, *, most_s: float, rest_share: float) -> bool:
        """Return whether the file was read to its end."""
        if self._is_stopping.is_set() or run.elapsed_s >= most_s:
            return False
        path = stored_path(source.path)
        before, cursor = self._known().get(path), self._cursor(source)
        begun_at, done = time.monotonic(), 0 if cursor is None else cursor.read_offset
        for read in read_history(source, None if cursor is None else reader_cursor(source, cursor)):
            run.problems += [
                FileProblem(path=source.path, offset=one.offset, reason=one.reason) for one in read.reading.problems
            ]
            if read.cursor is None:
                self._refused.add(source)
                return True
            after = stored_cursor(source, read.cursor)
            after = replace(after, state={**after.state, _WITH_MESSAGES: self.keeps_messages})
            if not self._open().write(self._piece(before, after, read, run)):
                # Another process reads the same file: what is left of it is looked at again the next time.
                self._cursors = None
                return True
            self._known()[path] = before = after
            run.read_bytes += max(0, min(source.size, after.read_offset) - done)
            done = after.read_offset
            run.tell()
            self._is_stopping.wait((time.monotonic() - begun_at) * rest_share)
            if self._is_stopping.is_set() or (run.elapsed_s >= most_s and self._is_changed(source)):
                return False
            begun_at = time.monotonic()
        return True

    def _piece(self, before: FileCursor | None, after: FileCursor, read: Read, run: _Run) -> HistoryPiece:
        reading = read.reading
        if not isinstance(reading, HistoryReading):
            return HistoryPiece(before=before, after=after, messages=(), operations=())
        messages = reading.messages if self.keeps_messages else ()
        run.messages += len(messages)
        run.operations += len(reading.operations)
        self._on_calls(after.agent_slug, reading.operations)
        return HistoryPiece(before=before, after=after, messages=messages, operations=reading.operations)

    def _is_changed(self, source: SourceFile) -> bool:
        return is_changed(source, self._cursor(source), history_version(source))

    def _cursor(self, source: SourceFile) -> FileCursor | None:
        """Return where to go on; None when messages are wanted that an earlier reading left out."""
        known = self._known().get(stored_path(source.path))
        is_enough = known is not None and (not self.keeps_messages or known.state.get(_WITH_MESSAGES) is True)
        return known if is_enough else None

    def _open(self) -> HistoryImport:
        if self._store is None:
            self._store = HistoryImport(self._paths.database_path, zone_name=self._zone_name, clock=self._clock)
        return self._store

    def _known(self) -> dict[str, FileCursor]:
        if self._cursors is None:
            self._cursors = self._open().cursors()
        return self._cursors


class _Run:
    """What one import has done so far."""

    def __init__(self, all_bytes: int, all_files: int, report: Callable[[ImportProgress], None] | None) -> None:
        self._all_bytes = all_bytes
        self._all_files = all_files
        self._report = report
        self._begun_at = time.monotonic()
        self._told_at = float("-inf")
        self.files = self.read_bytes = self.messages = self.operations = 0
        self.problems: list[FileProblem] = []

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._begun_at

    def tell(self) -> None:
        """Tell how far it is, unless that was told just now."""
        now = time.monotonic()
        if self._report is not None and now - self._told_at >= _TELL_EVERY_S:
            self._told_at = now
            self._report(
                ImportProgress(
                    files=self.files,
                    all_files=self._all_files,
                    read_bytes=min(self.read_bytes, self._all_bytes),
                    all_bytes=self._all_bytes,
                    elapsed_s=self.elapsed_s,
                )
            )

    def outcome(self, *, is_finished: bool) -> HistoryOutcome:
        return HistoryOutcome(
            files=self.files,
            all_files=self._all_files,
            read_bytes=self.read_bytes,
            messages=self.messages,
            operations=self.operations,
            elapsed_s=self.elapsed_s,
            is_finished=is_finished,
            problems=tuple(self.problems[:_MAX_PROBLEMS]),
        )
