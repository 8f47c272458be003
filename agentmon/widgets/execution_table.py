"""A live table of executions that draws only the rows in view, at any number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from agentmon.domain.amounts import DOLLARS, MoneyFormat, count_text, duration_text, size_text
from agentmon.domain.any_command import ANY_COMMAND_SLUG
from agentmon.domain.clock import SystemClock
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.near_paths import near_text
from agentmon.domain.plain_text import plain_line
from agentmon.widgets.cells import even_line, pad
from agentmon.widgets.cursor_table import GAP, MARGIN, CursorTable, fitted
from agentmon.widgets.local_time import local_time_text
from agentmon.widgets.state_words import NO_WAIT, Wait, execution_words, reason_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from rich.style import Style

    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import Execution, ExecutionListing
    from agentmon.domain.ids import ExecutionId


class ExecutionColumn(StrEnum):
    """The columns, in their order from left to right; the value is the heading."""

    STATE = "State"
    TASK = "Task"
    AGENT = "Program"
    STARTED = "Started"
    ELAPSED = "Time"
    EXIT = "Exit"
    OUTPUT = "Output"
    TOKENS = "Tokens"
    COST = "Cost"
    LAST_LINE = "Last line"


_COLUMNS: Final = tuple(ExecutionColumn)
_FIXED_WIDTHS: Final = {
    ExecutionColumn.STATE: 20,
    ExecutionColumn.AGENT: 10,
    ExecutionColumn.STARTED: 12,
    ExecutionColumn.ELAPSED: 7,
    ExecutionColumn.EXIT: 5,
    ExecutionColumn.OUTPUT: 8,
    ExecutionColumn.TOKENS: 7,
    ExecutionColumn.COST: 8,
}
_RIGHT_ALIGNED: Final = {
    ExecutionColumn.ELAPSED,
    ExecutionColumn.EXIT,
    ExecutionColumn.OUTPUT,
    ExecutionColumn.TOKENS,
    ExecutionColumn.COST,
}
_NEEDED_WIDTH: Final = {
    ExecutionColumn.TOKENS: 136,
    ExecutionColumn.COST: 124,
    ExecutionColumn.LAST_LINE: 108,
    ExecutionColumn.OUTPUT: 92,
    ExecutionColumn.STARTED: 72,
    ExecutionColumn.EXIT: 84,
    ExecutionColumn.AGENT: 60,
    ExecutionColumn.ELAPSED: 44,
}
"""The width of the table from which each column is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SortOrder:
    """By which column the rows are sorted."""

    column: ExecutionColumn
    is_descending: bool = False


def elapsed_seconds(execution: Execution, now: datetime) -> float | None:
    """Return for how long the execution ran or has been running; None when it never started."""
    if execution.started_at is None:
        return None
    return max(0.0, ((execution.ended_at or now) - execution.started_at).total_seconds())


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
        columns: Sequence[ExecutionColumn] = _COLUMNS,
        clock: Clock | None = None,
        id: str | None = None,  # noqa: A002 - Textual's own name
    ) -> None:
        super().__init__(id=id)
        self._wanted_columns = tuple(columns)
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

    def on_mount(self) -> None:
        """Draw what was set before."""
        self._arrange()

    def on_heading_clicked(self, x: int) -> None:
        """Sort by the heading."""
        for column, start, width in self._columns():
            if start <= x < start + width + GAP:
                self.post_message(self.SortRequested(column))

    def render_below(self, row: int, width: int, base: Style) -> Strip:
        """Return a line below the last row; the second one says when a filter hides everything."""
        if row == 1 and self.text_filter and self.listings:
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
        keyed = [(_sort_key(listing, order.column, self._now), listing) for listing in rows]
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

    def _wait(self, execution: Execution) -> Wait:
        return self.waits.get(execution.id, NO_WAIT)

    def _columns(self) -> tuple[tuple[ExecutionColumn, int, int], ...]:
        width = self.size.width
        if self._placed_columns is not None and self._placed_columns[0] == width:
            return self._placed_columns[1]
        shown = [column for column in self._wanted_columns if width >= _NEEDED_WIDTH.get(column, 0)]
        fixed = sum(_FIXED_WIDTHS.get(column, 0) for column in shown)
        free = max(0, width - 2 * MARGIN - fixed - GAP * (len(shown) - 1))
        for_task = free
        if ExecutionColumn.LAST_LINE in shown:
            for_task = free // 2 if ExecutionColumn.TASK in shown else 0
        widths = _FIXED_WIDTHS | {ExecutionColumn.TASK: for_task, ExecutionColumn.LAST_LINE: free - for_task}
        placed = []
        start = MARGIN
        for column in shown:
            placed.append((column, start, widths[column]))
            start += widths[column] + GAP
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
            heading = fitted(column.value + arrow, room, is_right=column in _RIGHT_ALIGNED)
            segments += [Segment(heading, marked if is_sorted else plain), Segment(" " * GAP, base)]
        return segments

    def row_segments(self, row: int, base: Style) -> list[Segment]:
        """Return the cells of a row for which there is room."""
        listing = self._rows[row]
        execution = listing.execution
        wait = self._wait(execution)
        muted = self.style_of("muted", base)
        state_style = self.style_of(execution_words(execution, self._now, wait).style, base)
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
            text = _cell_text(listing, column, wait, self._now, self.money)
            if column is ExecutionColumn.LAST_LINE:
                text = near_text(text, self.folder)
            text = fitted(text, room, is_right=column in _RIGHT_ALIGNED)
            segments += [Segment(text, style), Segment(" " * GAP, base)]
        return segments


def program_word(listing: ExecutionListing) -> str:
    """Return what runs, in one word: the agent's slug, or the program of the agent that runs any command."""
    argv = listing.execution.args.get("argv")
    if listing.agent_slug != ANY_COMMAND_SLUG or not isinstance(argv, list | tuple) or not argv:
        return listing.agent_slug
    return PurePath(str(argv[0])).name


def _cell_text(
    listing: ExecutionListing, column: ExecutionColumn, wait: Wait, now: datetime, money: MoneyFormat
) -> str:
    execution = listing.execution
    match column:
        case ExecutionColumn.STATE:
            return execution_words(execution, now, wait).text
        case ExecutionColumn.TASK:
            return listing.task_title
        case ExecutionColumn.AGENT:
            return program_word(listing)
        case ExecutionColumn.STARTED:
            return "" if execution.started_at is None else local_time_text(execution.started_at, now)
        case ExecutionColumn.ELAPSED:
            seconds = elapsed_seconds(execution, now)
            return "" if seconds is None else duration_text(seconds)
        case ExecutionColumn.EXIT:
            return "" if execution.exit_code is None else str(execution.exit_code)
        case ExecutionColumn.OUTPUT:
            return size_text(execution.log_byte_size) if execution.log_byte_size else ""
        case ExecutionColumn.TOKENS | ExecutionColumn.COST:
            return _spent_text(execution, column, money)
        case ExecutionColumn.LAST_LINE:
            return reason_text(execution, wait) or execution.last_line or ""


def _spent(execution: Execution, column: ExecutionColumn) -> int | None:
    return execution.cost_nano if column is ExecutionColumn.COST else execution.tokens_used or None


def _spent_text(execution: Execution, column: ExecutionColumn, money: MoneyFormat) -> str:
    spent = _spent(execution, column)
    if spent is None:
        return ""
    return money.text(spent) if column is ExecutionColumn.COST else count_text(spent)


_STATE_ORDER: Final = {
    ExecutionStatus.RUNNING: 0,
    ExecutionStatus.CANCELLING: 1,
    ExecutionStatus.QUEUED: 2,
    ExecutionStatus.FAILED: 3,
    ExecutionStatus.TIMED_OUT: 4,
    ExecutionStatus.CANCELLED: 5,
    ExecutionStatus.SUCCEEDED: 6,
}


def _sort_key(listing: ExecutionListing, column: ExecutionColumn, now: datetime) -> tuple[float, str] | None:
    execution = listing.execution
    number: float | None = None
    text = ""
    match column:
        case ExecutionColumn.STATE:
            number = _STATE_ORDER[execution.status]
        case ExecutionColumn.TASK:
            number = listing.task_number
        case ExecutionColumn.AGENT:
            number, text = 0, program_word(listing)
        case ExecutionColumn.STARTED:
            number = None if execution.started_at is None else execution.started_at.timestamp()
        case ExecutionColumn.ELAPSED:
            number = elapsed_seconds(execution, now)
        case ExecutionColumn.EXIT:
            number = execution.exit_code
        case ExecutionColumn.OUTPUT:
            number = execution.log_byte_size
        case ExecutionColumn.TOKENS | ExecutionColumn.COST:
            number = _spent(execution, column)
        case ExecutionColumn.LAST_LINE:
            text = (execution.error or execution.last_line or "").casefold()
            number = 0 if text else None
    return None if number is None else (number, text)
