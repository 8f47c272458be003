"""Conversations as rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.domain.amounts import DOLLARS, MoneyFormat, count_text
from agentmon.domain.sessions import SessionStatus
from agentmon.widgets.local_time import local_time_text
from agentmon.widgets.row_table import Column, TableRow
from agentmon.widgets.text_rows import Span

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from agentmon.domain.sessions import SessionListing

SESSION_COLUMNS: Final = (
    Column("State", 11),
    Column("Conversation"),
    Column("Agent", 10, from_width=56),
    Column("Model", 16, from_width=110),
    Column("Task", 6, from_width=70),
    Column("Tokens", 7, from_width=84, is_right=True),
    Column("Cost", 8, from_width=76, is_right=True),
    Column("Calls", 6, from_width=100, is_right=True),
    Column("When", 12, from_width=64),
)
_WORDS: Final = {
    SessionStatus.PLANNING: ("◌ planning", "muted"),
    SessionStatus.RUNNING: ("● running", "running"),
    SessionStatus.WAITING_FOR_INPUT: ("◆ needs you", "warning"),
    SessionStatus.PAUSED: ("‖ paused", "warning"),
    SessionStatus.COMPLETED: ("✓ done", "good"),
    SessionStatus.FAILED: ("✗ failed", "bad"),
    SessionStatus.CANCELLED: ("⊘ cancelled", "muted"),
}


def session_words(status: SessionStatus) -> tuple[str, str]:
    """Return how the state of a conversation is told, and its style."""
    return _WORDS[status]


def session_rows(
    listings: Iterable[SessionListing], now: datetime, money: MoneyFormat = DOLLARS
) -> tuple[TableRow, ...]:
    """Return a row for each conversation, in their order; where a search found its words stands behind the title."""
    rows = []
    for listing in listings:
        session = listing.session
        words, style = _WORDS[session.status]
        title = listing.title
        cells = (
            Span(words, style),
            Span(f"{title} › {listing.match}" if listing.match else title),
            Span(listing.agent_slug, "muted"),
            Span(session.model or "", "muted"),
            Span("" if listing.task_number is None else f"#{listing.task_number}", "muted"),
            Span(count_text(session.total_tokens) if session.total_tokens else "", "muted"),
            Span(money.text(session.total_cost_nano or None), "muted"),
            Span(f"{session.operation_count:,}" if session.operation_count else "", "muted"),
            Span(local_time_text(session.started_at, now), "muted"),
        )
        rows.append(TableRow(str(session.id), cells))
    return tuple(rows)
