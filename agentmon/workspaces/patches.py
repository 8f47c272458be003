"""Taking stretches of lines back in the files as they are now."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agentmon.domain.errors import ConflictError
from agentmon.workspaces.git import GitFailedError

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.workspaces.snapshots import SnapshotStore


def reverse_patch(store: SnapshotStore, root: Path, patch: bytes) -> None:
    """Take a patch back, all of it or nothing; no index is touched, and nothing outside of the folder.

    Args:
        store: Whose own repository git is told to work in.
        root: The folder to which the paths of the patch belong.
        patch: As ``git diff`` prints it.

    Raises:
        ConflictError: The lines are not there any more as the patch has them.
        GitError: git is missing, or took too long.
    """
    try:
        replace(store.git(), objects=None, work_tree=root).run(
            "apply", "--reverse", "--whitespace=nowarn", "-", data=patch
        )
    except GitFailedError as error:
        raise ConflictError(
            "these lines were changed since, so that they cannot be taken back", hint="e opens the file in your editor"
        ) from error
