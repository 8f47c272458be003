"""Closed cards leave the board by themselves once they are older than the settings allow."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from agentmon.store.task_moves import SYSTEM_ACTOR

if TYPE_CHECKING:
    from agentmon.domain.clock import Clock
    from agentmon.store.task_archive import ArchiveRepository

_log = logging.getLogger(__name__)

_AT_ONE_TIME: Final = 200
"""As many as one short transaction holds; the rest follows at the next call."""


async def archive_old_cards(archive: ArchiveRepository, after_days: int, clock: Clock) -> int:
    """Archive closed cards that nothing has changed for so many days, the oldest first; return how many.

    0 days mean never.

    Raises:
        StoreError: The rest is archived at the next call.
    """
    if not after_days:
        return 0
    now = clock.now()
    moment = now - timedelta(days=after_days)
    found = await archive.closed_before(moment, None, limit=_AT_ONE_TIME)
    if not found:
        return 0
    days = "1 day" if after_days == 1 else f"{after_days} days"
    archived = await archive.archive_closed(
        moment, [task.id for task in found], cause=f"closed and unchanged for {days}", actor=SYSTEM_ACTOR, at=now
    )
    _log.info("%s closed cards were archived", len(archived))
    return len(archived)
