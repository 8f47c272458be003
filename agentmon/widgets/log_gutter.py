"""The column of times beside a log: when the output of each row had come, as far as the host reported it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import tzinfo

    from agentmon.logs.log_times import LogTimes
    from agentmon.widgets.log_rows import Row

GUTTER_CELLS: Final = 9
"""A time of day and a blank."""
_BLANK: Final = " " * GUTTER_CELLS


class LogGutter:
    """Says each time once, and nothing beside the rows below that have the same.

    Args:
        times: When the bytes of the log were written.
        size: The size of the log in bytes.
        zone: The zone of the clock; None for that of this computer.
    """

    def __init__(self, times: LogTimes, size: int, zone: tzinfo | None = None) -> None:
        self._times = times
        self._size = size
        self._zone = zone
        self._above = ""

    def text(self, row: Row) -> str:
        """Return what stands before a row; rows are asked for from top to bottom."""
        if row.position.row:
            return _BLANK
        moment = self._times.moment_at(row.line.start, size=self._size)
        text = "" if moment is None else f"{moment.astimezone(self._zone):%H:%M:%S} "
        if not text or text == self._above:
            return _BLANK
        self._above = text
        return text
