"""A worker that is there and does nothing, for executions that exist in the database only."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from agentmon import __version__
from agentmon.store.revision import HEAD_REVISION
from agentmon.worker.presence import WorkerLock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentmon.paths import Paths


@contextmanager
def idle_worker(paths: Paths) -> Iterator[None]:
    """Hold the worker's lock, so that an application starts no real worker, which would settle what nobody runs."""
    lock = WorkerLock.take(paths.worker_lock)
    assert lock is not None
    lock.announce(version=__version__, revision=HEAD_REVISION, started_at="2026-01-01T00:00:00+00:00")
    try:
        yield
    finally:
        lock.release()
