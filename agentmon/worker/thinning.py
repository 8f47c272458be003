"""Rows that nobody needs any more: removed now and then, once the clock can be believed."""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from agentmon.domain.clock import CLOCK_JITTER
from agentmon.domain.storage import thinning_bounds
from agentmon.store.task_moves import SYSTEM_ACTOR

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.domain.clock import Clock
    from agentmon.settings import WorkerSettings
    from agentmon.store.thinning import ThinningRepository

_log = logging.getLogger(__name__)

_FIRST_AFTER_S: Final = 600.0
"""A machine that has just started may not know the time yet."""
_EVERY_S: Final = 3_600.0
_AT_ONE_TIME: Final = 50_000


class Thinner:
    """Thins once an hour.

    Args:
        thinning: What removes.
        clock: The wall clock.
        monotonic: Seconds that no change of the wall clock touches.
    """

    def __init__(
        self, thinning: ThinningRepository, clock: Clock, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._thinning = thinning
        self._clock = clock
        self._monotonic = monotonic
        self._believed_from: tuple[datetime, float] | None = None
        self._due_s = 0.0

    async def look(self, settings: WorkerSettings) -> int:
        """Remove what is due by the settings, and return how many rows went.

        Nothing is removed within ten minutes of the first look and of each step of the clock: by a wrong time all would
        be old.

        Raises:
            StoreError: The rest goes with a later look.
        """
        now, now_s = self._clock.now(), self._monotonic()
        if self._believed_from is None or self._has_stepped(self._believed_from, now, now_s):
            self._believed_from, self._due_s = (now, now_s), now_s + _FIRST_AFTER_S
        self._believed_from = (now, now_s)
        if now_s < self._due_s:
            return 0
        self._due_s = now_s + _EVERY_S
        bounds = thinning_bounds(
            keep_events_days=settings.keep_events_days, keep_audit_days=settings.keep_audit_days, now=now
        )
        removed = await self._thinning.thin(bounds, actor=SYSTEM_ACTOR, at=now, at_most=_AT_ONE_TIME)
        told = {rule.value: count for rule, count in removed.items() if count}
        if told:
            _log.info("rows were removed to keep within the settings: %s", told)
        return sum(told.values())

    @staticmethod
    def _has_stepped(before: tuple[datetime, float], now: datetime, now_s: float) -> bool:
        passed = timedelta(seconds=now_s - before[1])
        return abs(now - before[0] - passed) > CLOCK_JITTER
