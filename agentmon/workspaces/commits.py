"""Commits in a person's repository: which ones a run made, and one that takes files back; nothing is ever rewritten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.errors import ConflictError
from agentmon.workspaces.git import Git, GitFailedError, joined, names
from agentmon.workspaces.repositories import find_repository

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from agentmon.workspaces.snapshots import Snapshot

_MOST: Final = 100
_UNDER_WAY: Final = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
}


class MadeCommit(NamedTuple):
    """A commit that came between two looks at a folder."""

    id: str
    subject: str


def commits_between(before: Snapshot, after: Snapshot) -> tuple[MadeCommit, ...]:
    """Return the commits of the branch that came between two snapshots, the newest first; at most 100.

    Raises:
        GitError: git is missing, or takes too long.
    """
    repository = find_repository(after.root)
    if repository is None or after.head is None or before.head == after.head:
        return ()
    since = [] if before.head is None else [f"^{before.head}"]
    try:
        answer = Git(git_dir=repository.git_dir).run(
            "log", "-z", f"-n{_MOST}", "--format=%H %s", after.head, *since, "--"
        )
    except GitFailedError:
        # They are gone from the repository since.
        return ()
    return tuple(MadeCommit(*line.split(" ", 1)) for line in names(answer if answer[-1:] == b"\0" else answer + b"\0"))


def commit_paths(root: Path, paths: Iterable[str], message: str) -> str | None:
    """Commit files as they are now on the branch that is checked out, and nothing else; hooks are not run.

    Args:
        root: The top of the repository.
        paths: Relative to it; ignored ones are left out.
        message: Of the commit.

    Returns:
        Its id; None where nothing of them differs from the last commit.

    Raises:
        ConflictError: It is no repository, or a merge or rebase is in progress.
        GitError: git failed: it may not know who commits.
    """
    repository = find_repository(root)
    if repository is None:
        raise ConflictError(f"{root} is no git repository", hint="Without --commit the files come back all the same.")
    for name, what in _UNDER_WAY.items():
        if (repository.git_dir / name).exists():
            raise ConflictError(f"a {what} is in progress in {root}", hint=f"Finish it, or git {what} --abort.")
    git = Git(
        git_dir=repository.git_dir,
        work_tree=root,
        reads_settings_of_person=True,
        settings={"commit.gpgSign": "false"},
    )
    wanted = set(paths)
    known = set(names(git.run("ls-files", "-z"))) & wanted
    new = {path for path in wanted - known if (root / path).is_symlink() or (root / path).is_file()}
    if new:
        asked = Git(
            git_dir=repository.git_dir, work_tree=root, reads_settings_of_person=True, takes_paths_literally=False
        )
        new -= set(names(asked.run("check-ignore", "-z", "--stdin", data=joined(new), fine=(0, 1))))
    from_input = ("--pathspec-from-file=-", "--pathspec-file-nul")
    if not known | new:
        return None
    given = joined(sorted(known | new))
    git.run("add", "-A", *from_input, data=given)
    if not git.run("diff", "--cached", "--name-only", "-z", "HEAD", "--", *sorted(known | new)):
        return None
    git.run("commit", "-q", "--only", "-m", message, *from_input, data=given)
    return repository.head()
