"""What a request is about, taken from its parts in the way that is safe for rules: what is unclear is said to be so."""

from __future__ import annotations

import json
import posixpath
from typing import TYPE_CHECKING, Final

from agentmon.domain.approval_rules import RequestedAction
from agentmon.domain.conversation import AskKind
from agentmon.domain.operations import OperationType
from agentmon.domain.plain_text import storable
from agentmon.domain.redaction import MASK

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.domain.approvals import Approval
    from agentmon.domain.ids import AgentId, WorkspaceId

_COMMAND_KEYS: Final = ("command", "cmd")
_PATH_KEYS: Final = ("file_path", "filePath", "notebook_path", "path", "absolute_path", "filename")
_FOLDER_KEYS: Final = ("cwd", "workdir", "directory", "dir_path", "working_directory")
_HARMLESS_KEYS: Final = frozenset({"description", "timeout", "timeout_ms", "run_in_background", "is_background"})
_TARGET_MAX_CHARACTERS: Final = 1000
_LONGEST_PATH: Final = 4096
"""No system opens a longer one (source: Linux, PATH_MAX)."""
_MOST_PATHS: Final = 1000
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
    """Return every path that the request names: under the usual keys, and whatever else is written like one."""
    found = [approval.tool_input[key] for key in _PATH_KEYS if key in approval.tool_input]
    for content in approval.tool_input.values():
        found += [one for one in (content if isinstance(content, list | tuple) else [content]) if _is_like_path(one)]
    paths = [storable(path) for path in found if isinstance(path, str) and path]
    return tuple(dict.fromkeys(paths)) or tuple(filter(None, [_single_path(approval)]))


def _is_like_path(content: object) -> bool:
    return (
        isinstance(content, str)
        and "\n" not in content
        and (content.startswith(("/", "~/", "../")) or "/../" in content)
    )


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
