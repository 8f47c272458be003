"""Records of a Codex rollout in the form in which its app server tells the same items of a thread."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from agentmon.domain.json_values import list_in, object_in, objects_in, read_object, text_in, texts_in
from agentmon.domain.operations import OperationStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

Item = dict[str, object]

_SHELLS: Final = frozenset({"shell", "shell_command", "exec_command", "local_shell", "container.exec", "unified_exec"})
_UNSHOWN: Final = frozenset({"update_plan"})
"""Calls that live conversations show as a plan."""
_SHELL_WORDS: Final = 3
_PATCHED: Final = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_OTHER_NAMES: Final = {"list_files": "listFiles", "raw_content": "content", "summary_text": "summary"}
_HEADER_END: Final = "\nOutput:\n"
_FAILURES: Final = {
    "rejected by user": OperationStatus.BLOCKED,
    "aborted by user": OperationStatus.CANCELLED,
    "exec_command failed": OperationStatus.FAILED,
    "execution error": OperationStatus.FAILED,
    "apply_patch verification failed": OperationStatus.FAILED,
}
"""What stands at the beginning of an output that is no output, the strongest first."""
_MAX_FAILURE_CHARACTERS: Final = 300
_EXIT_CODE: Final = re.compile(r"(?:Process exited with|Exit) code:? (\d{1,6})")


def completed_item(written: Mapping[str, object]) -> Item:
    """Return an item of an ``item_completed`` as the app server would tell it."""
    item: Item = {_camel(name): value for name, value in written.items()}
    kind = text_in(written, "type")
    item["type"] = kind[:1].lower() + kind[1:]
    if item["type"] == "commandExecution":
        item["command"] = _joined(written.get("command"))
        item["commandActions"] = [
            {"type": _camel(text_in(action, "type")), "command": text_in(action, "cmd")}
            for action in objects_in(written, "parsed_cmd", 50)
        ]
    elif item["type"] == "fileChange":
        item["changes"] = [
            {
                "path": path,
                "kind": {"type": text_in(change, "type"), "move_path": change.get("move_path")},
                "diff": text_in(change, "unified_diff") or text_in(change, "content"),
            }
            for path, change in object_in(written, "changes").items()
            if isinstance(change, dict)
        ]
        item["contentItems"] = [{"type": "text", "text": text_in(written, "stdout") or text_in(written, "stderr")}]
    elif item["type"] == "agentMessage":
        item["text"] = "\n".join(filter(None, (text_in(part, "text") for part in objects_in(written, "content"))))
    took = object_in(written, "duration")
    seconds, nanos = took.get("secs"), took.get("nanos")
    if type(seconds) is int and type(nanos) is int:
        item["durationMs"] = seconds * 1000 + nanos // 1_000_000
    return item


def called_item(payload: Mapping[str, object]) -> Item | None:
    """Return the item for a call that the model asked for; None for what is no call that is shown."""
    kind, name = text_in(payload, "type"), text_in(payload, "name")
    if kind == "web_search_call":
        return {"type": "webSearch", "action": object_in(payload, "action")}
    if kind == "local_shell_call":
        return {"type": "commandExecution", "command": _joined(object_in(payload, "action").get("command"))}
    if kind not in {"function_call", "custom_tool_call"} or not name or name in _UNSHOWN:
        return None
    given = text_in(payload, "input") if kind == "custom_tool_call" else text_in(payload, "arguments")
    arguments = _object_of(given)
    if name == "apply_patch":
        return {"type": "fileChange", "changes": _changes_of(text_in(arguments, "input") or given)}
    if name in _SHELLS:
        command = arguments.get("command", arguments.get("cmd"))
        if isinstance(command, list) and command[:1] == ["apply_patch"]:
            return {"type": "fileChange", "changes": _changes_of(str(command[-1]))}
        return {"type": "commandExecution", "command": _joined(command)}
    if name == "view_image":
        return {"type": "imageView", "path": text_in(arguments, "path")}
    server, mark, tool = name.partition("__")
    owner = {"server": server, "tool": tool} if mark else {"tool": name}
    return {"type": "mcpToolCall" if mark else "dynamicToolCall", **owner, "arguments": arguments or given}


def call_output(payload: Mapping[str, object]) -> tuple[str, OperationStatus]:
    """Return the text that a call gave back, and how it ended by what that says."""
    output = payload.get("output")
    if isinstance(output, list):
        output = "\n".join(text_in(part, "text") for part in output if isinstance(part, dict))
    if isinstance(output, dict):
        return text_in(output, "content"), _ended(output.get("success") is False)
    text = output if isinstance(output, str) else ""
    told = _object_of(text) if text.startswith("{") else {}
    if "output" in told:
        code = object_in(told, "metadata").get("exit_code")
        return text_in(told, "output"), _ended(type(code) is int and code != 0)
    head, mark, rest = text.partition(_HEADER_END)
    if mark:
        code_told = _EXIT_CODE.search(head)
        return rest, _ended(code_told is not None and int(code_told[1]) != 0)
    for words, status in _FAILURES.items():
        if words in text[:_MAX_FAILURE_CHARACTERS]:
            return text, status
    return text, OperationStatus.SUCCESS


def _ended(has_failed: bool) -> OperationStatus:
    return OperationStatus.FAILED if has_failed else OperationStatus.SUCCESS


def _camel(name: str) -> str:
    if name in _OTHER_NAMES:
        return _OTHER_NAMES[name]
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _joined(command: object) -> str:
    """Return the command of a shell, without the shell that runs it."""
    if isinstance(command, str):
        return command
    words = texts_in({"words": command}, "words", 1_000)
    if len(words) == _SHELL_WORDS and words[1] in {"-lc", "-c"}:
        return words[2]
    return shlex.join(words)


def _changes_of(patch: str) -> list[Item]:
    found = list(_PATCHED.finditer(patch))
    ends = [*(one.start() for one in found[1:]), len(patch)]
    return [
        {
            "path": one[2].strip(),
            "kind": {"type": one[1].lower()},
            "diff": "@@ " + patch[one.end() : end].removesuffix("*** End Patch\n").strip("\n"),
        }
        for one, end in zip(found, ends, strict=True)
    ]


def _object_of(text: str) -> dict[str, object]:
    return read_object(text) or {}


def said_texts(payload: Mapping[str, object]) -> str:
    """Return the text of a message, or of the summary of a thought, that stands among what the model is told."""
    parts = list_in(payload, "content", 1_000) or list_in(payload, "summary", 1_000)
    return "\n\n".join(filter(None, (text_in(part, "text") for part in parts if isinstance(part, dict))))
