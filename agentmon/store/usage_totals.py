"""Tokens and costs of sessions and executions: what their answers add up to, by the kept sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

COUNTED: Final = (
    "prompt_tokens",
    "cache_read_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
    "response_tokens",
)
"""All tokens of an answer; those of reasoning are among those of the response."""
COST_SAID_OF: Final = "cost_said_of"
"""Key of a session's metadata: what its agent said that each of its executions has cost.

It counts only while no answer of the execution has a price.
"""
_TOKENS: Final = f"coalesce(sum({' + '.join(f'u.{name}' for name in COUNTED)}), 0)"
_PRICED: Final = "u.answers > u.unpriced_answers"
_OF_EXECUTION: Final = "u.execution_id <> '' AND u.execution_id ="
EXECUTION_TOTALS: Final = f"""
UPDATE executions SET (tokens_used, cost_nano) = (
    SELECT {_TOKENS}, coalesce(sum(u.cost_nano) FILTER (WHERE {_PRICED}), (
        SELECT said.value FROM sessions s, json_each(s.metadata, '$.{COST_SAID_OF}') said
        WHERE s.id = executions.session_id AND said.key = executions.id))
    FROM session_usage u WHERE {_OF_EXECUTION} executions.id)
WHERE id = ?
"""
"""Takes the id of an execution."""
SESSION_TOTALS: Final = f"""
UPDATE sessions SET (total_tokens, total_cost_nano) = (
    SELECT {_TOKENS}, coalesce(sum(u.cost_nano), 0) + (
        SELECT coalesce(sum(said.value), 0) FROM json_each(sessions.metadata, '$.{COST_SAID_OF}') said
        WHERE NOT EXISTS (SELECT 1 FROM session_usage u WHERE {_OF_EXECUTION} said.key AND {_PRICED}))
    FROM session_usage u WHERE u.session_id = sessions.id)
WHERE id = ?
"""
"""Takes the id of a session."""


async def write_totals(connection: AsyncConnection, *, session_id: str, execution_id: str) -> None:
    """Bring the totals up to what the session's metadata and the sums say."""
    await connection.exec_driver_sql(EXECUTION_TOTALS, (execution_id,))
    await connection.exec_driver_sql(SESSION_TOTALS, (session_id,))
