"""Environments that nobody needs any more: left by a worker or client that died before it could remove them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Final

from agentmon.runners.execution_folder import ExecutionFolder

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from agentmon.paths import Paths
    from agentmon.store.live_executions import LiveExecutionRepository

_LEFT_ALONE_FOR_S: Final = 60.0
"""A worker that gave its run up may still be writing."""
_UNKNOWN_LEFT_ALONE_FOR_S: Final = 30 * 86_400.0
"""Another database may have the row: one that was copied, or that shares this folder."""


async def sweep_environments(live: LiveExecutionRepository, paths: Paths) -> None:
    """Remove the environment files of every execution that is over, and folders with nothing else."""
    found = await asyncio.to_thread(lambda: list(paths.executions_dir.glob("*/*environment.json")))
    open_ids = await live.open_ids() if found else ()
    left = [path for path in found if path.parent.name not in open_ids]
    if left:
        await asyncio.to_thread(_sweep, left, await live.known_ids({path.parent.name for path in left}))


def _sweep(files: Collection[Path], known_ids: Collection[str]) -> None:
    now = time.time()
    for path in files:
        age_s = _LEFT_ALONE_FOR_S if path.parent.name in known_ids else _UNKNOWN_LEFT_ALONE_FOR_S
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < now - age_s:
                ExecutionFolder(path.parent).remove_environments()
                # Empty by now when its client died before it queued anything.
                path.parent.rmdir()
