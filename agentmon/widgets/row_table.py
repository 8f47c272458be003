"""A table of rows of styled cells that draws only the rows in view, with a cursor that stays on its row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from rich.segment import Segment
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agentmon.widgets.cells import cells, cut, even_line, pad
from agentmon.widgets.guarded import Guarded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.style import Style
    from textual import events

    from agentmon.widgets.text_rows import Span

_GAP: Final = 2
_MARGIN: Final = 1
_DOUBLE_CLICK: Final = 2
_LONGEST_DRAWN: Final = 400


class Column(NamedTuple):
    """One column of the table."""

    heading: str
    width: int = 0
    """Cells; 0 shares what the others leave."""
    from_width: int = 0
    """The width of the table from which it is shown."""
    is_right: bool = False


class TableRow(NamedTuple):
    """One row: a cell for each column."""

    key: str
    cells: tuple[Span, ...]


class RowTable(Guarded, ScrollView, can_focus=True, inherit_bindings=False):
    """Rows with a cursor; the parent sets ``rows`` and calls the moves from its keys."""

    DEFAULT_CSS = """
    RowTable {
        width: 1fr;
        height: 1fr;
        overflow-x: hidden;
        overflow-y: auto;
        background: transparent;
        & > .row-table--header { color: $text-muted; text-style: bold; }
        & > .row-table--cursor { background: $panel; }
        & > .row-table--muted { color: $text-muted; }
        & > .row-table--primary { color: $primary; }
        & > .row-table--running { color: $secondary; }
        & > .row-table--warning { color: $warning; }
        & > .row-table--good { color: $success; }
        & > .row-table--bad { color: $error; }
        &:focus > .row-table--cursor {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
        }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"row-table--{style}" for style in ("header", "cursor", "muted", "primary", "running", "warning", "good", "bad")
    }

    rows: reactive[tuple[TableRow, ...]] = reactive((), layout=False, repaint=False, init=False)
    """All rows, from top to bottom."""

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

    def __init__(self, columns: Sequence[Column], *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._columns = tuple(columns)
        self._cursor = 0
        self._selected_key: str | None = None

    @property
    def selected_key(self) -> str | None:
        """The name of the row under the cursor; None when there is no row."""
        return self.rows[self._cursor].key if self.rows else None

    @property
    def cursor_row(self) -> int:
        """The number of the row under the cursor, counted from 0."""
        return self._cursor

    def move_by(self, steps: int) -> None:
        """Move the cursor by so many rows, stopping at the ends."""
        self.move_to(self._cursor + steps)

    def move_to(self, row: int) -> None:
        """Move the cursor to a row, counted from 0; a row outside is the nearest end."""
        target = max(0, min(row, len(self.rows) - 1))
        before, self._cursor = self._cursor, target
        self._refresh_row(before)
        self._refresh_row(target)
        self._note_selection()
        self._show_cursor()

    def go_end(self, direction: int) -> None:
        """Go to the first row, or to the last one."""
        self.move_to(0 if direction < 0 else len(self.rows) - 1)

    def go_page(self, direction: int) -> None:
        """Move the cursor by half a screenful."""
        self.move_by(direction * max(1, self.size.height // 2))

    def open_selected(self) -> None:
        """Tell the parent that the row under the cursor was chosen."""
        if self.selected_key is not None:
            self.post_message(self.Opened(self, self.selected_key))

    def watch_rows(self) -> None:
        """Show the rows; the cursor stays on what it was on."""
        places = {row.key: at for at, row in enumerate(self.rows)}
        before = self._cursor
        kept = places.get(self._selected_key or "")
        self._cursor = max(0, min(before if kept is None else kept, len(self.rows) - 1))
        self._fit_virtual_size()
        if kept is not None and self.scroll_offset.y:
            self.scroll_to(y=self.scroll_offset.y + kept - before, animate=False, force=True, immediate=True)
        self._show_cursor()
        self._note_selection()
        self.refresh()

    def on_resize(self) -> None:
        """Keep the cursor in view."""
        self._fit_virtual_size()
        self._show_cursor()

    def on_click(self, event: events.Click) -> None:
        """Move the cursor, or open on a double click."""
        event.stop()
        row = event.y - 1 + self.scroll_offset.y
        if event.y and row < len(self.rows):
            self.move_to(row)
            if event.chain == _DOUBLE_CLICK:
                self.open_selected()

    def render_line(self, y: int) -> Strip:
        """Return one line of the view: the headings, then the rows."""
        width = self.size.width
        base = self.rich_style
        row = y - 1 + self.scroll_offset.y
        if y and row >= len(self.rows):
            return Strip.blank(width, base)
        if y and row == self._cursor:
            base += self.get_component_rich_style("row-table--cursor", partial=True)
        header = base + self.get_component_rich_style("row-table--header", partial=True)
        segments = [Segment(" " * _MARGIN, base)]
        for at, column, room in self._placed(width):
            if not y:
                segments.append(Segment(_fitted(column.heading, room, column.is_right), header))
            else:
                cell = self.rows[row].cells[at]
                segments.append(Segment(_fitted(cell.text, room, column.is_right), self._cell_style(cell.style, base)))
            segments.append(Segment(" " * _GAP, base))
        return Strip(segments).adjust_cell_length(width, base)

    def _cell_style(self, name: str, base: Style) -> Style:
        if name == "text":
            return base
        return base + self.get_component_rich_style(f"row-table--{name}", partial=True)

    def _placed(self, width: int) -> list[tuple[int, Column, int]]:
        """Return number, column and cells of the columns for which there is room."""
        shown = [(at, column) for at, column in enumerate(self._columns) if width >= column.from_width]
        fixed = sum(column.width for _, column in shown)
        free = max(0, width - 2 * _MARGIN - fixed - _GAP * (len(shown) - 1))
        shares = sum(not column.width for _, column in shown)
        placed = []
        for at, column in shown:
            room = column.width
            if not room:
                room = free // shares
                free, shares = free - room, shares - 1
            placed.append((at, column, room))
        return placed

    def _refresh_row(self, row: int) -> None:
        y = row + 1 - self.scroll_offset.y
        if 1 <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def _fit_virtual_size(self) -> None:
        wanted = Size(self.size.width, len(self.rows) + 1)
        if wanted != self.virtual_size:
            self.virtual_size = wanted

    def _show_cursor(self) -> None:
        body = self.size.height - 1
        if body <= 0:
            return
        top = self.scroll_offset.y
        if self._cursor < top:
            self.scroll_to(y=self._cursor, animate=False, force=True, immediate=True)
        elif self._cursor >= top + body:
            self.scroll_to(y=self._cursor - body + 1, animate=False, force=True, immediate=True)

    def _note_selection(self) -> None:
        if self.selected_key != self._selected_key:
            self._selected_key = self.selected_key
            self.post_message(self.Highlighted(self, self._selected_key))


def _fitted(text: str, width: int, is_right: bool) -> str:
    text = cut(even_line(text, max_characters=_LONGEST_DRAWN), width)
    return " " * (width - cells(text)) + text if is_right else pad(text, width)
