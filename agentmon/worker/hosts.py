"""The hosts of this worker's executions: started for what is claimed, taken over from workers that are gone, proven."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from agentmon import __version__
from agentmon.domain.errors import AgentmonError, StoreError
from agentmon.domain.execution_status import EndReason
from agentmon.worker.owners import Takeover, this_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ClaimedExecution
    from agentmon.domain.ids import ExecutionId, WorkerId
    from agentmon.paths import Paths
    from agentmon.store.claims import ClaimRepository
    from agentmon.store.live_executions import LiveExecutionRepository
    from agentmon.worker.screen_watching import ScreenWatch
    from agentmon.worker.settings_in_force import SettingsInForce
    from agentmon.worker.starting import Starter
    from agentmon.worker.watching import Watch, Watched
    from agentmon.worker.worktree_making import WorktreeMaker

_log = logging.getLogger(__name__)

_MAX_START_TRIES: Final = 3
_SCREENS_WITHIN_S: Final = 1.0
"""How long the next step of a worker that takes runs over waits for their screens; those that take longer follow."""


class Hosts:
    """Belongs to one worker.

    Args:
        claims: Where executions are claimed.
        live: What the database has of those that are.
        watch: Gets each of them.
        screens: Gets those whose agent has a screen of its own.
        starter: Starts their hosts.
        worktrees: Says where worktrees are made, and sees when one is gone.
        worker_id: The worker.
        paths: Where its files are.
        clock: Dates what is written.
        on_news: Called when a start or an end came to something.
        complain: Called with what a person should know, and with what it is about.
    """

    def __init__(
        self,
        *,
        claims: ClaimRepository,
        live: LiveExecutionRepository,
        watch: Watch,
        screens: ScreenWatch,
        starter: Starter,
        worktrees: WorktreeMaker,
        worker_id: WorkerId,
        paths: Paths,
        clock: Clock,
        on_news: Callable[[], None],
        complain: Callable[[str, str], None],
    ) -> None:
        self._claims = claims
        self._live = live
        self._watch = watch
        self._screens = screens
        self._starter = starter
        self._worktrees = worktrees
        self._worker_id = worker_id
        self._clock = clock
        self._on_news = on_news
        self._complain = complain
        self._owner = this_owner(worker_id, paths.run_dir)
        self._takeover = Takeover(self._owner)
        self._adding = asyncio.Lock()
        self._unreadable: set[ExecutionId] = set()
        self._beaten_at = float("-inf")
        self.has_waiting = True
        """Whether executions were in the queue at the last claim."""

    async def claim(self, settings: SettingsInForce, group: asyncio.TaskGroup) -> None:
        """Claim and start as many as there is room for.

        Raises:
            StoreError: What was claimed and not begun is taken over like that of a worker that is gone.
        """
        while len(self._watch) < settings.worker.max_running:
            async with self._adding:
                claimed = await self._claims.claim(
                    worker_id=self._worker_id,
                    max_running=settings.worker.max_running,
                    park_after=settings.worker.park_after_failures,
                    limit=settings.worker.max_running - len(self._watch),
                    worktrees=self._worktrees.places(settings.worktrees),
                    at=self._clock.now(),
                )
                for one in claimed:
                    await self._watch.add(one)
                    begun = self._begin_screen(one, group)
                    self._start_apart(one, settings, group, after=begun)
            if not claimed:
                break
        self.has_waiting = await self._claims.count_waiting() > 0

    async def take_over(self, settings: SettingsInForce, group: asyncio.TaskGroup, *, may_start: bool) -> None:
        """Watch what workers that are gone left running, and start what they claimed and never began.

        So is what this worker claimed itself and could not read afterwards.
        """
        async with self._adding:
            known = self._watch.ids | self._unreadable
            claims = [claim for claim in await self._live.owners() if claim[0] not in known]
            if not claims:
                return
            now = self._clock.now()
            free = self._takeover.find_free(claims, after_s=settings.worker.takeover_after_s, at=now)
            if len(free) < len(claims):
                others = len(claims) - len(free)
                self._complain(f"{others} runs belong to a worker of another folder or machine", "hosts")
            taken = await self._read_taken(free)
            for claimed in taken:
                watched = await self._watch.add(claimed)
                _log.info("execution %s: taken over", watched.id)
        screens = [self._begin_screen(claimed, group) for claimed in taken]
        if taken:
            await asyncio.wait(screens, timeout=_SCREENS_WITHIN_S)
            self._on_news()
        for claimed in taken:
            again = self._watch.find(claimed.execution.id)
            if again is not None and again.ending is None and not again.has_begun and may_start:
                self._start_apart(again.claimed, settings, group)

    async def _read_taken(self, free: Sequence[ExecutionId]) -> list[ClaimedExecution]:
        """Return what is taken over; a row that cannot be read keeps no other from being taken."""
        if not free:
            return []
        now = self._clock.now()
        try:
            return list(await self._live.take_over(free, worker_id=self._worker_id, at=now))
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - one row that cannot be read must not keep the others without a worker
            if len(free) == 1:
                _log.exception("execution %s: its row cannot be read, so that nobody watches it", free[0])
                self._unreadable.add(free[0])
                return []
        return [one for execution_id in free for one in await self._read_taken([execution_id])]

    async def look_after(self, settings: SettingsInForce, group: asyncio.TaskGroup, *, may_start: bool) -> None:
        """Look whether the hosts live, start those that never began, and settle what dead ones left."""
        look = await self._watch.look_at_hosts()
        for watched in look.lost:
            group.create_task(self._guarded(self._watch.settle(watched), watched.id), name=f"settle {watched.id}")
        for watched in look.unbegun if may_start else ():
            await self._start_again(watched, settings, group)
        await self._worktrees.stop_in_gone(look.alive)
        await self.take_over(settings, group, may_start=may_start)
        if time.monotonic() - self._beaten_at >= settings.worker.heartbeat_s:
            await self.beat([watched.id for watched in look.alive])

    async def beat(self, alive: Sequence[ExecutionId] = ()) -> None:
        """Say that this worker lives, and the hosts of these executions."""
        self._beaten_at = time.monotonic()
        particulars = self._owner.particulars(version=__version__)
        await self._live.beat(alive, worker_id=self._worker_id, particulars=particulars, at=self._clock.now())

    async def _start_again(self, watched: Watched, settings: SettingsInForce, group: asyncio.TaskGroup) -> None:
        if watched.start_problem or watched.start_tries >= _MAX_START_TRIES:
            reason = watched.start_problem or "its host did not start"
            await self._watch.put_back(watched, f"{reason}; `agentmon doctor` shows whether tmux and Python work")
            self._on_news()
            return
        watched.start_tries += 1
        watched.start_asked_at = time.monotonic()
        self._start_apart(watched.claimed, settings, group)

    def _begin_screen(self, claimed: ClaimedExecution, group: asyncio.TaskGroup) -> asyncio.Task[None]:
        """Look at the agent's own screen, if it has one; a file of its that does not answer holds nobody else up."""
        execution_id = claimed.execution.id
        return group.create_task(
            self._guarded(self._screens.add(claimed), execution_id), name=f"begin the screen of {execution_id}"
        )

    def _start_apart(
        self,
        claimed: ClaimedExecution,
        settings: SettingsInForce,
        group: asyncio.TaskGroup,
        *,
        after: asyncio.Task[None] | None = None,
    ) -> None:
        """Start the execution in a task of its own, so that a slow tmux holds nobody else up."""
        execution_id = claimed.execution.id
        group.create_task(
            self._guarded(self._start(claimed, settings, after), execution_id), name=f"start {execution_id}"
        )

    async def _start(
        self, claimed: ClaimedExecution, settings: SettingsInForce, after: asyncio.Task[None] | None
    ) -> None:
        if after is not None:
            await asyncio.wait([after])
        watched = self._watch.find(claimed.execution.id)
        if watched is None or watched.is_being_prepared:
            return
        watched.is_being_prepared = True
        try:
            problem = await self._starter.start(claimed, settings)
        finally:
            watched.is_being_prepared = False
            watched.start_asked_at = time.monotonic()
        watched = self._watch.find(claimed.execution.id)
        if watched is None or watched.ending is not None or watched.has_begun:
            return
        if problem is not None and problem.is_lasting:
            await self._watch.fail(watched, problem.reason, reason=EndReason.START_FAILED)
        else:
            watched.start_problem = "" if problem is None else problem.reason

    async def _guarded(self, work: Coroutine[object, object, None], execution_id: ExecutionId) -> None:
        """Let the work's error end nothing but itself: the execution stays watched, and the next looks settle it."""
        try:
            await work
        except AgentmonError as error:
            _log.warning("execution %s: %s", execution_id, error)
        except Exception:  # noqa: BLE001 - a start or an end of one execution must not end the worker
            _log.exception("execution %s: an error of the worker's own", execution_id)
        self._on_news()
