"""Codex's tool calls: what an item of a thread does to what, and what it was given and gave back."""

from __future__ import annotations

from agentmon.domain.json_values import (
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
from agentmon.domain.letters import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    Item = dict[str, object]

MAX_TARGET_CHARACTERS = 1_000
MAX_PATCH_CHARACTERS = 40_000
MAX_CHANGES = 200
MAX_PARTS = 10_000

CHANGE_TYPES = {"add": "create", "delete": "delete"}
_STATUSES = {"completed": "success", "failed": "failed", "declined": "blocked", "interrupted": "cancelled"}


def status_of(codex_status: str) -> str:
    """Return the ``OperationStatus`` of a call that is over with that status."""
    return _STATUSES.get(codex_status, "success")


def patch_text(item: Item) -> str:
    """Return all changes of a ``fileChange`` as one text, each under the name of its file."""
    pieces: list[str] = []
    left = MAX_PATCH_CHARACTERS
    for change in objects_in(item, "changes", MAX_CHANGES):
        moved_to = text_in(object_in(change, "kind"), "move_path")
        kind = text_in(object_in(change, "kind"), "type") or "update"
        heading = f"{kind} {text_in(change, 'path')}" + (f" -> {moved_to}" if moved_to else "")
        pieces.append(f"{heading}\n{unified(change)}")
        left -= len(pieces[-1])
        if left < 0:
            break
    return cut("\n".join(pieces), MAX_PATCH_CHARACTERS)


def unified(change: dict[str, object]) -> str:
    """Return the change as unified hunks: Codex gives a new or deleted file as its bare content."""
    text = text_in(change, "diff")
    kind = text_in(object_in(change, "kind"), "type")
    if kind not in CHANGE_TYPES or not text or text.startswith("@@ "):
        return text
    lines = text.removesuffix("\n").split("\n")
    sign, span = ("+", f"-0,0 +1,{len(lines)}") if kind == "add" else ("-", f"-1,{len(lines)} +0,0")
    body = "".join(f"{sign}{line}\n" for line in lines)
    return f"@@ {span} @@\n{body}" + ("" if text.endswith("\n") else "\\ No newline at end of file\n")


def target_paths(item: Item) -> str:
    """Return the paths that a ``fileChange`` is about, in one line."""
    changes = objects_in(item, "changes", MAX_CHANGES)
    return cut(", ".join(text_in(change, "path") for change in changes), MAX_TARGET_CHARACTERS)


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


def call_of(item: Item) -> tuple[str, str, str, str]:
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


def ending_of(item: Item) -> tuple[str, str, str, int | None]:
    """Return how a completed call ended: its ``OperationStatus``, its output, an error and its milliseconds."""
    status = status_of(text_in(item, "status"))
    if item.get("success") is False:
        status = "failed"
    error = text_in(object_in(item, "error"), "message") or text_in(object_in(item, "failure"), "message")
    exit_code = item.get("exitCode")
    if type(exit_code) is int and exit_code != 0 and status in ("success", "failed"):
        status, error = "failed", error or cut(f"exit code {exit_code}", 100)
    return status, _output(item), error, optional_count_in(item, "durationMs")


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
    return f"[{cut(kind, 50)}{' ' if where else ''}{cut(where, 200)}]" if kind else ""
