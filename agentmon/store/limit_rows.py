"""What agents say of windows and contexts into rows, as statements that any kind of connection can run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.domain.ids import new_id
from agentmon.store.moments import moment_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from agentmon.domain.limit_readings import ContextReading, LimitReading, LimitSource

_SEEN_EVERY_MS: Final = 60_000
"""How often it is written down that the same was said again: each write makes every screen look anew."""
_LATEST_MS: Final = 3_600_000
"""What was said so far in the future is damage, and would keep all that is said later out."""
_SAME_RESET_MS: Final = 60_000
"""Agents work the reset out of the seconds left, so that it wavers."""
_OF_WINDOW: Final = "agent_id = (SELECT id FROM agents WHERE slug = ?) AND account = ? AND window = ?"
_IS_NEWEST: Final = (
    f"id = (SELECT id FROM limit_snapshots WHERE {_OF_WINDOW} ORDER BY captured_at_ms DESC LIMIT 1) "
    f"AND used_percent = ? AND abs(coalesce(resets_at_ms, 0) - ?) < {_SAME_RESET_MS}"
)
_SEEN_AGAIN: Final = (
    f"UPDATE limit_snapshots SET seen_at_ms = ? WHERE {_IS_NEWEST} AND seen_at_ms <= ? - {_SEEN_EVERY_MS}"
)
_INSERT: Final = (
    "INSERT INTO limit_snapshots (id, agent_id, account, window, window_minutes, used_percent, resets_at_ms, "
    "captured_at_ms, seen_at_ms, source, created_at) SELECT ?, id, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM agents "
    f"WHERE slug = ? AND NOT EXISTS (SELECT 1 FROM limit_snapshots WHERE {_OF_WINDOW} AND seen_at_ms >= ?) "
    f"AND NOT EXISTS (SELECT 1 FROM limit_snapshots WHERE {_IS_NEWEST})"
)
_CONTEXT: Final = (
    "UPDATE sessions SET context_tokens = ?, context_limit_tokens = coalesce(?, context_limit_tokens), "
    "context_at_ms = ? WHERE session_ref = ? AND agent_id = (SELECT id FROM agents WHERE slug = ?) "
    "AND coalesce(context_at_ms, 0) < ? AND (context_tokens IS NOT ? "
    f"OR context_limit_tokens IS NOT coalesce(?, context_limit_tokens) OR context_at_ms <= ? - {_SEEN_EVERY_MS})"
)

MOVE_CONTEXT: Final = (
    "UPDATE sessions SET (context_tokens, context_limit_tokens, context_at_ms) = "
    "(SELECT context_tokens, context_limit_tokens, context_at_ms FROM sessions WHERE id = :other) "
    "WHERE id = :session_id "
    "AND coalesce(context_at_ms, 0) < (SELECT coalesce(context_at_ms, 0) FROM sessions WHERE id = :other)"
)
"""Gives a session what is known of the context of another one, where that is newer: ``other`` and ``session_id``."""


def limit_statements(
    agent_slug: str, readings: Sequence[LimitReading], source: LimitSource, at: datetime
) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield what is to be executed in turn, in one transaction, each with its parameters.

    What was said before is only seen again; what is older than the newest is dropped, and so is what an agent says
    that is not there.
    """
    latest_ms = round(at.timestamp() * 1000) + _LATEST_MS
    for one in readings:
        if one.captured_at_ms > latest_ms:
            continue
        window = (agent_slug, one.account, one.window)
        same = (*window, one.used_percent, one.resets_at_ms or 0)
        yield _SEEN_AGAIN, (one.captured_at_ms, *same, one.captured_at_ms)
        yield (
            _INSERT,
            (
                *(new_id(), one.account, one.window, one.window_minutes, one.used_percent, one.resets_at_ms),
                *(one.captured_at_ms, one.captured_at_ms, source.value, moment_text(at), agent_slug),
                *(*window, one.captured_at_ms, *same),
            ),
        )


def context_statements(agent_slug: str, contexts: Sequence[ContextReading]) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield what writes into sessions that are there how full their context was last; an older word changes nothing.

    A limit that is not known leaves the one that is.
    """
    for one in contexts:
        yield (
            _CONTEXT,
            (
                *(one.tokens, one.limit_tokens, one.at_ms, one.session_ref, agent_slug, one.at_ms),
                *(one.tokens, one.limit_tokens, one.at_ms),
            ),
        )
