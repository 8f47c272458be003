"""Claude Code's tools: what each does to what, and what a call was given and gave back, in short."""

from __future__ import annotations

import json

from agentmon.domain.json_values import count_in, objects_in, one_line, text_in, texts_in
from agentmon.domain.letters import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_TARGET_CHARACTERS = 1_000
MAX_SUMMARY_CHARACTERS = 4_000
MAX_INPUT_TEXT_CHARACTERS = 1_000

_TYPES = {
    **dict.fromkeys(
        ("Read", "Glob", "Grep", "LS", "NotebookRead", "BashOutput", "TaskOutput", "TaskGet", "CronList", "ListAgents"),
        "read",
    ),
    **dict.fromkeys(("Write", "Edit", "MultiEdit", "NotebookEdit"), "write"),
    **dict.fromkeys(
        (
            "WebFetch", "WebSearch", "ToolSearch", "AskUserQuestion", "ExitPlanMode", "EnterPlanMode", "TodoWrite",
            "TaskCreate", "TaskUpdate", "TaskList", "ListMcpResources", "ReadMcpResource", "web_search", "web_fetch",
        ),
        "query",
    ),
}  # fmt: skip
_TARGET_KEYS = (
    "file_path", "notebook_path", "command", "pattern", "url", "query", "path", "subject", "description", "skill",
    "plan", "prompt", "name", "task_id", "taskId", "bash_id", "shell_id",
)  # fmt: skip


def tool_type(name: str) -> str:
    """Return what the tool does: an MCP tool queries, one that is unknown executes."""
    return _TYPES.get(name) or ("query" if name.startswith("mcp__") else "execute")


def tool_target(name: str, tool_input: Mapping[str, object]) -> str:
    """Return what the call is aimed at: path, command, URL or query, on one line unless it is a command."""
    questions = objects_in(tool_input, "questions")
    if name == "AskUserQuestion" and questions:
        return one_line(text_in(questions[0], "question"), MAX_TARGET_CHARACTERS)
    for key in _TARGET_KEYS:
        target = text_in(tool_input, key)
        if target:
            return cut(target, MAX_TARGET_CHARACTERS)
    for value in tool_input.values():
        if isinstance(value, str) and value:
            return one_line(value, MAX_TARGET_CHARACTERS)
    return ""


def input_summary(tool_input: Mapping[str, object]) -> str:
    """Return the input as JSON, with long texts cut."""
    if not tool_input:
        return ""
    short = {
        cut(key, 200): cut(value, MAX_INPUT_TEXT_CHARACTERS) if isinstance(value, str) else value
        for key, value in tool_input.items()
    }
    return cut(json.dumps(short, ensure_ascii=False), MAX_SUMMARY_CHARACTERS)


def result_text(content: object) -> str:
    """Return the text of a tool's result; what is no text is named in brackets."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = []
    for block in content:
        if isinstance(block, dict):
            text = block.get("text")
            parts.append(text if isinstance(text, str) else f"[{one_line(text_in(block, 'type') or 'block', 40)}]")
    return "\n".join(parts)


def hunks_text(hunks: list[dict[str, object]]) -> tuple[str, int, int]:
    """Return the ``structuredPatch`` of an answer as unified hunks, with the numbers of added and removed lines."""
    lines, added, removed = [], 0, 0
    for hunk in hunks:
        old_start, old_lines = count_in(hunk, "oldStart"), count_in(hunk, "oldLines")
        new_start, new_lines = count_in(hunk, "newStart"), count_in(hunk, "newLines")
        lines.append(f"@@ -{old_start},{old_lines} +{new_start},{new_lines} @@")
        for line in texts_in(hunk, "lines"):
            lines.append(line)
            added += line.startswith("+")
            removed += line.startswith("-")
    return "\n".join(lines) + "\n", added, removed
