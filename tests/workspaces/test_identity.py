"""A repository is known again by its first commit and its remote, and its worktrees find it after a move."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from agentmon.domain.repository_identity import RepositoryIdentity
from agentmon.workspaces.identity import find_identity, find_same, repair_worktrees
from tests.cli.test_moved_projects import make_repository

if TYPE_CHECKING:
    from pathlib import Path


def test_a_copy_is_the_same_and_a_later_commit_changes_nothing(tmp_path: Path) -> None:
    make_repository(tmp_path / "a", "git@example.org:api.git")
    found = find_identity(tmp_path / "a", limit_s=60)
    assert found is not None
    assert found.remote == "git@example.org:api"
    (tmp_path / "a").rename(tmp_path / "b")
    named = ["git", "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "later"]
    subprocess.run(named, cwd=tmp_path / "b", check=True)

    assert find_identity(tmp_path / "b", limit_s=60) == found
    assert find_same(tmp_path / "b", {found}, limit_s=60) == {found}


def test_a_later_commit_another_remote_and_a_folder_without_one_are_not_the_same(tmp_path: Path) -> None:
    make_repository(tmp_path / "a")
    found = find_identity(tmp_path / "a", limit_s=60)
    assert found is not None
    named = ["git", "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "later"]
    subprocess.run(named, cwd=tmp_path / "a", check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path / "a", check=True, capture_output=True, text=True)
    others = {
        RepositoryIdentity(first_commit=head.stdout.strip(), remote=found.remote),
        RepositoryIdentity(first_commit=found.first_commit),
        RepositoryIdentity(first_commit="--all", remote=found.remote),
    }
    (tmp_path / "empty" / ".git").mkdir(parents=True)

    assert find_same(tmp_path / "a", others, limit_s=60) == set()
    assert find_same(tmp_path / "empty", others, limit_s=60) == set()
    assert find_identity(tmp_path / "empty", limit_s=60) is None


def test_worktrees_find_a_repository_that_was_moved(tmp_path: Path) -> None:
    make_repository(tmp_path / "a")
    subprocess.run(
        ["git", "worktree", "add", "-q", "-b", "side", str(tmp_path / "tree")], cwd=tmp_path / "a", check=True
    )
    (tmp_path / "a").rename(tmp_path / "b")
    asked = ["git", "rev-parse", "--abbrev-ref", "HEAD"]
    assert subprocess.run(asked, cwd=tmp_path / "tree", check=False, stderr=subprocess.DEVNULL).returncode

    repair_worktrees(tmp_path / "b", limit_s=60)

    found = subprocess.run(asked, cwd=tmp_path / "tree", check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "side"
    assert (tmp_path / "tree" / ".git").read_text().strip().startswith(f"gitdir: {os.fspath(tmp_path / 'b')}/")
