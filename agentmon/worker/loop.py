"""The worker's turns: each thing it does has a loop of its own, so that none holds up another.

One loop looks whether anything has changed and rings the others. What must never wait, the commands of clients, has the
first of them and reads nothing that an agent wrote.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import AgentmonError, DatabaseMovedError, StoreError
from agentmon.domain.ids import ExecutionId, WorkerId, new_id
from agentmon.logs.error_file import traceback_text
from agentmon.worker.approving import Approver
from agentmon.worker.archiving import archive_old_cards
from agentmon.worker.budget_guarding import BudgetGuard
from agentmon.worker.change_recording import RECORDED_WITHIN_S, ChangeRecorder
from agentmon.worker.commands import CommandDelivery
from agentmon.worker.finalizing import END_STEPS, EndStep, Finalizer
from agentmon.worker.follow_ups import FollowUps
from agentmon.worker.following import Following
from agentmon.worker.hosts import Hosts
from agentmon.worker.loop_report import REPORT_EVERY_S, write_loop_report
from agentmon.worker.merge_finishing import MergeFinisher
from agentmon.worker.notifying import Notifier
from agentmon.worker.overlap_watching import OverlapWatch
from agentmon.worker.retention import remove_old_logs
from agentmon.worker.sandbox_choosing import SandboxChooser
from agentmon.worker.scheduling import Scheduler
from agentmon.worker.screen_watching import ScreenWatch
from agentmon.worker.settings_in_force import read_settings
from agentmon.worker.starting import Starter
from agentmon.worker.supervisor import Supervisor, Turn
from agentmon.worker.sweeping import sweep_environments
from agentmon.worker.telemetry_receiver import TelemetryReceiver
from agentmon.worker.thinning import Thinner
from agentmon.worker.verifying import Verifier
from agentmon.worker.watching import Watch
from agentmon.worker.worktree_making import WorktreeMaker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from agentmon.domain.clock import Clock
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
_LEFTOVERS_HANG_AFTER_S: Final = 300.0
_NOTED_WITHIN_S: Final = 2.0
"""A git that outlived what was killed comes to its end first."""
_LONGEST_PAUSE_S: Final = 5.0
"""Whoever frees the database or the disk wants to see that runs go on."""
_SAME_COMPLAINT_EVERY_S: Final = 300.0
"""How often the log says the same: a full disk can last for days."""


class _Bell(asyncio.Event):
    """Rung when a loop has something to do; answering it takes all ringing so far for heard."""

    async def answer(self) -> None:
        await self.wait()
        self.clear()


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
        self._watch = Watch(ingest=repositories.ingest, settlement=repositories.settlement, paths=paths, clock=clock)
        self._approver = Approver(
            approvals=repositories.approvals, rules=repositories.approval_rules, watch=self._watch, clock=clock
        )
        self._screens = screens = ScreenWatch(
            tmux=tmux, watch=self._watch, activity=repositories.activity, paths=paths, clock=clock
        )
        self._delivery = CommandDelivery(
            live=repositories.live,
            watch=self._watch,
            screens=screens,
            activity=repositories.activity,
            worker_id=self.worker_id,
            clock=clock,
            complain=self._complain,
        )
        self._recorder = recorder = ChangeRecorder(
            changes=repositories.changes, paths=paths, clock=clock, watch=self._watch
        )
        screens.on_state = recorder.calls.note_state
        self._worktrees = WorktreeMaker(
            worktrees=repositories.worktrees, agent_files=repositories.agent_files, paths=paths, clock=clock
        )
        self._verifier = Verifier(
            verifications=repositories.verifications,
            agent_files=repositories.agent_files,
            worktrees=self._worktrees,
            settings=lambda: self._settings,
            paths=paths,
            clock=clock,
        )
        self._finalizer = Finalizer(
            watch=self._watch,
            settlement=repositories.settlement,
            clock=clock,
            on_settled=self._note_settled,
            follow_ups=FollowUps(
                verifier=self._verifier,
                settlement=repositories.settlement,
                agents=repositories.agents,
                agent_files=repositories.agent_files,
                authors=repositories.task_authors,
                paths=paths,
            ).find,
            steps=(
                EndStep(
                    "its conversation", self._screens.lacks_conversation, self._screens.look_for_last_time, limit_s=10.0
                ),
                EndStep("its result", self._screens.lacks_result, self._screens.look_for_result, limit_s=10.0),
                *END_STEPS,
                self._worktrees.end_step,
                EndStep("its changes", recorder.is_due, recorder.record, limit_s=RECORDED_WITHIN_S),
                self._verifier.end_step,
            ),
        )
        self._following = Following(
            repositories=repositories,
            settings=lambda: self._settings,
            paths=paths,
            clock=clock,
            on_answers=self._note_answers,
            screens=self._screens,
            on_calls=recorder.calls.note_told,
        )
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
        self._hosts = Hosts(
            claims=repositories.claims,
            live=repositories.live,
            watch=self._watch,
            screens=self._screens,
            starter=Starter(
                tmux=tmux,
                live=repositories.live,
                approvals=repositories.approvals,
                worktrees=self._worktrees,
                on_placed=self._watch.place,
                paths=paths,
                worker_id=self.worker_id,
                clock=clock,
                sandboxes=SandboxChooser(live=repositories.live, authors=repositories.task_authors, clock=clock),
                look_before=recorder.begin,
                telemetry_target=self._telemetry.target_of,
            ),
            worktrees=self._worktrees,
            worker_id=self.worker_id,
            paths=paths,
            clock=clock,
            on_news=self._note_host_news,
            complain=self._complain,
        )
        self._settings = read_settings(paths.settings_file, {})
        self._thinner = Thinner(repositories.thinning, clock)
        self._is_paused = True
        self._is_stopping = asyncio.Event()
        self._finishing: set[asyncio.Task[None]] = set()
        self._complaints: dict[str, tuple[str, float]] = {}
        self._loops_changed = asyncio.Event()
        self._supervisor = Supervisor(clock=clock, on_failure=self._note_failure, on_change=self._loops_changed.set)
        self._look = _Bell()
        self._commands = _Bell()
        self._deliveries = _Bell()
        self._journals = _Bell()
        self._ends = _Bell()
        self._approvals = _Bell()
        self._spending = _Bell()
        self._schedules = _Bell()
        self._queue = _Bell()
        self._proofs = _Bell()
        self._news = _Bell()
        self._upkeep = _Bell()
        self._unread: set[ExecutionId] | None = None
        """Executions whose journals have news; None for all, since a message may have got lost."""
        self._spending_turn = Turn("budgets", self._look_at_budgets, longest_pause_s=_LONGEST_PAUSE_S)
        self._spending_lock = asyncio.Lock()
        self._seen_version: int | None = None
        self._may_rules_differ = True
        self._polled_at = float("-inf")
        self._journals_read_at = float("-inf")
        self._removed_logs_at = float("-inf")

    def stop(self) -> None:
        """Let ``run`` return."""
        self._is_stopping.set()

    async def run(self) -> None:
        """Settle what an earlier worker left, then work until ``stop``, or until the database or the place is gone."""
        asyncio.get_running_loop().add_reader(self._wake.fileno(), self._take_messages)
        try:
            async with asyncio.TaskGroup() as group:
                loops = [group.create_task(loop, name=name) for name, loop in self._loops(group).items()]
                await self._is_stopping.wait()
                # What is left of an end is done by the next worker: a verification may take long.
                for task in (*loops, *self._finishing):
                    task.cancel()
        finally:
            # An agent in its own screen would be told again by the next worker.
            with contextlib.suppress(StoreError, TimeoutError):
                async with asyncio.timeout(_NOTED_WITHIN_S):
                    await self._delivery.note()
            await self._telemetry.close()
            asyncio.get_running_loop().remove_reader(self._wake.fileno())

    def _loops(self, group: asyncio.TaskGroup) -> Mapping[str, Coroutine[None, None, None]]:
        """Return everything that goes on, each in a pace of its own, so that none holds up another."""
        keep = self._supervisor.keep
        calls = self._recorder.calls
        overlaps = OverlapWatch(overlaps=self._repositories.overlaps, paths=self._paths, clock=self._clock)
        return {
            "report": self._report(),
            "commands": self._keep("commands", self._hand_on_commands, self._commands),
            "deliveries": self._keep("deliveries", self._delivery.settle, self._deliveries),
            "work": self._work(group),
            "look at screens": keep(Turn("screens of agents", self._look_at_screens), rest=self._screens.rest),
            "calls": keep(Turn("tool calls of own screens", calls.follow), rest=calls.rest),
            "overlaps": keep(Turn("overlaps", overlaps.look), rest=overlaps.rest),
            **self._following.loops(self._supervisor),
            "tell the person": keep(Turn("notifications", self._notifier.tell_next), rest=self._notifier.wait),
        }

    async def _work(self, group: asyncio.TaskGroup) -> None:
        """Take over what an earlier worker left, then let all turns about executions begin."""
        await self._until_done(Turn("queue", partial(self._settle_in, group), longest_pause_s=_LONGEST_PAUSE_S))

        async def look_after_hosts() -> None:
            await self._hosts.look_after(self._settings, group, may_start=not self._is_paused)

        async def end() -> None:
            plain, long = self._finalizer.begin()
            for watched in long:
                finishing = group.create_task(self._finish(watched), name=f"finish {watched.id}")
                self._finishing.add(finishing)
                finishing.add_done_callback(self._finishing.discard)
            await self._finalizer.settle(plain)

        async def claim() -> None:
            # What was just spent has to hold back what would start now; that it cannot be looked at holds up nothing.
            if not self._supervisor.pause_s(self._spending_turn.name):
                await self._attempt_budgets()
            await self._hosts.claim(self._settings, group)

        loops = {
            "look": self._keep("watch", self._look_for_news, self._look, rest=self._rest),
            "journals": self._keep("journals", self._read_journals, self._journals, rest=self._rest_of_journals),
            "ends": self._keep("ends of runs", end, self._ends),
            "approvals": self._keep("approvals", self._approve, self._approvals),
            "spending": self._keep_budgets(),
            "schedules": self._keep("schedules", self._queue_due, self._schedules),
            "queue": self._keep("queue", claim, self._queue),
            "proofs": self._keep("hosts", look_after_hosts, self._proofs),
            "news": self._keep("news", self._notice_news, self._news),
            "upkeep": self._keep("upkeep", self._tidy_up, self._upkeep),
        }
        async with asyncio.TaskGroup() as own:
            for name, loop in loops.items():
                own.create_task(loop, name=name)
            self._ring_all()

    async def _settle_in(self, group: asyncio.TaskGroup) -> None:
        await self._read_state()
        await self._hosts.beat()
        await self._hosts.take_over(self._settings, group, may_start=not self._is_paused)
        self._commands.set()
        await self._repositories.claims.ask_about_waiting(at=self._clock.now())
        await sweep_environments(self._repositories.live, self._paths)
        leftovers = Turn("leftovers", self._settle_leftovers, _LEFTOVERS_HANG_AFTER_S)
        group.create_task(self._until_done(leftovers), name=leftovers.name)

    async def _settle_leftovers(self) -> None:
        """End what a kill cut off; none of it holds up another."""
        merges = MergeFinisher(worktrees=self._repositories.worktrees, paths=self._paths, clock=self._clock)
        ends = await asyncio.gather(
            self._worktrees.settle(),
            self._recorder.recover(),
            self._verifier.settle(),
            merges.recover(),
            return_exceptions=True,
        )
        for error in ends:
            if error is not None:
                raise error

    async def _until_done(self, turn: Turn) -> None:
        """Do a turn once, and again after each failure, which ends nothing else."""
        while not await self._supervisor.attempt(turn):  # noqa: ASYNC110 - its pause is all there is to wait for
            await asyncio.sleep(self._supervisor.pause_s(turn.name))

    def _keep(
        self,
        name: str,
        work: Callable[[], Awaitable[None]],
        bell: _Bell,
        *,
        rest: Callable[[], Awaitable[None]] | None = None,
    ) -> Coroutine[None, None, None]:
        """Return the loop that works whenever its bell rings, and again after a failure."""

        async def turn() -> None:
            try:
                await work()
            except BaseException:
                bell.set()
                raise

        kept = Turn(name, turn, longest_pause_s=_LONGEST_PAUSE_S)
        return self._supervisor.keep(kept, rest=rest or bell.answer)

    async def _keep_budgets(self) -> None:
        while True:
            await self._spending.answer()
            await asyncio.sleep(self._supervisor.pause_s(self._spending_turn.name))
            if not await self._attempt_budgets():
                self._spending.set()

    async def _attempt_budgets(self) -> bool:
        async with self._spending_lock:
            return await self._supervisor.attempt(self._spending_turn)

    def _ring_all(self) -> None:
        for bell in (
            self._commands,
            self._journals,
            self._ends,
            self._approvals,
            self._spending,
            self._schedules,
            self._queue,
            self._proofs,
            self._news,
            self._upkeep,
        ):
            bell.set()

    def _take_messages(self) -> None:
        # At once, also while loops are busy: a socket that stays readable would keep the event loop spinning.
        for message in self._wake.drain():
            if not message:
                self._commands.set()
                self._look.set()
            elif message in self._watch:
                if self._unread is not None:
                    self._unread.add(ExecutionId(message))
                self._journals.set()

    # Looking

    async def _rest(self) -> None:
        """Wait for a client's word, or the poll; what one wrote that died before its word is found in a quarter."""
        interval_s = self._settings.worker.poll_interval_s
        poll_in_s = self._polled_at + interval_s - time.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(poll_in_s, interval_s / 4)):
                await self._look.answer()

    async def _look_for_news(self) -> None:
        """Ring whoever may have something to do."""
        if time.monotonic() >= self._polled_at + self._settings.worker.poll_interval_s:
            self._polled_at = time.monotonic()
            if not self._has_place():
                _log.warning("the files in %s by which this worker is found are gone", self._paths.run_dir)
                self.stop()
                return
            self._ring_for_the_poll()
        version = self._repositories.data_version()
        if version != self._seen_version:
            self._commands.set()
            await self._read_state()
            self._seen_version = version
            self._may_rules_differ = True
            for bell in (
                self._commands,
                self._approvals,
                self._spending,
                self._schedules,
                self._queue,
                self._news,
            ):
                bell.set()

    def _ring_for_the_poll(self) -> None:
        """Ring for what no word comes of: messages that got lost, hosts that died, times that have come."""
        self._spending.set()
        self._proofs.set()
        self._upkeep.set()
        if len(self._watch):
            self._unread = None
            self._journals.set()
            self._ends.set()
        if self._settings.approvals.timeout_s:
            self._approvals.set()
        if self._delivery.has_unwritten:
            self._commands.set()
        if self._delivery.has_unsettled:
            self._deliveries.set()
        if self._scheduler.is_due:
            self._schedules.set()
        if self._hosts.has_waiting:
            self._queue.set()

    async def _read_state(self) -> None:
        """Read what others decide: settings, the pause, schedules."""
        try:
            self._settings = read_settings(self._paths.settings_file, await self._repositories.settings.all())
        except StoreError:
            raise
        except Exception as error:
            self._complain(f"the settings stay as they were: {error}", "settings")
        await self._settle_telemetry()
        self._finalizer.park_after = self._settings.worker.park_after_failures
        self._finalizer.reviews = self._settings.board.review
        self._is_paused = await self._repositories.pause.get() is not None
        await self._scheduler.look()

    # Turns

    async def _hand_on_commands(self) -> None:
        self._deliveries.set()
        await self._delivery.hand_on()
        self._deliveries.set()

    async def _rest_of_journals(self) -> None:
        """Wait for news, and with many runs for those of others too."""
        await self._journals.wait()
        busy_cycle_s = min(len(self._watch) * _BUSY_CYCLE_S_PER_RUN, _LONGEST_BUSY_CYCLE_S)
        await asyncio.sleep(self._journals_read_at + busy_cycle_s - time.monotonic())
        self._journals.clear()

    async def _read_journals(self) -> None:
        self._journals_read_at = time.monotonic()
        unread, self._unread = self._unread, set()
        try:
            has_more = await self._watch.read_journals(unread)
        except BaseException:
            self._unread = None
            raise
        if has_more:
            self._unread = None
            self._journals.set()
        if self._watch.ended():
            self._ends.set()
        if self._watch.has_asked:
            self._approvals.set()
        if self._watch.has_spent:
            self._watch.has_spent = False
            self._spending.set()

    async def _look_at_screens(self) -> None:
        await self._screens.look()
        if self._watch.has_asked:
            self._approvals.set()

    async def _finish(self, watched: Watched) -> None:
        """Do what belongs to one end; an error leaves it for the next look."""
        try:
            await self._finalizer.finish(watched)
        except AgentmonError as error:
            self._complain(f"execution {watched.id}: its end cannot be written yet: {error}", of=watched.id)
        except Exception as error:
            self._complain(f"execution {watched.id}: an error at its end\n{traceback_text(error)}", of=watched.id)

    async def _queue_due(self) -> None:
        is_due = self._scheduler.is_due
        try:
            await self._scheduler.queue_due()
        finally:
            if is_due:
                self._queue.set()

    async def _approve(self) -> None:
        has_news, self._may_rules_differ = self._may_rules_differ, False
        try:
            has_decided = await self._approver.apply_rules(has_news=has_news)
        except BaseException:
            self._may_rules_differ = True
            raise
        has_decided = await self._approver.deny_late(self._settings.approvals.timeout_s) or has_decided
        if has_decided:
            self._commands.set()
            self._queue.set()

    async def _look_at_budgets(self) -> None:
        if await self._budgets.look(self._repositories.data_version()):
            self._commands.set()

    async def _notice_news(self) -> None:
        await self._notifier.look(self._settings.notifications)

    async def _tidy_up(self) -> None:
        await self._thinner.look(self._settings.worker)
        now = time.monotonic()
        if now - self._removed_logs_at >= _REMOVE_LOGS_EVERY_S:
            self._removed_logs_at = now
            await remove_old_logs(self._repositories.old_logs, self._settings.worker, self._clock)
            await self._recorder.prune()
            await archive_old_cards(self._repositories.archive, self._settings.board.archive_after_days, self._clock)

    def _note_answers(self) -> None:
        self._spending.set()

    def _note_settled(self) -> None:
        self._queue.set()
        self._news.set()

    def _note_host_news(self) -> None:
        self._ends.set()
        self._journals.set()

    def _note_failure(self, name: str, error: Exception) -> None:
        if isinstance(error, DatabaseMovedError):
            self._complain(str(error), of="database")
            self.stop()
        elif isinstance(error, AgentmonError):
            self._complain(f"{name}: {error}", of=name)
        else:
            self._complain(f"{name} goes on after an error of the worker's own\n{traceback_text(error)}", of=name)

    async def _report(self) -> None:
        """Tell everybody how the loops fare, whenever that changes and every few seconds."""
        while True:
            states, now = self._supervisor.states, self._clock.now()
            await asyncio.to_thread(write_loop_report, self._paths.worker_loops, states, at=now)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REPORT_EVERY_S):
                    await self._loops_changed.wait()
            self._loops_changed.clear()

    async def _settle_telemetry(self) -> None:
        if not self._settings.costs.live_telemetry:
            await self._telemetry.close()
            return
        try:
            await self._telemetry.open()
        except OSError as error:
            self._complain(f"telemetry cannot be received: {error}", of="telemetry")

    def _complain(self, complaint: str, of: str) -> None:
        """Say in the log what is wrong of something, and the same again only after minutes."""
        now = time.monotonic()
        before, at = self._complaints.get(of, ("", 0.0))
        if complaint != before or now - at >= _SAME_COMPLAINT_EVERY_S:
            self._complaints[of] = (complaint, now)
            _log.warning("%s", complaint)
