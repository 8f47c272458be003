"""What is found in the log of a view: the lines of its filter, and how many hold what is marked."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final

from agentmon.logs.filtered_log import FilteredLog
from agentmon.logs.log_file import INDEX_SLICE_S

if TYPE_CHECKING:
    from agentmon.logs.log_file import LogFile
    from agentmon.logs.pattern import LogPattern

_PAINT_S: Final = 0.1
"""How often rows that a filter finds are painted at most."""


class LogFinds:
    """A filter and a count over one log, searched in slices that the owner gives time for."""

    def __init__(self) -> None:
        self.filter: FilteredLog | None = None
        """The lines that are shown when only those that match are."""
        self.counted: FilteredLog | None = None
        """The lines that hold what is marked, as far as they are counted; None when they are not."""
        self._painted_matches = 0
        self._painted_at = 0.0

    def show_only(self, log: LogFile, pattern: LogPattern | None) -> None:
        """Look for the lines that match; None ends the filter."""
        self.filter = None if pattern is None else FilteredLog(log, pattern)
        self.counted = None
        self._painted_matches = 0
        self._painted_at = 0.0

    def count(self, log: LogFile, pattern: LogPattern) -> None:
        """Count the lines that match; where a filter holds, none are counted."""
        if self.filter is None and self.counted is None:
            self.counted = FilteredLog(log, pattern)

    def take_growth(self) -> None:
        """Take note of the log's size after a refresh."""
        for found in (self.filter, self.counted):
            if found is not None:
                found.take_growth()

    def search_on(self, *, near: int, backwards: bool) -> tuple[bool, bool]:
        """Search for a moment; return whether all is searched, and whether what came is worth a paint.

        Args:
            near: The offset in view, from which the filter searches.
            backwards: Whether it searches first what lies before it.
        """
        is_complete, is_news = True, False
        filtered = self.filter
        if filtered is not None:
            was_complete = filtered.is_complete
            is_complete = filtered.search_more(INDEX_SLICE_S, near=near, backwards=backwards)
            now = monotonic()
            has_more = filtered.match_count != self._painted_matches and now - self._painted_at > _PAINT_S
            is_news = has_more or (is_complete and not was_complete)
            if is_news:
                self._painted_matches, self._painted_at = filtered.match_count, now
        if is_complete and self.counted is not None:
            is_complete = self.counted.search_more(INDEX_SLICE_S, near=0, backwards=False)
        return is_complete, is_news
