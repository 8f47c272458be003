"""Old logs: removed when they are older, or together larger, than the settings allow; each leaves a note."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.runners.execution_folder import ExecutionFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.clock import Clock
    from agentmon.settings import WorkerSettings
    from agentmon.store.old_logs import OldLog, OldLogRepository

_log = logging.getLogger(__name__)

_MEGABYTE: Final = 1_000_000


async def find_old_logs(old_logs: OldLogRepository, settings: WorkerSettings, clock: Clock) -> Sequence[OldLog]:
    """Return the logs that the settings no longer allow, oldest first; of very many the first."""
    ended_before = clock.now() - timedelta(days=settings.keep_logs_days) if settings.keep_logs_days else None
    return await old_logs.find(ended_before=ended_before, max_total_bytes=settings.keep_logs_mb * _MEGABYTE or None)


async def remove_old_logs(old_logs: OldLogRepository, settings: WorkerSettings, clock: Clock) -> int:
    """Remove the logs that the settings no longer allow, oldest first; return how many.

    Journals and rows stay, so that what a run did and how it ended is still known.

    Raises:
        StoreError: The rest is removed at the next call.
    """
    now = clock.now()
    removed = 0
    for old in await find_old_logs(old_logs, settings, clock):
        folder = ExecutionFolder(Path(old.log_file_path).parent)
        try:
            await asyncio.to_thread(folder.remove_logs)
        except OSError as error:
            _log.warning("execution %s: its log cannot be removed: %s", old.execution_id, error)
            continue
        await old_logs.mark_removed(old, at=now)
        removed += 1
    if removed:
        _log.info("%s logs were removed to keep within the settings", removed)
    return removed
