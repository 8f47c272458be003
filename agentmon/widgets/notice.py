"""One short line in the middle of whatever room there is, down to a single cell."""

from __future__ import annotations

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from agentmon.widgets.cells import cells, cut


class Notice(Widget, can_focus=False):
    """Draws its text centred and cut to the room."""

    DEFAULT_CSS = """
    Notice { width: 1fr; height: 1fr; }
    """

    def __init__(self, text: str, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._text = text

    def render_line(self, y: int) -> Strip:
        """Return the text on the middle line, blanks on the others."""
        width, height = self.size
        text = cut(self._text, width) if y == height // 2 else ""
        left = (width - cells(text)) // 2
        return Strip([Segment(" " * left + text + " " * (width - left - cells(text)), self.rich_style)], width)
