"""What takes room on the disk, and what is removed of it by itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path


class ThinningRule(StrEnum):
    """Rows that nobody needs any more after some time; the values stand in JSON."""

    EVENTS = "events"
    """Entries of the stream of an ended run whose content has a row of its own: messages, tool calls, usage."""
    COMMANDS = "commands"
    """What hosts of ended runs were told."""
    HEARTBEATS = "heartbeats"
    """Workers that are gone."""
    REQUEST_KEYS = "request_keys"
    """Names by which clients repeat a request."""
    AUDIT = "audit"
    """Lines of the audit trail, but for those by which it is known who wrote a task."""


KEEP_EVENTS_KEY: Final = "worker.keep_events_days"
KEEP_AUDIT_KEY: Final = "worker.keep_audit_days"
_GONE_WORKERS_FOR: Final = timedelta(days=30)
_REQUEST_KEYS_FOR: Final = timedelta(days=7)


def thinning_bounds(*, keep_events_days: int, keep_audit_days: int, now: datetime) -> Mapping[ThinningRule, datetime]:
    """Return before which time each rule removes; a rule that is off is left out.

    Args:
        keep_events_days: For entries of streams and commands of ended runs; 0 keeps them for ever.
        keep_audit_days: For the audit trail; 0 keeps it for ever.
        now: The time now.
    """
    days = {
        ThinningRule.EVENTS: keep_events_days,
        ThinningRule.COMMANDS: keep_events_days,
        ThinningRule.HEARTBEATS: _GONE_WORKERS_FOR.days,
        ThinningRule.REQUEST_KEYS: _REQUEST_KEYS_FOR.days,
        ThinningRule.AUDIT: keep_audit_days,
    }
    return {rule: now - timedelta(days=count) for rule, count in days.items() if count}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUse:
    """How much of the database a table takes, its indexes included."""

    name: str
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseUse:
    """How much the database takes, and for what."""

    path: Path
    size_bytes: int
    """With its write-ahead log."""
    free_bytes: int
    """Of pages that are empty, and are used again before the file grows."""
    is_estimate: bool
    """Whether the sizes of tables are estimates, since this SQLite cannot tell them."""
    tables: tuple[TableUse, ...]
    """The largest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileUse:
    """How much files of one kind take."""

    kind: str
    path: Path
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinningOutlook:
    """What one rule would remove now."""

    rule: str
    """A ``ThinningRule``, or ``logs``."""
    setting: str
    """The setting that it follows; empty when it follows none."""
    is_on: bool
    count: int
    size_bytes: int | None
    """None where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageReport:
    """What takes room, and what the next thinning would remove."""

    database: DatabaseUse
    files: tuple[FileUse, ...]
    next_thinning: tuple[ThinningOutlook, ...]
