"""The text of a difference with a cursor line: draws what is in view and holds no more than that, at any length."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, Final

from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from agentmon.domain.diffs import Diff, DiffSide
from agentmon.widgets.diff_colours import DiffColours, find_lexer
from agentmon.widgets.diff_painter import LONGEST_LINE, DiffMarks, DiffPainter, file_name, line_text
from agentmon.widgets.diff_rows import TOP, Anchor, DiffLayout, Place, RowKind
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.log_scroll_bar import LogScrollBar
from agentmon.widgets.log_view import SLICE_REST_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.style import Style
    from textual import events
    from textual.app import ComposeResult
    from textual.geometry import Region
    from textual.strip import Strip

    from agentmon.domain.diffs import FileDiff, LineSpan
    from agentmon.logs.pattern import LogPattern
    from agentmon.widgets.diff_rows import DiffRow

SIDE_BY_SIDE_COLUMNS: Final = 150
_SLICE_S: Final = 0.004
_SEARCH_SLICE_S: Final = 0.012
_SEARCHED_LINES: Final = 100
_WHEEL_ROWS: Final = 3
_SIDEWAYS_CELLS: Final = 8
_MARGIN_ROWS: Final = 3
"""How many rows stay in view above and below the cursor."""
_HEADS: Final = {RowKind.FILE, RowKind.GAP, RowKind.HUNK}
"""What a click folds or unfolds."""


class DiffText(Guarded, Widget, can_focus=True):
    """Shows a difference; ``DiffView`` sets what is shown and calls the moves."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"diff--{name}"
        for name in (
            *("text", "muted", "bold", "hunk", "mark", "rule", "letter", "plus", "minus"),
            *("head", "cursor", "marked", "match", "absent", "added", "removed", "added-word", "removed-word"),
            *("comment", "keyword", "number", "string", "name"),
        )
    }
    DEFAULT_CSS = """
    DiffText {
        width: 1fr;
        height: 1fr;
        .diff--text { color: $foreground; }
        .diff--muted { color: $text-muted; }
        .diff--bold { color: $foreground; text-style: bold; }
        .diff--hunk { color: $primary; }
        .diff--mark { color: $primary; text-style: bold; }
        .diff--rule { color: $foreground 25%; }
        .diff--letter { color: $primary; text-style: bold; }
        .diff--plus { color: $success; text-style: bold; }
        .diff--minus { color: $error; text-style: bold; }
        .diff--head { background: $panel; }
        .diff--cursor { background: $block-cursor-background; }
        .diff--marked { background: $primary 25%; }
        .diff--match { background: $warning; color: $background; }
        .diff--absent { background: $foreground 4%; }
        .diff--added { background: $success 10%; }
        .diff--removed { background: $error 10%; }
        .diff--added-word { background: $success 30%; }
        .diff--removed-word { background: $error 30%; }
        .diff--comment { color: $text-muted; text-style: italic; }
        .diff--keyword { color: $primary; }
        .diff--number { color: $accent; }
        .diff--string { color: $secondary; }
        .diff--name { color: $foreground; text-style: bold; }
    }
    """

    class Moved(Message):
        """The cursor stands elsewhere, or something else is shown."""

    class FoldWanted(Message):
        """A head under the mouse is to be folded or unfolded; the cursor is on it."""

    def __init__(self, *, placeholder: str) -> None:
        super().__init__()
        self._placeholder = placeholder
        self.layout_of_diff = DiffLayout(Diff())
        self.wants_sides = True
        self.ignores_blanks = False
        self.commented: frozenset[LineSpan] = frozenset()
        self.notes: Mapping[str, str] = {}
        self.sizes: Mapping[str, tuple[int | None, int | None]] = {}
        self._looked: frozenset[str] = frozenset()
        self._toggled: frozenset[str] = frozenset()
        self._unchanged: Mapping[str, Sequence[str]] = {}
        self._cursor = TOP
        self._top = TOP
        self._left = 0
        self._mark: Anchor | None = None
        self._pattern: LogPattern | None = None
        self._found: tuple[Place, tuple[int, int, int]] | None = None
        """Where the cursor went last for what was found, and what that was."""
        self._rows: list[DiffRow] | None = None
        self._strips: list[Strip] = []
        self._frame_size = Size(0, 0)
        self._drawn_base: Style | None = None
        self._colours = DiffColours()
        self._painter = DiffPainter(self, self._colours)
        self._is_colouring = False

    def compose(self) -> ComposeResult:
        """Yield the scroll bar; the text is drawn by the widget itself."""
        yield LogScrollBar()

    # What the owner reads

    @property
    def row(self) -> DiffRow | None:
        """The row under the cursor; None while nothing is shown."""
        return self.layout_of_diff.row(self._cursor) if self.layout_of_diff.parts else None

    @property
    def shown_text(self) -> str:
        """The text of the rows in view, one line each."""
        self._frame()
        return "\n".join(strip.text.rstrip() for strip in self._strips)

    @property
    def cursor_y(self) -> int:
        """In which row of the view the cursor is."""
        rows = self.layout_of_diff.forwards(self._top, self.size.height)
        return next((at for at, row in enumerate(rows) if row.place == self._cursor), 0)

    @property
    def is_colouring(self) -> bool:
        """Whether colours of the language are still to come for what is in view."""
        self._frame()
        return self._is_colouring

    @property
    def has_mark(self) -> bool:
        """Whether a range of lines is selected."""
        return self._mark is not None

    @property
    def is_side_by_side(self) -> bool:
        """Whether old and new lines stand side by side."""
        return self.layout_of_diff.side_by_side

    def selected(self) -> list[DiffRow]:
        """Return the rows from the mark to the cursor, of the file of the mark; the row under it without a mark."""
        row = self.row
        if row is None:
            return []
        span = self._marked_span()
        if span is None or self._mark is None:
            return [row]
        layout = self.layout_of_diff
        file = layout.parts[layout.find(self._mark).part].file
        rows: list[DiffRow] = []
        for part in range(span[0].part, span[1].part + 1):
            if layout.parts[part].file != file:
                continue
            first = span[0].row if part == span[0].part else 0
            last = span[1].row if part == span[1].part else layout.row_count(part) - 1
            rows += [layout.row(Place(part, at)) for at in range(first, last + 1)]
        return rows

    # What the owner calls

    def show(
        self,
        diff: Diff | None = None,
        *,
        unchanged: Mapping[str, Sequence[str]] | None = None,
        looked: frozenset[str] | None = None,
        toggled: frozenset[str] | None = None,
        columns: int | None = None,
    ) -> None:
        """Show this in the place of what was shown; the cursor stays on its line, and that in its row of the view.

        Args:
            diff: The difference; None for the same.
            unchanged: The whole texts of files that are known; None for the same.
            looked: What a person has looked at; None for the same.
            toggled: What is folded or unfolded by hand; None for the same.
            columns: How wide the whole view is, which decides whether sides fit; None for as wide as before.
        """
        before = self.layout_of_diff
        y = self.cursor_y
        anchor = before.anchor(self._cursor) if before.parts else None
        self._columns = self._columns if columns is None else columns
        former = before.diff, self._unchanged, self._looked, self._toggled
        diff = before.diff if diff is None else diff
        self._unchanged = self._unchanged if unchanged is None else unchanged
        self._looked = self._looked if looked is None else looked
        self._toggled = self._toggled if toggled is None else toggled
        layout = before
        if former != (diff, self._unchanged, self._looked, self._toggled):
            layout = DiffLayout(diff, looked=self._looked, toggled=self._toggled, unchanged=self._unchanged)
        layout = layout.in_form(
            side_by_side=self.wants_sides and self._columns >= SIDE_BY_SIDE_COLUMNS, ignores_blanks=self.ignores_blanks
        )
        if layout is before:
            return
        self.layout_of_diff = layout
        self._found = None
        self._cursor = TOP if anchor is None else layout.find(anchor)
        self._top = layout.moved(self._cursor, -y)
        self._changed()

    _columns: int = 0

    def show_unchanged(self, path: str, lines: Sequence[str]) -> None:
        """Take the lines of the whole new text of a file, from which its gaps are filled."""
        self.show(unchanged={**self._unchanged, path: lines})

    @property
    def unchanged_paths(self) -> frozenset[str]:
        """Of which files the whole text is known."""
        return frozenset(self._unchanged)

    def forget_unchanged(self, paths: frozenset[str]) -> None:
        """Forget the texts of these files."""
        self._unchanged = {path: lines for path, lines in self._unchanged.items() if path not in paths}

    def toggle_fold(self, names: frozenset[str]) -> None:
        """Fold what is unfolded of these, and unfold the others."""
        self.show(toggled=self._toggled ^ names)

    def note(self, commented: frozenset[LineSpan], notes: Mapping[str, str]) -> None:
        """Mark lines that somebody has said something about, and hunks and files with what is said of them."""
        self.commented, self.notes = commented, notes
        self._changed()

    def highlight(self, pattern: LogPattern | None) -> None:
        """Mark what the pattern matches; None marks nothing."""
        self._pattern = pattern
        self._repaint()

    def toggle_mark(self) -> None:
        """Select from the line under the cursor on, or select nothing."""
        has_parts = bool(self.layout_of_diff.parts)
        self._mark = None if self._mark is not None or not has_parts else self.layout_of_diff.anchor(self._cursor)
        self._repaint()

    def move_by(self, count: int) -> None:
        """Move the cursor by rows, up when negative; the view follows."""
        layout = self.layout_of_diff
        if not layout.parts:
            return
        place = layout.moved(self._cursor, count)
        while layout.parts[place.part].kind is RowKind.BLANK:
            following = layout.moved(place, 1 if count > 0 else -1)
            if following == place:
                place = layout.moved(place, -1)
                break
            place = following
        self.go_to(place)

    def move_pages(self, count: float) -> None:
        """Move view and cursor by so many heights of the view, up when negative."""
        rows = int(count * self.size.height) or (1 if count > 0 else -1)
        self._top = self.layout_of_diff.moved(self._top, rows)
        self.move_by(rows)

    def go_to(self, place: Place, *, at_top: bool = False) -> None:
        """Put the cursor on a row and bring it into view: by as little as can be, or to the top."""
        self._cursor = place
        self._show_cursor(at_top=at_top)
        self._changed()

    def go_to_part(self, kind: RowKind, direction: int) -> None:
        """Go to the next part of a kind, or to the one before; stay where there is none."""
        layout = self.layout_of_diff
        if not layout.parts:
            return
        at = self._cursor.part
        if direction < 0 and self._cursor.row > 0 and layout.parts[at].kind is kind:
            # The head of the one in which the cursor is comes first.
            self.go_to(Place(at, 0), at_top=True)
            return
        following = range(at + 1, len(layout.parts)) if direction > 0 else range(at - 1, -1, -1)
        found = next((one for one in following if layout.parts[one].kind is kind), None)
        if found is not None:
            self.go_to(Place(found, 0), at_top=True)

    def go_to_next_unseen(self) -> None:
        """Go to the next hunk, or file without hunks, that was not looked at; to the next head when all were."""
        layout = self.layout_of_diff
        for at in range(self._cursor.part, len(layout.parts)):
            part = layout.parts[at]
            has_hunks = bool(layout.diff.files[part.file].hunks)
            is_hunk = part.kind is RowKind.HUNK and not layout.is_hunk_looked(part)
            is_file = part.kind is RowKind.FILE and not has_hunks and not layout.is_looked(layout.diff.files[part.file])
            if is_hunk or is_file:
                self.go_to(Place(at, 0), at_top=True)
                return

    def go_to_next_note(self) -> bool:
        """Go to the next hunk, or file without hunks, of which something is said, round the end; False without any."""
        layout = self.layout_of_diff
        count = len(layout.parts)
        for at in [*range(self._cursor.part + 1, count), *range(min(count, self._cursor.part + 1))]:
            part = layout.parts[at]
            file = layout.diff.files[part.file]
            if part.kind is RowKind.HUNK:
                is_noted = layout.hunk_name(part) in self.notes or self._is_commented(file, part.hunk)
            else:
                is_noted = part.kind is RowKind.FILE and not file.hunks and layout.file_note(file, self.notes) != ""
            if is_noted:
                self.go_to(Place(at, 0), at_top=True)
                return True
        return False

    def go_sideways(self, direction: int) -> None:
        """Scroll the text sideways; numbers and signs stay."""
        left = max(0, min(self._left + direction * _SIDEWAYS_CELLS, LONGEST_LINE))
        if left != self._left:
            self._left = left
            self._repaint()

    def matches(self, pattern: LogPattern, direction: int) -> Iterator[tuple[int, int, int] | None]:
        """Yield the lines that match from the cursor on, round the end: file, hunk and line; None between looks.

        The path of a file is line -1 of hunk -1.
        """
        layout = self.layout_of_diff
        files = layout.diff.files
        if not files:
            return
        origin = self.spot
        numbers = [(origin[0] + direction * step) % len(files) for step in range(len(files) + 1)]
        for step, at in enumerate(numbers):
            for spot in self._matches_in(files[at], at, pattern, direction):
                # What lies behind the cursor in its own file comes last.
                if spot is not None and step in {0, len(files)}:
                    is_ahead = spot > origin if direction > 0 else spot < origin
                    if is_ahead != (step == 0):
                        continue
                yield spot
            yield None

    def go_to_spot(self, spot: tuple[int, int, int]) -> None:
        """Go to what a search found; it is unfolded."""
        layout = self.layout_of_diff
        file, hunk, line = spot
        folded = set()
        head = layout.parts[layout.first_parts[file]]
        if hunk >= 0 and layout.is_folded(head):
            folded.add(layout.fold_name(head))
        if hunk >= 0:
            part = head._replace(kind=RowKind.HUNK, hunk=hunk)
            folded |= {layout.fold_name(part)} if layout.is_folded(part) else set()
        if folded:
            self.toggle_fold(frozenset(folded))
        self.go_to(self.layout_of_diff.line_place(*spot))
        self._found = self._cursor, spot
        self._show_column(spot_text(self.layout_of_diff, spot) if line >= 0 else "")

    # What Textual calls

    def on_resize(self) -> None:
        """Lay out again; the cursor stays in view."""
        self._show_cursor()
        self._repaint()

    def on_click(self, event: events.Click) -> None:
        """Put the cursor where the mouse is, and fold or unfold a head."""
        event.stop()
        rows = self._frame()
        if event.y < len(rows) and event.x < self.size.width - 1:
            row = rows[event.y]
            self._cursor = row.place
            self._changed()
            if row.kind in _HEADS:
                self.post_message(self.FoldWanted())

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll by the wheel."""
        event.stop()
        self._scroll(-_WHEEL_ROWS)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll by the wheel."""
        event.stop()
        self._scroll(_WHEEL_ROWS)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        """Scroll sideways by the wheel."""
        event.stop()
        self.go_sideways(-1)

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        """Scroll sideways by the wheel."""
        event.stop()
        self.go_sideways(1)

    def on_log_scroll_bar_moved(self, message: LogScrollBar.Moved) -> None:
        """Go where the scroll bar was put."""
        message.stop()
        layout = self.layout_of_diff
        if not layout.parts:
            return
        wanted = int(message.share * layout.weights[-1])
        low, high = 0, len(layout.parts) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if layout.weights[middle] <= wanted else (low, middle - 1)
        row = min(wanted - layout.weights[low], layout.row_count(low) - 1)
        self._cursor = self._top = Place(low, row)
        self._changed()

    def notify_style_update(self) -> None:
        """Forget what was drawn in the old style."""
        super().notify_style_update()
        self._painter.forget()
        self._rows = None

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the strips of a part of the view."""
        if self.rich_style != self._drawn_base:
            # Also when only a parent's background changed, of which Textual tells nobody.
            self._drawn_base = self.rich_style
            self._painter.forget()
            self._rows = None
        self._frame()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return the row ``y`` of the view."""
        if self._rows is None:
            self._frame()
        if y < len(self._strips):
            return self._strips[y]
        width = self.size.width
        if not self.layout_of_diff.parts and y == 0:
            is_empty = not self.layout_of_diff.diff.content.strip()
            return self._painter.placeholder(self._placeholder if is_empty else "Not a patch.", width)
        return self._painter.blank(width)

    # Inside

    def _changed(self) -> None:
        self._repaint()
        self.post_message(self.Moved())

    def _repaint(self) -> None:
        self._rows = None
        self.refresh()

    def _frame(self) -> list[DiffRow]:
        """Return the rows in view, laid out and drawn again if anything changed."""
        if self._rows is not None and self._frame_size == self.size:
            return self._rows
        layout, height = self.layout_of_diff, self.size.height
        self._frame_size = self.size
        if not layout.parts or height <= 0:
            self._rows, self._strips = [], []
            return self._rows
        self._top = min(self._top, layout.moved(layout.last, 1 - height))
        self._rows = rows = layout.forwards(self._top, height)
        marks = DiffMarks(
            cursor=self._cursor,
            marked=self._marked_span(),
            pattern=None if self._pattern is None else self._pattern.regex,
            left=self._left,
            commented=self.commented,
            notes=self.notes,
            sizes=self.sizes,
        )
        self._strips = self._painter.strips(layout, rows, marks, max(1, self.size.width - 1))
        self._show_place(rows)
        self._colour_on()
        return rows

    def _is_commented(self, file: FileDiff, hunk: int) -> bool:
        found = file.hunks[hunk]
        return any(
            found.has(span.side, span.first_line, span.last_line) for span in self.commented if span.path == file.path
        )

    def _marked_span(self) -> tuple[Place, Place] | None:
        if self._mark is None:
            return None
        mark = self.layout_of_diff.find(self._mark)
        return min(mark, self._cursor), max(mark, self._cursor)

    def _show_cursor(self, *, at_top: bool = False) -> None:
        height, layout = self.size.height, self.layout_of_diff
        if height <= 0 or not layout.parts:
            return
        margin = min(_MARGIN_ROWS, (height - 1) // 2)
        highest = layout.moved(self._cursor, -margin)
        lowest = layout.moved(layout.moved(self._cursor, margin), 1 - height)
        if at_top:
            # All of what begins there is to be seen, as far as there is room.
            rest = layout.row_count(self._cursor.part) - 1 - self._cursor.row
            end = layout.moved(self._cursor, min(rest, height - 1 - 2 * margin))
            if self._top > highest or end > layout.moved(self._top, height - 1):
                self._top = highest
        self._top = min(max(self._top, lowest), highest)

    def _scroll(self, rows: int) -> None:
        """Scroll the view; the cursor stays on its line as long as that is in view."""
        layout, height = self.layout_of_diff, self.size.height
        if not layout.parts or height <= 0:
            return
        self._top = min(layout.moved(self._top, rows), layout.moved(layout.last, 1 - height))
        lowest = layout.moved(self._top, height - 1)
        cursor = min(max(self._cursor, self._top), lowest)
        if cursor != self._cursor:
            self._cursor = cursor
            self.post_message(self.Moved())
        self._repaint()

    def _show_place(self, rows: list[DiffRow]) -> None:
        bar = next((child for child in self.children if isinstance(child, LogScrollBar)), None)
        if bar is not None:
            weights, first = self.layout_of_diff.weights, rows[0].place
            is_all = first == TOP and rows[-1].place == self.layout_of_diff.last
            bar.show_part(weights[first.part] + first.row, len(rows), 0 if is_all else weights[-1])

    def _show_column(self, text: str) -> None:
        """Scroll sideways until the first match of a line is in view."""
        found = self._pattern.regex.search(text) if self._pattern is not None else None
        room = self.size.width // (2 if self.is_side_by_side else 1) - 14
        if found is not None and not self._left <= found.start() <= found.end() <= self._left + room:
            self._left = max(0, found.end() - room)
            self._repaint()

    @property
    def spot(self) -> tuple[int, int, int]:
        """File, hunk and line of the cursor, as ``matches`` has them."""
        layout = self.layout_of_diff
        if self._found is not None and self._found[0] == self._cursor:
            return self._found[1]
        part, row = layout.parts[self._cursor.part], layout.row(self._cursor)
        if part.kind is not RowKind.HUNK:
            return part.file, part.hunk - 1 if part.kind is RowKind.GAP else part.hunk, 1 << 60 if part.hunk > 0 else -1
        if row.kind is RowKind.HUNK:
            return part.file, part.hunk, -1
        lines = [line for line in (row.old, row.new) if line is not None]
        return part.file, part.hunk, max(lines)

    def _matches_in(
        self, file: FileDiff, at: int, pattern: LogPattern, direction: int
    ) -> Iterator[tuple[int, int, int] | None]:
        """Yield the matches in one file in order, or against it."""
        diff = self.layout_of_diff.diff
        has_name = pattern.regex.search(file_name(file.path, file.old_path)) is not None
        if direction > 0 and has_name:
            yield at, -1, -1
        hunks = range(len(file.hunks))
        for hunk in hunks if direction > 0 else reversed(hunks):
            lines = diff.lines(file.hunks[hunk])
            numbers = range(len(lines))
            for line in numbers if direction > 0 else reversed(numbers):
                if pattern.regex.search(line_text(lines, line)):
                    yield at, hunk, line
                elif line % _SEARCHED_LINES == 0:
                    yield None
        if direction < 0 and has_name:
            yield at, -1, -1

    def _colour_on(self) -> None:
        """Work out colours behind the keys and paints that wait."""
        if self._is_colouring or not self.is_attached:
            return
        path = self._colours.unknown_path
        if path is not None:
            self._is_colouring = True
            self.run_worker(self._find_lexer(path), group="lexer", exit_on_error=False)
        elif self._colours.has_work:
            self._is_colouring = True
            self.set_timer(SLICE_REST_S, self._colour)

    async def _find_lexer(self, path: str) -> None:
        lexer = await asyncio.to_thread(find_lexer, path)
        self._is_colouring = False
        self._colours.take_lexer(path, lexer)
        self._colour_on()

    def _colour(self) -> None:
        self._is_colouring = False
        if self._colours.work(_SLICE_S):
            self._repaint()
        self._colour_on()


def search_slice(steps: Iterator[tuple[int, int, int] | None]) -> tuple[bool, tuple[int, int, int] | None]:
    """Go on with a search for a moment; return whether it is over, and what was found."""
    started = monotonic()
    for spot in steps:
        if spot is not None:
            return True, spot
        if monotonic() - started > _SEARCH_SLICE_S:
            return False, None
    return True, None


def spot_text(layout: DiffLayout, spot: tuple[int, int, int]) -> str:
    """Return the line of a spot as it is shown."""
    file, hunk, line = spot
    return line_text(layout.diff.lines(layout.diff.files[file].hunks[hunk]), line)


def side_of(rows: list[DiffRow], layout: DiffLayout) -> tuple[DiffSide, list[DiffRow], int, int] | None:
    """Return the side that rows are of, those of them that it has, and their first and last number; None without lines.

    It is the new side as soon as one of them has a line there.
    """
    for side, is_old in ((DiffSide.NEW, False), (DiffSide.OLD, True)):
        of_side = [
            row
            for row in rows
            if row.kind in {RowKind.LINE, RowKind.KEPT} and (row.old if is_old else row.new) is not None
        ]
        numbers = [number for row in of_side if (number := layout.numbers(row)[0 if is_old else 1]) is not None]
        if numbers:
            return side, of_side, numbers[0], numbers[-1]
    return None
