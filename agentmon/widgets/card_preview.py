"""The selected card at a glance: its title, its state, and its log as it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.content import Content
from textual.reactive import var
from textual.widgets import Static

from agentmon.domain.amounts import cost_text
from agentmon.widgets.card_text import STATE_STYLES, cause_text, elapsed_text, is_ongoing, state_text
from agentmon.widgets.cells import even_line
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.log_view import LogView

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from textual.app import ComposeResult

    from agentmon.domain.board import Card

_COLOURS = {
    "muted": "$text-muted",
    "running": "$secondary",
    "warning": "$warning",
    "good": "$success",
    "bad": "$error",
}


class CardPreview(Guarded, Vertical):
    """Shows one card; the parent sets ``now`` and calls ``show`` and ``poll``."""

    DEFAULT_CSS = """
    CardPreview {
        & > #preview-head { height: auto; max-height: 6; padding: 0 1; }
        & > LogView { height: 1fr; margin: 1 0 0 1; }
        &.-without-log > LogView { display: none; }
    }
    """
    now: var[datetime | None] = var(None, init=False)
    """The time that elapsed times are counted to."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes="-without-log")
        self._card: Card | None = None
        self._head = Static("", id="preview-head", markup=False)
        self._log = LogView(is_tail=True, id="preview-log")
        self._shown_path: Path | None = None

    def compose(self) -> ComposeResult:
        """Yield head and log."""
        yield self._head
        yield self._log

    @property
    def is_live(self) -> bool:
        """Whether the log may still grow."""
        return self._card is not None and is_ongoing(self._card)

    def show(self, card: Card | None, log_path: Path | None) -> None:
        """Show the card and the log of its newest execution; a missing log file shows nothing yet."""
        if card != self._card:
            self._card = card
            self._write_head()
        if log_path != self._shown_path:
            self._shown_path = log_path
            self._log.path = log_path
            self.set_class(log_path is None, "-without-log")
        self.poll()

    def poll(self) -> None:
        """Look whether the log has grown."""
        if self._shown_path is not None:
            self._log.poll()

    def watch_now(self) -> None:
        """Move the elapsed time on."""
        if self.is_live:
            self._write_head()

    def _write_head(self) -> None:
        card = self._card
        if card is None:
            self._head.update(Content.styled("Select a card to see its log here.", "$text-muted"))
            return
        lines = [
            Content.assemble((f"#{card.number} ", "$text-muted"), (even_line(card.title, max_characters=300), "b"))
        ]
        facts: list[tuple[str, str]] = [
            (even_line(card.command_word or card.agent_slug or "no program"), "$text-muted")
        ]
        if card.state is not None:
            facts.append((state_text(card), _COLOURS[STATE_STYLES[card.state]]))
        if card.started_at is not None and self.now is not None:
            facts.append((elapsed_text(card, self.now), "$text-muted"))
        if card.cost_nano:
            facts.append((cost_text(card.cost_nano), "$text-muted"))
        if card.waits_for:
            facts.append((f"waits for {', '.join(f'#{number}' for number in card.waits_for)}", "$text-muted"))
        lines.append(Content("  ").join([Content.styled(text, style) for text, style in facts]))
        if card.error:
            lines.append(Content.styled(cause_text(card.error, card.exit_code), "$error"))
        if card.execution_id is None:
            lines.append(Content.styled("Never ran: r runs it.", "$text-muted"))
        self._head.update(Content("\n").join(lines))
