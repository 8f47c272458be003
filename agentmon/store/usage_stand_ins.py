"""Answers that stand in until the agent's own file tells them."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final

from agentmon.store.usage_totals import COUNTED

if TYPE_CHECKING:
    import sqlite3

    from agentmon.store.usage_sums import SumChanges

STAND_IN_SPAN_MS: Final = 60_000
"""A row under a key of the adapter's own stands in for what the agent's file has not told yet.

It goes once the file has told an answer of the same conversation that is not older than this before it: what the file
has not told by then follows with its next lines. One row may stand for all answers of a turn, so that they are not
compared one by one.
"""
TWIN_SPAN_MS: Final = 5_000
"""An answer that the file has told is known by its numbers, when its time is not farther away than this."""
_counts: Final = itemgetter(*COUNTED)
_KEEP_LATENCY: Final = (
    "UPDATE llm_interactions SET latency_ms = ? WHERE id = (SELECT id FROM llm_interactions WHERE session_id = ? "
    "AND at_ms BETWEEN ? AND ? AND source_file_id IS NOT NULL AND latency_ms IS NULL "
    f"AND {' AND '.join(f'{name} = ?' for name in COUNTED)} ORDER BY at_ms LIMIT 1)"
)
STAND_INS: Final = (
    "SELECT * FROM llm_interactions WHERE session_id = ? AND is_provisional AND at_ms <= "
    "(SELECT max(at_ms) FROM llm_interactions WHERE session_id = ? AND source_file_id IS NOT NULL AND success) + ?"
)
"""Takes the id of a session twice, and ``STAND_IN_SPAN_MS``."""


def drop_stand_ins(connection: sqlite3.Connection, session_id: str, sums: SumChanges) -> None:
    """Remove what a conversation told under keys of its own, up to where the agent's file has been read."""
    rows = connection.execute(STAND_INS, (session_id, session_id, STAND_IN_SPAN_MS)).fetchall()
    for row in rows:
        sums.take_away(row)
    latencies = [
        (row["latency_ms"], row["session_id"], row["at_ms"] - TWIN_SPAN_MS, row["at_ms"] + TWIN_SPAN_MS, *_counts(row))
        for row in rows
        if row["latency_ms"] is not None
    ]
    connection.executemany(_KEEP_LATENCY, latencies)
    connection.executemany("DELETE FROM llm_interactions WHERE id = ?", [(row["id"],) for row in rows])
