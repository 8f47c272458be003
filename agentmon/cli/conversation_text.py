"""Messages, tool calls and events as lines for a person."""

import json
from datetime import UTC, datetime

from agentmon.cli.task_text import local_time
from agentmon.domain.amounts import duration_text
from agentmon.domain.changes import call_amount_text
from agentmon.domain.conversation import PlanNews, PlanStatus
from agentmon.domain.events import Event
from agentmon.domain.operations import MessageRole, Operation, OperationStatus
from agentmon.domain.plain_text import plain_line, plain_lines
from agentmon.domain.sessions import Draft, Message

_SPEAKERS = {
    MessageRole.USER: "You",
    MessageRole.ASSISTANT: "Agent",
    MessageRole.SYSTEM: "System",
    MessageRole.TOOL: "Tool",
}
_GLYPHS = {
    OperationStatus.PENDING: "…",
    OperationStatus.SUCCESS: "✓",
    OperationStatus.FAILED: "✗",
    OperationStatus.BLOCKED: "⊘",
    OperationStatus.CANCELLED: "⊘",
}
_PLAN_GLYPHS = {PlanStatus.PENDING: "○", PlanStatus.IN_PROGRESS: "◐", PlanStatus.COMPLETED: "●"}


def message_text(message: Message) -> str:
    """Return a message under the line that says who speaks."""
    head = _head(message.role, message.created_at, is_thinking=message.is_thinking, is_inside=bool(message.parent_ref))
    return f"{head}\n  {body_part(message.content)}"


def draft_head(draft: Draft) -> str:
    """Return the line that says who writes."""
    return _head(MessageRole.ASSISTANT, draft.begun_at, is_thinking=draft.is_thinking, is_inside=bool(draft.parent_ref))


def body_part(text: str) -> str:
    """Return what of a message goes on behind its indent, clean."""
    return plain_lines(text).replace("\n", "\n  ")


def _head(role: MessageRole, at: datetime, *, is_thinking: bool, is_inside: bool) -> str:
    speaker = _SPEAKERS[role] + (" (thinks)" if is_thinking else "")
    return f"{speaker}{', in a subagent' if is_inside else ''}  {local_time(at)}"


def operation_line(operation: Operation) -> str:
    """Return a tool call as one line: ``✓ Bash: make test  3 s``."""
    target = plain_line(operation.target, max_characters=200)
    lasted = "" if operation.duration_ms is None else f"  {duration_text(operation.duration_ms / 1000)}"
    error = f"  {plain_line(operation.error, max_characters=200)}" if operation.error else ""
    tool = plain_line(operation.tool_name, max_characters=60)
    changed = call_amount_text(operation.changes)
    changed = f"  {changed}" if changed else ""
    return f"{_GLYPHS[operation.status]} {tool}{f': {target}' if target else ''}{changed}{lasted}{error}"


def plan_lines(plan: PlanNews) -> list[str]:
    """Return the plan with a sign for each step."""
    return [f"{_PLAN_GLYPHS[step.status]} {plain_line(step.text, max_characters=300)}" for step in plan.steps]


def event_line(event: Event) -> str:
    """Return an entry of the stream as one line: when, its kind, and what it holds."""
    at = local_time(datetime.fromtimestamp(event.timestamp_ms / 1000, UTC))
    level = "" if event.level is None else f" {event.level.value}"
    payload = plain_line(json.dumps(event.payload, ensure_ascii=False), max_characters=500)
    return f"{at}  {event.type.value}{level}  {payload}"
