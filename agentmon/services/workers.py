"""The background worker: started by whoever needs it, looked at, ended."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import TYPE_CHECKING, Final

from agentmon import __version__
from agentmon.domain.errors import RunnerError, UndeliveredError
from agentmon.runners.host.process_table import is_halted
from agentmon.store.revision import HEAD_REVISION
from agentmon.worker.launch import ensure_worker
from agentmon.worker.loop_report import REPORT_EVERY_S
from agentmon.worker.presence import WorkerInfo, read_presence
from agentmon.worker.wake import wake_worker

if TYPE_CHECKING:
    from agentmon.domain.events import Actor
    from agentmon.paths import Paths
    from agentmon.services.background import BackgroundService

_ENDS_WITHIN_S: Final = 20.0
_LOOK_EVERY_S: Final = 0.05
_BEATS_WITHIN_S: Final = REPORT_EVERY_S + 1.0


class WorkerService:
    """Looks after the worker of this machine and database."""

    def __init__(self, paths: Paths, background: BackgroundService) -> None:
        self._paths = paths
        self._background = background

    async def ensure_running(self) -> WorkerInfo:
        """Return the worker, started when there was none, as soon as it is ready.

        One of another release is replaced: its code on the disk is no longer what it has in memory, and the database
        may have been upgraded under it. What it started runs on.

        Raises:
            RunnerError: It did not become ready within 20 s, or one of another release did not end in that time.
        """
        presence = read_presence(self._paths.worker_lock)
        if presence.pid is not None:
            if (presence.version, presence.revision) == (__version__, HEAD_REVISION):
                return presence
            await self._end()
        return await asyncio.to_thread(ensure_worker, self._paths, after=presence)

    async def wake(self) -> None:
        """Wake the worker, which is started when there is none.

        Raises:
            UndeliveredError: None can be started; what is recorded stays, and the next worker carries it out.
        """
        try:
            await self.ensure_running()
        except RunnerError as error:
            raise UndeliveredError(f"recorded, but not delivered yet: {error}", hint=error.hint) from error
        wake_worker(self._paths.worker_socket)

    async def hand_over(self) -> None:
        """See to it that a worker carries out what was just recorded.

        Raises:
            UndeliveredError: None can be started, or the one that lives does nothing; what is recorded stays, and the
                next worker carries it out.
        """
        await self.wake()
        # One that was silent since the machine slept, or the clock was set, beats again within its time.
        deadline = time.monotonic() + _BEATS_WITHIN_S
        while (trouble := await self._background.worker_trouble()) is not None:
            if trouble.is_lasting or time.monotonic() >= deadline:
                raise UndeliveredError(f"recorded, but not delivered yet: {trouble.text}", hint=trouble.hint)
            await asyncio.sleep(_LOOK_EVERY_S)

    async def status(self) -> WorkerInfo:
        """Return what is known of the worker."""
        return read_presence(self._paths.worker_lock)

    async def stop(self, *, actor: Actor) -> bool:
        """End the worker and return whether there was one; what it has started runs on.

        Raises:
            RunnerError: It did not end within 20 s.
            ConflictError: An agent asks.
        """
        return await self._end()

    async def _end(self) -> bool:
        presence = read_presence(self._paths.worker_lock)
        if not presence.is_running or presence.pid is None:
            return False
        try:
            os.kill(presence.pid, signal.SIGTERM)
            if is_halted(presence.pid):
                # It hears nothing until it is let go on.
                os.kill(presence.pid, signal.SIGCONT)
        except ProcessLookupError:
            pass
        except PermissionError as error:
            raise RunnerError(
                f"the worker (pid {presence.pid}) runs as another user", hint=f"Stop it: sudo kill {presence.pid}"
            ) from error
        for _ in range(int(_ENDS_WITHIN_S / _LOOK_EVERY_S)):
            if read_presence(self._paths.worker_lock).pid != presence.pid:
                return True
            await asyncio.sleep(_LOOK_EVERY_S)
        raise RunnerError(
            f"the worker (pid {presence.pid}) did not end", hint=f"its log says why: {self._paths.worker_log}"
        )
