"""kill -9 at each step of making and removing a worktree: afterwards it is there as it was, or finished."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import GitError
from agentmon.domain.worktrees import WorktreeStatus
from agentmon.workspaces import worktrees
from agentmon.workspaces.git import Git
from agentmon.workspaces.index_lock import remove_left_locks
from tests.workspaces.worktree_place import WorktreePlace, a_repository, commit, git, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.domain.worktrees import Worktree


def _killed_at_step(step: int, work: Callable[[], object]) -> bool:
    """Do the work in a process of its own that is killed before its step-th change; return whether it was."""
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        return os.WIFSIGNALED(status)
    try:
        left = step

        def counted(change: Callable[..., object]) -> Callable[..., object]:
            def run(*args: object, **options: object) -> object:
                nonlocal left
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)
                return change(*args, **options)

            return run

        for owner, name in (
            *((os, name) for name in ("unlink", "rmdir", "mkdir")),
            *((Path, name) for name in ("rename", "unlink", "rmdir", "write_text")),
            *((Git, name) for name in ("start",)),
        ):
            setattr(owner, name, counted(getattr(owner, name)))
        work()
    except BaseException:  # noqa: BLE001 - a fork of the tests must never go on as one
        os._exit(1)
    os._exit(0)


def _settle(place: WorktreePlace, worktree: Worktree) -> bool:
    """Do what a worker that starts does; return whether the worktree is gone."""
    if worktrees.is_moved_aside(worktree, place.folder):
        place.remove(worktree)
        return True
    return worktrees.is_missing(worktree)


@pytest.mark.proof
def test_a_removal_that_is_killed_at_any_step_is_taken_back_or_finished(tmp_path: Path) -> None:
    step, outcomes = 0, set()
    source = a_repository(tmp_path / "api")
    place = WorktreePlace(tmp_path / "data" / "worktrees")
    while True:
        step += 1
        made = place.made(source, number=step)
        tree = Path(made.path)
        write(tree, result=str(step), deep__er="1")
        commit(tree, f"work {step}")
        tip = git(tree, "rev-parse", "HEAD")

        is_killed = _killed_at_step(step, lambda made=made: place.remove(made))  # type: ignore[misc]
        is_gone = _settle(place, made)

        outcomes.add(is_gone)
        if is_gone:
            place.remove(made)
            assert not list(place.folder.glob(f"*/{tree.name}*"))
            assert not (place.folder / ".removing" / made.id).exists()
            assert git(source, "branch", "--list", made.branch) == ""
            assert tip in git(source, "for-each-ref", "refs/agentmon")
        else:
            assert (tree / "result").read_text() == str(step)
            assert git(tree, "rev-parse", "HEAD") == tip
            assert git(tree, "status", "--porcelain") == ""
        if not is_killed:
            break

    git(source, "fsck", "--strict")
    assert outcomes == {True, False}
    assert git(source, "status", "--porcelain") == ""
    assert step > 10


@pytest.mark.parametrize("is_given_up", [False, True])
def test_one_whose_making_is_killed_at_any_step_is_made_or_taken_back(tmp_path: Path, is_given_up: bool) -> None:
    step = 0
    source = a_repository(tmp_path / "api", a="1", b__c="2")
    place = WorktreePlace(tmp_path / "data" / "worktrees")
    while True:
        step += 1
        planned = worktrees.plan(place.row(source, number=step), str(source)).worktree

        is_killed = _killed_at_step(step, lambda planned=planned: place.make(planned))  # type: ignore[misc]
        if is_given_up:
            place.remove(planned if is_killed else replace(planned, status=WorktreeStatus.READY))
            assert worktrees.is_missing(planned)
            assert git(source, "branch", "--list", planned.branch) == ""
            assert len(git(source, "worktree", "list").splitlines()) == 1
        else:
            made = place.make(planned)
            assert worktrees.find_losses(made) == ()
            assert git(made.path, "rev-parse", "--abbrev-ref", "HEAD") == planned.branch
            assert len(git(source, "worktree", "list").splitlines()) == 1 + step
        if not is_killed:
            break

    git(source, "fsck", "--strict")
    assert step > 3


_GIT = """#!/bin/sh
case "$*" in *"{words}"*) [ -e {mark} ] || {{ mkdir -p {folder}; touch {mark} {locks}; kill -9 $$; }} ;; esac
exec git "$@"
"""


def _kill_git(place: WorktreePlace, monkeypatch: pytest.MonkeyPatch, words: str, *locks: Path) -> Path:
    """Let the first git with these words take locks and be killed; return a file that is there then."""
    program, mark = place.folder.parent / "git", place.folder.parent / "killed"
    script = _GIT.format(words=words, mark=mark, folder=locks[0].parent, locks=" ".join(map(str, locks)))
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(script)
    program.chmod(0o755)
    monkeypatch.setattr("agentmon.workspaces.git.git_program", lambda: str(program))
    return mark


@pytest.mark.proof
def test_a_worktree_is_made_again_after_its_git_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = a_repository(tmp_path / "api")
    place = WorktreePlace(tmp_path / "data" / "worktrees")
    planned = worktrees.plan(place.row(source), str(source)).worktree
    lock = source / f".git/refs/heads/{planned.branch}.lock"
    killed = _kill_git(place, monkeypatch, "worktree add", lock)

    with pytest.raises(GitError):
        place.make(planned)
    assert killed.exists()
    assert not lock.exists()
    # That of a kill which took both.
    lock.touch()

    made = place.make(planned)

    assert not lock.exists()
    assert worktrees.find_losses(made) == ()


@pytest.mark.proof
@pytest.mark.parametrize("words", ["branch -D", "update-ref"])
def test_a_worktree_goes_whole_after_a_git_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    source = a_repository(tmp_path / "api")
    place = WorktreePlace(tmp_path / "data" / "worktrees")
    made = place.made(source)
    tip = git(commit(_written(made), "work"), "rev-parse", "HEAD")
    common = source / ".git"
    kept = common / f"refs/agentmon/removed/12-{made.id[-12:]}.lock"
    locks = (common / f"refs/heads/{made.branch}.lock", common / "packed-refs.lock", common / "config.lock")
    killed = _kill_git(place, monkeypatch, words, *((kept,) if words == "update-ref" else locks))

    if words == "update-ref":
        with pytest.raises(GitError):
            place.remove(made)
        assert git(made.path, "rev-parse", "HEAD") == tip
    place.remove(made)

    assert killed.exists()
    assert not list(common.rglob("*.lock"))
    assert git(source, "branch", "--list", made.branch) == ""
    assert tip in git(source, "for-each-ref", "refs/agentmon")


def _written(worktree: Worktree) -> Path:
    tree = Path(worktree.path)
    write(tree, result="1")
    return tree


def test_locks_that_are_older_or_of_a_git_that_lives_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, older, left, living = (tmp_path / name for name in ("began", "older", "left", "living"))
    for path in (older, began, left, living):
        path.touch()
    os.utime(older, (0, 0))

    def rest(_: float) -> None:
        living.unlink()
        living.write_text("another one")

    monkeypatch.setattr("agentmon.workspaces.index_lock.time.sleep", rest)
    remove_left_locks([older, left, living, tmp_path / "none"], since=began.stat().st_mtime)

    assert {path.name for path in tmp_path.iterdir()} == {"began", "older", "living"}
