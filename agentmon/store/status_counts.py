"""The numbers of the status line for callers that ask often: sqlite3 alone, not even the domain's dataclasses."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

from agentmon.domain.limits import DEFAULT_RUNNING_LIMIT
from agentmon.store.revision import HEAD_REVISION

_BUSY_TIMEOUT_S = 0.5
# The words of the partial unique index, so that it answers without a look at the ended executions.
OPEN_EXECUTIONS = """
SELECT status, count(*) FROM executions
WHERE status IN ('cancelling', 'queued', 'running') GROUP BY status
"""
# As domain.live_state.live_state says "needs you".
NEEDING_YOU = """
SELECT count(*) FROM executions
WHERE status IN ('cancelling', 'queued', 'running') AND (
    (status = 'running' AND activity = 'waiting' AND paused_at IS NULL AND error IS NULL)
    OR (status = 'queued' AND is_held))
"""
RUNNING_LIMIT = "SELECT value FROM settings WHERE key = 'worker.max_running'"
PAUSE = "SELECT value FROM settings WHERE key = 'queue.paused'"


class StatusCounts:
    """The numbers of ``domain.board.StatusLine`` under the same names."""

    __slots__ = ("cost_today_nano", "is_paused", "needs_you", "queued", "running", "running_limit", "tokens_today")

    def __init__(
        self,
        *,
        running: int = 0,
        running_limit: int = DEFAULT_RUNNING_LIMIT,
        queued: int = 0,
        is_paused: bool = False,
        needs_you: int = 0,
    ) -> None:
        self.running = running
        self.running_limit = running_limit
        self.queued = queued
        self.is_paused = is_paused
        self.needs_you = needs_you
        self.cost_today_nano = 0
        self.tokens_today = 0

    def as_document(self) -> dict[str, int | bool]:
        """Return the numbers by name, in the order of the status line."""
        names = ("running", "running_limit", "queued", "is_paused", "needs_you", "cost_today_nano", "tokens_today")
        return {name: getattr(self, name) for name in names}


def find_status_counts(database_path: str) -> StatusCounts | None:
    """Return the numbers over all workspaces, or None when there is a database that this release cannot read.

    Where there is no database yet, they are zero.
    """
    if not os.path.lexists(database_path):
        return StatusCounts()
    try:
        connection = sqlite3.connect(f"file:{_uri_path(database_path)}?mode=ro", uri=True, timeout=_BUSY_TIMEOUT_S)
        with closing(connection):
            if connection.execute("SELECT version_num FROM alembic_version").fetchone() != (HEAD_REVISION,):
                return None
            counts = dict(connection.execute(OPEN_EXECUTIONS).fetchall())
            needs_you = connection.execute(NEEDING_YOU).fetchone()[0]
            stored_limit = connection.execute(RUNNING_LIMIT).fetchone()
            pause = connection.execute(PAUSE).fetchone()
    except sqlite3.Error:
        return None
    return StatusCounts(
        running=counts.get("running", 0) + counts.get("cancelling", 0),
        running_limit=_whole_number(stored_limit[0]) if stored_limit else DEFAULT_RUNNING_LIMIT,
        queued=counts.get("queued", 0),
        is_paused=pause is not None,
        needs_you=needs_you,
    )


def _whole_number(json_text: object) -> int:
    digits = str(json_text).strip()
    return int(digits) if digits.isdecimal() else DEFAULT_RUNNING_LIMIT


def _uri_path(path: str) -> str:
    """Return the path with every byte that means something in a URI as its code, also those that are no text."""
    plain = b"/-_.~abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    return "".join(chr(byte) if byte in plain else f"%{byte:02x}" for byte in os.fsencode(path))
