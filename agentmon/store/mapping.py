"""Rows to domain values and back; the one place that knows both."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agentmon.domain.agents import (
    Agent,
    AgentKind,
    Capability,
    CapabilitySource,
    DangerLevel,
    DiscoveryMethod,
    InteractionMode,
    ToolType,
)
from agentmon.domain.events import Actor, ActorType, Event, EventLevel, EventType, TaskEvent, TaskEventType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import CommandType, Execution, ExecutionCommand, ExecutionEnding
from agentmon.domain.ids import (
    AgentId,
    CapabilityId,
    CommandId,
    ExecutionId,
    SessionId,
    TaskId,
    UserId,
    WorkerId,
    WorkspaceId,
    WorktreeId,
)
from agentmon.domain.refusals import Refusal, RefusalKind
from agentmon.domain.sandboxes import Sandbox, sandbox_of
from agentmon.domain.task_status import AwaitedState, Priority, TaskStatus
from agentmon.domain.tasks import AwaitedTask, InputContext, Schedule, Task, Workspace
from agentmon.domain.verifications import Verdict, VerificationStatus
from agentmon.domain.worktrees import Isolation
from agentmon.store.optional_columns import optional
from agentmon.store.session_configs import session_config_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import RowMapping


def workspace_of(row: RowMapping) -> Workspace:
    """Return the workspace of a row of ``workspaces``."""
    return Workspace(
        id=WorkspaceId(row["id"]), owner_id=UserId(row["owner_id"]), name=row["name"], root_path=row["root_path"]
    )


def task_of(row: RowMapping) -> Task:
    """Return the task of a row of ``tasks`` with its labels; ``task_labels.select_tasks`` reads both."""
    return Task(
        id=TaskId(row["id"]),
        number=row["number"],
        workspace_id=WorkspaceId(row["workspace_id"]),
        title=row["title"],
        description=row["description"] or "",
        status=TaskStatus(row["status"]),
        priority=Priority(row["priority"]),
        sort_order=row["sort_order"],
        parent_task_id=optional(TaskId, row["parent_task_id"]),
        assignee_agent_id=optional(AgentId, row["assignee_agent_id"]),
        input_context=input_context_of(row["input_context"]),
        due_at=row["due_at"],
        labels=tuple(sorted((row["labels"] or "").split())),
        schedule=None if row["cron"] is None else Schedule(cron=row["cron"], zone=row["cron_zone"]),
        next_run_at=row["next_run_at"],
        version=row["version"],
        archived_at=row["archived_at"],
        deleted_at=row["deleted_at"],
        alternatives_id=optional(TaskId, row["alternatives_id"]),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def awaited_task_of(row: RowMapping) -> AwaitedTask:
    """Return the task of a row of ``tasks`` with the column ``awaited_state``; see ``card_states.awaited``."""
    task = task_of(row)
    known = {one.name: getattr(task, one.name) for one in fields(task)}
    return AwaitedTask(**known, awaited_state=optional(AwaitedState, row["awaited_state"]))


def input_context_of(stored: Mapping[str, object]) -> InputContext:
    """Return the input context of the JSON object of a task; parts of another shape count as absent."""
    args, env_overrides, env_passed = stored.get("args"), stored.get("env_overrides"), stored.get("env_passed")
    capability_key, working_dir = stored.get("capability_key"), stored.get("working_dir")
    base, verify_retries = stored.get("base"), stored.get("verify_retries")
    max_retries, prompt_additions = stored.get("max_retries"), stored.get("prompt_additions")
    return InputContext(
        capability_key=capability_key if isinstance(capability_key, str) else None,
        args=dict(args) if isinstance(args, dict) else {},
        working_dir=working_dir if isinstance(working_dir, str) else None,
        isolation=isolation_of(stored.get("isolation")),
        base=base if isinstance(base, str) else None,
        env_overrides={str(name): str(text) for name, text in env_overrides.items()}
        if isinstance(env_overrides, dict)
        else {},
        env_passed=tuple(str(name) for name in env_passed) if isinstance(env_passed, list) else (),
        prompt_additions=prompt_additions if isinstance(prompt_additions, str) else "",
        max_retries=max_retries if isinstance(max_retries, int) else 0,
        verify=text_of(stored.get("verify")),
        verify_retries=verify_retries if isinstance(verify_retries, int) else None,
    )


def text_of(stored: object) -> str | None:
    """Return what is stored as a text; None for anything else."""
    return stored if isinstance(stored, str) else None


def isolation_of(stored: object) -> Isolation | None:
    """Return what is stored of where runs work; None for a word that is none."""
    return Isolation(stored) if isinstance(stored, str) and stored in set(Isolation) else None


def input_context_row(context: InputContext) -> dict[str, object]:
    """Return the JSON object of an input context; parts that say nothing are left out."""
    parts: dict[str, object] = {
        "capability_key": context.capability_key,
        "args": dict(context.args),
        "working_dir": context.working_dir,
        "isolation": context.isolation,
        "base": context.base,
        "env_overrides": dict(context.env_overrides),
        "env_passed": list(context.env_passed),
        "prompt_additions": context.prompt_additions,
        "max_retries": context.max_retries,
    }
    # Of these an empty one, and 0, say something too.
    verifying = {"verify": context.verify, "verify_retries": context.verify_retries}
    return {name: part for name, part in parts.items() if part} | {
        name: part for name, part in verifying.items() if part is not None
    }


def capability_of(row: RowMapping) -> Capability:
    """Return the capability of a row of ``agent_capabilities``."""
    return Capability(
        id=CapabilityId(row["id"]),
        agent_id=AgentId(row["agent_id"]),
        key=row["key"],
        label=row["label"],
        description=row["description"] or "",
        source=CapabilitySource(row["source"]),
        interaction_mode=InteractionMode(row["interaction_mode"]),
        command_tokens=tuple(row["command_tokens"] or ()),
        prompt_template=row["prompt_template"] or "",
        mode=row["mode"],
        args_schema=row["args_schema"],
        requires_approval=row["requires_approval"],
        is_enabled=row["is_enabled"],
        danger_level=DangerLevel(row["danger_level"]),
        timeout_s=row["timeout_s"],
        max_output_bytes=row["max_output_bytes"],
        edited_fields=tuple(row["edited_fields"]),
        removed_at=row["removed_at"],
    )


def agent_of(row: RowMapping, capabilities: tuple[Capability, ...], tools: Mapping[str, bool]) -> Agent:
    """Return the agent of a row of ``agents`` with its capabilities."""
    metadata = row["metadata"]
    return Agent(
        id=AgentId(row["id"]),
        workspace_id=optional(WorkspaceId, row["workspace_id"]),
        slug=row["slug"],
        name=row["name"],
        kind=AgentKind(row["kind"]),
        tool_type=ToolType(row["tool_type"]),
        binary_path=row["binary_path"],
        base_args=tuple(row["base_args"]),
        working_dir=row["working_dir"],
        env_allowlist=tuple(row["env_allowlist"]),
        is_active=row["is_active"],
        max_concurrent=row["max_concurrent"],
        failure_streak=row["failure_streak"],
        parked_until=row["parked_until"],
        park_reason=row["park_reason"],
        park_note=row["park_note"],
        discovery_method=DiscoveryMethod(row["discovery_method"]),
        version=row["version"],
        package_name=row["package_name"],
        package_section=row["package_section"],
        last_scanned_at=row["last_scanned_at"],
        missing_since=row["missing_since"],
        mcp_enabled=row["mcp_enabled"],
        session_config=None if row["session_config"] is None else session_config_of(row["session_config"]),
        role=row["role"],
        model=row["model"],
        model_tier=row["model_tier"],
        temperature=row["temperature"],
        instructions=row["instructions"],
        tools=tools,
        isolation=isolation_of(metadata.get("isolation")),
        sandbox=sandbox_of(metadata.get("sandbox")),
        verify=text_of(metadata.get("verify")),
        icon=str(metadata.get("icon", "")),
        color=str(metadata.get("color", "")),
        description=str(metadata.get("description", "")),
        homepage=str(metadata.get("homepage", "")),
        edited_fields=tuple(row["edited_fields"]),
        removed_at=row["removed_at"],
        capabilities=capabilities,
    )


def execution_of(row: RowMapping) -> Execution:
    """Return the execution of a row of ``executions``."""
    return Execution(
        id=ExecutionId(row["id"]),
        task_id=TaskId(row["task_id"]),
        agent_id=AgentId(row["agent_id"]),
        capability_id=CapabilityId(row["capability_id"]),
        status=ExecutionStatus(row["status"]),
        mode=ExecutionMode(row["mode"]),
        args=row["args"],
        pid=row["pid"],
        session_id=optional(SessionId, row["session_id"]),
        session_ref=row["session_ref"],
        prompt=row["prompt"],
        tmux_session_name=row["tmux_session_name"],
        parent_execution_id=optional(ExecutionId, row["parent_execution_id"]),
        created_at=row["created_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        exit_code=row["exit_code"],
        error=row["error"],
        worker_id=optional(WorkerId, row["worker_id"]),
        heartbeat_at=row["heartbeat_at"],
        log_file_path=row["log_file_path"],
        log_byte_size=row["log_byte_size"],
        log_line_count=row["log_line_count"],
        log_updated_at=row["log_updated_at"],
        last_line=(row["journal_problem"] if row["ended_at"] is None else None) or row["last_line"],
        journal_offset=row["journal_offset"],
        retry_count=row["retry_count"],
        max_retries=row["max_retries"],
        attempt=row["attempt"],
        not_before=row["not_before"],
        wait_reason=row["wait_reason"],
        wait_count=row["wait_count"],
        paused_at=row["paused_at"],
        end_reason=row["end_reason"],
        log_removed_at=row["log_removed_at"],
        activity=row["activity"],
        activity_note=row["activity_note"],
        activity_source=row["activity_source"],
        activity_at=row["activity_at"],
        is_held=row["is_held"],
        working_dir=row["working_dir"],
        before_snapshot=row["before_snapshot"],
        after_snapshot=row["after_snapshot"],
        snapshot_note=row["snapshot_note"],
        changed_files=row["changed_files"],
        lines_added=row["lines_added"],
        lines_removed=row["lines_removed"],
        worktree_id=optional(WorktreeId, row["worktree_id"]),
        sandbox=optional(Sandbox, row["sandbox"]),
        verify_retry=row["verify_retry"],
        verification=verdict_of(row),
        ending=None if row["ending"] is None else ending_of(row["ending"]),
        journal_problem=row["journal_problem"],
        tokens_used=row["tokens_used"],
        cost_nano=row["cost_nano"],
    )


def verdict_of(row: RowMapping) -> Verdict | None:
    """Return what a row of ``executions`` shows of the newest verification; None when there is none."""
    status = row["verification_status"]
    if status is None:
        return None
    return Verdict(VerificationStatus(status), row["verification_command"], row["verification_ms"])


def ending_document(ending: ExecutionEnding) -> dict[str, object]:
    """Return the content of ``executions.ending``; ``ending_of`` reads it."""
    refusal = ending.refusal
    return {
        "status": ending.status.value,
        "ended_at": ending.ended_at.isoformat(),
        "reason": ending.reason.value,
        "exit_code": ending.exit_code,
        "error": ending.error,
        "may_retry": ending.may_retry,
        "session_ref": ending.session_ref,
        "done_steps": list(ending.done_steps),
        "output_data": dict(ending.output_data),
        "refusal": None
        if refusal is None
        else {
            "kind": refusal.kind.value,
            "text": refusal.text,
            "until": None if refusal.until is None else refusal.until.isoformat(),
            "advice": refusal.advice,
        },
    }


def ending_of(document: Mapping[str, Any]) -> ExecutionEnding:
    """Return what ``ending_document`` made."""
    refusal = document["refusal"]
    return ExecutionEnding(
        status=ExecutionStatus(document["status"]),
        ended_at=datetime.fromisoformat(document["ended_at"]),
        reason=EndReason(document["reason"]),
        exit_code=document["exit_code"],
        error=document["error"],
        may_retry=document["may_retry"],
        session_ref=document.get("session_ref"),
        done_steps=tuple(document.get("done_steps", ())),
        output_data=document["output_data"],
        refusal=None
        if refusal is None
        else Refusal(
            kind=RefusalKind(refusal["kind"]),
            text=refusal["text"],
            until=None if refusal["until"] is None else datetime.fromisoformat(refusal["until"]),
            advice=refusal["advice"],
        ),
    )


def command_of(row: RowMapping) -> ExecutionCommand:
    """Return the command of a row of ``execution_commands``."""
    return ExecutionCommand(
        id=CommandId(row["id"]),
        execution_id=ExecutionId(row["execution_id"]),
        type=CommandType(row["type"]),
        payload=row["payload"],
        created_at=row["created_at"],
    )


def task_event_of(row: RowMapping) -> TaskEvent:
    """Return the entry of the audit trail of a row of ``task_events``."""
    return TaskEvent(
        id=row["id"],
        task_id=optional(TaskId, row["task_id"]),
        actor=Actor(type=ActorType(row["actor_type"]), id=row["actor_id"]),
        event_type=TaskEventType(row["event_type"]),
        payload=row["payload"],
        created_at=row["created_at"],
    )


def event_of(row: RowMapping) -> Event:
    """Return the entry of the stream of a row of ``events``."""
    return Event(
        id=row["id"],
        execution_id=optional(ExecutionId, row["execution_id"]),
        session_id=optional(SessionId, row["session_id"]),
        trace_id=row["trace_id"],
        type=EventType(row["type"]),
        level=None if row["level"] is None else EventLevel(row["level"]),
        timestamp_ms=row["timestamp_ms"],
        payload=row["payload"],
    )
