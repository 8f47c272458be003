"""A live table of executions that draws only the rows in view, at any number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from agentmon.domain.amounts import DOLLARS, MoneyFormat
from agentmon.domain.clock import SystemClock
from agentmon.domain.execution_columns import DEFAULT_COLUMNS, ExecutionColumn
from agentmon.domain.near_paths import near_text
from agentmon.domain.plain_text import plain_line
from agentmon.widgets.cells import even_line, pad
from agentmon.widgets.cursor_table import GAP, MARGIN, CursorTable, fitted
from agentmon.widgets.execution_cells import CELLS, Row, program_word
from agentmon.widgets.state_words import NO_WAIT, Wait, execution_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.style import Style

    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import Execution, ExecutionListing
    from agentmon.domain.ids import ExecutionId


_LEAST_WIDTHS: Final = {ExecutionColumn.TASK: 22, ExecutionColumn.LAST_LINE: 22}
"""What the columns that share the rest of the width get at least, before others are left out."""
_NEEDED_FIRST: Final = (
    ExecutionColumn.STATE,
    ExecutionColumn.TASK,
    ExecutionColumn.ELAPSED,
    ExecutionColumn.AGENT,
    ExecutionColumn.CAPABILITY,
    ExecutionColumn.QUEUED,
    ExecutionColumn.ENDED,
    ExecutionColumn.TRIES,
    ExecutionColumn.EXIT,
    ExecutionColumn.OUTPUT,
    ExecutionColumn.COST,
    ExecutionColumn.LAST_LINE,
    ExecutionColumn.CHANGES,
    ExecutionColumn.TOKENS,
    ExecutionColumn.STARTED,
    ExecutionColumn.MODEL,
)
"""Which columns stay where there is no room for all; those that nobody sees without asking for them come early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SortOrder:
    """By which column the rows are sorted."""

    column: ExecutionColumn
    is_descending: bool = False


class ExecutionTable(CursorTable):
    """Rows of executions with a cursor that stays on its execution through every refresh.

    The parent sets ``listings``, ``text_filter``, ``sorting`` and calls ``tick`` to move the running times on.
    """

    listings: reactive[tuple[ExecutionListing, ...]] = reactive((), layout=False, repaint=False, init=False)
    """All rows, in the order in which they are shown while no column sorts them."""
    waits: reactive[Mapping[ExecutionId, Wait]] = reactive({}, layout=False, repaint=False, init=False)
    """What queued executions wait for; those that are missing wait for their turn."""
    text_filter: reactive[str] = reactive("", layout=False, repaint=False, init=False)
    """Keeps the rows that have every word of it in number, title, program, state or last line."""
    columns: reactive[tuple[ExecutionColumn, ...]] = reactive(DEFAULT_COLUMNS, layout=False, init=False)
    """The columns that are wanted, from left to right; those for which there is no room are left out."""
    folder: reactive[str] = reactive("", layout=False, init=False)
    """Paths below it are told from there."""
    money: reactive[MoneyFormat] = reactive(DOLLARS, layout=False, init=False)
    """How costs are shown."""
    sorting: reactive[SortOrder | None] = reactive(None, layout=False, repaint=False, init=False)
    """None keeps the order of ``listings``."""

    @dataclass
    class Opened(Message):
        """A row was chosen with enter or a double click."""

        listing: ExecutionListing

    @dataclass
    class Highlighted(Message):
        """The cursor stands on another execution; None when there is no row."""

        listing: ExecutionListing | None

    @dataclass
    class SortRequested(Message):
        """A heading was clicked."""

        column: ExecutionColumn

    def __init__(
        self,
        *,
        columns: Sequence[ExecutionColumn] = DEFAULT_COLUMNS,
        clock: Clock | None = None,
        id: str | None = None,  # noqa: A002 - Textual's own name
    ) -> None:
        super().__init__(id=id)
        self.set_reactive(ExecutionTable.columns, tuple(columns))
        self._clock = clock or SystemClock()
        self._now = self._clock.now()
        self._rows: tuple[ExecutionListing, ...] = ()
        self._row_of: dict[str, int] = {}
        self._placed_columns: tuple[int, tuple[tuple[ExecutionColumn, int, int], ...]] | None = None
        self._needles: dict[ExecutionId, tuple[ExecutionListing, str]] = {}

    @property
    def rows(self) -> tuple[ExecutionListing, ...]:
        """The rows that pass the filter, in the order in which they are drawn."""
        return self._rows

    @property
    def selected(self) -> ExecutionListing | None:
        """The execution under the cursor."""
        return self._rows[self.cursor_row] if self._rows else None

    @property
    def shown_columns(self) -> tuple[ExecutionColumn, ...]:
        """The columns for which there is room, from left to right."""
        return tuple(column for column, _, _ in self._columns())

    def fitting(self, columns: Sequence[ExecutionColumn]) -> Sequence[ExecutionColumn]:
        """Return for which of the columns there is room, in their order."""
        return _fitting(columns, self.scrollable_size.width - 2 * MARGIN)

    @property
    def has_running(self) -> bool:
        """Whether the time of some row is moving."""
        return any(listing.execution.status.is_live for listing in self.listings)

    def tick(self) -> None:
        """Draw the running times anew, and times that pass; does nothing for rows outside the view."""
        self._now = self._clock.now()
        top = self.scroll_offset.y
        for row in range(top, min(len(self._rows), top + self.size.height - 1)):
            if self._rows[row].execution.status.is_open:
                self.refresh_row(row)

    def select(self, execution_id: ExecutionId) -> bool:
        """Move the cursor to an execution; False when the filter or the list does not have it."""
        row = self._row_of.get(execution_id)
        if row is None:
            return False
        self.move_to(row)
        return True

    @property
    def row_count(self) -> int:
        """How many rows pass the filter."""
        return len(self._rows)

    def key_of(self, row: int) -> str:
        """Return the id of the execution in a row."""
        return self._rows[row].execution.id

    @property
    def remembers_selection(self) -> bool:
        """Whether a filter hides rows: one that hides all must not make the table forget where the cursor was."""
        return bool(self.text_filter)

    def tell_opened(self) -> None:
        """Post ``Opened``."""
        self.post_message(self.Opened(self._rows[self.cursor_row]))

    def tell_highlighted(self) -> None:
        """Post ``Highlighted``."""
        self.post_message(self.Highlighted(self.selected))

    def watch_listings(self) -> None:
        """Show the new rows."""
        self._arrange()

    def watch_waits(self) -> None:
        """Draw what they wait for; the filter finds it."""
        self._needles.clear()
        self._arrange()

    def watch_text_filter(self) -> None:
        """Keep the rows that fit."""
        self._arrange()

    def watch_sorting(self) -> None:
        """Put the rows in the new order."""
        self._arrange()

    def watch_columns(self) -> None:
        """Place them anew."""
        self._placed_columns = None

    def on_mount(self) -> None:
        """Draw what was set before."""
        self._arrange()

    def on_heading_clicked(self, x: int) -> None:
        """Sort by the heading."""
        for column, start, width in self._columns():
            if start <= x < start + width + GAP:
                self.post_message(self.SortRequested(column))

    def render_below(self, row: int, width: int, base: Style) -> Strip:
        """Return a line below the last row; the second one says so when a filter hides everything."""
        if row == 1 and not self._rows and self.text_filter and self.listings:
            shown = even_line(f"No row has “{self.text_filter}”. esc clears the filter.")
            return Strip([Segment(pad(" " * MARGIN + shown, width), self.style_of("muted", base))])
        return super().render_below(row, width, base)

    def _arrange(self) -> None:
        self._now = self._clock.now()
        rows = self.listings
        words = self.text_filter.casefold().split()
        if words:
            rows = tuple(listing for listing in rows if all(word in self._needle(listing) for word in words))
        if self.sorting is not None:
            rows = self._sorted(rows, self.sorting)
        self._rows = rows
        self._row_of = {listing.execution.id: row for row, listing in enumerate(rows)}
        self.settle(self._row_of)

    def _sorted(self, rows: Sequence[ExecutionListing], order: SortOrder) -> tuple[ExecutionListing, ...]:
        key_of = CELLS[order.column].key
        keyed = [(key_of(self._row(listing)), listing) for listing in rows]
        known = [(key, listing) for key, listing in keyed if key is not None]
        known.sort(key=lambda pair: pair[0], reverse=order.is_descending)
        return tuple(listing for _, listing in known) + tuple(listing for key, listing in keyed if key is None)

    def _needle(self, listing: ExecutionListing) -> str:
        found = self._needles.get(listing.execution.id)
        if found is not None and found[0] is listing:
            return found[1]
        execution = listing.execution
        told = execution_words(execution, self._now, self._wait(execution))
        text = plain_line(
            f"#{listing.task_number} {listing.task_title} {listing.agent_slug} {program_word(listing)} "
            f"{told.words} {execution.last_line or execution.error or ''}",
        ).casefold()
        self._needles[execution.id] = (listing, text)
        return text

    def _row(self, listing: ExecutionListing) -> Row:
        return Row(listing, self._wait(listing.execution), self._now, self.money)

    def _wait(self, execution: Execution) -> Wait:
        return self.waits.get(execution.id, NO_WAIT)

    def _columns(self) -> tuple[tuple[ExecutionColumn, int, int], ...]:
        width = self.scrollable_size.width
        if self._placed_columns is not None and self._placed_columns[0] == width:
            return self._placed_columns[1]
        shown = self.fitting(self.columns)
        fixed = sum(CELLS[column].width for column in shown)
        free = max(0, width - 2 * MARGIN - fixed - GAP * (len(shown) - 1))
        for_task = free
        if ExecutionColumn.LAST_LINE in shown:
            for_task = free // 2 if ExecutionColumn.TASK in shown else 0
        shares = {ExecutionColumn.TASK: for_task, ExecutionColumn.LAST_LINE: free - for_task}
        placed = []
        start = MARGIN
        for column in shown:
            room = CELLS[column].width or shares[column]
            placed.append((column, start, room))
            start += room + GAP
        self._placed_columns = (width, tuple(placed))
        return self._placed_columns[1]

    def heading_segments(self, base: Style) -> list[Segment]:
        """Return the headings for which there is room, the one that sorts with an arrow."""
        plain, marked = self.style_of("header", base), self.style_of("sorted", base)
        segments = []
        for column, _, room in self._columns():
            order = self.sorting
            is_sorted = order is not None and order.column is column
            arrow = ("▼" if order.is_descending else "▲") if order is not None and is_sorted else ""
            heading = fitted(column.heading + arrow, room, is_right=CELLS[column].is_right)
            segments += [Segment(heading, marked if is_sorted else plain), Segment(" " * GAP, base)]
        return segments

    def row_segments(self, row: int, base: Style) -> list[Segment]:
        """Return the cells of a row for which there is room."""
        listing = self._rows[row]
        execution = listing.execution
        told = self._row(listing)
        muted = self.style_of("muted", base)
        state_style = self.style_of(execution_words(execution, self._now, told.wait).style, base)
        segments = []
        for column, _, room in self._columns():
            style = muted
            if column is ExecutionColumn.STATE:
                style = state_style
            elif column is ExecutionColumn.TASK:
                number = f"#{listing.task_number} "
                segments.append(Segment(number[:room], muted))
                room -= min(room, len(number))  # noqa: PLW2901 - the number takes its part of the column
                style = base
            elif column is ExecutionColumn.EXIT and execution.exit_code:
                style = state_style
            text = CELLS[column].text(told)
            if column is ExecutionColumn.LAST_LINE:
                text = near_text(text, self.folder)
            text = fitted(text, room, is_right=CELLS[column].is_right)
            segments += [Segment(text, style), Segment(" " * GAP, base)]
        return segments


def _fitting(columns: Sequence[ExecutionColumn], width: int) -> list[ExecutionColumn]:
    """Return those for which there is room, in their order; the first ones that are needed in any case."""
    shown: set[ExecutionColumn] = set()
    left = width + GAP
    for column in sorted(columns, key=_NEEDED_FIRST.index):
        left -= (CELLS[column].width or _LEAST_WIDTHS[column]) + GAP
        if left < 0 and len(shown) > 1:
            break
        shown.add(column)
    return [column for column in columns if column in shown]
