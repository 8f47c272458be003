"""Which repository a folder is, wherever it is: its first commit and its remote. Blocks; nothing is written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import GitError
from agentmon.domain.repository_identity import RepositoryIdentity
from agentmon.workspaces.forges import without_secret
from agentmon.workspaces.git import Git
from agentmon.workspaces.repositories import find_repository

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_NO: Final = (0, 1, 128)


def find_identity(root: Path, *, limit_s: float) -> RepositoryIdentity | None:
    """Return which repository has its top in the folder; None without one, or before its first commit.

    Args:
        root: The folder.
        limit_s: How long git may take; it reads the whole history once.

    Raises:
        OSError: Its files cannot be read.
        GitError: git is missing, or took too long.
    """
    git = _git(root, limit_s=limit_s)
    if git is None:
        return None
    firsts = git.run("rev-list", "--max-parents=0", "HEAD", "--", fine=_NO).decode().split()
    return RepositoryIdentity(first_commit=firsts[-1], remote=_remote(git)) if firsts else None


def find_same(root: Path, known: Iterable[RepositoryIdentity], *, limit_s: float) -> set[RepositoryIdentity]:
    """Return those that the repository in the folder is; no history is read for it.

    Raises:
        OSError: Its files cannot be read.
        GitError: git is missing, or took too long.
    """
    git = _git(root, limit_s=limit_s)
    if git is None:
        return set()
    remote = _remote(git)

    def has(commit: str) -> bool:
        """Return whether it has the commit, and no commit before it."""
        return git.run("rev-list", "-n1", "--parents", commit, "--", fine=_NO).split() == [commit.encode()]

    return {one for one in known if one.remote == remote and has(one.first_commit)}


def repair_worktrees(root: Path, *, limit_s: float) -> None:
    """Let the worktrees of a repository whose folder was moved find it again.

    Raises:
        OSError: Its files cannot be read.
        GitError: git is missing, or could not.
    """
    git = _git(root, limit_s=limit_s)
    if git is not None:
        git.run("worktree", "repair")


def _git(root: Path, *, limit_s: float) -> Git | None:
    repository = find_repository(root)
    if repository is None or not repository.has_commit():
        return None
    return Git(git_dir=repository.git_dir, cwd=root, limit_s=limit_s)


def _remote(git: Git) -> str:
    try:
        told = os.fsdecode(git.run("config", "--get-regexp", r"^remote\..*\.url$", fine=(0, 1)))
    except UnicodeError as error:
        raise GitError("the address of the remote cannot be read") from error
    addresses = dict(line.partition(" ")[::2] for line in told.splitlines())
    address = addresses.get("remote.origin.url") or next(iter(addresses.values()), "")
    return without_secret(address).removesuffix("/").removesuffix(".git")
