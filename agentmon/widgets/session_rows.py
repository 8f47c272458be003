"""Conversations as rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.domain.amounts import DOLLARS, MoneyFormat, count_text
from agentmon.widgets.local_time import local_time_text
from agentmon.widgets.row_table import Column, TableRow
from agentmon.widgets.state_words import styled_state
from agentmon.widgets.text_rows import Span

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from agentmon.domain.sessions import SessionListing
    from agentmon.widgets.state_words import StateWords

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


def session_words(listing: SessionListing) -> StateWords:
    """Return how the state of a conversation is told."""
    return styled_state((listing.state, listing.state.with_cause(exit_code=listing.exit_code)))


def session_rows(
    listings: Iterable[SessionListing], now: datetime, money: MoneyFormat = DOLLARS
) -> tuple[TableRow, ...]:
    """Return a row for each conversation, in their order; where a search found its words stands behind the title."""
    rows = []
    for listing in listings:
        session = listing.session
        told = session_words(listing)
        title = listing.title
        cells = (
            Span(f"{told.glyph} {listing.state.value}", told.style),
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
