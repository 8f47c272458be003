"""The screen that stands in for the board when the services cannot be opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Static

from agentmon.domain.plain_text import plain_lines
from agentmon.screens.bindings import FAILURE

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType


class FailureScreen(Screen[None]):
    """Says what failed and what to do, and leaves on ``q``."""

    CSS_PATH = "failure.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*FAILURE]

    def __init__(self, message: str, hint: str) -> None:
        super().__init__()
        self._message = plain_lines(message)
        self._hint = plain_lines(hint)

    def compose(self) -> ComposeResult:
        """Yield the message, the hint and the key."""
        with Vertical(id="failure"):
            yield Static("✗ agentmon cannot go on", id="failure-title", markup=False)
            yield Static(self._message, id="failure-message", markup=False)
            if self._hint:
                yield Static(self._hint, id="failure-hint", markup=False)
            yield Static("q leaves. Whatever was running goes on.", id="failure-keys", markup=False)
