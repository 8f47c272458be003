"""The numbers of the status line for callers that ask often: sqlite3 alone, not even the domain's dataclasses."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing

from agentmon.domain.limits import DEFAULT_RUNNING_LIMIT
from agentmon.store.card_states import OVERLAP_SHOWN
from agentmon.store.money_setting import MONEY_KEYS, money_words_of
from agentmon.store.revision import HEAD_REVISION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_BUSY_TIMEOUT_S = 0.5
_HURRIED_TIMEOUT_S = 0.005
# The words of the partial unique index, so that it answers without a look at the ended executions.
OPEN_EXECUTIONS = """
SELECT status, count(*) FROM executions
WHERE status IN ('cancelling', 'finalizing', 'queued', 'running') GROUP BY status
"""
# As domain.live_state.live_state says "needs you".
NEEDING_YOU = """
SELECT count(*) FROM executions
WHERE status IN ('cancelling', 'finalizing', 'queued', 'running') AND (
    (status = 'running' AND activity = 'waiting' AND paused_at IS NULL AND error IS NULL)
    OR (status = 'queued' AND (is_held OR activity = 'waiting')))
"""
OVERLAPPING = f"""
SELECT count(DISTINCT v.execution_id) FROM overlaps v
CROSS JOIN executions e ON e.id = v.execution_id AND e.status IN ('running', 'cancelling')
CROSS JOIN executions x ON x.id = v.other_id AND x.status IN ('running', 'cancelling')
WHERE {OVERLAP_SHOWN}
"""
"""Live runs that get into each other's way."""
_LIMIT_KEY = "worker.max_running"
_PAUSE_KEY = "queue.paused"
_ZONE_KEY = "usage.zone"
SETTINGS = f"SELECT key, value FROM settings WHERE key IN {(_LIMIT_KEY, _PAUSE_KEY, _ZONE_KEY, *MONEY_KEYS)}"
TODAY = """
SELECT coalesce(sum(cost_nano), 0), coalesce(sum(unpriced_answers), 0), coalesce(sum(
        prompt_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens + response_tokens), 0),
    (SELECT amount FROM budgets WHERE scope = 'all' AND scope_id = '' AND period = 'day' AND unit = 'money')
FROM daily_usage WHERE day_local = :today
"""
"""Cost, answers without a known price and tokens of a day, and the budget of all for a day."""
_UTC_NAMES = ("UTC", "Etc/UTC", "")
_DAY = "%Y-%m-%d"


class StatusCounts:
    """The numbers of ``domain.board.StatusLine`` under the same names."""

    __slots__ = (
        "budget_today_nano",
        "cost_today_nano",
        "is_paused",
        "money_words",
        "needs_you",
        "overlapping",
        "queued",
        "running",
        "running_limit",
        "tokens_today",
        "unpriced_today",
        "worker_seen_at",
    )

    def __init__(
        self,
        *,
        running: int = 0,
        running_limit: int = DEFAULT_RUNNING_LIMIT,
        queued: int = 0,
        is_paused: bool = False,
        needs_you: int = 0,
        overlapping: int = 0,
        cost_today_nano: int = 0,
        unpriced_today: int = 0,
        tokens_today: int = 0,
        budget_today_nano: int | None = None,
        money_words: Mapping[str, str] | None = None,
        worker_seen_at: float | None = None,
    ) -> None:
        self.running = running
        self.running_limit = running_limit
        self.queued = queued
        self.is_paused = is_paused
        self.needs_you = needs_you
        self.overlapping = overlapping
        self.cost_today_nano = cost_today_nano
        self.unpriced_today = unpriced_today
        self.tokens_today = tokens_today
        self.budget_today_nano = budget_today_nano
        self.money_words = money_words or {}
        self.worker_seen_at = worker_seen_at
        """In seconds since the epoch; the reader of the counts finds it."""

    def as_document(self) -> dict[str, int | bool | str | None]:
        """Return the numbers by name, in the order of the status line."""
        names = ("running", "running_limit", "queued", "is_paused", "needs_you", "overlapping", "cost_today_nano")
        more = ("tokens_today", "unpriced_today", "budget_today_nano")
        form = {name: getattr(self, name) for name in (*names, *more)}
        return {**form, "worker_seen_at": moment_text_of(self.worker_seen_at)}


def find_status_counts(database_path: str) -> StatusCounts | None:
    """Return the numbers over all workspaces, or None when there is a database that this release cannot read.

    Where there is no database yet, they are zero.
    """
    try:
        os.lstat(database_path)
    except (FileNotFoundError, NotADirectoryError):
        return StatusCounts()
    except OSError:
        return None
    try:
        with closing(_opened(database_path, timeout_s=_BUSY_TIMEOUT_S)) as connection:
            if connection.execute("SELECT version_num FROM alembic_version").fetchone() != (HEAD_REVISION,):
                return None
            counts = dict(connection.execute(OPEN_EXECUTIONS).fetchall())
            needs_you = connection.execute(NEEDING_YOU).fetchone()[0]
            overlapping = connection.execute(OVERLAPPING).fetchone()[0]
            settings = StoredSettings(connection.execute(SETTINGS).fetchall())
            cost, unpriced, tokens, budget = connection.execute(TODAY, {"today": settings.today()}).fetchone()
    except (sqlite3.Error, KeyError, ValueError):
        # Values that no release writes count as little as a database that cannot be read.
        return None
    return StatusCounts(
        running=sum(counts.get(status, 0) for status in ("cancelling", "finalizing", "running")),
        running_limit=settings.running_limit(DEFAULT_RUNNING_LIMIT),
        queued=counts.get("queued", 0),
        is_paused=settings.is_paused,
        needs_you=needs_you,
        overlapping=overlapping,
        cost_today_nano=cost,
        unpriced_today=unpriced,
        tokens_today=tokens,
        budget_today_nano=budget,
        money_words=settings.money_words,
    )


def has_startable(database_path: str) -> bool:
    """Return whether anything queued needs nothing but a worker, now or at its time: no person, no pause, no task."""
    from agentmon.store.card_states import NEEDS_YOU, OPEN, holds  # noqa: PLC0415 - only who misses a worker asks

    statement = f"""
        SELECT 1 FROM executions o JOIN agents a ON a.id = o.agent_id AND a.is_active AND a.removed_at IS NULL
        WHERE {OPEN} AND o.status = 'queued' AND {NEEDS_YOU} IS NOT TRUE
          AND NOT EXISTS (SELECT 1 FROM settings WHERE key = '{_PAUSE_KEY}')
          AND NOT EXISTS (SELECT 1 FROM task_dependencies d JOIN tasks p ON p.id = d.depends_on_task_id
              WHERE d.task_id = o.task_id AND {holds("p")})
        LIMIT 1"""
    try:
        with closing(_opened(database_path, timeout_s=_BUSY_TIMEOUT_S)) as connection:
            return connection.execute(statement).fetchone() is not None
    except sqlite3.Error:
        return False


def moment_text_of(seconds: float | None) -> str | None:
    """Return seconds since the epoch as JSON documents have a moment: ISO 8601 to the millisecond, with Z."""
    if seconds is None:
        return None
    whole, milliseconds = divmod(int(seconds * 1000), 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{milliseconds:03d}Z"


def find_day_counts(database_path: str) -> StatusCounts | None:
    """Return what the present day costs, and nothing else, for a line that waits for nobody.

    None when the database is not there, is kept by somebody, or cannot be read by this release.
    """
    try:
        with closing(_opened(database_path, timeout_s=_HURRIED_TIMEOUT_S)) as connection:
            if connection.execute("SELECT version_num FROM alembic_version").fetchone() != (HEAD_REVISION,):
                return None
            settings = StoredSettings(connection.execute(SETTINGS).fetchall())
            cost, unpriced, tokens, budget = connection.execute(TODAY, {"today": settings.today()}).fetchone()
    except (sqlite3.Error, KeyError, ValueError):
        return None
    return StatusCounts(
        cost_today_nano=cost,
        unpriced_today=unpriced,
        tokens_today=tokens,
        budget_today_nano=budget,
        money_words=settings.money_words,
    )


class StoredSettings:
    """What the rows of ``SETTINGS`` say."""

    __slots__ = ("_values", "is_paused", "money_words")

    def __init__(self, rows: Iterable[Sequence[object]]) -> None:
        self._values = {str(key): str(value) for key, value in rows}
        self.money_words = money_words_of(self._values.items())
        self.is_paused = _PAUSE_KEY in self._values

    def running_limit(self, default: int) -> int:
        """Return how many executions may run; the default when none is stored."""
        digits = self._values.get(_LIMIT_KEY, "").strip()
        return int(digits) if digits.isdecimal() else default

    def today(self) -> str:
        """Return the day that it is now in the zone whose days are stored: ``2026-03-01``.

        It is worked out without ``zoneinfo``, which takes 10 ms to import, where the zone is that of this machine.
        """
        zone_name = self._values.get(_ZONE_KEY, "").strip('"')
        if zone_name in _UTC_NAMES:
            return time.strftime(_DAY, time.gmtime())
        if zone_name == _machine_zone():
            return time.strftime(_DAY)
        from datetime import datetime  # noqa: PLC0415 - only a zone that a person chose needs it
        from zoneinfo import ZoneInfo  # noqa: PLC0415

        return datetime.now(ZoneInfo(zone_name)).strftime(_DAY)


def _machine_zone() -> str:
    """Return the name of this machine's zone where it is plain to see; empty when it is not."""
    name = os.environ.get("TZ")
    if name is None:
        try:
            name = os.readlink("/etc/localtime")  # noqa: PTH115 - pathlib costs more than the rest
        except OSError:
            return ""
    return name.rpartition("zoneinfo/")[2].lstrip(":")


def _opened(path: str, *, timeout_s: float) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{_uri_path(path)}?mode=ro", uri=True, timeout=timeout_s)


def _uri_path(path: str) -> str:
    """Return the path with every byte that means something in a URI as its code, also those that are no text."""
    plain = b"/-_.~abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    return "".join(chr(byte) if byte in plain else f"%{byte:02x}" for byte in os.fsencode(path))
