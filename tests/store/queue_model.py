"""What the queue must do, said again in plain Python: a second opinion that the tests hold against the database."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import ParkReason, ToolType
from agentmon.domain.events import TaskEventType as Told
from agentmon.domain.execution_status import EndReason, ExecutionStatus, WaitReason
from agentmon.domain.refusals import RefusalKind
from agentmon.domain.task_status import TaskStatus

if TYPE_CHECKING:
    from datetime import datetime

    from agentmon.domain.executions import ExecutionEnding
    from agentmon.domain.refusals import Refusal

USER: Final = "user"
SYSTEM: Final = "system"
PARKING: Final = frozenset({WaitReason.USAGE_LIMIT, WaitReason.RATE_LIMIT, WaitReason.FAILURES})
_FAILURES: Final = frozenset({ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT})
_FOREIGN: Final = frozenset({EndReason.LOST, EndReason.TERMINATED})
"""Ends that are no fault of the program."""
_LIVE: Final = frozenset({ExecutionStatus.RUNNING, ExecutionStatus.CANCELLING})
_CLOSED: Final = frozenset({TaskStatus.DONE, TaskStatus.CANCELLED})
_COLUMN_AFTER: Final = {
    ExecutionStatus.SUCCEEDED: TaskStatus.DONE,
    ExecutionStatus.FAILED: TaskStatus.BLOCKED,
    ExecutionStatus.TIMED_OUT: TaskStatus.BLOCKED,
}
_GIVEN_UP_AS: Final = {
    ExecutionStatus.FAILED: "failed",
    ExecutionStatus.TIMED_OUT: "timed out",
    ExecutionStatus.CANCELLED: "stopped",
}
_LONGEST_RETRY_WAIT: Final = timedelta(minutes=10)
_LONGEST_START_WAIT: Final = timedelta(minutes=1)
_LONGEST_WAITS: Final = {
    WaitReason.NOT_STARTED: _LONGEST_RETRY_WAIT,
    WaitReason.RETRY: _LONGEST_RETRY_WAIT,
    WaitReason.FAILURES: timedelta(hours=1),
    WaitReason.RATE_LIMIT: timedelta(days=40, minutes=1),
    WaitReason.USAGE_LIMIT: timedelta(days=40, minutes=1),
}


class RefusedError(Exception):
    """The model says that the change cannot be made."""


@dataclass(eq=False)
class ModelAgent:
    """An agent, as far as the queue cares."""

    id: str
    max_concurrent: int
    tool_type: ToolType
    streak: int = 0
    parked_until: datetime | None = None
    parked_at: datetime | None = None
    park_reason: ParkReason | None = None

    @property
    def runs_commands(self) -> bool:
        return self.tool_type in {ToolType.CLI_TOOL, ToolType.SHELL_UTIL}


@dataclass(eq=False)
class Card:
    """A task."""

    id: str
    number: int
    workspace: str
    priority: int
    status: TaskStatus = TaskStatus.TODO
    is_deleted: bool = False
    is_archived: bool = False
    needs: list[Card] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return self.status not in _CLOSED and not self.is_deleted

    @property
    def holds(self) -> bool:
        """Whether it keeps what waits for it from starting."""
        return self.status is not TaskStatus.DONE or self.open_run is not None

    @property
    def given_up_as(self) -> str:
        """Why it will not be done by itself; empty while it may be, and when it is done."""
        if self.status is TaskStatus.DONE:
            return ""
        if self.is_deleted:
            return "deleted"
        if self.status is TaskStatus.CANCELLED:
            return "cancelled"
        if self.is_archived:
            return "archived"
        newest = self.newest_run
        if newest is None or newest.status not in _GIVEN_UP_AS:
            return ""
        return "lost" if newest.end_reason is EndReason.LOST else _GIVEN_UP_AS[newest.status]

    @property
    def waits(self) -> bool:
        return any(needed.holds for needed in self.needs)

    @property
    def open_run(self) -> Run | None:
        found = [run for run in self.runs if run.is_open]
        assert len(found) <= 1
        return found[0] if found else None

    @property
    def newest_run(self) -> Run | None:
        return max(self.runs, key=lambda run: (run.created_at, run.id), default=None)

    @property
    def column_at_rest(self) -> TaskStatus:
        """Where an open card is of which nothing runs."""
        return TaskStatus.BLOCKED if self.waits else TaskStatus.TODO


@dataclass(eq=False)
class Run:
    """An execution."""

    id: str
    card: Card
    agent: ModelAgent
    max_retries: int
    created_at: datetime
    queued_at: datetime
    args: str = ""
    not_before: datetime | None = None
    wait_reason: WaitReason | None = None
    written_at: datetime | None = None
    """When it was last told to wait, or to go on."""
    status: ExecutionStatus = ExecutionStatus.QUEUED
    retry_count: int = 0
    attempt: int = 0
    wait_count: int = 0
    offset: int = 0
    asked: set[str] = field(default_factory=set)
    cancels_card: bool = False
    is_held: bool = False
    """Whether it waits for a person's leave to start."""
    error: str | None = None
    """Why it waits."""
    asks: str | None = None
    """What it waits for in the queue that will not be done by itself."""
    ended_at: datetime | None = None
    end_reason: EndReason | None = None

    @property
    def is_open(self) -> bool:
        return self.status is ExecutionStatus.QUEUED or self.is_live

    @property
    def is_live(self) -> bool:
        return self.status in _LIVE

    @property
    def place(self) -> tuple[int, datetime, str]:
        """Urgent ones first, then the oldest."""
        return (self.card.priority, self.queued_at, self.id)


@dataclass(eq=False)
class QueueModel:
    """Cards, runs and agents with the rules that move them; each change tells its lines of the audit trail."""

    agents: list[ModelAgent]
    workspace_limits: dict[str, int]
    """0 means no limit."""
    cards: list[Card] = field(default_factory=list)
    is_paused: bool = False
    halts_running: bool = False
    trail: list[tuple[str | None, str, str]] = field(default_factory=list)
    """Whose task, who, what; in any order within one change."""

    @property
    def runs(self) -> list[Run]:
        return [run for card in self.cards for run in card.runs]

    @property
    def live(self) -> list[Run]:
        return [run for run in self.runs if run.is_live]

    def tell(self, card: Card | None, actor: str, what: Told) -> None:
        self.trail.append((None if card is None else card.id, actor, what.value))

    def ask(self) -> None:
        """What waits in the queue for what will not be done asks a person, once, until that is mended."""
        for run in self.runs:
            given_up = [card for card in run.card.needs if card.given_up_as]
            names = ", ".join(
                f"#{card.number} ({card.given_up_as})" for card in sorted(given_up, key=lambda one: one.number)
            )
            is_waiting = run.status is ExecutionStatus.QUEUED and not run.is_held
            asks = f"waits for {names}" if is_waiting and names else None
            if asks and not run.asks:
                self.tell(run.card, SYSTEM, Told.EXECUTION_HELD)
            run.asks = asks

    # Cards

    def added(self, card: Card, needs: list[Card]) -> None:
        self.cards.append(card)
        self.tell(card, USER, Told.TASK_CREATED)
        self._need(card, needs)

    def _need(self, card: Card, needs: list[Card]) -> None:
        for needed in needs:
            if needed not in card.needs:
                card.needs.append(needed)
                self.tell(card, USER, Told.DEPENDENCY_ADDED)
                if needed.holds and card.status is TaskStatus.TODO:
                    self._place(card, TaskStatus.BLOCKED, SYSTEM)

    def waits_changed(self, card: Card, added: list[Card], removed: list[Card]) -> None:
        """What goes is waited for; what comes does not lead to a ring."""
        self._require_there(card)
        is_live = card.open_run is not None and card.open_run.is_live
        _require(not is_live or not any(one.holds for one in added if one not in card.needs or one in removed))
        for needed in removed:
            card.needs.remove(needed)
            self.tell(card, USER, Told.DEPENDENCY_REMOVED)
        self._need(card, added)
        if removed:
            self._free(card)

    def edited(self, card: Card, priority: int) -> None:
        self._require_there(card)
        if card.priority != priority:
            card.priority = priority
            self.tell(card, USER, Told.TASK_EDITED)

    def moved(self, card: Card, target: TaskStatus, *, at: datetime) -> None:
        self._require_there(card)
        _require(card.status is target or {card.status, target} != _CLOSED)
        run = card.open_run if target in _CLOSED else None
        if run is not None and run.status is ExecutionStatus.QUEUED:
            self._cancel_queued(run, at)
        elif run is not None and target is TaskStatus.CANCELLED:
            self._ask_to_stop(run, "stop", cancels_card=True)
            return
        self._place(card, target, USER)

    def deleted(self, card: Card) -> None:
        self._require_there(card)
        _require(card.open_run is None)
        card.is_deleted = True
        self.tell(card, USER, Told.TASK_DELETED)

    def restored(self, card: Card) -> None:
        if card.is_deleted:
            card.is_deleted = False
            self.tell(card, USER, Told.TASK_RESTORED)
            self._free(card)
            if card.status is TaskStatus.TODO:
                self._place(card, card.column_at_rest, SYSTEM)

    def archived(self, card: Card) -> None:
        self._require_there(card)
        _require(card.open_run is None)
        if not card.is_archived:
            card.is_archived = True
            self.tell(card, USER, Told.TASK_ARCHIVED)

    def unarchived(self, card: Card) -> None:
        self._require_there(card)
        if card.is_archived:
            card.is_archived = False
            self.tell(card, USER, Told.TASK_UNARCHIVED)

    # Runs, as clients see them

    def started_anyway(self, card: Card) -> bool:
        """Return whether what is queued waits for no tasks any more."""
        self._require_there(card)
        run, holding = card.open_run, [needed for needed in card.needs if needed.holds]
        if run is None or run.status is not ExecutionStatus.QUEUED or not holding:
            return False
        self.waits_changed(card, [], holding)
        return True

    def enqueued(self, run: Run, *, not_before: datetime | None, when_ready: bool, at: datetime) -> None:
        card, present = run.card, run.card.open_run
        self._require_there(card)
        _require(not card.is_archived)
        if present is not None:
            _require(not present.is_held)
            waits_until = present.not_before if present.status is ExecutionStatus.QUEUED else None
            _require(waits_until is not None and waits_until > at and not not_before)
            _require(present.agent is run.agent and present.args == run.args)
            self._let_go(present, at)
            self.tell(card, USER, Told.EXECUTION_HASTENED)
            return
        _require(when_ready or not card.waits)
        run.not_before = not_before
        if not_before is not None and not_before > at:
            run.wait_reason, run.queued_at = WaitReason.SCHEDULED, not_before
        card.runs.append(run)
        self.tell(card, USER, Told.EXECUTION_QUEUED)
        if run.is_held:
            self.tell(card, SYSTEM, Told.APPROVAL_ASKED)
        if card.status in _CLOSED:
            self._place(card, card.column_at_rest, USER)

    def start_decided(self, run: Run, *, is_allowed: bool, at: datetime) -> None:
        _require(run.is_held)
        run.is_held, run.written_at = False, at
        self.tell(run.card, USER, Told.APPROVAL_DECIDED)
        if is_allowed:
            return
        self._cancel_queued(run, at)
        if run.card.status is TaskStatus.IN_PROGRESS:
            self._place(run.card, run.card.column_at_rest, USER)

    def stopped(self, card: Card, word: str, *, at: datetime) -> None:
        run = card.open_run
        _require(run is not None)
        assert run is not None
        if run.status is not ExecutionStatus.QUEUED:
            self._ask_to_stop(run, word)
            return
        self._cancel_queued(run, at)
        if card.status is TaskStatus.IN_PROGRESS:
            self._place(card, card.column_at_rest, USER)

    def paused(self, *, halts_running: bool) -> None:
        _require(not self.is_paused or (halts_running and not self.halts_running))
        self.is_paused, self.halts_running = True, halts_running
        self.tell(None, USER, Told.QUEUE_PAUSED)

    def resumed(self) -> None:
        _require(self.is_paused)
        self.is_paused = self.halts_running = False
        self.tell(None, USER, Told.QUEUE_RESUMED)

    def released(self, agent: ModelAgent, *, at: datetime) -> None:
        held = [run for run in self._queued_of(agent) if run.wait_reason in PARKING]
        _require(bool(held) or (agent.parked_until is not None and agent.parked_until > at))
        agent.streak, agent.parked_until, agent.park_reason = 0, None, None
        for run in held:
            self._let_go(run, at)
        self.tell(None, USER, Told.AGENT_RELEASED)

    # Runs, as the worker sees them

    def agent_room(self, agent: ModelAgent, *, park_after: int) -> int:
        allowed = agent.max_concurrent or 1_000_000
        if park_after and agent.streak >= park_after:
            allowed = min(allowed, 1)
        return allowed - sum(run.agent is agent for run in self.live)

    def workspace_room(self, workspace: str) -> int:
        allowed = self.workspace_limits[workspace] or 1_000_000
        return allowed - sum(run.card.workspace == workspace for run in self.live)

    def clock_seen(self, at: datetime) -> None:
        """Agents that were parked later than now start again: the clock was set back."""
        for agent in self.agents:
            if agent.parked_until is not None and agent.parked_until > at and _is_ahead(agent.parked_at, at):
                agent.parked_until = agent.park_reason = None
                self.tell(None, SYSTEM, Told.AGENT_RELEASED)

    def ready(self, *, park_after: int, at: datetime) -> list[Run]:
        """The runs that could be claimed now if no other one were, in the order of the queue."""
        if self.is_paused:
            return []
        found = [
            run
            for run in self.runs
            if run.status is ExecutionStatus.QUEUED
            and not run.is_held
            and _is_time(run, at)
            and not run.card.is_deleted
            and not run.card.waits
            and (run.agent.parked_until is None or run.agent.parked_until <= at)
            and self.agent_room(run.agent, park_after=park_after) > 0
            and self.workspace_room(run.card.workspace) > 0
        ]
        return sorted(found, key=lambda run: run.place)

    def claimed(self, run: Run) -> None:
        run.status, run.wait_reason, run.error = ExecutionStatus.RUNNING, None, None
        self.tell(run.card, SYSTEM, Told.EXECUTION_STARTED)
        if run.card.status not in _CLOSED:
            self._place(run.card, TaskStatus.IN_PROGRESS, SYSTEM)

    def ended(self, run: Run, ending: ExecutionEnding, *, park_after: int, at: datetime) -> bool:
        """Return whether the run is queued again."""
        status = ExecutionStatus.CANCELLED if run.status is ExecutionStatus.CANCELLING else ending.status
        refusal = ending.refusal if status is ExecutionStatus.FAILED else None
        self.tell(run.card, SYSTEM, Told.EXECUTION_ENDED)
        wait_end = None if refusal is None else _wait_end(run, refusal, at=at)
        if refusal is not None and wait_end is not None:
            self._wait_for_vendor(run, refusal, wait_end, at=at)
            return True
        is_not_started = ending.reason is EndReason.START_FAILED and ending.may_retry
        if status is ExecutionStatus.FAILED and is_not_started and run.card.status not in _CLOSED:
            wait = min(timedelta(seconds=5 * 2**run.wait_count), _LONGEST_START_WAIT)
            run.wait_count += 1
            self._queue_again(run, at + wait, WaitReason.NOT_STARTED, at=at)
            run.error = ending.error
            self.tell(run.card, SYSTEM, Told.EXECUTION_PARKED)
            return True
        may_retry = status is ExecutionStatus.FAILED and ending.may_retry and refusal is None
        is_queued_again = may_retry and run.retry_count < run.max_retries and run.card.status not in _CLOSED
        tries = run.retry_count + 1
        run.status, run.end_reason, run.ended_at = status, ending.reason, ending.ended_at
        if is_queued_again:
            run.retry_count, run.wait_count = tries, 0
            wait = min(timedelta(seconds=2**tries), _LONGEST_RETRY_WAIT)
            self._queue_again(run, at + wait, WaitReason.RETRY, at=at)
            self.tell(run.card, SYSTEM, Told.EXECUTION_REQUEUED)
        self._count(run, status, ending.reason, tries, park_after=park_after, at=at)
        if is_queued_again:
            return True
        if status is ExecutionStatus.CANCELLED and run.cancels_card and run.card.status not in _CLOSED:
            self._place(run.card, TaskStatus.CANCELLED, SYSTEM)
        elif run.card.status is TaskStatus.IN_PROGRESS or (run.card.status is TaskStatus.DONE and status in _FAILURES):
            target = _COLUMN_AFTER.get(status, run.card.column_at_rest)
            self._place(run.card, target, SYSTEM)
        self._free_dependents(run.card)
        return False

    def _wait_for_vendor(self, run: Run, refusal: Refusal, until: datetime, *, at: datetime) -> None:
        is_quota = refusal.kind is RefusalKind.USAGE_LIMIT
        if is_quota and run.agent.tool_type is ToolType.AI_AGENT:
            self._park(run.agent, until, ParkReason.USAGE_LIMIT, at=at)
        run.wait_count = 0 if is_quota else run.wait_count + 1
        self._queue_again(run, until, WaitReason.USAGE_LIMIT if is_quota else WaitReason.RATE_LIMIT, at=at)
        run.error = refusal.text
        self.tell(run.card, SYSTEM, Told.EXECUTION_PARKED)

    def _queue_again(self, run: Run, not_before: datetime, reason: WaitReason, *, at: datetime) -> None:
        run.status, run.attempt, run.offset = ExecutionStatus.QUEUED, run.attempt + 1, 0
        run.not_before = run.queued_at = not_before
        run.wait_reason, run.error, run.written_at = reason, None, at
        run.end_reason = run.ended_at = None

    def _queued_of(self, agent: ModelAgent) -> list[Run]:
        return [run for run in self.runs if run.agent is agent and run.status is ExecutionStatus.QUEUED]

    @staticmethod
    def _let_go(run: Run, at: datetime) -> None:
        run.not_before, run.wait_reason, run.error, run.queued_at = None, None, None, at

    def _count(
        self, run: Run, status: ExecutionStatus, reason: EndReason, tries: int, *, park_after: int, at: datetime
    ) -> None:
        agent = run.agent
        if status is ExecutionStatus.SUCCEEDED:
            agent.streak = 0
            if agent.park_reason is ParkReason.FAILURES:
                agent.parked_until = agent.park_reason = None
        if status not in _FAILURES or reason in _FOREIGN:
            return
        if agent.runs_commands:
            streak = tries + self._failed_before(run)
        else:
            agent.streak = streak = agent.streak + 1
        if not park_after or streak < park_after:
            return
        until = at + min(timedelta(minutes=2 ** (streak - park_after)), timedelta(hours=1))
        if agent.runs_commands:
            self._park_command(run, until, f"its last {streak} runs failed", at=at)
        else:
            self._park(agent, until, ParkReason.FAILURES, at=at)

    def _failed_before(self, run: Run) -> int:
        """How many tries of the same command failed since it last succeeded, this run's own left out."""
        ended = [
            (other.ended_at, other.created_at, other.id, other)
            for other in self.runs
            if other is not run and other.agent is run.agent and other.args == run.args and other.ended_at is not None
        ]
        count = 0
        for *_, other in sorted(ended, key=lambda one: one[:3], reverse=True):
            if other.status is ExecutionStatus.SUCCEEDED:
                break
            if other.status in _FAILURES and other.end_reason not in _FOREIGN:
                count += other.retry_count + 1
        return count

    def _park_command(self, failed: Run, until: datetime, note: str, *, at: datetime) -> None:
        for run in self._queued_of(failed.agent):
            if run.args == failed.args and (run.not_before is None or run.not_before < until):
                run.not_before = run.queued_at = until
                run.wait_reason, run.error, run.written_at = WaitReason.FAILURES, note, at
                self.tell(run.card, SYSTEM, Told.EXECUTION_PARKED)

    def _park(self, agent: ModelAgent, until: datetime, reason: ParkReason, *, at: datetime) -> None:
        if agent.parked_until is None or agent.parked_until < until or _is_ahead(agent.parked_at, at):
            agent.parked_until, agent.parked_at, agent.park_reason = until, at, reason
            self.tell(None, SYSTEM, Told.AGENT_PARKED)

    def _cancel_queued(self, run: Run, at: datetime) -> None:
        run.status, run.wait_reason, run.error = ExecutionStatus.CANCELLED, None, None
        run.end_reason, run.ended_at = EndReason.STOPPED, at
        if run.is_held:
            run.is_held = False
            self.tell(run.card, SYSTEM, Told.APPROVAL_WITHDRAWN)
        self.tell(run.card, USER, Told.EXECUTION_ENDED)

    def _ask_to_stop(self, run: Run, word: str, *, cancels_card: bool = False) -> None:
        is_known = word in run.asked or "kill" in run.asked
        if is_known and (not cancels_card or run.cancels_card):
            return
        run.asked.add(word)
        run.cancels_card = run.cancels_card or cancels_card
        run.status = ExecutionStatus.CANCELLING
        self.tell(run.card, USER, Told.EXECUTION_STOP_REQUESTED)

    def _place(self, card: Card, target: TaskStatus, actor: str) -> None:
        source = card.status
        if source is target:
            return
        card.status = target
        self.tell(card, actor, Told.TASK_MOVED)
        if target is TaskStatus.DONE:
            self._free_dependents(card)
        elif source is TaskStatus.DONE:
            self._hold_dependents(card)

    def _free_dependents(self, card: Card) -> None:
        for other in self.cards:
            if card in other.needs:
                self._free(other)

    def _free(self, card: Card) -> None:
        if card.is_deleted or card.status is not TaskStatus.BLOCKED or card.waits:
            return
        newest = card.newest_run
        if newest is None or newest.status not in _FAILURES:
            self._place(card, TaskStatus.TODO, SYSTEM)

    def _hold_dependents(self, card: Card) -> None:
        for other in self.cards:
            if card in other.needs and other.status is TaskStatus.TODO and not other.is_deleted:
                self._place(other, TaskStatus.BLOCKED, SYSTEM)

    @staticmethod
    def _require_there(card: Card) -> None:
        _require(not card.is_deleted)


def _is_time(run: Run, at: datetime) -> bool:
    if run.not_before is None or run.not_before <= at:
        return True
    # No wait of its reason ends so late, or it was written later than now: the clock was set back.
    if run.wait_reason not in _LONGEST_WAITS:
        return False
    return _is_ahead(run.written_at, at) or run.not_before > at + _LONGEST_WAITS[run.wait_reason]


def _is_ahead(written_at: datetime | None, at: datetime) -> bool:
    return written_at is not None and written_at > at + timedelta(minutes=1)


def _wait_end(run: Run, refusal: Refusal, *, at: datetime) -> datetime | None:
    match refusal.kind:
        case RefusalKind.BAD_LOGIN:
            return None
        case RefusalKind.USAGE_LIMIT:
            return (
                at + timedelta(minutes=30) if refusal.until is None else max(refusal.until, at) + timedelta(seconds=5)
            )
        case RefusalKind.RATE_LIMIT:
            if run.wait_count >= 8:
                return None
            if refusal.until is not None:
                return max(refusal.until, at + timedelta(seconds=1))
            return at + min(timedelta(seconds=30 * 2**run.wait_count), timedelta(minutes=30))


def _require(condition: bool) -> None:
    if not condition:
        raise RefusedError
