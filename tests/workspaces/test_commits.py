"""Commits that a run made are named, and a new one takes its files back; what else is staged stays staged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import ConflictError
from agentmon.workspaces.commits import commit_paths, commits_between
from agentmon.workspaces.snapshots import SnapshotStore
from agentmon.workspaces.undoing import apply, plan
from tests.workspaces.folders import git, make_repository, write

if TYPE_CHECKING:
    from pathlib import Path


def test_commits_of_a_run_stay_and_a_new_one_takes_its_files_back(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a": b"a\n", "b": b"b\n", ".gitignore": b"out\n"})
    git(root, "config", "user.name", "Ann")
    git(root, "config", "user.email", "ann@example.org")
    store = SnapshotStore(tmp_path / "store")
    before = store.take(root)
    for name, subject in (("a", "one"), ("new", "two")):
        write(root / name, b"by the run\n")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", subject)
    write(root / "out", b"ignored\n")
    after = store.take(root)
    write(root / "mine", b"staged by a person\n")
    git(root, "add", "mine")
    write(root / "b", b"not staged\n")

    made = commits_between(before, after)
    undo = plan(store, root, before, after)
    apply(undo)
    commit = commit_paths(root, [*(step.path for step in undo.steps), "out", "never there"], "Undo #1")

    assert [one.subject for one in made] == ["two", "one"]
    assert git(root, "log", "--format=%s").split("\n")[:4] == ["Undo #1", "two", "one", "first"]
    assert git(root, "rev-parse", "HEAD").strip() == commit
    assert git(root, "diff", "--name-only", before.head or "", "HEAD") == ""
    assert git(root, "diff", "--cached", "--name-only").split() == ["mine"]
    assert git(root, "diff", "--name-only").split() == ["b"]
    assert commit_paths(root, ["a"], "again") is None


def test_nothing_is_committed_while_a_merge_is_in_progress_or_outside_of_git(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo")
    write(root / ".git" / "MERGE_HEAD")
    write(root / "a.txt", b"other\n")

    for folder in (root, tmp_path):
        with pytest.raises(ConflictError):
            commit_paths(folder, ["a.txt"], "no")
    assert git(root, "log", "--format=%s").split() == ["first"]
