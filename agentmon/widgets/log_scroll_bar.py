"""The narrow scroll bar beside a log: places are shares of the file's bytes, so that it needs no line count."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from textual import events


class LogScrollBar(Widget):
    """One column that shows which part of a log is in view, and takes clicks and drags."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"log-scroll-bar--thumb", "log-scroll-bar--track"}
    DEFAULT_CSS = """
    LogScrollBar {
        dock: right;
        width: 1;
        height: 1fr;
        .log-scroll-bar--thumb { color: $primary; }
        .log-scroll-bar--track { color: $foreground 15%; }
    }
    """

    thumb: reactive[tuple[int, int]] = reactive((0, 0))
    """The first row of the thumb and its length; no length when all of the log is in view."""

    class Moved(Message):
        """A person put the thumb somewhere else."""

        def __init__(self, share: float) -> None:
            super().__init__()
            self.share = share
            """The place in the file, from 0.0 for its beginning to 1.0 for its end."""

    def show_part(self, start: int, shown: int, total: int) -> None:
        """Let the thumb stand for ``shown`` bytes from ``start`` of ``total`` bytes."""
        height = self.size.height
        if height <= 0 or shown >= total:
            self.thumb = (0, 0)
            return
        length = min(height, max(1, round(height * shown / total)))
        self.thumb = (min(height - length, round((height - length) * start / (total - shown))), length)

    def render_line(self, y: int) -> Strip:
        """Return the row ``y`` of the bar."""
        start, length = self.thumb
        if not length:
            return Strip.blank(1, self.rich_style)
        if start <= y < start + length:
            return Strip([Segment("┃", self.get_component_rich_style("log-scroll-bar--thumb"))], 1)
        return Strip([Segment("│", self.get_component_rich_style("log-scroll-bar--track"))], 1)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin a drag, and go where the mouse is."""
        event.stop()
        self.capture_mouse()
        self._go_to(event.y)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Follow a drag."""
        if self.app.mouse_captured is self:
            event.stop()
            self._go_to(event.y)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """End a drag."""
        event.stop()
        self.release_mouse()

    def _go_to(self, y: int) -> None:
        last = max(1, self.size.height - 1)
        self.post_message(self.Moved(min(1.0, max(0.0, y / last))))
