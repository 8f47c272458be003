"""What the items of a Codex thread mean: tool calls, changed files and texts. Pure functions of one item."""

from __future__ import annotations

from agentmon.runners.protocols.adapter import clip
from agentmon.runners.protocols.diffs import MAX_DIFF_CHARACTERS, diff_event
from agentmon.runners.protocols.json_values import (
    as_json,
    count_in,
    list_in,
    object_in,
    objects_in,
    one_line,
    optional_count_in,
    text_in,
    texts_in,
)
from agentmon.runners.protocols.messages import message_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.protocols.adapter import Event

    Item = dict[str, object]

MAX_TARGET_CHARACTERS = 1_000
MAX_SUMMARY_CHARACTERS = 4_000
MAX_CHANGES = 200
MAX_PLAN_STEPS = 100
MAX_PARTS = 10_000

TOOL_ITEMS = frozenset({
    "commandExecution", "fileChange", "mcpToolCall", "dynamicToolCall", "webSearch", "imageView", "imageGeneration",
    "collabAgentToolCall", "sleep",
})  # fmt: skip
TEXT_ITEMS = frozenset({"userMessage", "agentMessage", "reasoning", "plan", "exitedReviewMode", "hookPrompt"})
SILENT_ITEMS = frozenset({"enteredReviewMode", "subAgentActivity", "functionCallOutput"})

_PLAN_STATUSES = {"pending": "pending", "inProgress": "in_progress", "completed": "completed"}
_CHANGE_TYPES = {"add": "create", "delete": "delete"}
_STATUSES = {"completed": "success", "failed": "failed", "declined": "blocked", "interrupted": "cancelled"}


def is_tool(item: Item) -> bool:
    """Return whether the item is a tool call."""
    return text_in(item, "type") in TOOL_ITEMS


def is_text(item: Item) -> bool:
    """Return whether the item is something that was said or thought."""
    return text_in(item, "type") in TEXT_ITEMS


def status_of(codex_status: str) -> str:
    """Return the ``OperationStatus`` of a call that is over with that status."""
    return _STATUSES.get(codex_status, "success")


def tool_started(item: Item, tool_ref: str, parent_tool_ref: str | None) -> Event:
    """Return the event ``tool_started`` of an item whose type is in ``TOOL_ITEMS``."""
    name, operation, target, summary = _call(item)
    return {
        "kind": "tool_started",
        "tool_ref": tool_ref,
        "tool_name": clip(name, 200),
        "type": operation,
        "target": clip(target, MAX_TARGET_CHARACTERS),
        "input_summary": clip(summary, MAX_SUMMARY_CHARACTERS),
        "parent_tool_ref": parent_tool_ref,
    }


def tool_finished(item: Item, tool_ref: str) -> Event:
    """Return the event ``tool_finished`` of a completed item whose type is in ``TOOL_ITEMS``."""
    status = status_of(text_in(item, "status"))
    if item.get("success") is False:
        status = "failed"
    error = text_in(object_in(item, "error"), "message") or text_in(object_in(item, "failure"), "message")
    exit_code = item.get("exitCode")
    if type(exit_code) is int and exit_code != 0 and status in ("success", "failed"):
        status, error = "failed", error or clip(f"exit code {exit_code}", 100)
    return {
        "kind": "tool_finished",
        "tool_ref": tool_ref,
        "status": status,
        "output_summary": clip(_output(item), MAX_SUMMARY_CHARACTERS),
        "error": clip(error, MAX_SUMMARY_CHARACTERS) if error else None,
        "duration_ms": optional_count_in(item, "durationMs"),
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
        events.append(diff_event(moved_to or path, _CHANGE_TYPES.get(kind, "modify"), hunks, added, removed, tool_ref))
    return events


def patch_text(item: Item) -> str:
    """Return all changes of a ``fileChange`` as one text, each under the name of its file."""
    pieces: list[str] = []
    left = MAX_DIFF_CHARACTERS
    for change in objects_in(item, "changes", MAX_CHANGES):
        moved_to = text_in(object_in(change, "kind"), "move_path")
        kind = text_in(object_in(change, "kind"), "type") or "update"
        heading = f"{kind} {text_in(change, 'path')}" + (f" -> {moved_to}" if moved_to else "")
        pieces.append(f"{heading}\n{unified(change)}")
        left -= len(pieces[-1])
        if left < 0:
            break
    return clip("\n".join(pieces), MAX_DIFF_CHARACTERS)


def unified(change: dict[str, object]) -> str:
    """Return the change as unified hunks: Codex gives a new or deleted file as its bare content."""
    text = text_in(change, "diff")
    kind = text_in(object_in(change, "kind"), "type")
    if kind not in _CHANGE_TYPES or not text or text.startswith("@@ "):
        return text
    lines = text.removesuffix("\n").split("\n")
    sign, span = ("+", f"-0,0 +1,{len(lines)}") if kind == "add" else ("-", f"-1,{len(lines)} +0,0")
    body = "".join(f"{sign}{line}\n" for line in lines)
    return f"@@ {span} @@\n{body}" + ("" if text.endswith("\n") else "\\ No newline at end of file\n")


def target_paths(item: Item) -> str:
    """Return the paths that a ``fileChange`` is about, in one line."""
    changes = objects_in(item, "changes", MAX_CHANGES)
    return clip(", ".join(text_in(change, "path") for change in changes), MAX_TARGET_CHARACTERS)


def plain_command(source: Item) -> str:
    """Return the command without the shell it is run in, where Codex says what that is; else, or in doubt, as it is."""
    command = text_in(source, "command")
    actions = objects_in(source, "commandActions", 2)
    inner = text_in(actions[0], "command") if len(actions) == 1 else ""
    before, _, after = command.partition(inner) if inner else (command, "", "")
    is_all = before.rstrip("'\" ").endswith(" -lc") and after in ("", "'", '"')
    return inner if inner and is_all else command


def command_operation(source: Item) -> str:
    """Return what a command does: ``read`` or ``query`` when Codex understood all of it as that, else ``execute``."""
    actions = list_in(source, "commandActions", 50)
    kinds = {text_in(action, "type") if isinstance(action, dict) else "" for action in actions}
    if kinds and kinds <= {"read", "listFiles"}:
        return "read"
    return "query" if kinds == {"search"} else "execute"


def message_texts(item: Item) -> tuple[str, str, bool]:
    """Return role, text and whether it is thinking, of an item whose type is in ``TEXT_ITEMS``."""
    match item.get("type"):
        case "userMessage":
            contents = objects_in(item, "content", 1_000)
            return "user", "\n".join(filter(None, map(_content_text, contents))), False
        case "reasoning":
            parts = texts_in(item, "summary", MAX_PARTS) or texts_in(item, "content", MAX_PARTS)
            return "assistant", "\n\n".join(filter(None, parts)), True
        case "exitedReviewMode":
            return "assistant", text_in(item, "review"), False
        case "hookPrompt":
            fragments = objects_in(item, "fragments", 1_000)
            return "system", "\n".join(text_in(fragment, "text") for fragment in fragments), False
    return "assistant", text_in(item, "text"), False


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
                "text": clip(text_in(step, "step"), MAX_TARGET_CHARACTERS),
                "status": _PLAN_STATUSES.get(text_in(step, "status"), "pending"),
            }
            for step in steps
        ],
    }


def _call(item: Item) -> tuple[str, str, str, str]:
    """Return tool name, operation type, target and summary of the input."""
    match item.get("type"):
        case "commandExecution":
            return "shell", command_operation(item), plain_command(item), text_in(item, "command")
        case "fileChange":
            return "apply_patch", "write", target_paths(item), patch_text(item)
        case "mcpToolCall" | "dynamicToolCall":
            owner = text_in(item, "server") or text_in(item, "namespace")
            name = ".".join(filter(None, (owner, text_in(item, "tool"))))
            given = as_json(item.get("arguments"))
            return name, "read" if item.get("readOnlyHint") is True else "execute", given, given
        case "webSearch":
            action = object_in(item, "action")
            found = text_in(action, "url") or text_in(item, "query") or text_in(action, "query")
            return "web_search", "query", found, as_json(action) if action else ""
        case "imageView":
            return "view_image", "read", text_in(item, "path"), ""
        case "imageGeneration":
            return "image_generation", "write", text_in(item, "savedPath"), text_in(item, "revisedPrompt")
        case "collabAgentToolCall":
            prompt = text_in(item, "prompt")
            return text_in(item, "tool") or "agent", "execute", one_line(prompt, MAX_TARGET_CHARACTERS), prompt
    return "sleep", "execute", f"{count_in(item, 'durationMs')} ms", ""


def _output(item: Item) -> str:
    if item.get("type") == "commandExecution":
        return text_in(item, "aggregatedOutput")
    contents = objects_in(object_in(item, "result"), "content", 100) or objects_in(item, "contentItems", 100)
    return "\n".join(filter(None, map(_content_text, contents)))


def _content_text(content: dict[str, object]) -> str:
    kind = text_in(content, "type")
    text = text_in(content, "text")
    if text or kind == "text":
        return text
    where = text_in(content, "path") or text_in(content, "name") or text_in(content, "url")
    return f"[{clip(kind, 50)}{' ' if where else ''}{clip(where, 200)}]" if kind else ""


def _count_lines(hunks: str) -> tuple[int, int]:
    added = removed = 0
    for line in hunks.split("\n"):
        if line.startswith("+"):
            added += 1
        elif line.startswith("-"):
            removed += 1
    return added, removed
