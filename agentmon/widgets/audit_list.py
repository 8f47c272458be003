"""The audit trail of a task as sentences: who did what, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.containers import VerticalScroll
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from agentmon.domain.audit import actor_name, event_sentence
from agentmon.domain.clock import SystemClock
from agentmon.domain.events import ActorType, TaskEvent
from agentmon.domain.near_paths import near_text
from agentmon.widgets.cells import even_line
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.local_time import local_time_text

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from agentmon.domain.clock import Clock

_TIME_CELLS: Final = 12
_ACTOR_CELLS: Final = 9


class AuditList(Guarded, VerticalScroll, can_focus=True):
    """Sentences, the newest at the bottom; stays at the bottom while it stands there."""

    DEFAULT_CSS = """
    AuditList {
        height: 1fr;
        & > Static { width: 1fr; height: auto; }
    }
    """

    history: reactive[tuple[TaskEvent, ...]] = reactive((), layout=False, repaint=False, init=False)
    """The newest last."""
    folder: reactive[str] = reactive("", layout=False, repaint=False, init=False)
    """Paths below it are told from there; set it before the history."""

    def __init__(self, *, clock: Clock | None = None, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._clock = clock or SystemClock()

    def compose(self) -> ComposeResult:
        """Yield the one text."""
        yield Static(self._content())

    def watch_history(self, before: tuple[TaskEvent, ...], history: tuple[TaskEvent, ...]) -> None:
        """Show the sentences, and follow them when the end was in view."""
        if before == history or not self.is_mounted:
            return
        is_at_end = self.scroll_offset.y >= self.max_scroll_y
        self.query_one(Static).update(self._content())
        if is_at_end:
            self.scroll_end(animate=False)

    def _content(self) -> Content:
        if not self.history:
            return Content.styled("Nothing happened yet.", "$text-muted")
        now = self._clock.now()
        lines = []
        for event in self.history:
            moment = local_time_text(event.created_at, now)
            actor = actor_name(event.actor)
            lines.append(
                Content.assemble(
                    (f"{moment:>{_TIME_CELLS}}  ", "$text-muted"),
                    (f"{actor:<{_ACTOR_CELLS}}", "bold" if event.actor.type is ActorType.USER else "$text-muted"),
                    even_line(near_text(event_sentence(event), self.folder)),
                ),
            )
        return Content("\n").join(lines)
