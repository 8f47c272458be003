"""A log file as rows of a screen: display lines measured in cells, wrapped or cropped, and walked both ways."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from agentmon.domain.letters import letter_behind, letters
from agentmon.logs.line_text import PLAIN_STYLE, TextStyle, styled_runs
from agentmon.widgets.cells import cells, even_line, is_single

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agentmon.logs.log_file import LogLine

_CACHE_CHARACTERS: Final = 1_000_000
_LINE_COST: Final = 1000
_BATCH_LINES: Final = 64


class LineSource(Protocol):
    """Lines that are walked both ways: a log file, or those of its lines that match."""

    @property
    def size(self) -> int:
        """The offset after the last line."""
        ...

    def line_start(self, offset: int) -> int:
        """Return where the display line begins that holds the byte at ``offset``."""
        ...

    def lines_from(self, start: int, count: int) -> list[LogLine]:
        """Return up to ``count`` lines from ``start`` on."""
        ...

    def lines_before(self, end: int, count: int) -> list[LogLine]:
        """Return up to ``count`` lines before ``end``, first to last."""
        ...


class Position(NamedTuple):
    """A row of the log: the offset of its display line, and the row inside that line when it is wrapped."""

    offset: int
    row: int


TOP: Final = Position(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A part of a display line that is shown on one row."""

    line: DisplayLine
    position: Position
    start: int
    """The index of its first character in the line's text."""
    end: int
    """The index after its last character."""
    blanks: int = 0
    """Cells left free before the text, where a wide character was cropped in half."""


class DisplayLine:
    """The text of one display line, safe to draw, with its styles and the cell where each character begins."""

    __slots__ = ("_breaks", "_columns", "_edges", "_run_ends", "_styles", "end", "is_plain", "start", "text")

    def __init__(self, line: LogLine) -> None:
        self.start = line.start
        self.end = line.end
        parts: list[str] = []
        self._run_ends: list[int] = []
        self._styles: list[TextStyle] = []
        length = 0
        for run in styled_runs(line.content):
            text = run.text if run.text.isascii() else even_line(run.text, max_characters=len(run.text))
            length += len(text)
            parts.append(text)
            self._run_ends.append(length)
            self._styles.append(run.style)
        self.text = "".join(parts)
        self.is_plain = all(style is PLAIN_STYLE for style in self._styles)
        self._edges: array[int] | None = None
        if not self.text.isascii() and not is_single(self.text):
            self._edges = array("l", accumulate(_character_cells(self.text), initial=0))
        self._columns = 0
        self._breaks: list[int] = []

    @property
    def width(self) -> int:
        """The width of the whole line in cells."""
        return self.cell(len(self.text))

    def cell(self, index: int) -> int:
        """Return how many cells come before the character at ``index``."""
        return index if self._edges is None else self._edges[index]

    def row_count(self, columns: int) -> int:
        """Return how many rows of ``columns`` cells the wrapped line fills; at least one."""
        if self._edges is None:
            return max(1, -(-len(self.text) // columns))
        return len(self._wrapped(columns)) - 1

    def wrapped_row(self, columns: int, row: int) -> tuple[int, int]:
        """Return the first character and the one after the last of a row of the wrapped line."""
        if self._edges is None:
            return min(len(self.text), row * columns), min(len(self.text), (row + 1) * columns)
        breaks = self._wrapped(columns)
        return breaks[row], breaks[row + 1]

    def row_of(self, columns: int, index: int) -> int:
        """Return the row of the wrapped line that shows the character at ``index``."""
        if self._edges is None:
            return min(index // columns, self.row_count(columns) - 1)
        return max(0, min(bisect_right(self._wrapped(columns), index), self.row_count(columns)) - 1)

    def cropped(self, left: int, columns: int) -> tuple[int, int, int]:
        """Return the characters from cell ``left`` on that fit in ``columns`` cells, and the blanks before them."""
        edges = self._edges
        if edges is None:
            return min(left, len(self.text)), min(left + columns, len(self.text)), 0
        # The last index of a cell: combining marks before it belong to the character on the left.
        start = bisect_right(edges, left) - 1
        if edges[start] < left and start < len(self.text):
            start = bisect_right(edges, edges[bisect_left(edges, left)]) - 1
        end = max(start, bisect_right(edges, left + columns) - 1)
        return start, end, max(0, edges[start] - left)

    def parts(self, start: int, end: int) -> Iterator[tuple[str, TextStyle]]:
        """Yield the text from ``start`` up to ``end`` in parts of one style."""
        run = bisect_right(self._run_ends, start)
        while start < end:
            stop = min(end, self._run_ends[run])
            yield self.text[start:stop], self._styles[run]
            start = stop
            run += 1

    def _wrapped(self, columns: int) -> list[int]:
        edges = self._edges
        if self._columns != columns and edges is not None:
            breaks = [0]
            while breaks[-1] < len(self.text):
                fitting = bisect_right(edges, edges[breaks[-1]] + columns) - 1
                # A letter that is wider than the row is still shown.
                breaks.append(fitting if fitting > breaks[-1] else letter_behind(self.text, breaks[-1]))
            if len(breaks) == 1:
                breaks.append(0)
            self._breaks, self._columns = breaks, columns
        return self._breaks


class RowReader:
    """Walks the rows of a log; keeps the lines that were shown last.

    Attributes:
        columns: The width of a row in cells, at least 1.
        left: How many cells are scrolled out on the left; only where lines are not wrapped.
        wraps: Whether lines go on in the next row.
    """

    def __init__(self, log: LineSource) -> None:
        self.columns = 80
        self.left = 0
        self.wraps = False
        self._log = log
        self._lines: dict[tuple[int, int], DisplayLine] = {}
        self._cost = 0

    def read_from(self, source: LineSource) -> None:
        """Walk the lines of another source of the same log."""
        self._log = source

    def forget(self) -> None:
        """Drop the kept lines: the file has another text now."""
        self._lines.clear()
        self._cost = 0

    def line_at(self, offset: int) -> DisplayLine | None:
        """Return the display line that holds the byte at ``offset``; None when the log is empty."""
        lines = self._log.lines_from(self._log.line_start(offset), 1)
        return self._display(lines[0]) if lines else None

    def forwards(self, position: Position, count: int) -> list[Row]:
        """Return up to ``count`` rows from ``position`` on, first to last."""
        rows: list[Row] = []
        first_row = position.row
        offset = position.offset
        while len(rows) < count:
            lines = self._log.lines_from(offset, min(_BATCH_LINES, count - len(rows)))
            if not lines:
                break
            for line in map(self._display, lines):
                row_count = self._row_count(line)
                stop = min(row_count, first_row + count - len(rows))
                rows += self._rows(line, range(min(first_row, row_count - 1), stop))
                first_row = 0
                if len(rows) >= count:
                    break
            offset = lines[-1].end
        return rows

    def backwards(self, position: Position | None, count: int) -> list[Row]:
        """Return up to ``count`` rows that come before ``position`` (None: before the end), first to last."""
        blocks: list[list[Row]] = []
        missing = count
        offset = self._log.size
        if position is not None:
            offset = position.offset
            here = self.line_at(offset) if position.row else None
            if here is not None:
                last = min(position.row, self._row_count(here))
                blocks.append(self._rows(here, range(max(0, last - missing), last)))
                missing -= len(blocks[-1])
        while missing > 0:
            lines = self._log.lines_before(offset, min(_BATCH_LINES, missing))
            if not lines:
                break
            for line in map(self._display, reversed(lines)):
                row_count = self._row_count(line)
                blocks.append(self._rows(line, range(max(0, row_count - missing), row_count)))
                missing -= len(blocks[-1])
                if missing <= 0:
                    break
            offset = lines[0].start
        return [row for block in reversed(blocks) for row in block]

    def _display(self, line: LogLine) -> DisplayLine:
        key = (line.start, line.end)
        kept = self._lines.get(key)
        if kept is None:
            kept = DisplayLine(line)
            self._cost += len(kept.text) + _LINE_COST
            if self._cost > _CACHE_CHARACTERS:
                self.forget()
            self._lines[key] = kept
        return kept

    def _row_count(self, line: DisplayLine) -> int:
        return line.row_count(self.columns) if self.wraps else 1

    def _rows(self, line: DisplayLine, numbers: Iterable[int]) -> list[Row]:
        if not self.wraps:
            start, end, blanks = line.cropped(self.left, self.columns)
            return [
                Row(line=line, position=Position(line.start, 0), start=start, end=end, blanks=blanks) for _ in numbers
            ]
        rows = []
        for number in numbers:
            start, end = line.wrapped_row(self.columns, number)
            rows.append(Row(line=line, position=Position(line.start, number), start=start, end=end))
        return rows


def _character_cells(text: str) -> Iterator[int]:
    """Yield the width of a letter at its first character, and none at its others, so that nothing ends within it."""
    for letter in letters(text):
        yield cells(letter)
        yield from repeat(0, len(letter) - 1)
