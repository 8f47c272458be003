"""What `agentmon log` prints of one log: a part of it, the lines that match, clean, coloured or raw."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agentmon.cli.output import say_clean_line, say_clean_part
from agentmon.domain.errors import NotFoundError, UsageError
from agentmon.logs.coloured_text import coloured_rest
from agentmon.logs.line_text import plain_text
from agentmon.logs.log_file import LogFile, LogLine
from agentmon.logs.log_text import iter_line_bytes, iter_raw_chunks
from agentmon.logs.log_times import LogTimes
from agentmon.logs.pattern import LogPattern
from agentmon.logs.places import ClockPlace, LinePlace, LogPlace, SharePlace, SpanPlace
from agentmon.logs.rewritten_lines import is_rewritten
from agentmon.logs.search import Direction, search_log
from agentmon.logs.text_log import TextLog

_INDEX_SLICE_S = 1.0
_LOOKS_AT_REST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to print of one log."""

    path: Path
    text: bytes | None = None
    """What a terminal shows of the log, where that is wanted in its place."""
    is_raw: bool = False
    is_coloured: bool = False
    line_count: int | None = None
    """Only so many at the end."""
    pattern: LogPattern | None = None
    """Only lines that match."""
    start: int = 0
    """Where it begins, at the start of a line."""
    stop: int | None = None
    """Where it ends, at the start of a line; None for the end of the log."""

    def open(self) -> LogFile:
        """Return what is read; whoever asked closes it."""
        return LogFile(self.path) if self.text is None else TextLog(self.text)

    def shown(self, line: bytes) -> str:
        """Return a line as it is printed."""
        return self.shown_from(line, 0)

    def shown_from(self, line: bytes, start: int) -> str:
        """Return a line as it is printed, without the first ``start`` characters of its text."""
        return coloured_rest(line, start) if self.is_coloured else plain_text(line)[start:]


def check_readable(path: Path) -> None:
    """Refuse a log that is there and cannot be read.

    Raises:
        UsageError: It cannot.
    """
    with LogFile(path) as log:
        if log.problem:
            raise UsageError(f"the log cannot be read: {log.problem}", hint=f"look at {path}")


def present_lines(wanted: Wanted) -> Iterator[bytes]:
    """Yield what is there by now, line by line without line feeds; nothing when there is no log."""
    if wanted.text is None and wanted.pattern is None and wanted.line_count is None:
        yield from iter_line_bytes(wanted.path, first_offset=wanted.start, stop_offset=wanted.stop)
        return
    with wanted.open() as log:
        for line in _chosen_lines(log, wanted):
            yield line.content


def present_bytes(wanted: Wanted) -> Iterator[bytes]:
    """Yield what is there by now as the program wrote it."""
    if wanted.pattern is None and wanted.line_count is None and wanted.stop is None:
        yield from iter_raw_chunks(wanted.path, first_offset=wanted.start)
        return
    with LogFile(wanted.path) as log:
        for line in _chosen_lines(log, wanted):
            yield log.read(line.start, line.end)


def follow_offset(wanted: Wanted) -> int:
    """Return where following begins: at the first of the last lines that are wanted."""
    if wanted.line_count is None:
        return wanted.start
    with LogFile(wanted.path) as log:
        return next((line.start for line in _chosen_lines(log, wanted)), log.size)


def print_followed(wanted: Wanted, wait_for_more: Callable[[], bool], is_left: Callable[[], bool]) -> None:
    """Print what is there and what comes, until ``wait_for_more`` returns False or nobody listens any more.

    A line that is not finished is printed as far as it has come, and finished later.
    """
    last = _LastLine(wanted)
    for line in iter_line_bytes(
        wanted.path,
        first_offset=follow_offset(wanted),
        wait_for_more=wait_for_more,
        take_unfinished=last.show,
    ):
        if is_left():
            return
        last.finish(line)


class _LastLine:
    """The line at which a followed log has come, of which a part is printed."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._printed = ""
        self._line = b""
        self._looks = 0

    def show(self, line: bytes) -> None:
        """Print what came of a line that is not finished; of one that is rewritten, only what rests."""
        self._looks = self._looks + 1 if line == self._line else 0
        self._line = line
        text = plain_text(line)
        is_moving = is_rewritten(line) and self._looks < _LOOKS_AT_REST
        if is_moving or not text.startswith(self._printed) or not self._is_wanted(line):
            return
        say_clean_part(self._wanted.shown_from(line, len(self._printed)))
        self._printed = text

    def finish(self, line: bytes) -> None:
        """Print the rest of a line that is finished, or all of it where it was written over."""
        printed, self._printed, self._line = self._printed, "", b""
        if printed and not plain_text(line).startswith(printed):
            say_clean_line("")
            printed = ""
        if printed or self._is_wanted(line):
            say_clean_line(self._wanted.shown_from(line, len(printed)))

    def _is_wanted(self, line: bytes) -> bool:
        return self._wanted.pattern is None or self._wanted.pattern.matches(line)


def matching_offsets(wanted: Wanted) -> list[int]:
    """Return where the lines begin that are wanted."""
    with wanted.open() as log:
        return [line.start for line in _chosen_lines(log, wanted)]


def size_and_line_count(wanted: Wanted) -> tuple[int, int | None]:
    """Return the bytes and the lines of all that is read."""
    with wanted.open() as log:
        while not log.index_more(_INDEX_SLICE_S):
            pass
        return log.size, log.line_count


def offset_of(path: Path, place: LogPlace, times: LogTimes, *, is_end: bool) -> int:
    """Return where in a log a place is.

    Args:
        path: The log.
        place: What was typed.
        times: When it was written.
        is_end: Whether it is where to end: a line is then part of what is printed.

    Raises:
        NotFoundError: Nobody noted when the log was written.
    """
    with LogFile(path) as log:
        match place:
            case LinePlace(number=number):
                while not log.index_more(_INDEX_SLICE_S):
                    pass
                offset = log.line_offset(number + 1 if is_end else number)
                return log.size if offset is None else offset
            case SharePlace(share=share):
                return log.size if share >= 1.0 else log.line_start(int(log.size * share))
            case ClockPlace() | SpanPlace():
                return _offset_at(log, place, times)


def _offset_at(log: LogFile, place: ClockPlace | SpanPlace, times: LogTimes) -> int:
    first, newest = times.first, times.newest
    if first is None or newest is None:
        raise NotFoundError("nobody noted when this log was written", hint="a line or a share (50%) works")
    if isinstance(place, ClockPlace):
        moment = place.moment_near(newest)
    else:
        moment = newest - place.span if place.from_end else first + place.span
    offset = times.offset_at(moment, size=log.size)
    return log.size if offset >= log.size or moment > newest else log.line_start(offset)


def check_order(start: int, stop: int | None) -> None:
    """Refuse a part that ends before it begins.

    Raises:
        UsageError: It does.
    """
    if stop is not None and stop < start:
        raise UsageError("--to lies before --from", hint="agentmon log 12 --from 14:02 --to 14:05")


def _chosen_lines(log: LogFile, wanted: Wanted) -> Iterator[LogLine]:
    stop = log.size if wanted.stop is None else min(wanted.stop, log.size)
    if wanted.pattern is None and wanted.line_count is None:
        yield from _lines_between(log, wanted.start, stop)
    elif wanted.pattern is None:
        last = log.lines_before(stop, wanted.line_count or 0)
        yield from (line for line in last if line.start >= wanted.start)
    elif wanted.line_count is None:
        for found_here in search_log(log, wanted.pattern, start=wanted.start, stop=stop):
            for start in found_here.matches:
                yield from log.lines_from(start, 1)
    else:
        found: list[int] = []
        steps = search_log(log, wanted.pattern, start=stop, stop=wanted.start, direction=Direction.BACKWARDS)
        while len(found) < wanted.line_count and (step := next(steps, None)) is not None:
            found += step.matches
        for start in reversed(found[: wanted.line_count]):
            yield from log.lines_from(start, 1)


def _lines_between(log: LogFile, start: int, stop: int) -> Iterator[LogLine]:
    while start < stop and (lines := log.lines_from(start, 1)):
        yield lines[0]
        start = lines[0].end
