"""What the items of a Codex thread mean: tool calls, changed files and texts. Pure functions of one item."""

from __future__ import annotations

from agentmon.domain.codex_items import (
    CHANGE_TYPES,
    MAX_CHANGES,
    MAX_TARGET_CHARACTERS,
    call_of,
    ending_of,
    message_texts,
    unified,
)
from agentmon.domain.json_values import (
    object_in,
    objects_in,
    text_in,
)
from agentmon.domain.letters import cut
from agentmon.runners.protocols.diffs import diff_event
from agentmon.runners.protocols.messages import message_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.protocols.adapter import Event

    Item = dict[str, object]

MAX_SUMMARY_CHARACTERS = 4_000
MAX_PLAN_STEPS = 100

TOOL_ITEMS = frozenset({
    "commandExecution", "fileChange", "mcpToolCall", "dynamicToolCall", "webSearch", "imageView", "imageGeneration",
    "collabAgentToolCall", "sleep",
})  # fmt: skip
TEXT_ITEMS = frozenset({"userMessage", "agentMessage", "reasoning", "plan", "exitedReviewMode", "hookPrompt"})
SILENT_ITEMS = frozenset({"enteredReviewMode", "subAgentActivity", "functionCallOutput"})

_PLAN_STATUSES = {"pending": "pending", "inProgress": "in_progress", "completed": "completed"}


def is_tool(item: Item) -> bool:
    """Return whether the item is a tool call."""
    return text_in(item, "type") in TOOL_ITEMS


def is_text(item: Item) -> bool:
    """Return whether the item is something that was said or thought."""
    return text_in(item, "type") in TEXT_ITEMS


def tool_started(item: Item, tool_ref: str, parent_tool_ref: str | None) -> Event:
    """Return the event ``tool_started`` of an item whose type is in ``TOOL_ITEMS``."""
    name, operation, target, summary = call_of(item)
    return {
        "kind": "tool_started",
        "tool_ref": tool_ref,
        "tool_name": cut(name, 200),
        "type": operation,
        "target": cut(target, MAX_TARGET_CHARACTERS),
        "input_summary": cut(summary, MAX_SUMMARY_CHARACTERS),
        "parent_tool_ref": parent_tool_ref,
    }


def tool_finished(item: Item, tool_ref: str) -> Event:
    """Return the event ``tool_finished`` of a completed item whose type is in ``TOOL_ITEMS``."""
    status, output, error, duration_ms = ending_of(item)
    return {
        "kind": "tool_finished",
        "tool_ref": tool_ref,
        "status": status,
        "output_summary": cut(output, MAX_SUMMARY_CHARACTERS),
        "error": cut(error, MAX_SUMMARY_CHARACTERS) if error else None,
        "duration_ms": duration_ms,
    }


def diffs(item: Item, tool_ref: str) -> list[Event]:
    """Return one event ``diff`` for each file that a ``fileChange`` changed; two for one that moved."""
    events: list[Event] = []
    for change in objects_in(item, "changes", MAX_CHANGES):
        path = text_in(change, "path")
        if not path:
            continue
        moved_to = text_in(object_in(change, "kind"), "move_path")
        kind = text_in(object_in(change, "kind"), "type")
        hunks = unified(change)
        added, removed = _count_lines(hunks)
        if moved_to:
            events.append(diff_event(path, "delete", "", 0, 0, tool_ref))
        events.append(diff_event(moved_to or path, CHANGE_TYPES.get(kind, "modify"), hunks, added, removed, tool_ref))
    return events


def messages(item: Item, message_ref: str, parent_tool_ref: str | None) -> list[Event]:
    """Return the events ``message`` of an item whose type is in ``TEXT_ITEMS``; none when it has no text."""
    role, text, is_thinking = message_texts(item)
    if not text.strip():
        return []
    return message_events(message_ref, role, text, parent_tool_ref, is_thinking=is_thinking)


def plan(params: dict[str, object]) -> Event:
    """Return the event ``plan`` of a ``turn/plan/updated``."""
    steps = objects_in(params, "plan", MAX_PLAN_STEPS)
    return {
        "kind": "plan",
        "steps": [
            {
                "text": cut(text_in(step, "step"), MAX_TARGET_CHARACTERS),
                "status": _PLAN_STATUSES.get(text_in(step, "status"), "pending"),
            }
            for step in steps
        ],
    }


def _count_lines(hunks: str) -> tuple[int, int]:
    added = removed = 0
    for line in hunks.split("\n"):
        if line.startswith("+"):
            added += 1
        elif line.startswith("-"):
            removed += 1
    return added, removed
