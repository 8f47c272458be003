"""A list of blocks of any height that draws only the rows in view, at any number of blocks.

The view knows the block at its top and the row of it, never how high all blocks are: nothing outside the view is laid
out, so that a conversation of thousands of messages costs what a short one does.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from agentmon.widgets.cells import cells, cut
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.log_scroll_bar import LogScrollBar
from agentmon.widgets.text_rows import Span, text_rows
from agentmon.widgets.theme_style import theme_style

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from agentmon.widgets.text_rows import Row

_VARIABLES: Final = {
    "text": ("foreground", False),
    "bold": ("foreground", True),
    "primary": ("primary", False),
    "heading": ("primary", True),
    "running": ("secondary", False),
    "warning": ("warning", False),
    "alert": ("warning", True),
    "good": ("success", False),
    "bad": ("error", False),
    "muted": ("text-muted", False),
    "thinking": ("text-muted", False),
}
"""Theme variable and weight of each style."""
_KEPT_LAYOUTS: Final = 300
_WHEEL_ROWS: Final = 3
_DOUBLE_CLICK: Final = 2


class Block(Protocol):
    """A thing that is shown; two that are equal look the same."""

    @property
    def key(self) -> str:
        """Its name, unique in the view and the same through every refresh."""
        ...

    @property
    def can_unfold(self) -> bool:
        """Whether it has more to show than it does at first."""
        ...

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:
        """Return its rows for this many cells, with those that set it apart from the next; at least one."""
        ...


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Some rows of text."""

    key: str
    text: str
    style: str = "text"
    can_unfold: bool = False

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:  # noqa: ARG002 - there is nothing folded
        """Return the wrapped text."""
        return text_rows(self.text, width, self.style)


class _Place(NamedTuple):
    """A row of a block."""

    block: int
    row: int


class BlockView(Guarded, Widget, can_focus=True):
    """Blocks one below the other, with a cursor that stays on its block through every refresh.

    The parent sets ``blocks`` and calls the moves from its keys.
    """

    DEFAULT_CSS = """
    BlockView { width: 1fr; height: 1fr; }
    """

    blocks: reactive[tuple[Block, ...]] = reactive((), layout=False, repaint=False, init=False)
    """What is shown, from top to bottom."""

    @dataclass
    class Selected(Message):
        """The cursor stands on another block."""

        view: BlockView
        key: str | None
        is_by_person: bool

    @dataclass
    class Opened(Message):
        """A block was clicked twice."""

        view: BlockView
        key: str

    @dataclass
    class Clicked(Message):
        """A block of a view without a cursor was clicked."""

        view: BlockView
        key: str

    def __init__(
        self,
        *,
        has_cursor: bool = True,
        follows: bool = False,
        unfolds_by_click: bool = False,
        placeholder: str = "",
        id: str | None = None,  # noqa: A002 - Textual's own name
    ) -> None:
        """Make the view.

        Args:
            has_cursor: Whether one block is lit; without one the view scrolls by rows.
            follows: Whether it begins at the end and stays there while blocks come in.
            unfolds_by_click: Whether a click on a folded block unfolds it; a second one is then no other word.
            placeholder: What an empty view says.
            id: Its name in the style sheets.
        """
        super().__init__(id=id)
        self._has_cursor = has_cursor
        self._starts_at_end = follows
        self.following = follows
        """Whether the newest block stays in view; scrolling up ends it, reaching the end takes it up again."""
        self._unfolds_by_click = unfolds_by_click
        self._unfolded_by_click: str | None = None
        self._placeholder = placeholder
        self._cursor = 0
        self._selected_key: str | None = None
        self._top = _Place(0, 0)
        self._shows_cursor = False
        """Whether the block under the cursor was in view when the view was laid out last."""
        self._laid_out_size = Size()
        self._toggled: set[str] = set()
        """Blocks that are the other way than all."""
        self._unfolds_all = False
        self._layouts: OrderedDict[tuple[str, int, bool], tuple[Block, list[Row]]] = OrderedDict()
        self._frame_rows: list[tuple[_Place, Row]] | None = None
        self._styles: dict[tuple[str, bool], Style] = {}
        self._drawn_base = Style.null()

    def compose(self) -> ComposeResult:
        """Yield the scroll bar; the text is drawn by the view itself."""
        yield LogScrollBar()

    # What the owner reads

    @property
    def selected_key(self) -> str | None:
        """The name of the block under the cursor; None when there is no block."""
        return self.blocks[self._cursor].key if self.blocks else None

    @property
    def shown_text(self) -> str:
        """The text of the rows in view, one line each."""
        return "\n".join("".join(span.text for span in row).rstrip() for _, row in self._frame())

    # What the owner calls

    def clear(self) -> None:
        """Forget all, for another thing that is to be shown."""
        self._selected_key = None
        self._cursor = 0
        self._top = _Place(0, 0)
        self._toggled.clear()
        self._unfolds_all = False
        self._layouts.clear()
        self.following = self._starts_at_end
        self.blocks = ()
        self._repaint()

    def say(self, placeholder: str) -> None:
        """Show this while there is no block."""
        self._placeholder = placeholder
        self._repaint()

    def select(self, key: str) -> bool:
        """Put the cursor on the block; False when there is none of this name."""
        index = next((at for at, block in enumerate(self.blocks) if block.key == key), None)
        if index is None:
            return False
        self._set_cursor(index, is_by_person=False)
        return True

    def reveal(self, key: str) -> None:
        """Bring the block of this name into view, by as little as can be; the cursor stays on its block."""
        index = next((at for at, block in enumerate(self.blocks) if block.key == key), None)
        if index is not None and self.size.height > 0:
            first, lowest = self._seen_between(index)
            if self._top > first or self._top < lowest:
                self.following = False
                self._top = first if self._top > first else lowest
                self._repaint()

    def move_by(self, steps: int) -> None:
        """Move the cursor by blocks; in a block higher than the view, and without a cursor, by rows."""
        if not self.blocks:
            return
        if not self._has_cursor:
            self.scroll_rows(steps)
            return
        inside = self._is_seen(self._cursor, at_end=steps > 0)
        if inside is False:
            self.scroll_rows(steps * max(1, self.size.height // 2))
            return
        self.move_to(self._cursor + steps)

    def move_to(self, index: int) -> None:
        """Put the cursor on the block of this number, counted from 0; outside is the nearest end."""
        if self.blocks:
            self._set_cursor(max(0, min(index, len(self.blocks) - 1)), is_by_person=True)

    def go_end(self, direction: int) -> None:
        """Go to the first block, or to the last one and follow it."""
        if not self.blocks:
            return
        if direction < 0:
            self.following = False
            self._top = _Place(0, 0)
        else:
            self.following = self._starts_at_end
            self._top = self._back(_Place(len(self.blocks), 0), self.size.height)
        if self._has_cursor:
            self.move_to(0 if direction < 0 else len(self.blocks) - 1)
        self._repaint()

    def go_page(self, direction: int) -> None:
        """Scroll by a page, keeping a row; the cursor comes along."""
        self.scroll_rows(direction * max(1, self.size.height - 1))
        shown = self._frame()
        if self._has_cursor and shown and not any(place.block == self._cursor for place, _ in shown):
            self._put_cursor(shown[0 if direction > 0 else -1][0].block, is_by_person=True)

    def scroll_rows(self, count: int) -> None:
        """Move the view by rows, up when negative; the cursor stays on its block."""
        if not self._frame():
            return
        if count < 0:
            self.following = False
            self._top = self._back(self._top, -count)
        else:
            last = self._back(_Place(len(self.blocks), 0), self.size.height)
            self._top = min(self._forth(self._top, count), last)
            if self._starts_at_end and self._top >= last:
                self.following = True
        self._repaint()

    def toggle(self) -> bool:
        """Unfold the block under the cursor, or fold it; False when it has nothing to unfold."""
        if not self.blocks or not self.blocks[self._cursor].can_unfold:
            return False
        key = self.blocks[self._cursor].key
        self._frame()
        self.following = False
        self._toggled ^= {key}
        self._show_cursor()
        self._repaint()
        return True

    def toggle_all(self) -> None:
        """Unfold all blocks that can be, or fold them again; the cursor stays on its block."""
        self._unfolds_all = not self._unfolds_all
        self._toggled.clear()
        if self.blocks:
            self.following = False
            self._show_cursor()
        self._repaint()

    # What Textual calls

    def watch_blocks(self) -> None:
        """Show the blocks; the cursor and the top of the view stay on what they were on."""
        top_key = self._top_key
        known = {block.key: at for at, block in enumerate(self.blocks)}
        self._cursor = known.get(self._selected_key or "", min(self._cursor, max(0, len(self.blocks) - 1)))
        if self.following and self._has_cursor and self.blocks and self._selected_key is None:
            self._cursor = len(self.blocks) - 1
        if top_key in known:
            self._top = _Place(known[top_key], self._top.row)
        elif self.blocks:
            self._top = _Place(min(self._top.block, len(self.blocks) - 1), 0)
        else:
            self._top = _Place(0, 0)
        self._note_selection(is_by_person=False)
        self._top_key = self.blocks[self._top.block].key if self.blocks else ""
        if self._has_lost_cursor(self._lay_out()):
            self._show_cursor()
        self._repaint()

    _top_key: str = ""
    """The name of the block at the top of the view."""

    def on_resize(self) -> None:
        """Lay out anew."""
        self._repaint()

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the block and unfold it where that is wanted; a second click opens it."""
        event.stop()
        shown = self._frame()
        if event.y >= len(shown):
            return
        index = shown[event.y][0].block
        if not self._has_cursor:
            self.post_message(self.Clicked(self, self.blocks[index].key))
            return
        self._put_cursor(index, is_by_person=True)
        key = self.blocks[index].key
        if event.chain == _DOUBLE_CLICK:
            if key != self._unfolded_by_click:
                self.post_message(self.Opened(self, key))
            return
        self._unfolded_by_click = None
        if self._unfolds_by_click and self.blocks[index].can_unfold and not self._is_unfolded(key):
            self._unfolded_by_click = key
            self.toggle()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll by the wheel."""
        event.stop()
        self.scroll_rows(-_WHEEL_ROWS)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll by the wheel."""
        event.stop()
        self.scroll_rows(_WHEEL_ROWS)

    def on_log_scroll_bar_moved(self, message: LogScrollBar.Moved) -> None:
        """Go where the scroll bar was put."""
        message.stop()
        if not self.blocks:
            return
        wanted = message.share * len(self.blocks)
        index = min(int(wanted), len(self.blocks) - 1)
        row = int((wanted - index) * len(self._rows_of(index)))
        last = self._back(_Place(len(self.blocks), 0), self.size.height)
        self._top = min(_Place(index, min(row, len(self._rows_of(index)) - 1)), last)
        self.following = self._starts_at_end and self._top >= last
        self._repaint()

    def render_line(self, y: int) -> Strip:
        """Return a row of the view."""
        width = self.size.width
        if self.rich_style != self._drawn_base:
            self._drawn_base = self.rich_style
            self._styles.clear()
        shown = self._frame()
        base = self._style("text", is_lit=False)
        if not shown:
            return self._placeholder_line(y, width)
        if y >= len(shown):
            return Strip.blank(width, base)
        place, row = shown[y]
        is_lit = self._has_cursor and place.block == self._cursor and not self._is_gap(place)
        segments = []
        room = width - 1
        for span in row:
            if room <= 0:
                break
            text = cut(span.text, room)
            room -= cells(text)
            segments.append(Segment(text, self._style(span.style, is_lit=is_lit)))
        segments.append(Segment(" " * (room + 1), self._style("text", is_lit=is_lit)))
        return Strip(segments, width)

    # Inside

    def _is_unfolded(self, key: str) -> bool:
        return (key in self._toggled) != self._unfolds_all

    def _is_gap(self, place: _Place) -> bool:
        rows = self._rows_of(place.block)
        return place.row == len(rows) - 1 and place.row > 0 and not "".join(span.text for span in rows[-1]).strip()

    def _style(self, name: str, *, is_lit: bool) -> Style:
        known = self._styles.get((name, is_lit))
        if known is None:
            variable, is_bold = _VARIABLES[name]
            background = "block-cursor-background" if is_lit else None
            known = theme_style(self, variable, is_bold=is_bold, background=background)
            if name == "thinking":
                known += Style(italic=True)
            self._styles[(name, is_lit)] = known
        return known

    def _placeholder_line(self, y: int, width: int) -> Strip:
        rows = text_rows(self._placeholder, max(1, width - 2), "muted", indent=" ") if self._placeholder else []
        base = self._style("muted", is_lit=False)
        if y >= len(rows):
            return Strip.blank(width, base)
        text = cut("".join(span.text for span in rows[y]), width)
        return Strip([Segment(text + " " * (width - cells(text)), base)], width)

    def _repaint(self) -> None:
        self._frame_rows = None
        self.refresh()

    def _rows_of(self, index: int) -> list[Row]:
        block = self.blocks[index]
        width = max(1, self.size.width - 2)
        place = (block.key, width, block.can_unfold and self._is_unfolded(block.key))
        known = self._layouts.get(place)
        if known is not None and (known[0] is block or known[0] == block):
            self._layouts.move_to_end(place)
            return known[1]
        rows = block.rows(width, is_unfolded=place[2]) or [(Span(""),)]
        self._layouts[place] = (block, rows)
        while len(self._layouts) > _KEPT_LAYOUTS:
            self._layouts.popitem(last=False)
        return rows

    def _frame(self) -> list[tuple[_Place, Row]]:
        """Return the rows in view, laid out again if anything changed."""
        if self._frame_rows is None:
            rows = self._lay_out()
            if self.size != self._laid_out_size and self._has_lost_cursor(rows):
                self._show_cursor()
                rows = self._lay_out()
            self._frame_rows = rows
            self._laid_out_size = self.size
            self._shows_cursor = bool(rows) and self._has_cursor and self._is_shown(self._cursor, rows)
            self._show_place(rows)
        return self._frame_rows

    def _lay_out(self) -> list[tuple[_Place, Row]]:
        height = self.size.height
        shown: list[tuple[_Place, Row]] = []
        if self.blocks and height > 0:
            last = self._back(_Place(len(self.blocks), 0), height)
            top = last if self.following else min(self._top, last)
            top = _Place(top.block, min(top.row, len(self._rows_of(top.block)) - 1))
            self._top, self._top_key = top, self.blocks[top.block].key
            index, row = top
            while index < len(self.blocks) and len(shown) < height:
                rows = self._rows_of(index)
                shown += [(_Place(index, at), rows[at]) for at in range(row, len(rows))][: height - len(shown)]
                index, row = index + 1, 0
        return shown

    def _is_shown(self, index: int, shown: list[tuple[_Place, Row]]) -> bool:
        """Return whether all of a block is in view, or a part of one that is higher than the view."""
        seen, rows = sum(place.block == index for place, _ in shown), len(self._rows_of(index))
        return seen == rows or (rows > self.size.height and seen > 0)

    def _has_lost_cursor(self, shown: list[tuple[_Place, Row]]) -> bool:
        """Return whether the block under the cursor was in view before, and is not among these rows."""
        return self._shows_cursor and not self.following and bool(shown) and not self._is_shown(self._cursor, shown)

    def _show_place(self, shown: list[tuple[_Place, Row]]) -> None:
        bar = next((child for child in self.children if isinstance(child, LogScrollBar)), None)
        if bar is None:
            return
        if not shown:
            bar.show_part(0, 0, 0)
            return
        scale = 1000
        first, last = shown[0][0], shown[-1][0]
        start = first.block * scale + scale * first.row // len(self._rows_of(first.block))
        end = last.block * scale + scale * (last.row + 1) // len(self._rows_of(last.block))
        bar.show_part(start, end - start, len(self.blocks) * scale)

    def _back(self, place: _Place, rows: int) -> _Place:
        """Return the place so many rows above; the beginning when there are fewer."""
        index, row = place
        row -= rows
        while row < 0 and index > 0:
            index -= 1
            row += len(self._rows_of(index))
        return _Place(index, max(0, row))

    def _forth(self, place: _Place, rows: int) -> _Place:
        index, row = place.block, place.row + rows
        while index < len(self.blocks) - 1 and row >= len(self._rows_of(index)):
            row -= len(self._rows_of(index))
            index += 1
        return _Place(index, min(row, len(self._rows_of(index)) - 1))

    def _is_seen(self, index: int, *, at_end: bool) -> bool | None:
        """Whether that end of a block higher than the view is in view; None when the block fits the view."""
        rows = self._rows_of(index)
        if len(rows) <= self.size.height:
            return None
        wanted = _Place(index, len(rows) - 1 if at_end else 0)
        shown = [place for place, _ in self._frame()]
        return wanted in shown or all(place.block != index for place in shown)

    def _set_cursor(self, index: int, *, is_by_person: bool) -> None:
        self._put_cursor(index, is_by_person=is_by_person)
        self._show_cursor()
        self._repaint()

    def _put_cursor(self, index: int, *, is_by_person: bool) -> None:
        self._cursor = index
        self._note_selection(is_by_person=is_by_person)
        self._repaint()

    def _show_cursor(self) -> None:
        """Bring the block under the cursor into view, by as little as can be."""
        height = self.size.height
        if height <= 0 or not self.blocks:
            return
        first, lowest = self._seen_between(self._cursor)
        last = self._back(_Place(len(self.blocks), 0), height)
        if self.following and self._cursor < len(self.blocks) - 1:
            self._top, self.following = last, False
        if self._top > first or self._top < lowest:
            self._top = first if self._top > first else lowest
        if self._starts_at_end and self._cursor == len(self.blocks) - 1 and self._top >= last:
            self.following = True

    def _seen_between(self, index: int) -> tuple[_Place, _Place]:
        """Return the lowest and the highest top of the view with which the block is seen whole, or from its start."""
        rows = len(self._rows_of(index))
        first = _Place(index, 0)
        height = self.size.height
        return first, self._back(_Place(index, rows), height) if rows <= height else first

    def _note_selection(self, *, is_by_person: bool) -> None:
        key = self.selected_key
        if key != self._selected_key:
            self._selected_key = key
            self.post_message(self.Selected(self, key, is_by_person))
