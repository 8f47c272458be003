"""Diffs from what Claude's tools are told and what they answer."""

from __future__ import annotations

from agentmon.domain.claude_tools import hunks_text
from agentmon.domain.json_values import objects_in, text_in
from agentmon.domain.letters import cut
from agentmon.runners.protocols.diffs import diff_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.adapter import Event

MAX_KEPT_DIFF_CHARACTERS = 10_000


def diff_of_result(told: Mapping[str, object], tool_ref: str) -> Event | None:
    """Return the diff that a tool's structured answer holds, or None when it changed no file."""
    path = text_in(told, "filePath") or text_in(told, "notebook_path")
    is_change = "structuredPatch" in told or "newString" in told or "new_source" in told
    if not path or not is_change:
        return None
    hunks = objects_in(told, "structuredPatch")
    if hunks:
        diff, added, removed = hunks_text(hunks)
    elif text_in(told, "type") == "create":
        diff, added, removed = replacement("", text_in(told, "content"))
    else:
        diff, added, removed = replacement(text_in(told, "oldString"), text_in(told, "newString"))
    if not diff and "new_source" not in told and text_in(told, "type") != "create":
        return None
    change_type = "create" if text_in(told, "type") == "create" else "modify"
    return diff_event(path, change_type, diff, added, removed, tool_ref)


def diff_of_input(name: str, tool_input: Mapping[str, object], tool_ref: str) -> Event | None:
    """Return the diff that a call will make as far as its input tells, short enough to be kept; None for no change."""
    path = text_in(tool_input, "file_path") or text_in(tool_input, "notebook_path")
    if not path or name not in {"Write", "Edit", "MultiEdit", "NotebookEdit"}:
        return None
    diff, added, removed = input_diff(name, tool_input)
    event = diff_event(path, "modify", diff, added, removed, tool_ref)
    event["diff"] = cut(diff, MAX_KEPT_DIFF_CHARACTERS)
    return event


def input_diff(name: str, tool_input: Mapping[str, object]) -> tuple[str, int, int]:
    """Return the change that a call asks for as hunks, with the numbers of added and removed lines."""
    if name == "Write":
        return replacement("", text_in(tool_input, "content"))
    if name == "NotebookEdit":
        return replacement("", text_in(tool_input, "new_source"))
    edits = objects_in(tool_input, "edits") if name == "MultiEdit" else [tool_input]
    parts = [replacement(text_in(edit, "old_string"), text_in(edit, "new_string")) for edit in edits]
    return "".join(part[0] for part in parts), sum(part[1] for part in parts), sum(part[2] for part in parts)


def replacement(old: str, new: str) -> tuple[str, int, int]:
    """Return one hunk that takes the old text away and puts the new one there, with the numbers of lines."""
    removed, added = old.splitlines(), new.splitlines()
    if not removed and not added:
        return "", 0, 0
    head = f"@@ -{1 if removed else 0},{len(removed)} +{1 if added else 0},{len(added)} @@"
    lines = [head, *(f"-{line}" for line in removed), *(f"+{line}" for line in added)]
    return "\n".join(lines) + "\n", len(added), len(removed)
