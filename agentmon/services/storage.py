"""What takes room on the disk, and what is removed of it when it is old."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from agentmon.domain.storage import (
    KEEP_AUDIT_KEY,
    KEEP_EVENTS_KEY,
    FileUse,
    StorageReport,
    ThinningOutlook,
    ThinningRule,
    thinning_bounds,
)
from agentmon.worker.retention import find_old_logs, remove_old_logs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.paths import Paths
    from agentmon.services.settings import SettingsService
    from agentmon.store.old_logs import OldLogRepository
    from agentmon.store.table_sizes import TableSizeRepository
    from agentmon.store.thinning import ThinningRepository

LOGS_RULE: Final = "logs"
_KEEP_LOGS_KEYS: Final = "worker.keep_logs_days, worker.keep_logs_mb"
_SETTINGS: Final[Mapping[ThinningRule, str]] = {
    ThinningRule.EVENTS: KEEP_EVENTS_KEY,
    ThinningRule.COMMANDS: KEEP_EVENTS_KEY,
    ThinningRule.AUDIT: KEEP_AUDIT_KEY,
}
_KIND_OF_FILE: Final = {
    "output.log": "logs of runs",
    "drafts.jsonl": "logs of runs",
    "errors.log": "logs of runs",
    "journal.jsonl": "journals of runs",
    "protocol.jsonl": "protocols of runs",
}
_OTHER_FILES: Final = "other files of runs"


class StorageService:
    """Measures and thins."""

    def __init__(
        self,
        *,
        sizes: TableSizeRepository,
        thinning: ThinningRepository,
        old_logs: OldLogRepository,
        settings: SettingsService,
        paths: Paths,
        clock: Clock,
    ) -> None:
        self._sizes = sizes
        self._thinning = thinning
        self._old_logs = old_logs
        self._settings = settings
        self._paths = paths
        self._clock = clock

    async def report(self) -> StorageReport:
        """Return what takes room, and what the next thinning would remove; nothing is changed.

        All of the database and of the folders is looked at, so that much of it takes seconds.
        """
        return StorageReport(
            database=await self._sizes.use(),
            files=await asyncio.to_thread(_file_uses, self._paths),
            next_thinning=await self.outlook(),
        )

    async def thin(self, *, actor: Actor) -> Mapping[str, int]:
        """Remove now what the worker would remove by itself, and return how much of each: rows, and logs.

        Raises:
            ConflictError: The actor is an agent, which may not decide what is kept of its work.
        """
        now = self._clock.now()
        removed = await self._thinning.thin(await self._bounds(now), actor=actor, at=now)
        logs = await remove_old_logs(self._old_logs, await self._settings.worker(), self._clock)
        return {rule.value: count for rule, count in removed.items()} | {LOGS_RULE: logs}

    async def _bounds(self, now: datetime) -> Mapping[ThinningRule, datetime]:
        settings = await self._settings.worker()
        return thinning_bounds(
            keep_events_days=settings.keep_events_days, keep_audit_days=settings.keep_audit_days, now=now
        )

    async def outlook(self) -> tuple[ThinningOutlook, ...]:
        """Return what each rule would remove now."""
        settings = await self._settings.worker()
        counts = await self._thinning.count(await self._bounds(self._clock.now()))
        logs = await find_old_logs(self._old_logs, settings, self._clock)
        of_logs = ThinningOutlook(
            rule=LOGS_RULE,
            setting=_KEEP_LOGS_KEYS,
            is_on=bool(settings.keep_logs_days or settings.keep_logs_mb),
            count=len(logs),
            size_bytes=sum(log.log_byte_size for log in logs),
        )
        return (
            of_logs,
            *(
                ThinningOutlook(
                    rule=rule.value,
                    setting=_SETTINGS.get(rule, ""),
                    is_on=rule in counts,
                    count=counts.get(rule, 0),
                    size_bytes=None,
                )
                for rule in ThinningRule
            ),
        )


def _file_uses(paths: Paths) -> tuple[FileUse, ...]:
    kinds = [*dict.fromkeys(_KIND_OF_FILE.values()), _OTHER_FILES]
    found: dict[str, list[int]] = {kind: [] for kind in kinds}
    for name, size in _files_below(paths.executions_dir):
        found[_KIND_OF_FILE.get(name, _OTHER_FILES)].append(size)
    of_runs = [
        FileUse(kind=kind, path=paths.executions_dir, files=len(sizes), size_bytes=sum(sizes))
        for kind, sizes in found.items()
    ]
    others = []
    for kind, folder in (("backups", paths.backups_dir), ("logs of agentmon, crash reports", paths.logs_dir)):
        sizes = [size for _, size in _files_below(folder)]
        others.append(FileUse(kind=kind, path=folder, files=len(sizes), size_bytes=sum(sizes)))
    damaged = [
        file.stat().st_size
        for file in paths.database_path.parent.glob("*.damaged-*")
        if file.is_file() and file.name.startswith(f"{paths.database_path.name}.damaged-")
    ]
    others.append(
        FileUse(
            kind="damaged databases set aside",
            path=paths.database_path.parent,
            files=len(damaged),
            size_bytes=sum(damaged),
        )
    )
    return (*of_runs, *others)


def _files_below(folder: Path) -> list[tuple[str, int]]:
    """Return name and size of every file below the folder; what goes meanwhile is left out."""
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                found.append((name, os.lstat(os.path.join(place, name)).st_size))  # noqa: PTH118 - of 100,000 files
            except OSError:
                continue
    return found
