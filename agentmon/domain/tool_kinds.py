"""Tools by their kind, as the Agent Client Protocol and Gemini have it: what each does to what."""

from __future__ import annotations

from agentmon.domain.json_values import one_line, text_in, texts_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_TARGET_CHARACTERS = 1_000
TARGET_KEYS = (
    "filePath", "file_path", "absolute_path", "notebook_path", "path", "url", "query", "pattern", "dir_path",
    "description", "prompt", "name",
)  # fmt: skip
_TYPES = {
    "read": "read",
    "edit": "write",
    "delete": "write",
    "move": "write",
    "search": "query",
    "think": "query",
    "fetch": "query",
    "switch_mode": "query",
}


def kind_type(kind: str) -> str:
    """Return what a tool of that kind does; what has no known kind executes."""
    return _TYPES.get(kind, "execute")


def command_of(tool_input: Mapping[str, object]) -> str:
    """Return the command that the input names, or an empty text."""
    return text_in(tool_input, "command") or text_in(tool_input, "cmd") or " ".join(texts_in(tool_input, "command"))


def named_target(tool_input: Mapping[str, object]) -> str:
    """Return the path, URL or query that the input names, in one line; an empty text when it names none."""
    for key in TARGET_KEYS:
        found = text_in(tool_input, key)
        if found:
            return one_line(found, MAX_TARGET_CHARACTERS)
    return ""
