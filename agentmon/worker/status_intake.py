"""Takes in what status lines of agents left beside the database: the vendor's windows, and how full contexts are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from agentmon.domain.contexts import context_limit
from agentmon.domain.limit_readings import ContextReading, LimitReading, LimitSource, window_minutes
from agentmon.usage.claude_status import ClaudeStatus, parse_object
from agentmon.usage.sources import CLAUDE
from agentmon.usage.status_reports import take_reports

if TYPE_CHECKING:
    from agentmon.domain.clock import Clock
    from agentmon.paths import Paths
    from agentmon.store.limit_snapshots import LimitSnapshotRepository

_LATEST_MS: Final = 60_000
"""A report that is this much in the future is damaged, and would keep all later ones out."""


class StatusIntake:
    """Takes in reports for the worker and, where none runs, for whoever reads limits."""

    def __init__(self, *, limits: LimitSnapshotRepository, paths: Paths, clock: Clock) -> None:
        self._limits = limits
        self._database_path = str(paths.database_path)
        self._clock = clock

    async def take_in(self) -> int:
        """Write what was left since the last time, and return how many reports that was.

        Each of several callers gets other reports. What is damaged is dropped.

        Raises:
            StoreError: The database refused them; they are lost, and told again with the next answer.
        """
        reports = await asyncio.to_thread(take_reports, self._database_path)
        limits: list[LimitReading] = []
        contexts: list[ContextReading] = []
        for written in reports:
            told = parse_object(written) or {}
            at_ms = told.get("at_ms")
            latest_ms = round(self._clock.now().timestamp() * 1000) + _LATEST_MS
            if type(at_ms) is int and 0 < at_ms <= latest_ms:
                status = ClaudeStatus(told)
                limits += _limits_of(status, at_ms)
                contexts += _contexts_of(status, at_ms)
        if limits or contexts:
            limits.sort(key=lambda one: one.captured_at_ms)
            await self._limits.record(
                CLAUDE, limits=limits, contexts=contexts, source=LimitSource.STATUSLINE, at=self._clock.now()
            )
        return len(reports)


def _limits_of(status: ClaudeStatus, at_ms: int) -> list[LimitReading]:
    return [
        LimitReading(
            window=window.name,
            window_minutes=window_minutes(window.name),
            used_percent=float(window.used_percent),
            resets_at_ms=window.resets_at_ms,
            captured_at_ms=at_ms,
        )
        for window in status.windows
    ]


def _contexts_of(status: ClaudeStatus, at_ms: int) -> list[ContextReading]:
    if not status.session_ref or status.context_tokens is None:
        return []
    limit = status.context_limit_tokens or context_limit(status.model, status.context_tokens)
    return [
        ContextReading(session_ref=status.session_ref, tokens=status.context_tokens, limit_tokens=limit, at_ms=at_ms)
    ]
