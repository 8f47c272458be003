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

    from agentmon.domain.ids import ExecutionId
    from agentmon.paths import Paths
    from agentmon.store.live_executions import LiveExecutionRepository

_LEFT_ALONE_FOR_S: Final = 60.0
"""A client writes the file before its execution has a row."""


async def sweep_environments(live: LiveExecutionRepository, paths: Paths) -> None:
    """Remove the environment files of every execution that neither waits nor runs, and folders with nothing else."""
    open_ids = await live.open_ids()
    await asyncio.to_thread(_sweep, paths.executions_dir, open_ids)


def _sweep(executions_dir: Path, open_ids: Collection[ExecutionId]) -> None:
    written_before = time.time() - _LEFT_ALONE_FOR_S
    for path in executions_dir.glob("*/*environment.json"):
        if path.parent.name in open_ids:
            continue
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < written_before:
                ExecutionFolder(path.parent).remove_environments()
                # Empty by now when its client died before it queued anything.
                path.parent.rmdir()
