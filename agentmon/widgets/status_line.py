"""The line at the top: where one is, what runs, what waits for a person, what the day cost, the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from textual.reactive import var
from textual.strip import Strip
from textual.widget import Widget

from agentmon.domain.amounts import cost_text
from agentmon.domain.board import StatusLine
from agentmon.domain.live_state import LiveState
from agentmon.widgets.cells import cells, cut, even_line
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.theme_style import theme_style

if TYPE_CHECKING:
    from datetime import datetime

    from rich.style import Style

_STYLES: Final = {
    "name": ("primary", True),
    "place": ("foreground", False),
    "running": ("secondary", False),
    "warning": ("warning", True),
    "muted": ("text-muted", False),
}
"""Theme variable and weight of each style."""


class StatusBar(Guarded, Widget, can_focus=False):
    """One line of numbers; what does not fit is left out, the least needed first."""

    DEFAULT_CSS = """
    StatusBar { dock: top; height: 1; background: $surface; }
    """
    place: var[str] = var("", init=False)
    """The name of the workspace, as it is stored."""
    numbers: var[StatusLine] = var(StatusLine(), init=False)
    """What is shown."""
    time: var[datetime | None] = var(None, init=False)
    """The local time; None shows none."""

    def watch_place(self) -> None:
        """Draw the line."""
        self.refresh()

    def watch_numbers(self) -> None:
        """Draw the line."""
        self.refresh()

    def watch_time(self, before: datetime | None, after: datetime | None) -> None:
        """Draw the line when the minute changed."""
        if _clock_text(before) != _clock_text(after):
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return the line."""
        width = self.size.width
        if y:
            return Strip.blank(width, self.rich_style)
        parts = self._parts()
        name = " agentmon  "
        room = max(0, width - cells(name))
        # Least needed first: what stands behind in this order goes when the place has no room.
        least = min(cells(even_line(self.place)), 12) + 1
        for kind in ("cost", "time", "queued", "needs-you"):
            if sum(cells(text) + 3 for _, text, _ in parts) + least <= room:
                break
            parts = [part for part in parts if part[0] != kind]
        right = sum(cells(text) + 3 for _, text, _ in parts) - (2 if parts else 0)
        if right > room:
            parts, right = [], 0
        place = cut(even_line(self.place), max(0, room - right - 1))
        segments = [
            Segment(cut(name, width), self._style("name")),
            Segment(place, self._style("place")),
            Segment(" " * max(0, room - right - cells(place)), self._style("muted")),
        ]
        for at, (_, text, style) in enumerate(parts):
            segments.append(Segment(text, self._style(style)))
            segments.append(Segment("   " if at < len(parts) - 1 else " ", self._style("muted")))
        return Strip(segments).crop(0, width)

    def _parts(self) -> list[tuple[str, str, str]]:
        """Return kind, text and style of what stands on the right, from left to right."""
        numbers = self.numbers
        limit = f"/{numbers.running_limit}" if numbers.running_limit else ""
        is_running = numbers.running > 0
        parts = [
            (
                "running",
                f"{LiveState.RUNNING.glyph} {numbers.running}{limit} running",
                "running" if is_running else "muted",
            )
        ]
        if numbers.queued:
            parts.append(("queued", f"{LiveState.QUEUED.glyph} {numbers.queued} queued", "muted"))
        if numbers.needs_you:
            verb = "needs" if numbers.needs_you == 1 else "need"
            parts.append(("needs-you", f"{LiveState.NEEDS_YOU.glyph} {numbers.needs_you} {verb} you", "warning"))
        if numbers.cost_today_nano:
            parts.append(("cost", f"{cost_text(numbers.cost_today_nano)} today", "place"))
        clock = _clock_text(self.time)
        if clock:
            parts.append(("time", clock, "muted"))
        return parts

    def _style(self, name: str) -> Style:
        variable, is_bold = _STYLES[name]
        return theme_style(self, variable, is_bold=is_bold)


def _clock_text(time: datetime | None) -> str:
    return "" if time is None else f"{time:%H:%M}"
