"""What a request is about, taken from its parts in the way that is safe for rules: what is unclear is said to be so."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from agentmon.domain.approval_rules import RequestedAction
from agentmon.domain.conversation import AskKind
from agentmon.domain.operations import OperationType
from agentmon.domain.plain_text import storable
from agentmon.domain.redaction import MASK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentmon.domain.approvals import Approval
    from agentmon.domain.ids import AgentId, WorkspaceId

_COMMAND_KEYS: Final = ("command", "cmd")
_PATH_KEYS: Final = ("file_path", "filePath", "notebook_path", "path", "absolute_path", "filename")
_FOLDER_KEYS: Final = ("cwd", "workdir", "directory", "dir_path", "working_directory")
_CONTENT_KEYS: Final = frozenset(
    {
        *("content", "contents", "text", "old_string", "new_string", "oldString", "newString", "oldText", "newText"),
        *("old_str", "new_str", "file_text", "new_source", "pattern", "query", "prompt", "instruction", "description"),
        *("diff", "patch", "unified_diff", "message", "regex", "url"),
    }
)
"""A text under one of these keys is a path only when it is absolute, or leads upwards."""
_HARMLESS_KEYS: Final = frozenset({"description", "timeout", "timeout_ms", "run_in_background", "is_background"})
_TARGET_MAX_CHARACTERS: Final = 1000
_LONGEST_PATH: Final = 4096
"""No system opens a longer one (source: Linux, PATH_MAX)."""
_MOST_PATHS: Final = 1000
_MOST_PARTS: Final = 20_000
"""Parts of an input that are looked at; one with more is not known whole."""
_UNTOLD: Final = (MASK, "\ufffd")
"""What stands for a secret, and for what neither a path nor an argument can hold."""
_WHOLE_FOLDER: Final = "Write below "
"""So begins the detail of a request of Codex for more than the files that it names."""


def requested_action(
    approval: Approval,
    *,
    working_dir: str,
    workspace_id: WorkspaceId,
    workspace_root: str,
    agent_id: AgentId,
    resolve: Callable[[str], str],
) -> RequestedAction:
    """Return what the agent wants to do; no content of a request raises.

    Of more than 1,000 paths, and of those of more than 4,096 characters, symbolic links are not followed: then it is
    not known whole.

    Args:
        approval: The request.
        working_dir: Absolute path from which relative ones count.
        workspace_id: The workspace of its task.
        workspace_root: Absolute path of that workspace.
        agent_id: Who asks.
        resolve: Gives an absolute path with its symbolic links followed, also of what does not exist.
    """
    command = _text_of(approval, _COMMAND_KEYS)
    is_whole = command is not None and _says_all(approval, command, working_dir)
    named: tuple[str, ...] = ()
    named_paths: tuple[str, ...] = ()
    if command is None and approval.type is OperationType.EXECUTE and approval.target:
        command = approval.target
        is_whole = approval.detail == command and len(command) < _TARGET_MAX_CHARACTERS and _is_told(command)
    elif command is None:
        named = _named_paths(approval)
        # Shortened before they are measured: a long way round must not lead past a rule that forbids where it ends.
        named_paths = tuple(posixpath.normpath(posixpath.join(working_dir, path)) for path in named)
        is_whole = _are_short(named) and all(_is_told(path) and not path.startswith("~") for path in named)
    return RequestedAction(
        tool=approval.tool_name,
        paths=tuple(resolve(path) for path in named_paths[:_MOST_PATHS] if len(path) <= _LONGEST_PATH),
        named_paths=named_paths,
        command=command,
        is_known_whole=is_whole and approval.ask_kind is AskKind.PERMISSION,
        writes_unnamed=command is None and not named and approval.type is OperationType.WRITE,
        workspace_id=workspace_id,
        workspace_root=resolve(workspace_root),
        agent_id=agent_id,
    )


def _are_short(paths: tuple[str, ...]) -> bool:
    return len(paths) <= _MOST_PATHS and all(len(path) <= _LONGEST_PATH for path in paths)


def _text_of(approval: Approval, keys: tuple[str, ...]) -> str | None:
    for key in keys:
        found = approval.tool_input.get(key)
        if isinstance(found, str) and found:
            return storable(found)
    return None


def _is_told(text: str) -> bool:
    return not any(sign in text for sign in _UNTOLD)


def _named_paths(approval: Approval) -> tuple[str, ...]:
    """Return every path that the request names, however deep: under the usual keys first, then what is like one."""
    texts = list(_texts_in(approval.tool_input))
    usual = [text for key, text in texts if key in _PATH_KEYS]
    others = [text for key, text in texts if key not in _PATH_KEYS and _is_like_path(text, key)]
    paths = [storable(_path_of(text)) for text in (*usual, *others) if text]
    return tuple(dict.fromkeys(paths)) or tuple(filter(None, [_single_path(approval)]))


def _texts_in(tool_input: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield each text of an input with its key. Of too many parts the last is a path that no rule allows."""
    waiting: list[tuple[str, object]] = [("", tool_input)]
    for _ in range(_MOST_PARTS):
        if not waiting:
            return
        key, content = waiting.pop()
        if isinstance(content, str):
            yield key, content
        elif isinstance(content, Mapping):
            waiting += [(str(name), one) for name, one in reversed(tuple(content.items()))]
        elif isinstance(content, list | tuple):
            waiting += [(key, one) for one in reversed(content)]
    yield _PATH_KEYS[0], MASK


def _is_like_path(text: str, key: str) -> bool:
    if "\n" in text:
        return False
    if text.lower().startswith(("/", "~/", "../", "file:")) or "/../" in text:
        return True
    return key not in _CONTENT_KEYS and "/" in text and "://" not in text and " " not in text


def _path_of(text: str) -> str:
    """Return the path that an address of a file names, or the text as it is."""
    if not text.lower().startswith("file:"):
        return text
    try:
        return unquote(urlsplit(text).path) or text
    except ValueError:
        return text


def _single_path(approval: Approval) -> str | None:
    """Return the path that a request without input aims at; None when it may be several."""
    target = approval.target
    is_path = approval.type in {OperationType.WRITE, OperationType.READ} and target.startswith("/")
    is_one = ", " not in target and "\n" not in target and len(target) < _TARGET_MAX_CHARACTERS
    return target if is_path and is_one and not approval.detail.startswith(_WHOLE_FOLDER) else None


def _says_all(approval: Approval, command: str, working_dir: str) -> bool:
    """Return whether the command is all that is wanted: nothing masked, no other powers, inside the working folder."""
    if not _is_told(command):
        return False
    others = set(approval.tool_input) - {*_COMMAND_KEYS, *_FOLDER_KEYS, *_HARMLESS_KEYS}
    folders = [approval.tool_input[key] for key in _FOLDER_KEYS if approval.tool_input.get(key)]
    if others or not all(_is_within(folder, working_dir) for folder in folders):
        return False
    rest = approval.detail.removeprefix(command).strip() if approval.detail.startswith(command) else ""
    known = {"", *(f"In {folder}" for folder in folders)}
    return all(line in known or _is_harmless(line) for line in rest.split("\n"))


def _is_within(folder: object, working_dir: str) -> bool:
    if not isinstance(folder, str) or len(folder) > _LONGEST_PATH or "\0" in folder:
        return False
    path = posixpath.normpath(posixpath.join(working_dir, folder))
    return path == working_dir or path.startswith(working_dir.rstrip("/") + "/")


def _is_harmless(line: str) -> bool:
    try:
        extra = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(extra, dict) and set(extra) <= {*_FOLDER_KEYS, *_HARMLESS_KEYS}
