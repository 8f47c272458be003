"""Imports of what agents wrote down: files found, read on from where they were left, priced and handed to the store."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import DiscoveryMethod
from agentmon.domain.billing import BilledAnswer
from agentmon.domain.contexts import contexts_of
from agentmon.domain.costs import FileCursor, PricedAnswer
from agentmon.runners.presets import agents_of, load_presets
from agentmon.store.errors import ConstraintError
from agentmon.store.usage_import import FilePiece, UsageImport
from agentmon.usage.prices.book import PriceBook
from agentmon.usage.sources import find_sources, look_again, may_be_source, paths_of_source
from agentmon.usage.unread import parser_version, read_unread
from agentmon.worker.early_reading import APART_FROM_BYTES, PROCESSES, start_reading
from agentmon.worker.file_cursors import (
    is_changed,
    is_of_new_project,
    reader_cursor,
    stored_cursor,
    stored_path,
    unread_bytes,
)
from agentmon.worker.import_progress import (
    FileProblem,
    ImportOutcome,
    ImportProgress,
    clear_progress,
    write_progress,
)
from agentmon.worker.project_folders import ProjectFolders
from agentmon.worker.refusals import Refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from agentmon.domain.clock import Clock
    from agentmon.paths import Paths
    from agentmon.store.agents import AgentRepository
    from agentmon.usage.following import Read
    from agentmon.usage.reading import ReadingProblem
    from agentmon.usage.reading_processes import Job, ReadingProcesses
    from agentmon.usage.sources import SourceFile

_TELL_EVERY_S: Final = 0.2
_MAX_PROBLEMS: Final = 100
_APART_FROM_BYTES: Final = APART_FROM_BYTES
_STAND_INS_OF_MS: Final = 3_600_000
"""How far every look but the first goes back."""
_ANY_ANSWER: Final = BilledAnswer(
    key="",
    session_ref="",
    provider="anthropic",
    model="claude-haiku-4-5",
    at_ms=0,
    prompt_tokens=0,
    cache_read_tokens=0,
    cache_write_5m_tokens=0,
    cache_write_1h_tokens=0,
    response_tokens=0,
    reasoning_tokens=0,
    offset=0,
)


class UsageImporter:
    """Imports one look at the files after the other; ``close`` ends it. Its calls block, and one thread makes them.

    Args:
        paths: Where the database, the person's prices and the progress are.
        environ: Says where the agents keep their files.
        zone_name: In which zone days are when none was chosen yet.
        clock: Tells the time of the rows.
        report: Hears of the progress, some times a second, in the thread of the import.
    """

    def __init__(
        self,
        *,
        paths: Paths,
        environ: Mapping[str, str],
        zone_name: str,
        clock: Clock,
        report: Callable[[ImportProgress], None] | None = None,
    ) -> None:
        self._paths = paths
        self._environ = environ
        self._zone_name = zone_name
        self._clock = clock
        self._report = report
        self._store: UsageImport | None = None
        self._prices: PriceBook | None = None
        self._cursors: dict[str, FileCursor] | None = None
        self._projects = ProjectFolders()
        self._has_adopted = False
        self._refused = Refusals()
        self._seen: dict[str, SourceFile] = {}
        self._seen_inodes: dict[int, str] = {}
        self._other_paths: set[str] = set()
        self._stand_ins_since_ms = 0
        self._is_stopping = threading.Event()
        self._told_at = float("-inf")

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

    def find_changed(self, problems: list[ReadingProblem] | None = None) -> tuple[list[SourceFile], int]:
        """Return the files that have something new, oldest first, and how many files there are."""
        known_paths = self._cursors or ()
        sources = find_sources(
            self._environ,
            known_paths=known_paths,
            find_folders=lambda: self._open().known_folders(),
            problems=problems,
        )
        self._seen = {source.path: source for source in sources}
        self._seen_inodes = {source.inode: source.path for source in sources}
        self._other_paths = set()
        if not sources:
            return [], 0
        return self._changed_of(sources), len(sources)

    def find_changed_among(self, paths: Iterable[str]) -> tuple[list[SourceFile], list[str]]:
        """Return which of the files have something new, and the paths of which only a look at all files can tell.

        No other file is looked at. The latter are paths that the last look at all files did not see.
        """
        found: dict[str, SourceFile] = {}
        unknown = []
        for path in paths:
            if path in self._other_paths:
                continue
            source = self._source_at(path)
            if source is None:
                if may_be_source(path):
                    unknown.append(path)
            elif (now := look_again(source)) is not None:
                found[now.path] = now
        return self._changed_of(found.values()), unknown

    def _source_at(self, path: str) -> SourceFile | None:
        """Return the source of the last look to which what changed there belongs."""
        for own_path in paths_of_source(path):
            if own_path in self._seen:
                return self._seen[own_path]
        try:
            return self._seen.get(self._seen_inodes.get(Path(path).stat().st_ino, ""))
        except OSError:
            return None

    def pass_over(self, paths: Iterable[str]) -> None:
        """Take it until the next look at all files that paths which this one did not see belong to no agent."""
        self._other_paths.update(path for path in paths if self._source_at(path) is None)

    def _changed_of(self, sources: Iterable[SourceFile]) -> list[SourceFile]:
        return [source for source in sources if self._is_changed(source) and not self._refused.has(source)]

    def _is_changed(self, source: SourceFile) -> bool:
        known = self._known().get(stored_path(source.path))
        return is_changed(source, known, parser_version(source)) or is_of_new_project(source, known)

    def unread_bytes(self) -> int:
        """Return how much is new in all files."""
        return sum(map(self._unread_bytes, self.find_changed()[0]))

    def look_anew(self) -> None:
        """Take it that another process has read files meanwhile."""
        self._cursors = None

    def adopt(self) -> None:
        """Give what was read as history to the runs whose conversations it turned out to be.

        Raises:
            StoreError: The database refused it.
        """
        self._open().adopt_conversations()

    def warm_prices(self) -> None:
        """Make the prices ready, so that a single one takes no time."""
        if self._prices is None:
            self._prices = PriceBook(self._paths.prices_file, self._paths.price_data_file)
            self._prices.price(_ANY_ANSWER)
        else:
            self._prices.refresh()

    def priced(self, answer: BilledAnswer, *, project: str = "") -> PricedAnswer:
        """Return the answer with its price; quick once the prices are warm."""
        price = self._price_book().price(answer)
        return PricedAnswer(
            answer=answer,
            cost_nano=price.cost_nano,
            cost_source=price.source,
            price_version=price.version,
            project=project,
        )

    def read(
        self, sources: Sequence[SourceFile], *, all_files: int, problems: Sequence[ReadingProblem] = ()
    ) -> ImportOutcome:
        """Read the files and write what they tell; the agents have to be there.

        Raises:
            StoreError: The database refused a piece; all before it is kept.
        """
        self._projects = ProjectFolders()
        if self._prices is not None:
            self._prices.refresh()
        if sources or not self._has_adopted:
            self._has_adopted = True
            self._open().adopt_conversations()
        run = _Run(all_bytes=sum(self._unread_bytes(source) for source in sources), all_files=len(sources))
        run.problems += [FileProblem(path="", offset=one.offset, reason=one.reason) for one in problems]
        processes = self._start_processes(sources, run.all_bytes)
        try:
            for source in sources:
                self._tell(run)
                try:
                    self._read_one(source, run, processes)
                except ConstraintError as error:
                    # One file must not keep all others away; it is looked at again when it changes.
                    self._refused.add(source)
                    run.problems.append(FileProblem(path=source.path, offset=0, reason=str(error)))
                if self._is_stopping.is_set():
                    break
                run.files += 1
            self._drop_stand_ins()
        finally:
            if processes is not None:
                processes.close()
            clear_progress(self._paths.import_progress)
        return ImportOutcome(
            files=run.files,
            all_files=all_files,
            read_bytes=run.read_bytes,
            answers=run.answers,
            elapsed_s=time.monotonic() - run.begun_at,
            problems=tuple(run.problems[:_MAX_PROBLEMS]),
            sources=tuple(sources),
        )

    def _drop_stand_ins(self) -> None:
        """Look behind the files, since a conversation may have told an answer when its file was read already."""
        if self._store is not None:
            since_ms = self._stand_ins_since_ms
            self._stand_ins_since_ms = round(self._clock.now().timestamp() * 1000) - _STAND_INS_OF_MS
            self._store.drop_stand_ins(since_ms=since_ms)

    def _start_processes(self, sources: Sequence[SourceFile], unread_bytes: int) -> ReadingProcesses | None:
        """Let other processes read what is long, so that this one has only to write."""
        if unread_bytes < _APART_FROM_BYTES or len(sources) < PROCESSES:
            return None
        return start_reading([self._job(source) for source in sources])

    def _job(self, source: SourceFile) -> Job:
        before = self._known().get(stored_path(source.path))
        if before is None or is_of_new_project(source, before):
            return source, None
        return source, reader_cursor(source, before)

    def _read_one(self, source: SourceFile, run: _Run, processes: ReadingProcesses | None) -> None:
        known = self._known()
        path = stored_path(source.path)
        before = known.get(path)
        read_before, unread = run.read_bytes, self._unread_bytes(source)
        job = self._job(source)
        for read in read_unread(*job) if processes is None else processes.read(job):
            run.problems += [
                FileProblem(path=source.path, offset=one.offset, reason=one.reason) for one in read.reading.problems
            ]
            if read.cursor is None:
                self._refused.add(source)
                continue
            after = stored_cursor(source, read.cursor)
            if not self._open().write(self._piece(source, before, after, read)):
                # Another process reads the same file: what is left of it is looked at again the next time.
                self._cursors = None
                return
            known[path] = before = after
            run.answers += len(read.reading.answers)
            run.read_bytes = min(run.all_bytes, read_before + min(unread, after.read_offset))
            self._tell(run)
            if self._is_stopping.is_set():
                return
        run.read_bytes = read_before + unread

    def _piece(self, source: SourceFile, before: FileCursor | None, after: FileCursor, read: Read) -> FilePiece:
        answers = []
        for answer in read.reading.answers:
            folder = answer.cwd or source.project_hint
            answers.append(self.priced(answer, project=self._projects.project_of(folder) if folder else ""))
        sessions = []
        for one in read.reading.sessions:
            folder = one.cwd or source.project_hint or ""
            project = self._projects.project_of(folder) if folder else ""
            sessions.append(replace(one, cwd=folder or None, project=project))
        contexts = {one.session_ref: one for one in (*contexts_of(read.reading.answers), *read.reading.contexts)}
        return FilePiece(
            before=before,
            after=after,
            answers=answers,
            failures=read.reading.failures,
            sessions=sessions,
            limits=read.reading.limits,
            contexts=tuple(contexts.values()),
        )

    def _unread_bytes(self, source: SourceFile) -> int:
        return unread_bytes(source, self._known().get(stored_path(source.path)))

    def _tell(self, run: _Run) -> None:
        now = time.monotonic()
        if now - self._told_at < _TELL_EVERY_S:
            return
        self._told_at = now
        progress = ImportProgress(
            files=run.files,
            all_files=run.all_files,
            read_bytes=run.read_bytes,
            all_bytes=run.all_bytes,
            elapsed_s=now - run.begun_at,
        )
        write_progress(self._paths.import_progress, progress)
        if self._report is not None:
            self._report(progress)

    def _open(self) -> UsageImport:
        if self._store is None:
            self._store = UsageImport(self._paths.database_path, zone_name=self._zone_name, clock=self._clock)
        return self._store

    def _known(self) -> dict[str, FileCursor]:
        if self._cursors is None:
            self._cursors = self._open().cursors()
        return self._cursors

    def _price_book(self) -> PriceBook:
        if self._prices is None:
            self._prices = PriceBook(self._paths.prices_file, self._paths.price_data_file)
        return self._prices


@dataclass(slots=True, kw_only=True)
class _Run:
    """What one import has done so far."""

    all_files: int
    all_bytes: int
    files: int = 0
    read_bytes: int = 0
    answers: int = 0
    problems: list[FileProblem] = field(default_factory=list)
    begun_at: float = field(default_factory=time.monotonic)


async def import_usage(importer: UsageImporter, agents: AgentRepository, clock: Clock) -> ImportOutcome:
    """Read what is new in the files of all agents, in a thread; agents of which only files are there are added.

    Such an agent is not active, since its program is not there to be run. When the caller is cancelled the import ends
    behind the piece that it reads, and what it wrote is kept.

    Raises:
        StoreError: The database refused a piece; all before it is kept.
    """
    problems: list[ReadingProblem] = []
    begun_at = time.monotonic()
    sources, all_files = await asyncio.to_thread(importer.find_changed, problems)
    look_s = time.monotonic() - begun_at
    await _add_agents(agents, {source.agent_slug for source in sources}, clock)
    outcome = await asyncio.to_thread(importer.read, sources, all_files=all_files, problems=problems)
    return replace(outcome, look_s=look_s)


async def import_among(
    importer: UsageImporter, agents: AgentRepository, clock: Clock, paths: Collection[str]
) -> tuple[ImportOutcome, list[str]]:
    """Read what is new in some files alone; otherwise as ``import_usage``.

    Returns:
        What was done, and the paths of which only a look at all files can tell.

    Raises:
        StoreError: The database refused a piece; all before it is kept.
    """
    sources, unknown = await asyncio.to_thread(importer.find_changed_among, paths)
    await _add_agents(agents, {source.agent_slug for source in sources}, clock)
    return await asyncio.to_thread(importer.read, sources, all_files=len(sources)), unknown


async def _add_agents(agents: AgentRepository, slugs: set[str], clock: Clock) -> None:
    missing = slugs and slugs - {agent.slug for agent in await agents.list(active_only=False)}
    if missing:
        presets = [preset for preset in await asyncio.to_thread(load_presets) if preset.slug in missing]
        added = [
            replace(agent, is_active=False, discovery_method=DiscoveryMethod.PRESET) for agent in agents_of(presets)
        ]
        await agents.add_missing(added, at=clock.now())
