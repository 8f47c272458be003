"""What is known of a run that no worker looks after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime


class Sighting(NamedTuple):
    """What a look at the files of a live run tells while no worker is at work."""

    last_seen_at: datetime | None = None
    """The last sign of life of its host; None while that lives."""
    undelivered: tuple[str, ...] = ()
    """Commands that wait for a worker for longer than a few seconds: words of ``CommandType``, oldest first."""


NO_SIGHTING: Final = Sighting()
"""Of a run that a worker looks after, and of one that is over."""
