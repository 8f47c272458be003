"""The files of a difference, one in a row: how each was changed, how much, and whether it was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from agentmon.domain.diffs import ChangeKind
from agentmon.domain.letters import cut_before
from agentmon.widgets.cells import cells, cut, pad
from agentmon.widgets.diff_painter import LETTERS, shown_line
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.theme_style import theme_style

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.style import Style
    from textual import events
    from textual.geometry import Region, Size

    from agentmon.widgets.diff_rows import DiffLayout

_WHEEL_ROWS: Final = 3
_BESIDE_PATH: Final = 16
_LETTER_COLOURS: Final = {ChangeKind.ADDED: "success", ChangeKind.DELETED: "error", ChangeKind.UNMERGED: "warning"}


class DiffFiles(Guarded, Widget):
    """Draws the rows in view; a click wants a file shown. It takes no keys."""

    ALLOW_SELECT = False

    @dataclass
    class Clicked(Message):
        """A person wants to see the file of this number, counted from 0."""

        number: int

    def __init__(self) -> None:
        super().__init__()
        self._layout: DiffLayout | None = None
        self._current = 0
        self._notes: Mapping[str, str] = {}
        self._top = 0
        self._styles: dict[tuple[str, bool], Style] = {}
        self._drawn_base: Style | None = None

    def show(self, layout: DiffLayout, current: int, notes: Mapping[str, str]) -> None:
        """Show the files, that of this number lit and in view, and those marked of which anything is said."""
        is_other = self._layout is None or layout.diff is not self._layout.diff
        if layout is not self._layout or current != self._current or notes != self._notes:
            self._layout, self._current, self._notes = layout, current, notes
            self._reveal()
            self.refresh(layout=is_other)

    def get_content_width(self, container: Size, viewport: Size) -> int:  # noqa: ARG002 - Textual's signature
        """Return the width of the longest path with its counts."""
        files = () if self._layout is None else self._layout.diff.files
        return max((len(file.path) for file in files), default=0) + _BESIDE_PATH

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - as above
        """Return how many files there are."""
        return 0 if self._layout is None else len(self._layout.diff.files)

    def on_resize(self) -> None:
        """Keep the lit file in view."""
        self._reveal()

    def on_click(self, event: events.Click) -> None:
        """Ask for the file under the mouse."""
        event.stop()
        number = self._top + event.y
        if self._layout is not None and number < len(self._layout.diff.files):
            self.post_message(self.Clicked(number))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll by the wheel."""
        event.stop()
        self._scroll(-_WHEEL_ROWS)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll by the wheel."""
        event.stop()
        self._scroll(_WHEEL_ROWS)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the strips of a part of the view."""
        if self.rich_style != self._drawn_base:
            self._drawn_base = self.rich_style
            self._styles.clear()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return a row of the list."""
        layout, width = self._layout, self.size.width
        at = self._top + y
        if layout is None or at >= len(layout.diff.files) or width <= 0:
            return Strip.blank(width, self._style("foreground", is_lit=False))
        file = layout.diff.files[at]
        is_lit = at == self._current
        is_looked = layout.is_looked(file)
        counts = (f"+{file.added}", f" −{file.removed}") if file.hunks else ("binary" if file.is_binary else "", "")
        is_noted = layout.file_note(file, self._notes) != ""
        looked = " ●" if is_noted else " ✓" if is_looked else "  "
        room = max(0, width - 3 - cells("".join(counts)) - cells(looked) - 1)
        name = pad(cut_before(shown_line(file.path), room, cells), room)
        plain = "text-muted" if is_looked else "foreground"
        segments = [
            Segment("▌" if is_lit else " ", self._style("primary", is_lit=is_lit)),
            Segment(f"{LETTERS[file.kind]} ", self._style(_LETTER_COLOURS.get(file.kind, "primary"), is_lit=is_lit)),
            Segment(f"{name} ", self._style(plain, is_lit=is_lit)),
            Segment(counts[0], self._style("text-muted" if file.is_binary else "success", is_lit=is_lit)),
            Segment(counts[1], self._style("error", is_lit=is_lit)),
            Segment(cut(looked, width), self._style("warning" if is_noted else "text-muted", is_lit=is_lit)),
        ]
        return Strip(segments).adjust_cell_length(width, self._style("foreground", is_lit=is_lit))

    def _style(self, variable: str, *, is_lit: bool) -> Style:
        known = self._styles.get((variable, is_lit))
        if known is None:
            background = "block-cursor-background" if is_lit else None
            known = self._styles[(variable, is_lit)] = theme_style(self, variable, background=background)
        return known

    def _scroll(self, rows: int) -> None:
        count = 0 if self._layout is None else len(self._layout.diff.files)
        self._top = max(0, min(self._top + rows, count - self.size.height))
        self.refresh()

    def _reveal(self) -> None:
        count = 0 if self._layout is None else len(self._layout.diff.files)
        height = max(1, self.size.height)
        self._top = min(max(self._top, self._current - height + 1), self._current)
        self._top = max(0, min(self._top, count - height))
