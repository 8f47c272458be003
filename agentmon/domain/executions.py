"""Executions: single tries at a task."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agentmon.domain.agents import Agent, Capability
    from agentmon.domain.events import Event
    from agentmon.domain.execution_status import ExecutionStatus
    from agentmon.domain.ids import AgentId, CapabilityId, CommandId, ExecutionId, TaskId, WorkerId
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRequest:
    """What to run, resolved and checked, before it has a row."""

    task_id: TaskId
    agent_id: AgentId
    capability_id: CapabilityId
    mode: ExecutionMode = ExecutionMode.TEMPLATE
    args: Mapping[str, object] = field(default_factory=dict)
    max_retries: int = 0


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
    not_before: datetime | None = None
    tokens_used: int = 0
    cost_nano: int | None = None


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
    exit_code: int | None = None
    error: str | None = None
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
