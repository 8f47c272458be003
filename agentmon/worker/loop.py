"""The worker's loop: woken by a datagram or by the poll, it reads, hands on, claims and starts."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import time
from typing import TYPE_CHECKING, Final

from agentmon import __version__
from agentmon.domain.errors import AgentmonError, DatabaseMovedError
from agentmon.domain.ids import ExecutionId, WorkerId, new_id
from agentmon.settings import load_worker_settings
from agentmon.worker.starting import Starter
from agentmon.worker.sweeping import sweep_environments
from agentmon.worker.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine

    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ClaimedExecution
    from agentmon.paths import Paths
    from agentmon.runners.tmux import Tmux
    from agentmon.settings import WorkerSettings
    from agentmon.store.claims import ClaimRepository
    from agentmon.store.database import Database
    from agentmon.store.ingest import IngestRepository
    from agentmon.store.setting_rows import SettingRepository
    from agentmon.worker.wake import WakeSocket
    from agentmon.worker.watching import Watched

_log = logging.getLogger(__name__)

_HEARTBEAT_EVERY_S: Final = 30.0
_MAX_START_TRIES: Final = 3
_PAUSE_AFTER_ERROR_S: Final = 1.0
_SAME_COMPLAINT_EVERY_S: Final = 300.0
"""How often the log says the same: a full disk can last for days."""


class WorkerLoop:
    """One worker over one database; ``run`` returns soon after ``stop``, and what was started runs on.

    Args:
        has_place: Looked at once a poll; ``run`` returns when it says that nobody can find this worker any more.
    """

    def __init__(
        self,
        *,
        database: Database,
        claims: ClaimRepository,
        ingest: IngestRepository,
        settings: SettingRepository,
        tmux: Tmux,
        wake: WakeSocket,
        paths: Paths,
        clock: Clock,
        has_place: Callable[[], bool] = lambda: True,
    ) -> None:
        self._database = database
        self._has_place = has_place
        self._claims = claims
        self._settings_rows = settings
        self._wake = wake
        self._paths = paths
        self._clock = clock
        self.worker_id = WorkerId(new_id())
        self._watch = Watch(ingest=ingest, paths=paths, clock=clock)
        self._starter = Starter(tmux=tmux, claims=claims, paths=paths, worker_id=self.worker_id, clock=clock)
        self._settings = load_worker_settings(paths.settings_file, {})
        self._woken = asyncio.Event()
        self._messages: set[str] = set()
        self._is_stopping = False
        self._has_adopted = False
        self._complaint = ""
        self._complained_at = float("-inf")
        self._seen_version: int | None = None
        self._has_waiting = True
        self._beaten_at = float("-inf")
        self._read_all_at = float("-inf")
        self._proved_at = float("-inf")

    def stop(self) -> None:
        """Let ``run`` return."""
        self._is_stopping = True
        self._woken.set()

    async def run(self) -> None:
        """Settle what an earlier worker left, then work until ``stop``, or until the database or the place is gone."""
        asyncio.get_running_loop().add_reader(self._wake.fileno(), self._take_messages)
        try:
            async with asyncio.TaskGroup() as group:
                while not self._is_stopping:
                    await self._work_once(group)
                    await self._wait()
        finally:
            asyncio.get_running_loop().remove_reader(self._wake.fileno())

    def _take_messages(self) -> None:
        # At once, also while the loop is busy: a socket that stays readable would keep the event loop spinning.
        self._messages.update(message for message in self._wake.drain() if not message or message in self._watch)
        self._woken.set()

    async def _work_once(self, group: asyncio.TaskGroup) -> None:
        messages, self._messages = self._messages, set()
        self._woken.clear()
        # Those whose messages got lost have their turn also while others keep the worker awake.
        is_poll = time.monotonic() >= self._read_all_at + self._settings.poll_interval_s
        try:
            if not self._has_adopted:
                await self._adopt(group)
                await sweep_environments(self._claims, self._paths)
                self._has_adopted = True
            has_news = await self._has_news(messages)
            if is_poll:
                self._read_all_at = time.monotonic()
                if not self._has_place():
                    _log.warning("the files in %s by which this worker is found are gone", self._paths.run_dir)
                    self.stop()
                    return
            named = [ExecutionId(message) for message in messages if message]
            has_ended = await self._watch.read_journals(None if is_poll else named)
            await self._look_after_hosts(group)
            if has_news or has_ended or self._has_waiting:
                await self._hand_on_commands()
                await self._claim(group)
        except DatabaseMovedError as error:
            _log.warning("%s", error)
            self.stop()
        except AgentmonError as error:
            self._complain(str(error))
            await self._pause()
        except Exception:
            _log.exception("the worker goes on after an error of its own")
            await self._pause()

    async def _has_news(self, messages: Collection[str]) -> bool:
        version = self._database.data_version()
        if version == self._seen_version and "" not in messages:
            return False
        self._seen_version = version
        self._settings = await self._read_settings()
        return True

    async def _read_settings(self) -> WorkerSettings:
        try:
            return load_worker_settings(self._paths.settings_file, await self._settings_rows.all())
        except AgentmonError as error:
            self._complain(f"the settings stay as they were: {error}")
            return self._settings

    async def _adopt(self, group: asyncio.TaskGroup) -> None:
        for claimed in await self._claims.live():
            watched = await self._watch.add(claimed)
            _log.info("execution %s: taken over", watched.id)
        await self._watch.read_journals()
        for claimed in await self._claims.live():
            watched_again = self._watch.find(claimed.execution.id)
            if watched_again is not None and not watched_again.has_begun:
                self._start_apart(claimed, group)

    async def _look_after_hosts(self, group: asyncio.TaskGroup) -> None:
        now = time.monotonic()
        if now - self._proved_at < self._settings.poll_interval_s:
            return
        self._proved_at = now
        look = await self._watch.look_at_hosts()
        for watched in look.unbegun:
            await self._start_again(watched, group)
        for watched in look.lost:
            settling = self._guarded(self._watch.settle(watched), watched.id)
            group.create_task(settling, name=f"settle {watched.id}")
        if now - self._beaten_at >= _HEARTBEAT_EVERY_S:
            self._beaten_at = now
            await self._beat([watched.id for watched in look.alive])

    async def _beat(self, alive: list[ExecutionId]) -> None:
        particulars = {"host": platform.node(), "pid": os.getpid(), "version": __version__}
        await self._claims.beat(alive, worker_id=self.worker_id, particulars=particulars, at=self._clock.now())

    async def _start_again(self, watched: Watched, group: asyncio.TaskGroup) -> None:
        if watched.start_tries >= _MAX_START_TRIES:
            await self._watch.fail(
                watched, "its host did not start; `agentmon doctor` shows whether tmux and Python work"
            )
            return
        watched.start_tries += 1
        watched.start_asked_at = time.monotonic()
        self._start_apart(watched.claimed, group)

    async def _hand_on_commands(self) -> None:
        commands = await self._claims.undelivered_commands()
        if not commands:
            return
        delivered = []
        for command in commands:
            watched = self._watch.find(command.execution_id)
            try:
                if watched is not None:
                    line = {"id": command.id, "type": command.type.value}
                    await asyncio.to_thread(watched.folder.append_command, line)
            except OSError as error:
                # Its folder was removed, which the looks at the hosts settle, or the disk is full: later, then.
                self._complain(f"execution {command.execution_id}: a command cannot be handed on: {error}")
            else:
                delivered.append(command.id)
        if delivered:
            await self._claims.mark_delivered(delivered, at=self._clock.now())

    async def _claim(self, group: asyncio.TaskGroup) -> None:
        while not self._is_stopping and len(self._watch) < self._settings.max_running:
            claimed = await self._claims.claim(
                worker_id=self.worker_id, max_running=self._settings.max_running, at=self._clock.now()
            )
            if claimed is None:
                break
            await self._watch.add(claimed)
            self._start_apart(claimed, group)
        self._has_waiting = await self._claims.count_waiting() > 0

    def _start_apart(self, claimed: ClaimedExecution, group: asyncio.TaskGroup) -> None:
        """Start the execution in a task of its own, so that a slow tmux holds nobody else up."""
        execution_id = claimed.execution.id
        group.create_task(self._guarded(self._start(claimed), execution_id), name=f"start {execution_id}")

    async def _start(self, claimed: ClaimedExecution) -> None:
        reason = await self._starter.start(claimed, self._settings)
        watched = self._watch.find(claimed.execution.id)
        if reason is not None and watched is not None and not watched.has_begun:
            await self._watch.fail(watched, reason)

    async def _guarded(self, work: Coroutine[object, object, None], execution_id: ExecutionId) -> None:
        """Let the work's error end nothing but itself: the execution stays watched, and the next looks settle it."""
        try:
            await work
        except AgentmonError as error:
            _log.warning("execution %s: %s", execution_id, error)
        except Exception:
            _log.exception("execution %s: an error of the worker's own", execution_id)
        self._woken.set()

    def _complain(self, complaint: str) -> None:
        """Say in the log what is wrong, and the same again only after minutes."""
        now = time.monotonic()
        if complaint != self._complaint or now - self._complained_at >= _SAME_COMPLAINT_EVERY_S:
            self._complaint, self._complained_at = complaint, now
            _log.warning("%s", complaint)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._settings.poll_interval_s - (time.monotonic() - self._read_all_at)):
                await self._woken.wait()
        except TimeoutError:
            pass

    async def _pause(self) -> None:
        """Wait before the work that failed is done again, all of it."""
        self._seen_version = None
        self._read_all_at = float("-inf")
        if not self._is_stopping:
            await asyncio.sleep(_PAUSE_AFTER_ERROR_S)
