"""The line at the top: where one is, what runs, what waits for a person, what the day cost, the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from textual.message import Message
from textual.reactive import var
from textual.strip import Strip
from textual.widget import Widget

from agentmon.domain.amounts import today_text
from agentmon.domain.board import StatusLine
from agentmon.domain.limits import WARN_PERCENTS
from agentmon.domain.live_state import LiveState, short_moment
from agentmon.widgets.cells import cells, cut, even_line
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.theme_style import theme_style

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rich.style import Style
    from textual import events

_STYLES: Final = {
    "name": ("primary", True),
    "place": ("foreground", False),
    "running": ("secondary", False),
    "warning": ("warning", True),
    "muted": ("text-muted", False),
}
"""Theme variable and weight of each style."""
_GAP: Final = 3
_LONGEST_TROUBLE: Final = 44
_SHORT_TROUBLE: Final = 24


class StatusBar(Guarded, Widget, can_focus=False):
    """One line of numbers; what does not fit is left out, the least needed first."""

    DEFAULT_CSS = """
    StatusBar { dock: top; height: 1; background: $surface; }
    """
    place: var[str] = var("", init=False)
    """The name of the workspace, as it is stored."""
    sorting: var[str] = var("", init=False)
    """How the cards are sorted, in words; empty while they stand in their own order."""
    marked: var[int] = var(0, init=False)
    """How many cards are marked for the next action."""
    numbers: var[StatusLine] = var(StatusLine(), init=False)
    """What is shown."""
    import_percent: var[int | None] = var(None, init=False)
    """How much of the agents' histories an import has read; None while none goes on."""
    paused_since: var[datetime | None] = var(None, init=False)
    """Since when the queue is paused; None while that is not known."""
    time: var[datetime | None] = var(None, init=False)
    """The local time; None shows none."""
    trouble: var[str] = var("", init=False)
    """What is wrong in the background, in a few words; empty when all is well."""

    class PauseClicked(Message):
        """The words about the pause were clicked."""

    class TroubleClicked(Message):
        """The words about a trouble were clicked."""

    _pause_cells: tuple[int, int] = (0, 0)
    """From which cell to which the words about a pause stand."""
    _trouble_cells: tuple[int, int] = (0, 0)
    """From which cell to which the words about a trouble stand."""

    def watch_place(self) -> None:
        """Draw the line."""
        self.refresh()

    def watch_sorting(self) -> None:
        """Draw the line."""
        self.refresh()

    def watch_marked(self) -> None:
        """Draw the line."""
        self.refresh()

    def watch_numbers(self) -> None:
        """Draw the line."""
        self.refresh()

    def watch_import_percent(self) -> None:
        """Draw the line."""
        self.refresh()

    def watch_paused_since(self) -> None:
        """Draw the line."""
        self.refresh()

    def watch_trouble(self) -> None:
        """Draw the line."""
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Tell the parent that the words about the pause or a trouble were clicked."""
        event.stop()
        start, end = self._trouble_cells
        if start <= event.x < end:
            self.post_message(self.TroubleClicked())
        start, end = self._pause_cells
        if start <= event.x < end:
            self.post_message(self.PauseClicked())

    def watch_time(self, before: datetime | None, after: datetime | None) -> None:
        """Draw the line when the minute changed."""
        if _clock_text(before) != _clock_text(after):
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return the line."""
        width = self.size.width
        if y:
            return Strip.blank(width, self.rich_style)
        name = " agentmon  "
        room = max(0, width - cells(name))
        parts = self._parts_for(room)
        right = _width(parts)
        sorting = f" · {self.sorting}" if self.sorting else ""
        marked = f" · {self.marked} marked" if self.marked else ""
        place = cut(f"{even_line(self.place)}{marked}{sorting}", max(0, room - right - 1))
        segments = [
            Segment(cut(name, width), self._style("name")),
            Segment(place, self._style("place")),
            Segment(" " * max(0, room - right - cells(place)), self._style("muted")),
        ]
        at_cell = cells(name) + room - right
        self._pause_cells = self._trouble_cells = (0, 0)
        for at, (kind, text, style) in enumerate(parts):
            if kind == "pause":
                self._pause_cells = (at_cell, at_cell + cells(text))
            if kind == "trouble":
                self._trouble_cells = (at_cell, at_cell + cells(text))
            at_cell += cells(text) + _GAP
            segments.append(Segment(text, self._style(style)))
            segments.append(Segment("   " if at < len(parts) - 1 else " ", self._style("muted")))
        return Strip(segments).crop(0, width)

    def _parts_for(self, room: int) -> list[tuple[str, str, str]]:
        """Return the parts that fit; the least needed go first, the words of a pause are shortened before it goes."""
        least = min(cells(even_line(self.place)), 12) + 1
        parts = self._parts()
        for kind in ("import", "cost", "time", "queued", "needs-you"):
            if _width(parts) + least + 1 < room:
                return parts
            parts = [part for part in parts if part[0] != kind]
        for words in self._pause_words()[1:]:
            if _width(parts) + least + 1 >= room:
                parts = [(kind, words if kind == "pause" else text, style) for kind, text, style in parts]
        for words in self._trouble_words()[1:]:
            if _width(parts) + least + 1 >= room:
                parts = [(kind, words if kind == "trouble" else text, style) for kind, text, style in parts]
        if _width(parts) > room:
            parts = [part for part in parts if part[0] in {"pause", "trouble"}]
        return parts if _width(parts) <= room else []

    def _trouble_words(self) -> list[str]:
        """Return the words of a trouble, the longest first; none while all is well."""
        if not self.trouble:
            return []
        words = even_line(self.trouble)
        return [f"! {cut(words, _LONGEST_TROUBLE)} · B shows", f"! {cut(words, _SHORT_TROUBLE)}", "! B shows", "!"]

    def _pause_words(self) -> list[str]:
        """Return the words of a pause, the longest first; none while the queue goes on."""
        if not self.numbers.is_paused:
            return []
        words = f"{LiveState.PAUSED.glyph} {LiveState.PAUSED.value}"
        since = self.paused_since
        now = self.time
        longest = [] if since is None or now is None else [f"{words} since {short_moment(since, now)} · P goes on"]
        return [*longest, f"{words} · P goes on", words]

    def _parts(self) -> list[tuple[str, str, str]]:
        """Return kind, text and style of what stands on the right, from left to right."""
        numbers = self.numbers
        limit = f"/{numbers.running_limit}" if numbers.running_limit else ""
        is_running = numbers.running > 0
        parts = [("trouble", words, "warning") for words in self._trouble_words()[:1]]
        parts += [("pause", words, "warning") for words in self._pause_words()[:1]]
        parts.append(
            (
                "running",
                f"{LiveState.RUNNING.glyph} {numbers.running}{limit} running",
                "running" if is_running else "muted",
            )
        )
        if numbers.queued:
            parts.append(("queued", f"{LiveState.QUEUED.glyph} {numbers.queued} queued", "muted"))
        if numbers.needs_you:
            verb = "needs" if numbers.needs_you == 1 else "need"
            parts.append(("needs-you", f"{LiveState.NEEDS_YOU.glyph} {numbers.needs_you} {verb} you", "warning"))
        if self.import_percent is not None:
            parts.append(("import", f"reading history {self.import_percent} %", "muted"))
        budget_nano = numbers.budget_today_nano
        cost = today_text(
            numbers.cost_today_nano, unpriced=numbers.unpriced_today, budget_nano=budget_nano, money=numbers.money
        )
        if cost:
            is_near = budget_nano is not None and numbers.cost_today_nano * 100 >= budget_nano * WARN_PERCENTS[1]
            parts.append(("cost", cost, "warning" if is_near else "place"))
        clock = _clock_text(self.time)
        if clock:
            parts.append(("time", clock, "muted"))
        return parts

    def _style(self, name: str) -> Style:
        variable, is_bold = _STYLES[name]
        return theme_style(self, variable, is_bold=is_bold)


def _width(parts: Sequence[tuple[str, str, str]]) -> int:
    """Return the cells that the parts take, with the blank at the edge."""
    return sum(cells(text) + _GAP for _, text, _ in parts) - (_GAP - 1 if parts else 0)


def _clock_text(time: datetime | None) -> str:
    return "" if time is None else f"{time:%H:%M}"
