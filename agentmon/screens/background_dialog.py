"""How the background work goes: each loop of the app and of the worker, and what to do about what fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from rich.table import Table
from rich.text import Text
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agentmon.domain.background_loops import LoopCondition
from agentmon.domain.plain_text import plain_line
from agentmon.screens.bindings import DETAIL
from agentmon.services.background import loop_text
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.worker import Worker

    from agentmon.domain.background_loops import LoopState
    from agentmon.services.background import Trouble, WorkerHealth

_LOOK_EVERY_S: Final = 1.0
_GLYPHS: Final = {
    LoopCondition.WAITING: "·",
    LoopCondition.FINE: "✓",
    LoopCondition.FAILING: "✗",
    LoopCondition.HANGING: "✗",
}


class BackgroundPicture(NamedTuple):
    """Every loop of both processes at one moment."""

    of_app: tuple[LoopState, ...]
    health: WorkerHealth
    troubles: tuple[Trouble, ...]
    now: datetime


class BackgroundDialog(Guarded, ModalScreen[None]):
    """Looks again every second while it is open."""

    CSS_PATH = "background_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*DETAIL]
    AUTO_FOCUS = "#loops"

    def __init__(self, look: Callable[[], Awaitable[BackgroundPicture]]) -> None:
        super().__init__()
        self._look = look

    def compose(self) -> ComposeResult:
        """Yield the heading, the troubles, the loops and the keys."""
        with Vertical(id="dialog"):
            yield Static(Content("Background work"), id="heading")
            with VerticalScroll(id="loops"):
                yield Static(id="troubles", markup=False)
                yield Static(id="table", markup=False)
            yield KeyFooter()

    def on_mount(self) -> None:
        """Look now, and again every second."""
        self._start_look()
        self.set_interval(_LOOK_EVERY_S, self._start_look, name="background")

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(None)

    def action_scroll(self, rows: int) -> None:
        """Scroll by rows."""
        self.query_one("#loops").scroll_relative(y=rows, animate=False)

    def action_scroll_page(self, direction: int) -> None:
        """Scroll by a page."""
        loops = self.query_one("#loops")
        loops.scroll_relative(y=direction * loops.size.height, animate=False)

    def _start_look(self) -> None:
        _looking: Worker[None] = self.run_worker(
            self._show, name="look", group="look", exclusive=True, exit_on_error=False
        )

    async def _show(self) -> None:
        picture = await self._look()
        self.query_one("#troubles", Static).update(_troubles_text(picture.troubles))
        self.query_one("#table", Static).update(_table(picture))


def _troubles_text(troubles: tuple[Trouble, ...]) -> Content:
    if not troubles:
        return Content.styled("Everything goes well.", "$success")
    parts: list[tuple[str, str]] = []
    for trouble in troubles:
        parts += [(f"! {plain_line(trouble.text)}\n", "$warning"), (f"  {plain_line(trouble.hint)}\n", "$text-muted")]
    return Content.assemble(*parts)


def _table(picture: BackgroundPicture) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column()
    _add_part(grid, "In this app", picture.of_app, picture.now)
    health = picture.health
    if not health.is_running:
        grid.add_row("", "", "")
        grid.add_row("", Text("Worker", style="bold"), "not running; it starts with the first run")
        return grid
    grid.add_row("", "", "")
    _add_part(grid, f"Worker, pid {health.pid or '?'}", health.loops, picture.now)
    return grid


def _add_part(grid: Table, heading: str, loops: tuple[LoopState, ...], now: datetime) -> None:
    grid.add_row("", Text(heading, style="bold"), "")
    for loop in loops:
        condition = loop.condition(now)
        grid.add_row(_GLYPHS[condition], Text(loop.name), Text(loop_text(loop, now)))
