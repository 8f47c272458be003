"""The selected card at a glance: its title, its state, and its log as it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.content import Content
from textual.reactive import var
from textual.widgets import Static

from agentmon.domain.labels import labels_text
from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import AwaitedState
from agentmon.domain.worktrees import FOLDER_HINT
from agentmon.widgets.card_text import (
    due_part,
    find_state_words,
    is_dated,
    is_ongoing,
    is_open,
    need_words,
    schedule_words,
    subtask_words,
)
from agentmon.widgets.cells import even_line
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.log_view import LogView
from agentmon.widgets.state_words import cause_text, stuck_hint

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

    def show_screen(self, text: bytes | None) -> None:
        """Show what a terminal shows in the place of the log; None shows the log again."""
        self._log.show_text(text)

    def poll(self) -> None:
        """Look whether the log has grown."""
        if self._shown_path is not None:
            self._log.poll()

    def watch_now(self) -> None:
        """Move the elapsed time on, and the words of times that pass."""
        if self._card is not None and (is_ongoing(self._card) or is_dated(self._card)):
            self._write_head()

    def _write_head(self) -> None:
        card = self._card
        if card is None:
            self._head.update(Content.styled("Select a card to see its log here.", "$text-muted"))
            return
        lines = [
            Content.assemble(
                (f"{even_line(card.name)} ", "$text-muted"), (even_line(card.title, max_characters=300), "b")
            ),
            Content("  ").join([Content.styled(text, style) for text, style in self._facts(card)]),
            *(Content.styled(text, style) for text, style in _reasons(card)),
            *(Content.styled(text, "$text-muted") for text in _worktree_lines(card)),
        ]
        self._head.update(Content("\n").join(lines))

    def _facts(self, card: Card) -> list[tuple[str, str]]:
        facts = [(even_line(card.command_word or card.agent_slug or "no program"), "$text-muted")]
        now = self.now
        told = None if now is None else find_state_words(card, now)
        if told is not None:
            facts.append((told.text, _COLOURS[told.style]))
        others = [subtask_words(card.subtask_count, card.subtasks_closed), card.spent_text]
        if now is not None:
            schedule = "" if card.next_run_at is None else schedule_words(card.next_run_at, now)
            others = [card.elapsed_text(now), schedule, *others]
        if card.waits_for and not is_open(card):
            others.append(f"waits for {card.awaited_text}")
        due = None if now is None else due_part(card, now)
        if due is not None and due.text:
            facts.append((due.text, _COLOURS[due.style]))
        return facts + [(text, "$text-muted") for text in (*others, labels_text(card.labels)) if text]


def _need_hint(card: Card) -> str:
    """Return the keys that help a card which needs a person."""
    if card.started_at is None:
        return "y shows it and decides; x takes it out of the queue."
    if not card.is_conversation:
        return "y or a enters its terminal."
    return "y shows what it asks, and answers; m sends a message; a enters its terminal."


def _worktree_lines(card: Card) -> list[str]:
    tree = f"{card.branch} · {card.worktree_path} · T opens or removes it"
    lines = [tree if card.branch else "", card.pull_request]
    return [even_line(line, max_characters=300) for line in lines if line]


def _reasons(card: Card) -> list[tuple[str, str]]:
    """Return why the card stands where it does and what helps, each line with its colour."""
    lines = [(even_line(card.overlap_line, max_characters=300), "$warning")] if card.overlap_line else []
    if card.error:
        colour = "$text-muted" if card.state is LiveState.PARKED else "$error"
        lines.append((cause_text(card.error, card.exit_code), colour))
    if card.state is LiveState.NEEDS_YOU:
        lines.append((f"◆ {need_words(card)}", "$warning"))
        lines.append((_need_hint(card), "$text-muted"))
    if card.state is LiveState.STUCK:
        lines.append((stuck_hint(card.error), "$text-muted"))
    if card.state is LiveState.PARKED:
        lines.append(("r starts it now; U lets its program start again.", "$text-muted"))
    if AwaitedState.SAME_FOLDER in card.awaited_states.values():
        lines.append((f"Another agent works in its folder: {FOLDER_HINT}.", "$text-muted"))
    if card.state is LiveState.BUDGET_SPENT:
        lines.append(("Raise the budget (3 shows the costs), then r runs it again.", "$text-muted"))
    if card.state is LiveState.LOST:
        lines.append(("r runs it again.", "$text-muted"))
    if card.execution_id is None:
        key = "r runs it" if card.command_word or card.agent_slug else "e chooses its program"
        lines.append((f"Never ran: {key}.", "$text-muted"))
    return lines
