"""What every table has: rows below headings, drawn only where they are in view, and a cursor that stays on its row."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agentmon.widgets.cells import cells, cut, even_line, pad
from agentmon.widgets.guarded import Guarded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.style import Style
    from textual import events

GAP: Final = 2
"""Cells between two columns."""
MARGIN: Final = 1
"""Cells before the first column and behind the last."""
_LONGEST_DRAWN: Final = 400
_DOUBLE_CLICK: Final = 2
_STYLES: Final = ("header", "sorted", "cursor", "hover", "muted", "primary", "running", "warning", "good", "bad")


class CursorTable(Guarded, ScrollView, can_focus=True, inherit_bindings=False):
    """A table whose rows a subclass names, draws and tells of; the parent calls the moves from its keys."""

    DEFAULT_CSS = """
    CursorTable {
        width: 1fr;
        height: 1fr;
        overflow-x: hidden;
        overflow-y: auto;
        background: transparent;
        & > .table--header { color: $text-muted; text-style: bold; }
        & > .table--sorted { color: $primary; text-style: bold; }
        & > .table--cursor { background: $panel; }
        & > .table--hover { background: $block-hover-background; }
        & > .table--muted { color: $text-muted; }
        & > .table--primary { color: $primary; }
        & > .table--running { color: $secondary; }
        & > .table--warning { color: $warning; }
        & > .table--good { color: $success; }
        & > .table--bad { color: $error; }
        &:focus > .table--cursor {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
        }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"table--{style}" for style in _STYLES}

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._cursor = 0
        self._selected_key: str | None = None
        self._chosen_key: str | None = None
        self._hovered: int | None = None

    class Replaced(Message):
        """The row under the cursor went away, and the cursor stands on another one."""

    # What a subclass says.

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        raise NotImplementedError

    def key_of(self, row: int) -> str:
        """Return the name of a row, by which the cursor finds it again."""
        raise NotImplementedError

    def heading_segments(self, base: Style) -> list[Segment]:
        """Return the headings."""
        raise NotImplementedError

    def row_segments(self, row: int, base: Style) -> list[Segment]:
        """Return the cells of a row."""
        raise NotImplementedError

    def margin_segment(self, row: int, base: Style) -> Segment:  # noqa: ARG002 - for subclasses
        """Return the cell before a row; blank."""
        return Segment(" " * MARGIN, base)

    def tell_opened(self) -> None:
        """Tell the parent that the row under the cursor was chosen."""
        raise NotImplementedError

    def tell_highlighted(self) -> None:
        """Tell the parent that the cursor stands on another row, or on none."""
        raise NotImplementedError

    def on_heading_clicked(self, x: int) -> None:
        """Hear that the headings were clicked in this column of cells."""

    @property
    def remembers_selection(self) -> bool:
        """Whether the cursor waits for its row while there is no row at all."""
        return False

    # What the parent reads and calls.

    @property
    def cursor_row(self) -> int:
        """The number of the row under the cursor, counted from 0; 0 when there is none."""
        return self._cursor

    @property
    def is_chosen(self) -> bool:
        """Whether the cursor was moved to its row, which did not come under it by itself."""
        return self.row_count > 0 and self.key_of(self._cursor) == self._chosen_key

    def move_by(self, steps: int) -> None:
        """Move the cursor by so many rows, stopping at the ends."""
        self.move_to(self._cursor + steps)

    def move_to(self, row: int) -> None:
        """Move the cursor to a row, counted from 0; a row outside is the nearest end."""
        target = max(0, min(row, self.row_count - 1))
        if target != self._cursor:
            self.refresh_row(self._cursor)
            self._cursor = target
            self.refresh_row(target)
        self._note_selection()
        self._chosen_key = self._selected_key
        self._show_cursor()

    def go_end(self, direction: int) -> None:
        """Go to the first row, or to the last one."""
        self.move_to(0 if direction < 0 else self.row_count - 1)

    def go_page(self, direction: int) -> None:
        """Move the cursor by half a screenful."""
        self.move_by(direction * max(1, self.size.height // 2))

    def open_selected(self) -> None:
        """Tell the parent that the row under the cursor was chosen; nothing happens when there is none."""
        if self.row_count:
            self.tell_opened()

    # What a subclass calls.

    def settle(self, row_of: Mapping[str, int]) -> None:
        """Show other rows; the cursor stays on what it was on, at its place on the screen.

        Args:
            row_of: The new number of each row by its name.
        """
        before = self._cursor
        kept = None if self._selected_key is None else row_of.get(self._selected_key)
        if kept is None and self._selected_key is not None and row_of:
            self.post_message(self.Replaced())
        self._cursor = max(0, min(before if kept is None else kept, self.row_count - 1))
        self._fit_virtual_size()
        if kept is not None and self.scroll_offset.y:
            self.scroll_to(y=self.scroll_offset.y + kept - before, animate=False, force=True, immediate=True)
        self._show_cursor()
        self._note_selection()
        self.refresh()

    def refresh_row(self, row: int) -> None:
        """Draw a row anew when it is in view."""
        y = row + 1 - self.scroll_offset.y
        if 1 <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def style_of(self, name: str, base: Style) -> Style:
        """Return a style of the table on the ground of a row; ``text`` is the ground itself."""
        return base if name == "text" else base + self.get_component_rich_style(f"table--{name}", partial=True)

    # What Textual calls.

    def on_resize(self) -> None:
        """Keep the cursor in view."""
        self._fit_virtual_size()
        self._show_cursor()

    def on_click(self, event: events.Click) -> None:
        """Move the cursor, hear of a heading, or open on a double click."""
        event.stop()
        if event.y == 0:
            self.on_heading_clicked(event.x)
            return
        row = event.y - 1 + self.scroll_offset.y
        if row < self.row_count:
            self.move_to(row)
            if event.chain == _DOUBLE_CLICK:
                self.open_selected()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Light the row under the pointer."""
        row = event.y - 1 + self.scroll_offset.y if event.y else None
        self._hover(row if row is not None and row < self.row_count else None)

    def on_leave(self) -> None:
        """Put the light out."""
        self._hover(None)

    def render_line(self, y: int) -> Strip:
        """Return one line of the view: the headings, then the rows."""
        width = self.size.width
        base = self.rich_style
        row = y - 1 + self.scroll_offset.y
        if y and row >= self.row_count:
            return self.render_below(row, width, base)
        if y and row == self._cursor:
            base = self.style_of("cursor", base)
        elif y and row == self._hovered:
            base = self.style_of("hover", base)
        if not y:
            return Strip([Segment(" " * MARGIN, base), *self.heading_segments(base)]).adjust_cell_length(width, base)
        return Strip([self.margin_segment(row, base), *self.row_segments(row, base)]).adjust_cell_length(width, base)

    def render_below(self, row: int, width: int, base: Style) -> Strip:  # noqa: ARG002 - for subclasses
        """Return a line below the last row."""
        return Strip.blank(width, base)

    # Inside.

    def _hover(self, row: int | None) -> None:
        if row == self._hovered:
            return
        for changed in (self._hovered, row):
            if changed is not None:
                self.refresh_row(changed)
        self._hovered = row

    def _fit_virtual_size(self) -> None:
        wanted = Size(self.size.width, self.row_count + 1)
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
        key = self.key_of(self._cursor) if self.row_count else None
        if key != self._selected_key:
            if key is not None or not self.remembers_selection:
                self._selected_key = key
            self.tell_highlighted()


def fitted(text: str, width: int, *, is_right: bool = False) -> str:
    """Return the text in exactly so many cells."""
    text = cut(even_line(text, max_characters=_LONGEST_DRAWN), width)
    return " " * (width - cells(text)) + text if is_right else pad(text, width)
