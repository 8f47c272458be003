"""The worker's loop: woken by a datagram or by the poll, it reads, hands on, claims and starts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from agentmon import __version__
from agentmon.domain.errors import AgentmonError, DatabaseMovedError
from agentmon.domain.ids import ExecutionId, WorkerId, new_id
from agentmon.logs.error_file import traceback_text
from agentmon.store.limit_snapshots import LimitSnapshotRepository
from agentmon.worker.approving import Approver
from agentmon.worker.archiving import archive_old_cards
from agentmon.worker.budget_guarding import BudgetGuard
from agentmon.worker.commands import hand_on_commands
from agentmon.worker.history_following import HistoryFollowing
from agentmon.worker.loop_report import REPORT_EVERY_S, write_loop_report
from agentmon.worker.notifying import Notifier
from agentmon.worker.owners import Takeover, this_owner
from agentmon.worker.retention import remove_old_logs
from agentmon.worker.scheduling import Scheduler
from agentmon.worker.screen_watching import ScreenWatch
from agentmon.worker.search_indexing import SearchFollowing
from agentmon.worker.settings_in_force import read_settings
from agentmon.worker.starting import Starter
from agentmon.worker.status_intake import StatusIntake
from agentmon.worker.supervisor import Supervisor, Turn
from agentmon.worker.sweeping import sweep_environments
from agentmon.worker.telemetry_receiver import TelemetryReceiver
from agentmon.worker.usage_following import UsageFollowing
from agentmon.worker.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Mapping

    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ClaimedExecution
    from agentmon.paths import Paths
    from agentmon.runners.tmux import Tmux
    from agentmon.worker.repositories import Repositories
    from agentmon.worker.wake import WakeSocket
    from agentmon.worker.watching import Watched

_log = logging.getLogger(__name__)

_REMOVE_LOGS_EVERY_S: Final = 600.0
_BUSY_CYCLE_S_PER_RUN: Final = 0.002
_LONGEST_BUSY_CYCLE_S: Final = 0.25
"""With many runs the news of several are taken together: a transaction for each would cost most of a core."""
_MAX_START_TRIES: Final = 3
_MAX_TRIES_WITH_PROBLEM: Final = 15
"""Some 45 s without tmux."""
QUEUE_LOOP: Final = "queue"
"""The name of the loop that claims, starts, watches and settles."""
_LONGEST_QUEUE_PAUSE_S: Final = 5.0
"""Whoever frees the database or the disk wants to see that runs go on."""
_IMPORT_HANGS_AFTER_S: Final = 1_800.0
"""A first history of many gigabytes is read in one turn."""
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
        repositories: Repositories,
        tmux: Tmux,
        wake: WakeSocket,
        paths: Paths,
        clock: Clock,
        has_place: Callable[[], bool] = lambda: True,
    ) -> None:
        self._repositories = repositories
        self._claims = repositories.claims
        self._live = repositories.live
        self._scheduler = Scheduler(
            schedules=repositories.schedules,
            agents=repositories.agents,
            agent_files=repositories.agent_files,
            workspaces=repositories.workspaces,
            authors=repositories.task_authors,
            paths=paths,
            clock=clock,
        )
        self._has_place = has_place
        self._wake = wake
        self._paths = paths
        self._clock = clock
        self.worker_id = WorkerId(new_id())
        self._owner = this_owner(self.worker_id, paths.run_dir)
        self._takeover = Takeover(self._owner)
        self._watch = Watch(ingest=repositories.ingest, paths=paths, clock=clock)
        self._approver = Approver(
            approvals=repositories.approvals, rules=repositories.approval_rules, watch=self._watch, clock=clock
        )
        self._screens = ScreenWatch(
            tmux=tmux, watch=self._watch, activity=repositories.activity, paths=paths, clock=clock
        )
        self._usage = UsageFollowing(
            agents=repositories.agents,
            days=repositories.usage_days,
            prices=repositories.usage_prices,
            paths=paths,
            clock=clock,
        )
        self._history = HistoryFollowing(paths=paths, clock=clock)
        self._search = SearchFollowing(paths)
        self._statuses = StatusIntake(limits=LimitSnapshotRepository(repositories.database), paths=paths, clock=clock)
        self._budgets = BudgetGuard(
            budgets=repositories.budgets,
            enforcement=repositories.budget_enforcement,
            days=repositories.usage_days,
            prices=repositories.usage_prices,
            paths=paths,
            clock=clock,
        )
        self._notifier = Notifier(audit=repositories.audit, place_file=paths.notified, clock=clock)
        self._telemetry = TelemetryReceiver(place_file=paths.telemetry_place, told=repositories.told_usage)
        self._starter = Starter(
            tmux=tmux,
            live=self._live,
            approvals=repositories.approvals,
            paths=paths,
            worker_id=self.worker_id,
            clock=clock,
            telemetry_target=self._telemetry.target_of,
        )
        self._settings = read_settings(paths.settings_file, {})
        self._is_paused = True
        self._woken = asyncio.Event()
        self._messages: set[str] = set()
        self._is_stopping = False
        self._told_to_stop = asyncio.Event()
        self._has_adopted = False
        self._complaints: dict[str, tuple[str, float]] = {}
        self._loops_changed = asyncio.Event()
        self._supervisor = Supervisor(clock=clock, on_failure=self._note_failure, on_change=self._loops_changed.set)
        self._seen_version: int | None = None
        self._noticed_version: int | None = None
        self._has_waiting = True
        self._may_have_missed_news = True
        self._has_undelivered = True
        self._beaten_at = float("-inf")
        self._read_all_at = float("-inf")
        self._proved_at = float("-inf")
        self._worked_at = float("-inf")
        self._removed_logs_at = float("-inf")

    def stop(self) -> None:
        """Let ``run`` return."""
        self._is_stopping = True
        self._woken.set()
        self._told_to_stop.set()

    async def run(self) -> None:
        """Settle what an earlier worker left, then work until ``stop``, or until the database or the place is gone."""
        asyncio.get_running_loop().add_reader(self._wake.fileno(), self._take_messages)
        try:
            async with asyncio.TaskGroup() as group:
                beside = [group.create_task(loop, name=name) for name, loop in self._loops_beside().items()]
                queue = Turn(QUEUE_LOOP, partial(self._work_once, group), longest_pause_s=_LONGEST_QUEUE_PAUSE_S)
                while not self._is_stopping:
                    if await self._supervisor.attempt(queue):
                        await self._wait()
                    else:
                        await self._pause()
                for task in beside:
                    task.cancel()
        finally:
            await self._telemetry.close()
            asyncio.get_running_loop().remove_reader(self._wake.fileno())

    def _loops_beside(self) -> Mapping[str, Coroutine[None, None, None]]:
        """Return what goes on beside the queue, each in a pace of its own, so that none holds up another."""
        keep = self._supervisor.keep
        return {
            "look at screens": keep(Turn("screens of agents", self._screens.look), rest=self._screens.rest),
            "follow usage": self._follow_usage(),
            "follow history": self._follow_history(),
            "follow search": self._follow_search(),
            "tell the person": keep(Turn("notifications", self._notifier.tell_next), rest=self._notifier.wait),
            "report": self._report(),
        }

    async def _follow_usage(self) -> None:
        """Import what agents write down of their answers."""

        async def look() -> None:
            await self._usage.look(self._settings.costs)
            await self._statuses.take_in()

        try:
            await self._supervisor.keep(Turn("usage import", look, _IMPORT_HANGS_AFTER_S), rest=self._usage.rest)
        finally:
            await self._usage.close()

    async def _follow_history(self) -> None:
        """Import what agents write down of what is said and done, in the time that is left."""

        async def look() -> None:
            await self._history.look(self._settings.costs, self._settings.history)

        turn = Turn("conversation import", look, _IMPORT_HANGS_AFTER_S)
        try:
            await self._supervisor.keep(turn, rest=self._history.rest)
        finally:
            self._history.close()

    async def _follow_search(self) -> None:
        """Take up what the search does not know yet."""

        async def look() -> None:
            await self._search.look(self._settings.search)

        try:
            await self._supervisor.keep(Turn("search index", look), rest=self._search.rest)
        finally:
            self._search.close()

    async def _report(self) -> None:
        """Tell everybody how the loops fare, whenever that changes and every few seconds."""
        while True:
            states, now = self._supervisor.states, self._clock.now()
            await asyncio.to_thread(write_loop_report, self._paths.worker_loops, states, at=now)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REPORT_EVERY_S):
                    await self._loops_changed.wait()
            self._loops_changed.clear()

    def _note_failure(self, name: str, error: Exception) -> None:
        if isinstance(error, AgentmonError):
            self._complain(f"{name}: {error}", of=name)
        else:
            self._complain(f"{name} goes on after an error of the worker's own\n{traceback_text(error)}", of=name)

    def _take_messages(self) -> None:
        # At once, also while the loop is busy: a socket that stays readable would keep the event loop spinning.
        self._messages.update(message for message in self._wake.drain() if not message or message in self._watch)
        self._woken.set()

    async def _work_once(self, group: asyncio.TaskGroup) -> None:
        messages, self._messages = self._messages, set()
        self._woken.clear()
        self._worked_at = time.monotonic()
        # Those whose messages got lost have their turn also while others keep the worker awake.
        is_poll = self._worked_at >= self._read_all_at + self._settings.worker.poll_interval_s
        try:
            if not self._has_adopted:
                await self._settle_in(group)
            has_news = await self._has_news(messages, is_poll=is_poll)
            if is_poll:
                self._read_all_at = time.monotonic()
                if not self._has_place():
                    _log.warning("the files in %s by which this worker is found are gone", self._paths.run_dir)
                    self.stop()
                    return
            named = [ExecutionId(message) for message in messages if message]
            has_ended = await self._watch.read_journals(None if is_poll else named)
            has_decided = await self._approver.apply_rules(has_news=has_news)
            if is_poll:
                has_decided = await self._approver.deny_late(self._settings.approvals.timeout_s) or has_decided
            has_stopped = await self._budgets.look(self._repositories.data_version())
            self._pass_over_own_news()
            await self._look_after_hosts(group)
            if await self._scheduler.queue_due() or has_news or has_ended or (is_poll and self._has_waiting):
                await self._claim(group)
            if has_news or has_decided or has_stopped or (is_poll and self._has_undelivered):
                self._has_undelivered = not await hand_on_commands(
                    self._live, self._watch, self._screens, self.worker_id, self._clock, self._complain
                )
            await self._notice_news()
            await self._tidy_up()
        except DatabaseMovedError as error:
            _log.warning("%s", error)
            self.stop()

    async def _settle_in(self, group: asyncio.TaskGroup) -> None:
        await self._has_news([""], is_poll=True)
        await self._beat([])
        await self._take_over(group)
        await sweep_environments(self._live, self._paths)
        self._has_adopted = True

    async def _has_news(self, messages: Collection[str], *, is_poll: bool) -> bool:
        version = self._repositories.data_version()
        is_looked_for = "" in messages or (is_poll and self._may_have_missed_news)
        if version == self._seen_version and not is_looked_for:
            return False
        self._seen_version = version
        self._may_have_missed_news = False
        await self._read_settings()
        self._watch.park_after = self._settings.worker.park_after_failures
        self._is_paused = await self._repositories.pause.get() is not None
        await self._scheduler.look()
        return True

    def _pass_over_own_news(self) -> None:
        """Take what this worker has just written for seen; what others wrote at the same time is found by a poll."""
        version = self._repositories.data_version()
        if version != self._seen_version:
            self._seen_version = version
            self._may_have_missed_news = True

    async def _read_settings(self) -> None:
        try:
            self._settings = read_settings(self._paths.settings_file, await self._repositories.settings.all())
        except AgentmonError as error:
            self._complain(f"the settings stay as they were: {error}")
        await self._settle_telemetry()

    async def _notice_news(self) -> None:
        version = self._repositories.data_version()
        if version != self._noticed_version:
            await self._notifier.look(self._settings.notifications)
            self._noticed_version = version

    async def _settle_telemetry(self) -> None:
        if not self._settings.costs.live_telemetry:
            await self._telemetry.close()
            return
        try:
            await self._telemetry.open()
        except OSError as error:
            self._complain(f"telemetry cannot be received: {error}")

    async def _take_over(self, group: asyncio.TaskGroup) -> None:
        """Watch what workers that are gone left running, and start what they claimed and never began.

        So is what this worker claimed itself and could not read afterwards.
        """
        claims = [claim for claim in await self._live.owners() if claim[0] not in self._watch]
        if not claims:
            return
        now = self._clock.now()
        free = self._takeover.find_free(claims, after_s=self._settings.worker.takeover_after_s, at=now)
        if len(free) < len(claims):
            self._complain(f"{len(claims) - len(free)} runs belong to a worker of another folder or machine")
        if not free:
            return
        taken = await self._live.take_over(free, worker_id=self.worker_id, at=now)
        for claimed in taken:
            watched = await self._watch.add(claimed)
            await self._screens.add(claimed)
            _log.info("execution %s: taken over", watched.id)
        await self._watch.read_journals()
        for claimed in taken:
            watched_again = self._watch.find(claimed.execution.id)
            if watched_again is not None and not watched_again.has_begun and not self._is_paused:
                self._start_apart(watched_again.claimed, group)

    async def _look_after_hosts(self, group: asyncio.TaskGroup) -> None:
        now = time.monotonic()
        if now - self._proved_at < self._settings.worker.poll_interval_s:
            return
        self._proved_at = now
        look = await self._watch.look_at_hosts()
        for watched in () if self._is_paused else look.unbegun:
            await self._start_again(watched, group)
        for watched in look.lost:
            settling = self._guarded(self._watch.settle(watched), watched.id)
            group.create_task(settling, name=f"settle {watched.id}")
        await self._take_over(group)
        if now - self._beaten_at >= self._settings.worker.heartbeat_s:
            await self._beat([watched.id for watched in look.alive])

    async def _beat(self, alive: list[ExecutionId]) -> None:
        self._beaten_at = time.monotonic()
        particulars = self._owner.particulars(version=__version__)
        await self._live.beat(alive, worker_id=self.worker_id, particulars=particulars, at=self._clock.now())

    async def _tidy_up(self) -> None:
        now = time.monotonic()
        if now - self._removed_logs_at >= _REMOVE_LOGS_EVERY_S:
            self._removed_logs_at = now
            await remove_old_logs(self._repositories.old_logs, self._settings.worker, self._clock)
            await archive_old_cards(self._repositories.archive, self._settings.board.archive_after_days, self._clock)

    async def _start_again(self, watched: Watched, group: asyncio.TaskGroup) -> None:
        if watched.start_tries >= (_MAX_TRIES_WITH_PROBLEM if watched.start_problem else _MAX_START_TRIES):
            reason = watched.start_problem or "its host did not start"
            await self._watch.fail(watched, f"{reason}; `agentmon doctor` shows whether tmux and Python work")
            return
        watched.start_tries += 1
        watched.start_asked_at = time.monotonic()
        self._start_apart(watched.claimed, group)

    async def _claim(self, group: asyncio.TaskGroup) -> None:
        while not self._is_stopping and len(self._watch) < self._settings.worker.max_running:
            claimed = await self._claims.claim(
                worker_id=self.worker_id,
                max_running=self._settings.worker.max_running,
                park_after=self._settings.worker.park_after_failures,
                limit=self._settings.worker.max_running - len(self._watch),
                at=self._clock.now(),
            )
            for one in claimed:
                await self._watch.add(one)
                await self._screens.add(one)
                self._start_apart(one, group)
            if not claimed:
                break
        self._has_waiting = await self._claims.count_waiting() > 0

    def _start_apart(self, claimed: ClaimedExecution, group: asyncio.TaskGroup) -> None:
        """Start the execution in a task of its own, so that a slow tmux holds nobody else up."""
        execution_id = claimed.execution.id
        group.create_task(self._guarded(self._start(claimed), execution_id), name=f"start {execution_id}")

    async def _start(self, claimed: ClaimedExecution) -> None:
        problem = await self._starter.start(claimed, self._settings.worker)
        watched = self._watch.find(claimed.execution.id)
        if watched is None or watched.has_begun:
            return
        if problem is not None and problem.is_lasting:
            await self._watch.fail(watched, problem.reason)
        else:
            watched.start_problem = "" if problem is None else problem.reason

    async def _guarded(self, work: Coroutine[object, object, None], execution_id: ExecutionId) -> None:
        """Let the work's error end nothing but itself: the execution stays watched, and the next looks settle it."""
        try:
            await work
        except AgentmonError as error:
            _log.warning("execution %s: %s", execution_id, error)
        except Exception:
            _log.exception("execution %s: an error of the worker's own", execution_id)
        self._woken.set()

    def _complain(self, complaint: str, *, of: str = "") -> None:
        """Say in the log what is wrong of something, and the same again only after minutes."""
        now = time.monotonic()
        before, at = self._complaints.get(of, ("", 0.0))
        if complaint != before or now - at >= _SAME_COMPLAINT_EVERY_S:
            self._complaints[of] = (complaint, now)
            _log.warning("%s", complaint)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._settings.worker.poll_interval_s - (time.monotonic() - self._read_all_at)):
                await self._woken.wait()
                busy_cycle_s = min(len(self._watch) * _BUSY_CYCLE_S_PER_RUN, _LONGEST_BUSY_CYCLE_S)
                await asyncio.sleep(self._worked_at + busy_cycle_s - time.monotonic())
        except TimeoutError:
            pass

    async def _pause(self) -> None:
        """Wait before the work that failed is done again, all of it."""
        self._seen_version = None
        self._read_all_at = float("-inf")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._supervisor.pause_s(QUEUE_LOOP)):
                await self._told_to_stop.wait()
