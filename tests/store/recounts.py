"""Counts of sessions and tool calls by day as they are kept, and as their rows give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.store.activity_sums import COUNT_OPERATIONS, COUNT_SESSIONS

if TYPE_CHECKING:
    import sqlite3

    Counts = list[tuple[object, ...]]


def kept_counts(connection: sqlite3.Connection) -> tuple[Counts, Counts]:
    return (
        sorted(tuple(row) for row in connection.execute("SELECT * FROM daily_sessions")),
        sorted(tuple(row) for row in connection.execute("SELECT * FROM daily_operations")),
    )


def counted_anew(connection: sqlite3.Connection) -> tuple[Counts, Counts]:
    return (
        sorted(tuple(row) for row in connection.execute(COUNT_SESSIONS)),
        sorted(tuple(row) for row in connection.execute(COUNT_OPERATIONS)),
    )
