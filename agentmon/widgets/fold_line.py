"""A line that folds what is below it, and says what is in there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widgets import Static

from agentmon.widgets.cells import even_line
from agentmon.widgets.guarded import Guarded

if TYPE_CHECKING:
    from textual import events


class FoldLine(Guarded, Static):
    """``▸ More   retries 2 · budget $5``; a click asks to unfold it."""

    DEFAULT_CSS = """
    FoldLine { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    is_open: var[bool] = var(default=False)
    summary: var[str] = var("")
    """What is set below the line; shown while it is folded."""

    @dataclass
    class Clicked(Message):
        """A person wants it unfolded, or folded."""

        line: FoldLine

    def __init__(self, label: str, *, key: str, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._label = label
        self._key = key

    def on_mount(self) -> None:
        """Draw the line."""
        self._draw()

    def watch_is_open(self) -> None:
        """Draw the line."""
        self._draw()

    def watch_summary(self) -> None:
        """Draw the line."""
        self._draw()

    def on_click(self, event: events.Click) -> None:
        """Ask for the other state."""
        event.stop()
        self.post_message(self.Clicked(self))

    def _draw(self) -> None:
        told = "" if self.is_open else even_line(self.summary)
        self.update(
            Content.assemble(
                ("▾ " if self.is_open else "▸ ", "$primary"),
                (f"{self._label:<15}", "$text-muted"),
                told or Content.styled(f"{self._key} {'folds it' if self.is_open else 'shows it'}", "$text-muted"),
            )
        )
