"""When the lines that a search found were written, from the reports in the journals of their runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.search import SearchKind
from agentmon.runners.log_times import LogTimesReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.search import FoundOfKind, SearchHit

_LARGEST_JOURNAL: Final = 1_000_000
"""Reading more would take longer than the search; such lines are as old as the newest output of their run."""
_MOST_READERS: Final = 100
"""Of so many journals the times are kept; hits of one search are in fewer."""
_JOURNAL: Final = "journal.jsonl"


class LogMoments:
    """Dates lines of logs; of each journal it reads a report once."""

    def __init__(self) -> None:
        self._readers: dict[str, LogTimesReader] = {}

    def date(self, found: Sequence[FoundOfKind]) -> tuple[FoundOfKind, ...]:
        """Return what was found, lines of logs with their own time where it is known, newest first; blocks."""
        return tuple(self._dated(group) if group.kind is SearchKind.LOGS and group.hits else group for group in found)

    def _dated(self, group: FoundOfKind) -> FoundOfKind:
        hits = [self._with_moment(hit) for hit in group.hits]
        hits.sort(key=lambda hit: "" if hit.at is None else hit.at.isoformat(), reverse=True)
        return replace(group, hits=tuple(hits))

    def _with_moment(self, hit: SearchHit) -> SearchHit:
        log = Path(hit.log_path)
        journal = log.with_name(_JOURNAL)
        try:
            size = log.stat().st_size
            if hit.offset is None or journal.stat().st_size > _LARGEST_JOURNAL:
                return hit
            times = self._reader(hit.log_path, journal).read()
        except OSError:
            return hit
        moment = times.moment_at(hit.offset, size=size)
        return hit if moment is None else replace(hit, at=moment)

    def _reader(self, log_path: str, journal: Path) -> LogTimesReader:
        reader = self._readers.get(log_path)
        if reader is None:
            if len(self._readers) == _MOST_READERS:
                self._readers.pop(next(iter(self._readers)))
            reader = self._readers[log_path] = LogTimesReader(journal)
        return reader
