"""One column of the board: draws the cards in view from a window of the column, whatever the column's length.

A place in the column is the index of a card; lines exist only for what is in view, so 100,000 cards cost what 100 do.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import var
from textual.strip import Strip
from textual.widget import Widget

from agentmon.domain.board import ColumnPage, ColumnRequest
from agentmon.widgets.card_text import Part, card_lines, is_dated, is_ongoing
from agentmon.widgets.cells import cells, cut, pad, wrap
from agentmon.widgets.column_view import WINDOW_MARGIN, ColumnView
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.theme_style import theme_style

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from rich.style import Style
    from textual import events

    from agentmon.domain.board import Card
    from agentmon.domain.ids import TaskId
    from agentmon.domain.task_status import TaskStatus
    from agentmon.widgets.card_text import Line

    Row: TypeAlias = tuple[int, bool, bool, Line]

FOLDED_WIDTH: Final = 5
MIN_WIDTH: Final = 24
_HEIGHT_GUESS: Final = 40
_LEAST_SIDE: Final = 3
_WHEEL_LINES: Final = 3
_DRAG_DISTANCE: Final = 2
_DOUBLE: Final = 2
_STYLES: Final = {
    "border": ("border", False),
    "border-focus": ("primary", False),
    "heading": ("foreground", False),
    "heading-focus": ("primary", True),
    "title": ("foreground", False),
    "muted": ("text-muted", False),
    "running": ("secondary", False),
    "low": ("text-muted", False),
    "good": ("success", False),
    "warning": ("warning", False),
    "bad": ("error", False),
    "bar": ("primary", True),
    "drop": ("warning", True),
}
"""Theme variable and weight of each style."""
_NOT_READ: Final = "…"
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


class BoardColumn(Guarded, Widget, can_focus=True, inherit_bindings=False):
    """The cards of one status, with a selection that follows its task.

    The parent sets ``page``, ``now``, ``marked``, ``hint``, ``is_folded`` and ``is_pulse_low``.
    """

    DEFAULT_CSS = """
    BoardColumn { width: 1fr; height: 1fr; }
    BoardColumn.-folded { width: 5; }
    """

    page: var[ColumnPage | None] = var(None, init=False)
    """The window of the column that is known; None until the first was read."""
    now: var[datetime] = var(_BEGINNING, init=False)
    """The time that elapsed times are counted to."""
    marked: var[frozenset[TaskId]] = var(frozenset(), init=False)
    """The marked tasks of the whole board."""
    hint: var[str] = var("", init=False)
    """What an empty column says; each line of it is wrapped."""
    is_folded: var[bool] = var(False, init=False, toggle_class="-folded")
    """Whether only a strip with the name and the count is drawn."""
    is_pulse_low: var[bool] = var(False, init=False)
    """Whether the glyph of running cards is drawn faint at this moment."""

    drop_index: var[int | None] = var(None, init=False)
    """At which place a card that is dragged here would go; behind the last one where it is not over a card."""
    has_left: var[bool] = var(False, init=False)
    """Whether columns that do not fit stand on the left of this one."""
    has_right: var[bool] = var(False, init=False)
    """Whether columns that do not fit stand on the right of this one."""

    class Selected(Message):
        """The selection came to another card, or the selected card changed."""

        def __init__(self, column: BoardColumn, *, is_by_person: bool) -> None:
            super().__init__()
            self.column = column
            self.is_by_person = is_by_person

        @property
        def control(self) -> BoardColumn:
            """The column."""
            return self.column

    class Opened(Message):
        """A card was clicked twice."""

        def __init__(self, column: BoardColumn, task_id: TaskId) -> None:
            super().__init__()
            self.column = column
            self.task_id = task_id

    class PageNeeded(Message):
        """The view came near the edge of the known window; ``BoardColumn.request`` says what to read."""

        def __init__(self, column: BoardColumn) -> None:
            super().__init__()
            self.column = column

    class FoldRequested(Message):
        """The heading was clicked."""

        def __init__(self, column: BoardColumn) -> None:
            super().__init__()
            self.column = column

    class Dragged(Message):
        """A card is dragged over a place of the screen; the parent shows where it would go."""

        def __init__(self, column: BoardColumn, screen_x: int, screen_y: int) -> None:
            super().__init__()
            self.column = column
            self.screen_x = screen_x
            self.screen_y = screen_y

    class Dropped(Message):
        """A card was dragged and let go at a place of the screen."""

        def __init__(self, column: BoardColumn, task_id: TaskId, screen_x: int, screen_y: int) -> None:
            super().__init__()
            self.column = column
            self.task_id = task_id
            self.screen_x = screen_x
            self.screen_y = screen_y

    def __init__(
        self,
        status: TaskStatus,
        *,
        is_folded: bool = False,
        id: str | None = None,  # noqa: A002 - Textual's name
    ) -> None:
        # With its class from the start: a later change of it works out styles.
        super().__init__(id=id, classes="-folded" if is_folded else None)
        self.set_reactive(BoardColumn.is_folded, is_folded)
        self.status = status
        self._view = ColumnView(height_of=self._height_of, view_height=lambda: self._view_height)
        self._rows: list[Row] = []
        self._rows_size = Size(0, 0)
        self._thumb = range(0)
        """The rows that the scroll thumb covers; none in a column that fits."""
        self._ground: Style | None = None
        self._card_cache: dict[int, tuple[Card, datetime, bool, int, tuple[Line, ...]]] = {}
        self._style_cache: dict[tuple[str, bool], Style] = {}
        self._pressed: tuple[TaskId, int, int] | None = None
        self._was_dragged = False

    # What a parent asks and tells.

    @property
    def selected(self) -> Card | None:
        """The selected card as it was seen last; None in an empty column or before its part was read."""
        return self._view.selected

    @property
    def cursor(self) -> int:
        """The index of the selection in the column."""
        return self._view.cursor

    @property
    def total(self) -> int:
        """How many cards the column has."""
        return self._view.total

    @property
    def has_ongoing(self) -> bool:
        """Whether a card in view has a moving elapsed time."""
        return not self.is_folded and any(
            is_ongoing(card) for index, _, _, _ in self._rows if (card := self._view.card(index)) is not None
        )

    def request(self, text_filter: str = "") -> ColumnRequest:
        """Return the part of the column to read for what is in view now."""
        return ColumnRequest(
            status=self.status,
            offset=max(0, self._view.top_index - WINDOW_MARGIN),
            limit=max(self.size.height, _HEIGHT_GUESS) // 2 + 2 * WINDOW_MARGIN,
            text_filter=text_filter,
        )

    def select(self, index: int) -> None:
        """Select the card of the index, cut to what the column has, and bring it into view."""
        is_other = self._view.select(index)
        self._redraw()
        if is_other:
            self.post_message(self.Selected(self, is_by_person=True))

    def move(self, steps: int) -> None:
        """Move the selection down by the steps, or up when negative."""
        self.select(self.cursor + steps)

    def move_page(self, direction: int) -> None:
        """Move the selection by half of what is in view, down (1) or up (-1)."""
        in_view = len({index for index, _, _, _ in self._rows})
        self.move(direction * max(1, in_view // 2))

    def follow(self, task_id: TaskId, index: int) -> None:
        """Make the task the selection before it is known where it is; the index is a first guess."""
        self._view.follow(task_id, index)
        self._redraw()

    def restart(self) -> None:
        """Go to the first card, for a column whose contents changed altogether."""
        self._view.restart()

    def index_at(self, y: int) -> int | None:
        """Return the index of the card drawn in this row of the widget; None where there is none."""
        row = y - 1
        if 0 <= row < len(self._rows) and self.total:
            return self._rows[row][0]
        return None

    # Changes of what is shown.

    def watch_page(self, before: ColumnPage | None, page: ColumnPage | None) -> None:
        """Keep the selection on its task, and draw what differs."""
        if page is None:
            self._view.page = None
            return
        selected_before = self._view.seen_card
        was_in_view = not self._rows or any(row[0] == self.cursor for row in self._rows)
        self._view.take_page(page)
        self._card_cache = {
            index: cached for index, cached in self._card_cache.items() if self._view.card(index) == cached[0]
        }
        if was_in_view:
            self._view.show_cursor()
        else:
            self._view.keep_bottom()
        self._redraw(
            is_heading_changed=before is None
            or (before.total, before.card_limit, before.is_over_limit)
            != (page.total, page.card_limit, page.is_over_limit)
        )
        if self._view.seen_card != selected_before:
            self.post_message(self.Selected(self, is_by_person=False))

    def watch_now(self) -> None:
        """Draw the elapsed times that moved, and the words of times that passed."""
        self._redraw(is_view_kept=True)

    def watch_is_pulse_low(self) -> None:
        """Draw the running glyphs."""
        self._redraw(is_view_kept=True)

    def watch_marked(self) -> None:
        """Draw the marks."""
        self._redraw()

    def watch_hint(self) -> None:
        """Draw the hint."""
        self.refresh()

    def watch_drop_index(self) -> None:
        """Draw the border and the place."""
        self.refresh()

    def watch_has_left(self) -> None:
        """Draw the heading."""
        self.refresh()

    def watch_has_right(self) -> None:
        """Draw the heading."""
        self.refresh()

    def watch_is_folded(self) -> None:
        """Draw the other form."""
        self.refresh(layout=True)

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Draw the border, and the selection that only a focused column shows."""
        super().watch_has_focus(_has_focus)
        if _has_focus:
            self._view.is_chosen = True
        self._redraw(is_heading_changed=True)
        self.refresh()

    def on_resize(self) -> None:
        """Lay out anew, unless a paint came first and did."""
        if self._rows_size != self.size:
            self._fit()
            self.refresh()
        self._redraw()

    def notify_style_update(self) -> None:
        """Forget the styles of the theme before."""
        super().notify_style_update()
        self._style_cache.clear()
        self._ground = None

    # The mouse.

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down."""
        event.stop()
        self._view.scroll(_WHEEL_LINES)
        self._redraw()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up."""
        event.stop()
        self._view.scroll(-_WHEEL_LINES)
        self._redraw()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Select the card under the pointer; from here it can be dragged."""
        if event.button != 1 or self.is_folded:
            return
        index = self.index_at(event.y)
        card = None if index is None else self._view.card(index)
        if index is None or card is None:
            return
        self.select(index)
        self._pressed = (card.task_id, event.screen_x, event.screen_y)
        self._was_dragged = False
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Begin to drag once the pointer has left the place where it was pressed."""
        if self._pressed is not None:
            _, x, y = self._pressed
            distance = max(abs(event.screen_x - x), abs(event.screen_y - y))
            self._was_dragged = self._was_dragged or distance > _DRAG_DISTANCE
            if self._was_dragged:
                self.post_message(self.Dragged(self, event.screen_x, event.screen_y))

    @property
    def is_dragging(self) -> bool:
        """Whether a card is dragged from here at this moment."""
        return self._pressed is not None and self._was_dragged

    def cancel_drag(self) -> None:
        """Leave the dragged card where it is."""
        self._pressed = None
        self.release_mouse()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Let a dragged card go."""
        if self._pressed is None:
            return
        task_id = self._pressed[0]
        self._pressed = None
        self.release_mouse()
        if self._was_dragged:
            self.post_message(self.Dropped(self, task_id, event.screen_x, event.screen_y))

    def on_click(self, event: events.Click) -> None:
        """Fold on the heading, open on a double click."""
        event.stop()
        if self._was_dragged:
            self._was_dragged = False
            return
        if event.y == 0 or self.is_folded:
            self.post_message(self.FoldRequested(self))
            return
        index = self.index_at(event.y)
        card = None if index is None else self._view.card(index)
        if card is not None and event.chain == _DOUBLE:
            self.post_message(self.Opened(self, card.task_id))

    # Layout: which line of which card stands in which row.

    def _lines(self, index: int, width: int) -> tuple[Line, ...]:
        card = self._view.card(index)
        if card is None:
            waiting = (Part(pad(f" {_NOT_READ}", width), "muted"),)
            return (waiting, (Part(" " * width, "muted"),))
        moment = _BEGINNING
        if is_dated(card):
            moment = self.now
        elif is_ongoing(card):
            moment = self.now.replace(microsecond=0)
        is_low = self.is_pulse_low and is_ongoing(card)
        cached = self._card_cache.get(index)
        if cached is not None and cached[0] is card and cached[1:4] == (moment, is_low, width):
            return cached[4]
        lines = card_lines(card, width=width, now=self.now, is_pulse_low=is_low)
        self._card_cache[index] = (card, moment, is_low, width, lines)
        return lines

    def _height_of(self, index: int) -> int:
        """Return the rows a card takes with the blank row below it."""
        return len(self._lines(index, self._text_width)) + 1

    @property
    def _text_width(self) -> int:
        return max(0, self.size.width - 3)

    @property
    def _view_height(self) -> int:
        return max(0, self.size.height - 2)

    def _lay_out(self) -> list[Row]:
        width, height = self._text_width, self._view_height
        rows: list[Row] = []
        blank: Line = (Part(" " * width, "muted"),)
        is_shown = self.has_focus
        index, skip = self._view.top_index, self._view.top_line
        while len(rows) < height and index < self.total:
            is_selected = is_shown and index == self.cursor
            card = self._view.card(index)
            is_marked = card is not None and card.task_id in self.marked
            for at, line in enumerate(self._lines(index, width)):
                rows.append((index, is_selected, is_marked and at == 0, line))
            rows.append((index, False, False, blank))
            if skip:
                del rows[:skip]
                skip = 0
            index += 1
        del rows[height:]
        self._thumb = _thumb_rows(rows, height, self.total)
        return rows

    def _fit(self) -> None:
        """Lay out for the size of this moment."""
        self._rows_size = self.size
        self._card_cache.clear()
        self._view.show_cursor()
        self._rows = [] if self.is_folded else self._lay_out()

    def _redraw(self, *, is_heading_changed: bool = False, is_view_kept: bool = False) -> None:
        """Lay out and repaint the rows that differ from what is drawn."""
        if self.is_folded or not self.is_attached:
            if is_heading_changed:
                self.refresh()
            return
        before, self._rows = self._rows, self._lay_out()
        changed = [
            Region(0, at + 1, self.size.width, 1)
            for at in range(max(len(before), len(self._rows)))
            if at >= len(before) or at >= len(self._rows) or before[at] != self._rows[at]
        ]
        if is_heading_changed or not before or not self._rows:
            self.refresh()
        elif changed:
            # The thumb beside the rows moves with the view.
            has_thumb = len(self._rows) == self._view_height and not is_view_kept
            self.refresh(*([Region(0, 0, self.size.width, self.size.height)] if has_thumb else changed))
        if self._rows and self._view.is_window_short(self._rows[0][0], self._rows[-1][0]):
            self.post_message(self.PageNeeded(self))

    # Painting.

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the rows of the region."""
        if self._rows_size != self.size:
            # The first paint after a change of size comes before the message about it.
            self._fit()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return a row: border, heading, a card's line."""
        width, height = self._rows_size
        if self.is_folded:
            return self._folded_line(y, width, height)
        if width < _LEAST_SIDE:
            return Strip.blank(width, self.rich_style)
        if y == 0:
            return self._heading_line(width)
        border = self._style("drop" if self.drop_index is not None else "border-focus" if self.has_focus else "border")
        if y == height - 1:
            return Strip([Segment("╰" + "─" * (width - 2) + "╯", border)], width)
        right = Segment("┃" if y - 1 in self._thumb else "│", border)
        rows = self._rows
        if not self.total:
            return Strip([Segment("│", border), *self._hint_line(y - 1, width - 2), right], width)
        if y - 1 >= len(rows):
            return Strip([Segment("│", border), Segment(" " * (width - 2), self._style("muted")), right], width)
        _, is_selected, _, line = rows[y - 1]
        segments = [Segment("│", border), self._gutter(y - 1)]
        segments.extend(Segment(part.text, self._style(part.style, is_cursor=is_selected)) for part in line)
        segments.append(right)
        return Strip(segments, width)

    def _gutter(self, row: int) -> Segment:
        """Return the cell before a line of a card: where a dragged card would go, a mark, or the selection."""
        index, is_selected, is_marked, _ = self._rows[row]
        if index == self.drop_index and (row == 0 or self._rows[row - 1][0] != index):
            return Segment("▸", self._style("drop", is_cursor=is_selected))
        if is_marked:
            return Segment("*", self._style("warning", is_cursor=is_selected))
        return Segment("▌", self._style("bar", is_cursor=True)) if is_selected else Segment(" ", self._style("muted"))

    def _heading_line(self, width: int) -> Strip:
        border = self._style("drop" if self.drop_index is not None else "border-focus" if self.has_focus else "border")
        heading = self._style("heading-focus" if self.has_focus else "heading")
        page = self.page
        count = "" if page is None else f" {self.total}"
        if page is not None and page.card_limit is not None:
            count += f"/{page.card_limit}"
        if page is not None and page.is_over_limit:
            heading = self._style("warning")
            count += " over"
        left = "‹" if self.has_left else ""
        right = "›" if self.has_right else ""
        room = width - 2 - len(left) - len(right)
        name = cut(f"{self.status.label}{count}", max(0, room - 2))
        text = f" {name} " if name else ""
        line = "─" * (room - cells(text))
        return Strip(
            [
                Segment("╭", border),
                Segment(left, heading),
                Segment(text, heading),
                Segment(line, border),
                Segment(right, heading),
                Segment("╮", border),
            ],
            width,
        )

    def _hint_line(self, row: int, width: int) -> list[Segment]:
        lines: list[str] = []
        for paragraph in self.hint.split("\n"):
            lines.extend(wrap(paragraph, max(1, width - 2)) or [""])
        text = lines[row - 1] if 0 < row <= len(lines) else ""
        return [Segment(pad(f" {text}", width), self._style("muted"))]

    def _folded_line(self, y: int, width: int, height: int) -> Strip:
        if width < _LEAST_SIDE or height < _LEAST_SIDE:
            return Strip.blank(width, self.rich_style)
        border = self._style("drop" if self.drop_index is not None else "border-focus" if self.has_focus else "border")
        if y in {0, height - 1}:
            left, right = ("╭", "╮") if y == 0 else ("╰", "╯")
            line = "─" * (width - 2)
            if y == 0 and self.has_left:
                line = f"‹{line[1:]}"
            if y == 0 and self.has_right:
                line = f"{line[:-1]}›"
            return Strip([Segment(left + line + right, border)], width)
        inside = width - 2
        most = 10**inside - 1
        text = ""
        if y == 1 and self.page is not None:
            text = str(self.total) if self.total <= most else "9" * (inside - 1) + "+"
        elif 0 <= y - 3 < len(self.status.label):
            text = self.status.label[y - 3]
        name = self._style("heading-focus" if self.has_focus else "muted")
        return Strip([Segment("│", border), Segment(f"{text:^{inside}}", name), Segment("│", border)], width)

    def _style(self, name: str, *, is_cursor: bool = False) -> Style:
        key = (name, is_cursor)
        style = self._style_cache.get(key)
        if style is None:
            variable, is_bold = _STYLES[name]
            background = "card-cursor" if is_cursor else None
            if self._ground is None:
                self._ground = self.rich_style
            style = theme_style(self, variable, is_bold=is_bold, background=background, ground=self._ground)
            self._style_cache[key] = style
        return style


def _thumb_rows(rows: Sequence[Row], height: int, total: int) -> range:
    """Return the rows beside which the scroll thumb is drawn, for these rows of so many cards."""
    in_view = len({row[0] for row in rows})
    if not in_view or in_view >= total:
        return range(0)
    size = max(1, height * in_view // total)
    start = round((height - size) * min(1.0, rows[0][0] / max(1, total - in_view)))
    return range(start, start + size)
