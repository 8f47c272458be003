"""Rows of conversations to domain values: sessions, messages, operations, approvals and their rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.domain.agents import DangerLevel
from agentmon.domain.approvals import Approval, ApprovalListing, ApprovalRule, ApprovalStatus, RuleDecision
from agentmon.domain.changes import CallChanges
from agentmon.domain.conversation import AskChoice, AskKind, AskQuestion, PlanNews, PlanStatus, PlanStep
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.ids import (
    AgentId,
    ApprovalId,
    ApprovalRuleId,
    ExecutionId,
    MessageId,
    OperationId,
    SessionId,
    TaskId,
    WorkspaceId,
)
from agentmon.domain.operations import MessageRole, Operation, OperationStatus, OperationType
from agentmon.domain.sessions import Message, Session, SessionStatus
from agentmon.store.optional_columns import optional

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import RowMapping


def session_of(row: RowMapping) -> Session:
    """Return the session of a row of ``sessions``."""
    metadata: Mapping[str, object] = row["metadata"]
    permission_mode, forked_from = metadata.get("permission_mode"), metadata.get("forked_from")
    return Session(
        id=SessionId(row["id"]),
        agent_id=AgentId(row["agent_id"]),
        task_id=optional(TaskId, row["task_id"]),
        title=row["title"] or "",
        workspace=row["workspace"],
        session_ref=row["session_ref"],
        status=SessionStatus(row["status"]),
        model=row["model"],
        model_tier=row["model_tier"],
        temperature=row["temperature"],
        initial_prompt=row["initial_prompt"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        total_tokens=row["total_tokens"],
        total_cost_nano=row["total_cost_nano"],
        operation_count=row["operation_count"],
        context_tokens=row["context_tokens"],
        context_limit_tokens=row["context_limit_tokens"],
        permission_mode=permission_mode if isinstance(permission_mode, str) else None,
        models=_texts(metadata.get("models")),
        permission_modes=_texts(metadata.get("permission_modes")),
        forked_from=SessionId(forked_from) if isinstance(forked_from, str) else None,
        metadata=metadata,
    )


def message_of(row: RowMapping) -> Message:
    """Return the message of a row of ``messages``."""
    return Message(
        id=MessageId(row["id"]),
        session_id=SessionId(row["session_id"]),
        execution_id=optional(ExecutionId, row["execution_id"]),
        role=MessageRole(row["role"]),
        content=row["content"],
        is_thinking=row["is_thinking"],
        parent_ref=row["parent_ref"],
        message_ref=row["message_ref"],
        created_at=row["created_at"],
    )


def operation_of(row: RowMapping) -> Operation:
    """Return the tool call of a row of ``operations``."""
    return Operation(
        id=OperationId(row["id"]),
        session_id=SessionId(row["session_id"]),
        execution_id=optional(ExecutionId, row["execution_id"]),
        tool_name=row["tool_name"],
        type=OperationType(row["type"]),
        target=row["target"],
        input_summary=row["input_summary"],
        output_summary=row["output_summary"],
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        cost_nano=row["cost_nano"],
        status=OperationStatus(row["status"]),
        error=row["error"],
        approved=row["approved"],
        approved_by=row["approved_by"],
        parent_ref=row["parent_ref"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        duration_ms=row["duration_ms"],
        number=row["number"] if "number" in row and row["execution_id"] is not None else None,
        changes=_call_changes_of(row["result"]),
    )


def _call_changes_of(result: object) -> CallChanges | None:
    if not isinstance(result, dict) or "files" not in result:
        return None
    return CallChanges(**result | {"paths": tuple(result["paths"])})


def plan_of(payload: Mapping[str, object]) -> PlanNews:
    """Return the plan of an event's payload; steps of another shape are left out."""
    steps = payload.get("steps")
    return PlanNews(
        steps=tuple(
            PlanStep(text=str(step.get("text", "")), status=PlanStatus(step["status"]))
            for step in (steps if isinstance(steps, list) else [])
            if isinstance(step, dict) and step.get("status") in set(PlanStatus)
        )
    )


def approval_of(row: RowMapping) -> Approval:
    """Return the approval of a row of ``approvals``."""
    decided_by = row["decided_by_type"]
    return Approval(
        id=ApprovalId(row["id"]),
        execution_id=ExecutionId(row["execution_id"]),
        session_id=optional(SessionId, row["session_id"]),
        operation_id=optional(OperationId, row["operation_id"]),
        request_id=row["request_id"],
        ask_kind=AskKind(row["ask_kind"]),
        tool_name=row["tool_name"],
        type=row["type"],
        target=row["target"],
        title=row["title"],
        detail=row["detail"],
        reason=row["reason"],
        tool_input=row["tool_input"],
        input_digest=row["input_digest"],
        can_allow_for_session=row["can_allow_for_session"],
        can_edit_input=row["can_edit_input"],
        questions=_questions_of(row["questions"]),
        danger_level=DangerLevel(row["danger_level"]),
        danger_name=row["danger_name"],
        danger_reason=row["danger_reason"],
        status=ApprovalStatus(row["status"]),
        scope=row["scope"],
        decided_by=None if decided_by is None else Actor(type=ActorType(decided_by), id=row["decided_by_id"]),
        decision_reason=row["decision_reason"],
        rule_id=optional(ApprovalRuleId, row["rule_id"]),
        asked_at=row["asked_at"],
        decided_at=row["decided_at"],
    )


def approval_listing_of(row: RowMapping) -> ApprovalListing:
    """Return the listing of a row of ``approvals`` with the columns of its task, workspace and agent."""
    return ApprovalListing(
        approval=approval_of(row),
        task_id=TaskId(row["task_id"]),
        task_number=row["task_number"],
        task_title=row["task_title"],
        workspace_id=WorkspaceId(row["workspace_id"]),
        workspace_name=row["workspace_name"],
        agent_slug=row["agent_slug"],
        working_dir=row["working_dir"],
        more=row["more"],
    )


def approval_rule_of(row: RowMapping) -> ApprovalRule:
    """Return the rule of a row of ``approval_rules``."""
    return ApprovalRule(
        id=ApprovalRuleId(row["id"]),
        decision=RuleDecision(row["decision"]),
        tool=row["tool"],
        path=row["path"],
        command_prefix=row["command_prefix"],
        workspace_id=optional(WorkspaceId, row["workspace_id"]),
        agent_id=optional(AgentId, row["agent_id"]),
        note=row["note"],
        is_enabled=row["is_enabled"],
        created_at=row["created_at"],
    )


def questions_row(questions: Sequence[AskQuestion]) -> list[object]:
    """Return the JSON list of an approval's questions."""
    return [
        {
            "question": one.question,
            "header": one.header,
            "is_multiple": one.is_multiple,
            "choices": [
                {"key": choice.key, "label": choice.label, "description": choice.description} for choice in one.choices
            ],
        }
        for one in questions
    ]


def _questions_of(stored: object) -> tuple[AskQuestion, ...]:
    return tuple(
        AskQuestion(
            question=str(one.get("question", "")),
            header=str(one.get("header", "")),
            is_multiple=one.get("is_multiple") is True,
            choices=tuple(
                AskChoice(
                    key=str(choice.get("key", "")),
                    label=str(choice.get("label", "")),
                    description=str(choice.get("description", "")),
                )
                for choice in one.get("choices", ())
                if isinstance(choice, dict)
            ),
        )
        for one in (stored if isinstance(stored, list) else [])
        if isinstance(one, dict)
    )


def _texts(stored: object) -> tuple[str, ...]:
    return tuple(str(text) for text in stored) if isinstance(stored, list) else ()
