"""The view of a log file by offset: opens at once at any size, follows the tail, and holds no more than it shows."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, ClassVar, Final

from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from agentmon.logs.log_file import LogFile
from agentmon.logs.text_log import TextLog
from agentmon.widgets.cells import even_line
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.log_copying import lines_text, marked_span, selected_text
from agentmon.widgets.log_finds import LogFinds
from agentmon.widgets.log_gutter import GUTTER_CELLS, LogGutter
from agentmon.widgets.log_painter import LogMarks, LogPainter
from agentmon.widgets.log_rows import TOP, LineSource, Position, Row, RowReader
from agentmon.widgets.log_scroll_bar import LogScrollBar

if TYPE_CHECKING:
    from pathlib import Path

    from textual import events
    from textual.app import ComposeResult
    from textual.geometry import Region
    from textual.selection import Selection
    from textual.strip import Strip

    from agentmon.logs.filtered_log import FilteredLog
    from agentmon.logs.log_times import LogTimes
    from agentmon.logs.pattern import LogPattern

_WHEEL_ROWS: Final = 3
_SIDEWAYS_CELLS: Final = 8
_LONGEST_LINK: Final = 200
SLICE_REST_S: Final = 0.001
"""How long a search or a count rests between two slices, in which keys come and rows are painted."""


class LogView(Guarded, Widget, can_focus=True):
    """Shows one log file; the owner sets ``path`` and calls ``poll`` up to ten times a second.

    Args:
        path: The log file, which need not exist yet.
        is_tail: Show the newest lines always: no scrolling, no focus, no scroll bar.
        placeholder: What stands there while the log is empty; line breaks are kept.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "log-view--placeholder",
        "log-view--match",
        "log-view--current-match",
        "log-view--time",
        "log-view--marked",
        "log-view--error",
        "log-view--warning",
        "log-view--info",
        "log-view--debug",
    }
    DEFAULT_CSS = """
    LogView {
        width: 1fr;
        height: 1fr;
        overflow: hidden;
        .log-view--placeholder { color: $foreground 60%; }
        .log-view--match { background: $warning 40%; }
        .log-view--current-match { background: $warning; color: $background; }
        .log-view--time { color: $foreground 60%; }
        .log-view--marked { background: $primary 25%; }
        .log-view--error { color: $text-error; }
        .log-view--warning { color: $text-warning; }
        .log-view--info { color: $text-primary; }
        .log-view--debug { color: $foreground 60%; }
    }
    """

    path: reactive[Path | None] = reactive(None, init=False)
    """The file that is shown; setting it goes to the tail of the new one."""
    following: reactive[bool] = reactive(True, init=False)
    """Whether the newest line stays in view; scrolling up ends it, reaching the end takes it up again."""
    wrap: reactive[bool] = reactive(False, init=False)
    """Whether long lines go on in the next row; otherwise the view scrolls sideways."""
    placeholder: reactive[str] = reactive("No output yet.", init=False)

    class FollowingChanged(Message):
        """The view let go of the tail, or took it up again."""

        def __init__(self, log_view: LogView, *, following: bool) -> None:
            super().__init__()
            self.log_view = log_view
            self.following = following

        @property
        def control(self) -> LogView:
            """The view that changed."""
            return self.log_view

    class Moved(Message):
        """The view was moved to another place; what comes while it follows the tail moves nothing."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        is_tail: bool = False,
        placeholder: str = "No output yet.",
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.is_tail = is_tail
        self.can_focus = not is_tail
        self._log: LogFile | None = None
        self._reader: RowReader | None = None
        self._top = TOP
        self._left = 0
        self._rows: list[Row] = []
        self._strips: list[Strip] = []
        self._frame_size = Size(0, 0)
        self._is_stale = True
        self._is_painting = False
        self._painter = LogPainter(self)
        self._pattern: LogPattern | None = None
        self._current_offset: int | None = None
        self._wanted_line: int | None = None
        self._finds = LogFinds()
        self._is_searching = False
        self._mark: int | None = None
        self._times: LogTimes | None = None
        self.set_reactive(LogView.placeholder, placeholder)
        self.set_reactive(LogView.path, path)

    def compose(self) -> ComposeResult:
        """Yield the scroll bar; the text is drawn by the view itself."""
        if not self.is_tail:
            yield LogScrollBar()

    # What the owner reads

    @property
    def line_count(self) -> int | None:
        """How many lines the log has; None while they are being counted."""
        return self._log.line_count if self._log else 0

    @property
    def first_line_number(self) -> int | None:
        """The number of the line at the top, counted from 1; None while it is not known."""
        rows = self._frame()
        return self._log.line_number(rows[0].position.offset) if self._log and rows else None

    @property
    def search_origin(self) -> int:
        """The offset that a search for the next match begins from: the current match, or the line at the top."""
        rows = self._frame()
        if not rows:
            return 0
        shown = range(rows[0].line.start, rows[-1].line.end)
        if self._current_offset is not None and self._current_offset in shown:
            return self._current_offset
        return rows[0].line.start

    @property
    def text(self) -> bytes | None:
        """What is shown in the place of the file; None when the file is."""
        return self._log.read(0, self._log.size) if isinstance(self._log, TextLog) else None

    @property
    def shown_text(self) -> str:
        """The text of the rows in view, one line each."""
        return "\n".join(row.line.text[row.start : row.end] for row in self._frame())

    @property
    def counted_share(self) -> float | None:
        """How much is counted while the lines up to a wanted one are, from 0.0 to 1.0; None when none is wanted."""
        return self._log.indexed_share if self._log and self._wanted_line is not None else None

    @property
    def filtered(self) -> FilteredLog | None:
        """The lines that are shown when only those that match are."""
        return self._finds.filter

    @property
    def counted(self) -> FilteredLog | None:
        """The lines that hold what is marked, as far as they are counted; None when they are not."""
        return self._finds.counted

    @property
    def byte_size(self) -> int:
        """How large the log is."""
        return self._log.size if self._log else 0

    @property
    def generation(self) -> int:
        """Counts how often the log became another one, so that offsets of before mean nothing."""
        return self._log.generation if self._log else 0

    @property
    def trouble(self) -> str:
        """What a person has to know of the file whose text still stands there; mostly nothing."""
        log = self._log
        if log is None or not log.is_detached:
            return ""
        return f"cannot be read any more: {log.problem}" if log.problem else "the file was removed"

    @property
    def has_mark(self) -> bool:
        """Whether a range of lines is marked."""
        return self._mark is not None

    # What the owner calls

    def show_text(self, text: bytes | None) -> None:
        """Show a text in the place of the file, or what has become of it; None shows the file again."""
        if text is None:
            if isinstance(self._log, TextLog):
                self._open(self.path)
                self._repaint()
            return
        if not isinstance(self._log, TextLog):
            self._take_log(TextLog())
            self._repaint()
        if isinstance(self._log, TextLog):
            self._log.replace(text)
        self.poll()

    def poll(self) -> None:
        """Look at the file again and repaint what changed; cheap when nothing did."""
        log, reader = self._log, self._reader
        if log is None or reader is None:
            return
        known_size, generation = log.size, log.generation
        if log.refresh():
            self._finds.take_growth()
            self._search_on()
            if log.generation != generation:
                reader.forget()
                self._current_offset = self._mark = None
                self._top = Position(log.line_start(self._top.offset), 0) if log.size else TOP
                self._repaint()
            elif self.following or not self._rows or self._rows[-1].line.end >= known_size:
                self._repaint()
            else:
                self._show_place()
        if not self.is_tail:
            log.index_more()

    def highlight(self, pattern: LogPattern | None) -> None:
        """Mark what the pattern matches in the lines in view; None marks nothing."""
        self._pattern = pattern
        self._current_offset = self._finds.counted = None
        self._repaint()

    def open_twin(self) -> LogFile | None:
        """Return another reader of what is shown, which the caller closes; None when no file is set."""
        return self._log.twin() if self._log else None

    def count_matches(self) -> None:
        """Count the lines that hold what is marked, in the background; where a filter holds, none are counted."""
        if self._log is not None and self._pattern is not None:
            self._finds.count(self._log, self._pattern)
            self._search_on()

    def show_only(self, pattern: LogPattern | None) -> None:
        """Show only the lines that match, as they are found; None shows all again."""
        self._frame()
        log, reader = self._log, self._reader
        if log is None or reader is None or self.is_tail:
            return
        self._finds.show_only(log, pattern)
        reader.read_from(self._source(log))
        self._top = Position(self._top.offset, 0)
        self._search_on()
        self._repaint()

    def go_to_share(self, share: float) -> None:
        """Go to this share of the bytes, from 0.0 to 1.0; at the end it is followed."""
        log = self._log
        if log is None or not log.size or self.is_tail:
            return
        if share >= 1.0:
            self.following = True
        else:
            self._go_to(Position(log.line_start(int(log.size * share)), 0))

    def show_times(self, times: LogTimes | None) -> None:
        """Show beside each line when it had come; None shows no times."""
        if (times is None) != (self._times is None):
            self._top = Position(self._top.offset, 0)
        self._times = times
        self._repaint()

    @property
    def has_times(self) -> bool:
        """Whether times stand beside the lines."""
        return self._times is not None

    def toggle_mark(self) -> None:
        """Mark the line at the top as one end of what is copied, or drop the mark."""
        rows = self._frame()
        self._mark = None if self._mark is not None or not rows else rows[0].line.start
        self._repaint()

    def text_to_copy(self) -> tuple[str, bool]:
        """Return the selected text, else the marked lines, else those in view, and whether all of it is there."""
        if (selection := self.text_selection) is not None and (selected := self.get_selection(selection)) is not None:
            return selected[0], True
        rows = self._frame()
        log = self._log
        if not rows or log is None:
            return "", True
        return lines_text(self._source(log), *marked_span(rows, self._mark))

    def go_to_offset(self, offset: int) -> None:
        """Bring the display line at ``offset`` into view, its first match visible, and let go of the tail."""
        self._frame()
        reader = self._reader
        line = reader.line_at(offset) if reader else None
        if reader is None or self.is_tail:
            return
        if line is None:
            self._wanted_line = None
            if self._finds.filter is not None:
                # Nothing that matches comes after it.
                self.following = True
            return
        self._current_offset = line.start
        match = self._pattern.regex.search(line.text) if self._pattern else None
        row = 0
        if match and reader.wraps:
            row = line.row_of(reader.columns, match.start())
        elif match:
            self._show_cells(line.cell(match.start()), line.cell(match.end()))
        position = Position(line.start, row)
        before = reader.backwards(position, self.size.height // 3)
        self._go_to(before[0].position if before else position)

    def go_to_line(self, number: int) -> None:
        """Bring line ``number`` (counted from 1) into view once the lines up to it are counted; the last if beyond."""
        self._wanted_line = max(1, number)
        self._seek_line()

    # Actions, bound to keys by the screens

    def action_scroll_lines(self, count: int) -> None:
        """Move by ``count`` rows, up when negative."""
        reader = self._reader
        rows = self._frame()
        if reader is None or not rows or self.is_tail:
            return
        if count < 0:
            before = reader.backwards(rows[0].position, -count)
            if before:
                self._go_to(before[0].position)
        elif not self.following:
            after = reader.forwards(rows[0].position, count + 1)
            self._go_to(after[-1].position)
            if self._is_at_end():
                self.following = True

    def action_page_up(self) -> None:
        """Move up by a page, keeping one row."""
        self.action_scroll_lines(-max(1, self.size.height - 1))

    def action_page_down(self) -> None:
        """Move down by a page, keeping one row."""
        self.action_scroll_lines(max(1, self.size.height - 1))

    def action_home(self) -> None:
        """Go to the first line; also before the view was laid out, by a key that came right behind that for its tab."""
        if not self.is_tail and self._log is not None and self._log.size:
            self._go_to(TOP)

    def action_end(self) -> None:
        """Go to the newest line and follow it."""
        self.following = True

    def action_toggle_wrap(self) -> None:
        """Wrap long lines, or scroll sideways again."""
        self.wrap = not self.wrap

    def action_toggle_follow(self) -> None:
        """Follow the tail, or stay where the view is."""
        self._frame()
        self.following = not self.following

    def action_scroll_left(self) -> None:
        """Move the text to the right again."""
        self._scroll_sideways(-_SIDEWAYS_CELLS)

    def action_scroll_right(self) -> None:
        """Show what is cut off on the right."""
        self._scroll_sideways(_SIDEWAYS_CELLS)

    # What Textual calls

    def on_mount(self) -> None:
        """Open the file, unless it was set after the view began to run."""
        if self._log is None:
            self._open(self.path)
            self._repaint()

    def on_unmount(self) -> None:
        """Close the file."""
        if self._log:
            self._log.close()

    def on_resize(self) -> None:
        """Lay out again."""
        self._repaint()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll by the wheel."""
        if not self.is_tail:
            event.stop()
            self.action_scroll_lines(-_WHEEL_ROWS)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll by the wheel."""
        if not self.is_tail:
            event.stop()
            self.action_scroll_lines(_WHEEL_ROWS)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        """Scroll sideways by the wheel."""
        event.stop()
        self.action_scroll_left()

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        """Scroll sideways by the wheel."""
        event.stop()
        self.action_scroll_right()

    def on_click(self, event: events.Click) -> None:
        """Open the address that was clicked; copy it where no window could show it."""
        link = event.style.link
        if link and self.text_selection is None:
            event.stop()
            if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
                self.app.open_url(link)
                # What is shown may be another text than where it leads.
                self.notify(f"Opened {even_line(link, max_characters=_LONGEST_LINK)}", markup=False)
            else:
                self.app.copy_to_clipboard(link)
                address = even_line(link, max_characters=_LONGEST_LINK)
                self.notify(f"Copied {address}: there is no window to open it in.", markup=False)

    def on_log_scroll_bar_moved(self, message: LogScrollBar.Moved) -> None:
        """Go where the scroll bar was put."""
        message.stop()
        self.go_to_share(message.share)

    def watch_path(self, path: Path | None) -> None:
        """Open another file at its tail."""
        if self._log is not None:
            self.set_reactive(LogView.following, True)
        self._open(path)
        self._repaint()

    def watch_following(self, following: bool) -> None:
        """Go to the tail when it is followed again, and tell the owner."""
        self._repaint()
        self.post_message(self.FollowingChanged(self, following=following))
        if following:
            self.post_message(self.Moved())

    def validate_following(self, following: bool) -> bool:
        """Keep a tail a tail."""
        return following or self.is_tail

    def watch_wrap(self) -> None:
        """Lay the lines out in the other way."""
        self._top = Position(self._top.offset, 0)
        self._left = 0
        self._repaint()

    def watch_placeholder(self) -> None:
        """Show the other text."""
        self._repaint()

    def notify_style_update(self) -> None:
        """Forget what was drawn in the old style."""
        super().notify_style_update()
        self._painter.forget()
        self._is_stale = True

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002 - Textual's signature
        """Draw the selection."""
        self._repaint()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text; what begins or ends outside the view counts from what is in view."""
        rows = self._frame()
        if not rows or self._reader is None:
            return None
        return selected_text(self._reader, rows, selection), "\n"

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the strips of a part of the view."""
        if not self._painter.is_base(self.rich_style):
            # Also when only a parent's background changed, of which Textual tells nobody.
            self._is_stale = True
        self._is_painting = True
        try:
            return super().render_lines(crop)
        finally:
            self._is_painting = False

    def render_line(self, y: int) -> Strip:
        """Return the row ``y`` of the view."""
        rows = self._frame()
        if y >= len(self._strips):
            return self._painter.blank(self.size.width)
        strip = self._strips[y]
        if not self._is_painting and y < len(rows):
            # Only the search for what is under the mouse needs places in the text, and they cost as much as the paint.
            row = rows[y]
            taken = row.blanks + (0 if self._times is None else GUTTER_CELLS)
            return strip.apply_offsets(row.start - taken, row.line.start)
        return strip

    # Inside

    def _open(self, path: Path | None) -> None:
        self._take_log(None if path is None else LogFile(path))

    def _take_log(self, log: LogFile | None) -> None:
        if self._log:
            self._log.close()
        self._log = self._reader = self._current_offset = self._wanted_line = None
        self._finds = LogFinds()
        self._mark = self._times = None
        self._rows = []
        self._top, self._left = TOP, 0
        if log is not None:
            self._log = log
            log.refresh()
            self._reader = RowReader(log)

    def _repaint(self) -> None:
        self._is_stale = True
        self.refresh()

    def _source(self, log: LogFile) -> LineSource:
        return log if self._finds.filter is None else self._finds.filter

    def _search_on(self) -> None:
        """Search for a moment, paint what came, and go on behind the keys and paints that wait."""
        log = self._log
        if log is None:
            return
        near = log.size - 1 if self.following else self._top.offset
        is_complete, is_news = self._finds.search_on(near=max(0, near), backwards=self.following)
        if is_news:
            self._repaint()
        if not is_complete and not self._is_searching:
            self._is_searching = True
            self.set_timer(SLICE_REST_S, self._go_on_searching)

    def _go_on_searching(self) -> None:
        self._is_searching = False
        self._search_on()

    def _go_to(self, position: Position) -> None:
        self._top = position
        self._wanted_line = None
        self.following = False
        self._repaint()
        self.post_message(self.Moved())

    def _is_at_end(self) -> bool:
        rows = self._frame()
        log = self._log
        if log is None or not rows or self._source(log).lines_from(rows[-1].line.end, 1):
            return False
        if self._finds.filter is not None and not self._finds.filter.is_searched_after(rows[-1].line.start):
            return False
        reader = self._reader
        return reader is None or not reader.wraps or rows[-1].end >= len(rows[-1].line.text)

    def _scroll_sideways(self, count: int) -> None:
        if self.wrap or not (rows := self._frame()):
            return
        widest = max(row.line.width for row in rows)
        left = max(0, min(self._left + count, widest - self._columns))
        if left != self._left:
            self._left = left
            self._repaint()

    def _show_cells(self, start: int, end: int) -> None:
        columns = self._columns
        if end <= columns:
            self._left = 0
        elif start < self._left or end > self._left + columns:
            self._left = max(0, min(start, (start + end - columns) // 2))

    def _seek_line(self) -> None:
        log, wanted = self._log, self._wanted_line
        if log is None or wanted is None:
            return
        offset = log.line_offset(wanted)
        if offset is None and not log.index_more():
            # Let keys and paints through between two slices of counting.
            self.set_timer(SLICE_REST_S, self._seek_line)
            return
        if offset is None:
            offset = log.line_offset(wanted)
        self.go_to_offset(log.size if offset is None else offset)

    @property
    def _columns(self) -> int:
        taken = (0 if self.is_tail else 1) + (0 if self._times is None else GUTTER_CELLS)
        return max(1, self.size.width - taken)

    def _frame(self) -> list[Row]:
        """Return the rows in view, laid out again if anything changed."""
        if not self._is_stale and self._frame_size == self.size:
            return self._rows
        self._is_stale = False
        self._frame_size = self.size
        self._rows = self._lay_out()
        if self._rows and (self._finds.filter is None or self._finds.filter.is_complete):
            # What is found later may come between.
            self._top = self._rows[0].position
        self._strips = self._paint(self._rows)
        self._show_place()
        return self._rows

    def _lay_out(self) -> list[Row]:
        reader, height = self._reader, self.size.height
        if reader is None or height <= 0:
            return []
        reader.columns, reader.left, reader.wraps = self._columns, self._left, self.wrap
        if not self.following:
            rows = reader.forwards(self._top, height)
            if len(rows) == height:
                return rows
        return reader.backwards(None, height)

    def _show_place(self) -> None:
        bar = next((child for child in self.children if isinstance(child, LogScrollBar)), None)
        if bar is None or self._log is None:
            return
        if not self._rows:
            bar.show_part(0, 0, 0)
            return
        start, end = self._rows[0].line.start, self._rows[-1].line.end
        shown = end - start
        if self._finds.filter is not None and len(self._rows) >= self._finds.filter.match_count:
            bar.show_part(0, 0, 0)
            return
        if self.wrap and start == 0 and end >= self._log.size and self._rows[0].position.row:
            # All lines are in view in part only: a thumb one byte short still shows that there is more above.
            start, shown = 1, max(0, shown - 1)
        bar.show_part(start, shown, self._log.size)

    def _placeholder(self) -> str:
        if self._finds.filter is not None and self._log is not None and self._log.size:
            return "No line matches." if self._finds.filter.is_complete else "Looking for lines that match…"
        if isinstance(self._log, TextLog):
            return ""
        problem = self._log.problem if self._log else ""
        return f"The log cannot be read: {problem}." if problem else self.placeholder

    def _paint(self, rows: list[Row]) -> list[Strip]:
        width = self.size.width
        if not rows:
            return self._painter.placeholder(self._placeholder(), self.size.height, columns=self._columns, width=width)
        marks = LogMarks(
            pattern=self._pattern,
            current_offset=self._current_offset,
            marked=None if self._mark is None else marked_span(rows, self._mark),
            selection=self.text_selection,
        )
        gutter = None if self._times is None else LogGutter(self._times, self.byte_size).text
        return self._painter.strips(rows, marks, width=width, gutter=gutter)
