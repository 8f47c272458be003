"""A table of rows of styled cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.segment import Segment
from textual.message import Message
from textual.reactive import reactive

from agentmon.widgets.cursor_table import GAP, MARGIN, CursorTable, fitted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.style import Style

    from agentmon.widgets.text_rows import Span

_LEAST_SHARE: Final = 8
"""Cells of a column without a width of its own, at least."""


class Column(NamedTuple):
    """One column of the table."""

    heading: str
    width: int = 0
    """Cells; 0 shares what the others leave."""
    from_width: int = 0
    """The width of the table from which it is shown."""
    is_right: bool = False


class Sorting(NamedTuple):
    """By which column the rows are sorted, counted from 0."""

    column: int
    is_descending: bool = False


class TableRow(NamedTuple):
    """One row: a cell for each column."""

    key: str
    cells: tuple[Span, ...]


class RowTable(CursorTable):
    """Rows with a cursor; the parent sets ``rows`` and calls the moves from its keys."""

    rows: reactive[tuple[TableRow, ...]] = reactive((), layout=False, repaint=False, init=False)
    """All rows, from top to bottom."""
    sorting: reactive[Sorting | None] = reactive(None, layout=False, init=False)
    """Which heading is marked; the parent sorts the rows."""
    marked: reactive[frozenset[str]] = reactive(frozenset(), layout=False, init=False)
    """The names of the rows with a mark before them; the parent forgets those that are gone."""

    @dataclass
    class Opened(Message):
        """A row was chosen with enter or a double click."""

        table: RowTable
        key: str

    @dataclass
    class Highlighted(Message):
        """The cursor stands on another row; None when there is none."""

        table: RowTable
        key: str | None

    @dataclass
    class SortRequested(Message):
        """A heading was clicked."""

        table: RowTable
        column: int
        """Counted from 0."""

    def __init__(self, columns: Sequence[Column], *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._columns = tuple(columns)

    @property
    def selected_key(self) -> str | None:
        """The name of the row under the cursor; None when there is no row."""
        return self.rows[self.cursor_row].key if self.rows else None

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    @property
    def shown_columns(self) -> tuple[int, ...]:
        """The numbers of the columns for which there is room, counted from 0."""
        return tuple(at for at, _, _ in self._placed())

    def key_of(self, row: int) -> str:
        """Return the name of a row."""
        return self.rows[row].key

    def tell_opened(self) -> None:
        """Post ``Opened``."""
        self.post_message(self.Opened(self, self.key_of(self.cursor_row)))

    def tell_highlighted(self) -> None:
        """Post ``Highlighted``."""
        self.post_message(self.Highlighted(self, self.selected_key))

    def watch_rows(self) -> None:
        """Show the rows; the cursor stays on what it was on."""
        self.settle({row.key: at for at, row in enumerate(self.rows)})

    def on_heading_clicked(self, x: int) -> None:
        """Ask to sort by the heading."""
        begin = MARGIN
        for at, _, room in self._placed():
            if begin <= x < begin + room + GAP:
                self.post_message(self.SortRequested(self, at))
            begin += room + GAP

    def margin_segment(self, row: int, base: Style) -> Segment:
        """Return the mark before a row, or a blank."""
        is_marked = self.rows[row].key in self.marked
        return Segment("*", self.style_of("warning", base)) if is_marked else super().margin_segment(row, base)

    def heading_segments(self, base: Style) -> list[Segment]:
        """Return the headings for which there is room."""
        segments = []
        for at, column, room in self._placed():
            heading, style = column.heading, "header"
            if self.sorting is not None and self.sorting.column == at:
                heading, style = f"{heading} {'▼' if self.sorting.is_descending else '▲'}".lstrip(), "sorted"
            text = fitted(heading, room, is_right=column.is_right)
            segments += [Segment(text, self.style_of(style, base)), Segment(" " * GAP, base)]
        return segments

    def row_segments(self, row: int, base: Style) -> list[Segment]:
        """Return the cells of a row for which there is room."""
        segments = []
        for at, column, room in self._placed():
            cell = self.rows[row].cells[at]
            text = fitted(cell.text, room, is_right=column.is_right)
            segments += [Segment(text, self.style_of(cell.style, base)), Segment(" " * GAP, base)]
        return segments

    def _placed(self) -> list[tuple[int, Column, int]]:
        """Return number, column and cells of the columns for which there is room beside the scroll bar."""
        shown = [(at, column) for at, column in enumerate(self._columns) if self.size.width >= column.from_width]
        rooms = {at: column.width or _LEAST_SHARE for at, column in shown}
        width = self.scrollable_size.width - 2 * MARGIN
        while (spare := width - sum(rooms.values()) - GAP * (len(rooms) - 1)) < 0:
            last = max(rooms, key=lambda at: self._columns[at].from_width)
            widest = max(rooms, key=lambda at: (rooms[at] > 1 and not self._columns[at].is_right, rooms[at]))
            if self._columns[last].from_width:
                del rooms[last]
            elif rooms[widest] > 1:
                # All that are left are needed; half an amount says nothing, half a word may.
                rooms[widest] -= 1
            else:
                break
        shared = [at for at in rooms if not self._columns[at].width]
        for place, at in enumerate(shared):
            rooms[at] += max(0, spare + place) // len(shared)
        return [(at, column, rooms[at]) for at, column in shown if at in rooms]
