"""Executions: single tries at a task."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from agentmon.domain.live_state import LiveState, live_state

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agentmon.domain.agents import Agent, Capability
    from agentmon.domain.events import Event
    from agentmon.domain.execution_status import EndReason, ExecutionStatus, WaitReason
    from agentmon.domain.ids import AgentId, CapabilityId, CommandId, ExecutionId, TaskId, WorkerId
    from agentmon.domain.refusals import Refusal
    from agentmon.domain.tasks import Task


class ExecutionMode(StrEnum):
    """The protocol in which the host speaks to the program."""

    TEMPLATE = "template"
    STREAM_JSON = "stream-json"
    APP_SERVER = "app-server"
    ACP = "acp"
    TMUX = "tmux"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRequest:
    """What to run, resolved and checked, before it has a row."""

    task_id: TaskId
    agent_id: AgentId
    capability_id: CapabilityId
    mode: ExecutionMode = ExecutionMode.TEMPLATE
    args: Mapping[str, object] = field(default_factory=dict)
    max_retries: int = 0
    not_before: datetime | None = None
    """It starts at this time at the earliest."""
    may_wait: bool = False
    """Whether it may be queued while its task waits for others: it starts by itself when the last one is done."""


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
    """The newest line of output that says something, cleaned for display, at most 200 characters."""
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
    tokens_used: int = 0
    cost_nano: int | None = None

    @property
    def live_state(self) -> LiveState:
        """The state that a person sees."""
        return live_state(
            self.status,
            end_reason=self.end_reason,
            is_parked=self.wait_reason is not None and self.wait_reason.is_parking,
            is_paused=self.paused_at is not None,
            is_stuck=self.status.is_live and self.error is not None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionCommand:
    """A command of a client that the worker hands to the host."""

    id: CommandId
    execution_id: ExecutionId
    type: CommandType
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionListing:
    """An execution together with the words a list shows beside it."""

    execution: Execution
    task_number: int
    task_title: str
    agent_slug: str
    capability_key: str


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
    output_data: Mapping[str, object] = field(default_factory=dict)


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
    complaint: str | None = None
    """What a person has to know while it is still open: processes that could not be stopped."""
    events: tuple[Event, ...] = ()
    ending: ExecutionEnding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedExecution:
    """An execution that this worker has to start, with all that its preparation needs."""

    execution: Execution
    task: Task
    agent: Agent
    capability: Capability
    workspace_root: str
