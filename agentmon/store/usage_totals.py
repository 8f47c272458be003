"""Totals of sessions and executions that follow from answers; and answers that stand in until a file tells them."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final

from agentmon.store.usage_rows import COUNTED, STAND_IN_SPAN_MS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from agentmon.store.usage_sums import SumChanges

counted_tokens: Final = itemgetter(*COUNTED)
"""Returns all tokens of a row, by kind."""
STAND_INS: Final = (
    "SELECT * FROM llm_interactions WHERE session_id = ? AND is_provisional AND at_ms <= "
    "(SELECT max(at_ms) FROM llm_interactions WHERE session_id = ? AND source_file_id IS NOT NULL) + ?"
)
"""Takes the id of a session twice, and ``STAND_IN_SPAN_MS``."""


class Totals:
    """By how much the totals of sessions and executions change."""

    def __init__(self) -> None:
        self._sessions: dict[str, list[int]] = {}
        self._executions: dict[str, int] = {}

    def add(self, row: Mapping[str, object] | sqlite3.Row, sign: int, *, has_cost: bool) -> None:
        """Count an answer that is there from now on (1), or no longer (-1)."""
        tokens: int = sign * sum(counted_tokens(row))
        totals = self._sessions.setdefault(str(row["session_id"]), [0, 0])
        totals[0] += tokens
        cost = row["cost_nano"]
        if has_cost and isinstance(cost, int):
            totals[1] += sign * cost
        execution_id = row["execution_id"]
        if isinstance(execution_id, str):
            self._executions[execution_id] = self._executions.get(execution_id, 0) + tokens

    def write(self, connection: sqlite3.Connection) -> None:
        """Bring the totals up to the changes."""
        connection.executemany(
            "UPDATE sessions SET total_tokens = max(0, total_tokens + ?), "
            "total_cost_nano = max(0, total_cost_nano + ?) WHERE id = ?",
            [(*totals, session_id) for session_id, totals in self._sessions.items() if any(totals)],
        )
        connection.executemany(
            "UPDATE executions SET tokens_used = max(0, tokens_used + ?) WHERE id = ?",
            [(tokens, execution_id) for execution_id, tokens in self._executions.items() if tokens],
        )


def drop_stand_ins(connection: sqlite3.Connection, session_id: str, sums: SumChanges, totals: Totals) -> None:
    """Remove what a conversation told under keys of its own, up to where the agent's file has been read."""
    rows = connection.execute(STAND_INS, (session_id, session_id, STAND_IN_SPAN_MS)).fetchall()
    for row in rows:
        sums.take_away(row)
        totals.add(row, -1, has_cost=False)
    connection.executemany("DELETE FROM llm_interactions WHERE id = ?", [(row["id"],) for row in rows])
