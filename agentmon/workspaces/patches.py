"""Taking stretches of lines back in a file as it is now."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from agentmon.domain.errors import ConflictError
from agentmon.workspaces.comparison import contents, states
from agentmon.workspaces.files import LINK, NOT_KEPT, FileState, git_mode
from agentmon.workspaces.git import Git, GitFailedError, GitTimeoutError
from agentmon.workspaces.three_way import UndoAction, UndoStep
from agentmon.workspaces.undoing import UndoPlan

if TYPE_CHECKING:
    from agentmon.workspaces.snapshots import SnapshotStore


def plan_lines(store: SnapshotStore, root: Path, path: str, patch: bytes) -> UndoPlan:
    """Return how lines of one file are taken back, all of them or nothing; nothing is done yet.

    Args:
        store: The snapshots.
        root: The folder to which the path belongs, as a snapshot has it.
        path: The file.
        patch: Of the lines, as ``git diff`` prints it.

    Raises:
        ConflictError: The lines are not there any more as the patch has them.
        SnapshotError: The folder cannot be looked at, or git failed.
    """
    now = store.take(root)
    state = states(store, now, {path}).get(path)
    if state is None:
        # An ignore rule may hide it.
        store.keep(root, [path])
        now = store.take(root)
        state = states(store, now, {path}).get(path)
    with TemporaryDirectory(prefix="agentmon-lines-") as scratch:
        result = _taken_back(store.git(now), Path(scratch), path, state, patch)
    action = UndoAction.REMOVE if result is None else UndoAction.MERGE
    step = UndoStep(path=path, action=action, before=result, now=state, result=result)
    return UndoPlan(store=store, root=now.root, now=now, steps=(step,), new_folders=(), old_folders=())


def _taken_back(git: Git, scratch: Path, path: str, state: FileState | None, patch: bytes) -> FileState | None:
    file = scratch / path
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        if state is not None:
            if state.mode == NOT_KEPT:
                raise _conflict()
            (content,) = contents(git, [state.ref])
            if state.mode == LINK:
                file.symlink_to(os.fsdecode(content))
            else:
                file.write_bytes(content)
                file.chmod(stat.S_IMODE(git_mode(state.mode)))
        # The folder is none of a repository, so that git looks for no index.
        replace(git, objects=None, work_tree=scratch).run("apply", "--reverse", "--whitespace=nowarn", "-", data=patch)
    except GitTimeoutError:
        raise
    except GitFailedError as error:
        raise _conflict() from error
    if not os.path.lexists(file):
        return None
    mode = file.lstat().st_mode
    content = os.fsencode(file.readlink()) if file.is_symlink() else file.read_bytes()
    ref = git.run("hash-object", "-w", "--stdin", "--no-filters", data=content).decode().strip()
    # Of the permissions git changes nothing but who may run it.
    is_same = state is not None and git_mode(mode) == git_mode(state.mode)
    return FileState(state.mode if state is not None and is_same else git_mode(mode), ref)


def _conflict() -> ConflictError:
    return ConflictError(
        "these lines were changed since, so that they cannot be taken back", hint="e opens the file in your editor"
    )
