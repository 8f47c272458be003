"""Times as the database keeps them: text that sorts as the times do."""

from __future__ import annotations

from datetime import UTC, datetime


def moment_text(moment: datetime) -> str:
    """Return an aware time as ``2026-01-01T12:00:00.000Z``: UTC, cut to milliseconds, sortable as text.

    Raises:
        ValueError: The time has no zone.
    """
    if moment.tzinfo is None:
        raise ValueError(f"a stored time needs a time zone: {moment!r}")
    moment = moment.astimezone(UTC)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def parse_moment(text: str) -> datetime:
    """Return the aware UTC time of a stored text."""
    return datetime.fromisoformat(text).astimezone(UTC)
