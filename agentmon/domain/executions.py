"""Executions: single tries at a task."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import EndReason, ExecutionStatus, WaitReason
from agentmon.domain.live_state import LiveState, elapsed_seconds, elapsed_text, live_state, seen_state, state_label
from agentmon.domain.sightings import NO_SIGHTING
from agentmon.domain.verifications import is_running

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from agentmon.domain.activity import Activity
    from agentmon.domain.agents import Agent, Capability
    from agentmon.domain.conversation import AskNews, ConversationNews
    from agentmon.domain.events import Event
    from agentmon.domain.ids import (
        AgentId,
        CapabilityId,
        CommandId,
        ExecutionId,
        SessionId,
        TaskId,
        WorkerId,
        WorktreeId,
    )
    from agentmon.domain.overlaps import Overlap
    from agentmon.domain.refusals import Refusal
    from agentmon.domain.sandboxes import Sandbox
    from agentmon.domain.sightings import Sighting
    from agentmon.domain.tasks import Task
    from agentmon.domain.verifications import Verdict
    from agentmon.domain.worktrees import Isolation

MOST_RUNS: Final = 100_000
"""More than any task has."""


class CommandCause(StrEnum):
    """Why a command was written: what follows from it depends on this, never on who wrote a row of its type before."""

    PERSON = "person"
    """Somebody asked for it, in the app or on the command line."""
    AGENT = "agent"
    """A run asked for it."""
    RULE = "rule"
    """An approval rule, or the time after which an undecided request is denied."""
    BUDGET = "budget"
    """A budget that stops is spent."""
    SYSTEM = "system"
    """The worker itself."""


class CommandType(StrEnum):
    """What a client asks of a running execution."""

    STOP = "stop"
    """Ask the program to end, then end it by force after the grace time."""
    KILL = "kill"
    """End every process of the execution at once."""
    PAUSE = "pause"
    """Halt every process of the execution where it is."""
    RESUME = "resume"
    """Let halted processes go on."""
    MESSAGE = "message"
    """Say something to the agent; payload ``text``."""
    ANSWER = "answer"
    """Answer a request of the agent; payload as ``runners.protocols.adapter`` describes it."""
    INTERRUPT = "interrupt"
    """Let the agent stop what it does and listen."""
    FINISH = "finish"
    """Let the conversation end when the agent has nothing to do."""
    SET_MODEL = "set_model"
    """Payload ``model``."""
    SET_PERMISSION_MODE = "set_permission_mode"
    """Payload ``permission_mode``."""
    TYPE = "type"
    """Type into the terminal of the run; payload ``text`` and ``is_paste``, ``is_sent`` when a person types so.

    It is never a row: what is typed may be a password."""


class ConversationStart(StrEnum):
    """How an execution of an agent begins its conversation."""

    FRESH = "fresh"
    RESUME = "resume"
    """It goes on with the conversation of an earlier execution."""
    FORK = "fork"
    """It goes on with a copy of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRequest:
    """What an agent is asked to do, and in which conversation."""

    prompt: str
    working_dir: str
    asked: str = ""
    """The prompt without the agent's role and instructions; empty when it has neither."""
    is_message: bool = False
    """Whether the prompt is a message for this run rather than the text of its task."""
    project: str = ""
    """The repository around the folder, under which it is summed up; empty when nobody has looked for one."""
    start: ConversationStart = ConversationStart.FRESH
    parent_execution_id: ExecutionId | None = None
    """The execution whose conversation goes on; None for a fresh one."""
    model: str | None = None
    """None means the agent's own choice."""
    permission_mode: str | None = None
    cannot_fork: str = ""
    """Why nobody can go on with a copy of it, as far as that is known before it begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRequest:
    """What to run, resolved and checked, before it has a row."""

    task_id: TaskId
    agent_id: AgentId
    capability_id: CapabilityId
    mode: ExecutionMode = ExecutionMode.TEMPLATE
    args: Mapping[str, object] = field(default_factory=dict)
    conversation: ConversationRequest | None = None
    """None for a program that is given a command and not a prompt."""
    start_approval: AskNews | None = None
    """What a person has to allow before it may start."""
    max_retries: int = 0
    repository: str | None = None
    """The working tree of a repository in which an AI agent would work; None for all else."""
    isolation: Isolation | None = None
    base: str | None = None
    """Where this run works, and from what its worktree is made; None leaves it to the task."""
    sandbox: Sandbox | None = None
    """The sandbox that this run has at least; None leaves it to the agent."""
    not_before: datetime | None = None
    """It starts at this time at the earliest."""
    may_wait: bool = False
    """Whether it may be queued while its task waits for others: it starts by itself when the last one is done."""
    drops_dependencies: bool = False
    """Whether its task no longer waits for those that keep it from starting."""
    comment_ids: tuple[str, ...] = ()
    """The comments on changes that its message consists of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """A run that goes on with the conversation of another, which did not pass or was spoken to too late.

    Its folder is made.
    """

    id: ExecutionId
    request: ExecutionRequest
    log_file_path: str
    verify_retry: int
    """How often in a row the agent was sent back, with this one."""
    verify_retries: int
    """How often it is at most."""
    message_ids: frozenset[CommandId] = frozenset()
    """The messages that came too late, and that it begins with."""


def run_to_review(runs: Sequence[Execution]) -> Execution | None:
    """Return whose changes are shown unless a run is chosen: the newest of a task that works or changed something.

    One that only answered, or that waits in the queue, would hide what there is to review; one of which it is not known
    what it changed does not: that is to be seen.

    Args:
        runs: The newest first.
    """
    return next((one for one in runs if _is_to_review(one)), next(iter(runs), None))


def _is_to_review(run: Execution) -> bool:
    is_looked_at = run.status is not ExecutionStatus.QUEUED and bool(run.before_snapshot or run.snapshot_note)
    return bool(run.changed_files) or run.status.is_live or (is_looked_at and run.changed_files is None)


def hears_late(status: ExecutionStatus, mode: ExecutionMode, ending: ExecutionEnding | None) -> bool:
    """Return whether a message starts the next run: the agent has ended well, and what belongs to the end goes on."""
    has_ended_well = ending is not None and ending.status is ExecutionStatus.SUCCEEDED
    return status is ExecutionStatus.FINALIZING and mode.is_protocol and has_ended_well


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One try at a task, as the database has it."""

    id: ExecutionId
    task_id: TaskId
    agent_id: AgentId
    capability_id: CapabilityId
    status: ExecutionStatus
    mode: ExecutionMode = ExecutionMode.TEMPLATE
    args: Mapping[str, object] = field(default_factory=dict)
    pid: int | None = None
    session_id: SessionId | None = None
    session_ref: str | None = None
    """The agent's own id of the conversation."""
    prompt: str | None = None
    tmux_session_name: str | None = None
    parent_execution_id: ExecutionId | None = None
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    """The program's exit status; 128 + N when signal N ended it; None while it runs or when it never started."""
    error: str | None = None
    worker_id: WorkerId | None = None
    heartbeat_at: datetime | None = None
    log_file_path: str | None = None
    log_byte_size: int = 0
    log_line_count: int = 0
    log_updated_at: datetime | None = None
    last_line: str | None = None
    """The newest line of output that says something, cleaned for display, at most 200 characters.

    While its journal is set aside, why that is so.
    """
    journal_offset: int = 0
    """Bytes of the journal that are in the database."""
    retry_count: int = 0
    max_retries: int = 0
    attempt: int = 0
    """How many tries were begun before this one."""
    not_before: datetime | None = None
    wait_reason: WaitReason | None = None
    wait_count: int = 0
    paused_at: datetime | None = None
    end_reason: EndReason | None = None
    log_removed_at: datetime | None = None
    activity: Activity | None = None
    """What its agent is doing; None where nothing tells, as for a command-line tool."""
    activity_note: str | None = None
    activity_source: str | None = None
    """The signal or rule that decided."""
    activity_at: datetime | None = None
    """Since when it does that."""
    is_held: bool = False
    """Whether it waits in the queue for a person's leave to start."""
    working_dir: str | None = None
    """The folder in which this try runs; None before its claim."""
    before_snapshot: str | None = None
    after_snapshot: str | None = None
    """What its folder held before it began and at its end; None where nobody could look, or not yet."""
    snapshot_note: str | None = None
    """Why there is none, or what it leaves out."""
    changed_files: int | None = None
    lines_added: int | None = None
    lines_removed: int | None = None
    """What it changed; None where that is not known."""
    worktree_id: WorktreeId | None = None
    """The worktree of its own; None in the folder itself."""
    sandbox: Sandbox | None = None
    """Its sandbox, once it was started; before, the one that it was asked for with."""
    verify_retry: int = 0
    """How often in a row its agent was sent back before it, since a verification had failed."""
    verification: Verdict | None = None
    """Its newest verification."""
    ending: ExecutionEnding | None = None
    """How its processes ended, while it is finalizing."""
    journal_problem: str | None = None
    """Why its journal, or some of it, is not in the database."""
    tokens_used: int = 0
    cost_nano: int | None = None
    overlaps: tuple[Overlap, ...] = ()
    """How it and other live runs get into each other's way."""
    sighting: Sighting = NO_SIGHTING
    """What is known of it while no worker is at work."""

    @property
    def live_state(self) -> LiveState:
        """The state that a person sees."""
        state = live_state(
            self.status,
            end_reason=self.end_reason,
            is_parked=self.wait_reason is not None and self.wait_reason.is_parking,
            is_paused=self.paused_at is not None,
            is_stuck=self.status.is_live and self.error is not None,
            is_held=self.is_held,
            is_verifying=is_running(self.verification),
            activity=self.activity,
        )
        return seen_state(state, self.sighting.last_seen_at)

    def state_label(
        self, now: datetime, *, waits_for: str = "", parked_until: datetime | None = None
    ) -> tuple[LiveState, str]:
        """Return its state and the words for it, as every place shows them.

        Args:
            now: The present.
            waits_for: Names of the tasks that have to be done first: ``#38, #39 (not queued)``.
            parked_until: The time before which nothing of its agent starts.
        """
        is_queued = self.status is ExecutionStatus.QUEUED and self.live_state is not LiveState.NEEDS_YOU
        is_agent_parked = is_queued and parked_until is not None and parked_until > now
        times = [moment for moment in (self.not_before, parked_until) if is_queued and moment is not None]
        return state_label(
            LiveState.PARKED if is_agent_parked else self.live_state,
            now=now,
            exit_code=self.exit_code,
            error=self.error,
            waits_for=waits_for if is_queued else "",
            waits_until=max(times, default=None),
            is_retry=self.wait_reason is WaitReason.RETRY,
            sighting=self.sighting,
        )

    def elapsed_s(self, now: datetime) -> float | None:
        """Return for how many seconds it ran or has been running, as far as that is known; None: it never started."""
        return elapsed_seconds(self.started_at, self.ended_at or self.sighting.last_seen_at, now)

    def elapsed_text(self, now: datetime) -> str:
        """Return for how long it ran or has been running, as every place shows it; empty when it never started."""
        return elapsed_text(self.started_at, self.ended_at or self.sighting.last_seen_at, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionCommand:
    """A command of a client that the worker hands to the host."""

    id: CommandId
    execution_id: ExecutionId
    type: CommandType
    payload: Mapping[str, object] = field(default_factory=dict)
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionListing:
    """An execution together with the words a list shows beside it."""

    execution: Execution
    task_number: int
    task_title: str
    agent_slug: str
    capability_key: str
    model: str | None = None
    """The model of its conversation; None where nothing told one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionEnding:
    """How one try ended."""

    status: ExecutionStatus
    """One of the statuses that are over."""
    ended_at: datetime
    reason: EndReason
    exit_code: int | None = None
    error: str | None = None
    refusal: Refusal | None = None
    """What the vendor said when it did not serve the program."""
    may_retry: bool = True
    """False when another try cannot help, such as a program that is not there."""
    session_ref: str | None = None
    """The agent's own id of its conversation, where only a look at its files after the end found it."""
    done_steps: tuple[str, ...] = ()
    """The names of what belongs to the end and was done."""
    output_data: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_not_started(self) -> bool:
        """Whether agentmon could not start the program, by no fault of that: it is tried again until it can."""
        return self.reason is EndReason.START_FAILED and self.may_retry


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionProgress:
    """What a stretch of an execution's journal says; written to the database once, whoever reads it."""

    execution_id: ExecutionId
    from_offset: int
    """Bytes of the journal that were in the database before this stretch; it is dropped when they no longer agree."""
    to_offset: int
    pid: int | None = None
    log_byte_size: int | None = None
    log_line_count: int | None = None
    log_updated_at: datetime | None = None
    last_line: str | None = None
    is_paused: bool | None = None
    """Whether it is halted at the end of the stretch; None when the stretch does not say."""
    journal_problem: str | None = None
    """Why the news of the stretch are left out of the database; None when they are not."""
    complaint: str | None = None
    """What a person has to know while it is still open: processes that could not be stopped."""
    events: tuple[Event, ...] = ()
    news: tuple[TimedNews, ...] = ()
    """What its agent said and did."""
    ending: ExecutionEnding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedNews:
    """One piece of news with its time."""

    at_ms: int
    """UTC, milliseconds since 1970."""
    news: ConversationNews


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedExecution:
    """An execution that this worker has to start, with all that its preparation needs."""

    execution: Execution
    task: Task
    agent: Agent
    capability: Capability
    workspace_root: str
    start: ConversationStart = ConversationStart.FRESH
    resumed_ref: str | None = None
    """The agent's own id of the conversation that it goes on with, or with a copy of."""
    workspace_sandbox: Sandbox | None = None
    """The sandbox that its workspace asks for."""

    @property
    def sandbox(self) -> Sandbox | None:
        """The sandbox that somebody chose for it: for the run, its agent or its workspace; None when nobody did."""
        return self.execution.sandbox or self.agent.sandbox or self.workspace_sandbox
