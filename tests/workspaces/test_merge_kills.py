"""kill -9 at any moment of a merge: the repository is as it was, or merged, and the next start says which."""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import ConflictError, GitError
from tests.workspaces.kills import is_killed
from tests.workspaces.merge_place import MergePlace, a_merge_place, commit, git, write

if TYPE_CHECKING:
    from collections.abc import Callable


def _prepared(folder: Path, number: int) -> MergePlace:
    """Return a place whose merge adds, changes, removes, moves into a folder, and links."""
    place = a_merge_place(folder / str(number), a="1\n2\n3\n", b="b\n", gone__deep="g\n", mine="mine\n", turns="t\n")
    tree = place.tree
    write(tree, a="1\n2\n3\n4\n", big="x\n" * 5000)
    (tree / "gone/deep").unlink()
    (tree / "turns").unlink()
    write(tree, turns__inner="i\n")
    (tree / "link").symlink_to("a")
    commit(tree, "work")
    write(tree, left_over="l\n")
    write(place.repository, mine="changed\n", untracked="u\n")
    write(place.repository, b="staged\n")
    git(place.repository, "add", "b")
    return place


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if ".git" not in path.relative_to(folder).parts and (path.is_symlink() or path.is_file())
    }


def _state(place: MergePlace) -> tuple[str, str, dict[str, bytes]]:
    """Return what a merge changes: where the base is, what git says of its files, and the files."""
    repository = place.repository
    return git(repository, "log", "--format=%s", "-1"), git(repository, "status", "--porcelain"), _files(repository)


def _check(place: MergePlace, before: tuple[object, ...], told: list[bool]) -> bool:
    """Return whether it is merged, after checking that nothing is half and nothing is left."""
    subject, status, files = _state(place)
    is_merged = subject == "merged"
    assert told in ([], [is_merged])
    local = {"mine": b"changed\n", "untracked": b"u\n", "b": b"staged\n"}
    assert status.split("\n") == ["M  b", " M mine", "?? untracked"]
    if is_merged:
        assert files.keys() == {*local, "a", "big", "turns/inner", "link", "left_over"}
        assert files.items() >= {**local, "a": b"1\n2\n3\n4\n", "link": b"a", "left_over": b"l\n"}.items()
    else:
        assert (subject, status, files) == before
    assert not list(Path(place.repository / ".git").glob("*agentmon*"))
    assert not (place.repository / ".git" / "index.lock").is_symlink()
    assert [path.name for path in place.folder.iterdir()] == ["lock"]
    assert len(git(place.repository, "worktree", "list").splitlines()) == 2
    assert git(place.tree, "status", "--porcelain") in ("", "?? left_over")
    git(place.repository, "fsck", "--strict", "--no-dangling")
    git(place.repository, "commit", "--quiet", "--allow-empty", "--only", "--message", "goes on")
    return is_merged


def _recovered(place: MergePlace) -> list[bool]:
    """Return what the next start says, once the gits that outlived the merge are gone."""
    while True:
        try:
            return place.recover()
        except ConflictError:
            time.sleep(0.01)


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_killed_at_any_step_it_is_as_it_was_or_merged(tmp_path: Path) -> None:
    outcomes = set()
    for step in itertools.count(1, 7):
        place = _prepared(tmp_path, step)
        before = _state(place)
        was_killed = is_killed(place.merge, step)
        for index in place.folder.glob("*/after"):
            # So does a git that is killed at work on it.
            index.with_name("after.lock").touch()
        told = _recovered(place)
        outcomes.add(_check(place, before, told))
        if not was_killed:
            break
    assert outcomes == {True, False}


def _killed_with_its_gits(work: Callable[[], object], after_s: float) -> bool:
    """Do the work in a process group that is killed after a time; return whether it was before the end."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        try:
            work()
        except BaseException:  # noqa: BLE001 - a forked process may not go on in the caller's place
            os._exit(1)
        os._exit(0)
    deadline = time.monotonic() + after_s
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            break
        time.sleep(0.001)
    os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


_HOOK = """#!/bin/sh
if [ "$1" = {state} ] && grep -q " {ref}$" && [ ! -e {mark} ]; then touch {mark}; kill -9 $PPID; fi
exit 0
"""


def _kill_git(place: MergePlace, ref: str, state: str) -> None:
    """Let the first git that moves a ref be killed while it holds the locks, or when it is done."""
    hook = place.repository / ".git/hooks/reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    mark = place.repository / ".git/killed"
    hook.write_text(_HOOK.format(state=state, ref=ref, mark=mark))
    hook.chmod(0o755)


@pytest.mark.proof
@pytest.mark.parametrize("state", ["prepared", "committed"])
@pytest.mark.parametrize("what", ["base", "branch"])
def test_a_git_that_is_killed_leaves_no_lock_and_nothing_half(tmp_path: Path, what: str, state: str) -> None:
    place = _prepared(tmp_path, 0)
    before = _state(place)
    _kill_git(place, f"refs/heads/{'main' if what == 'base' else place.worktree.branch}", state)

    if state == "prepared":
        with pytest.raises(GitError):
            place.merge()
        assert not list((place.repository / ".git").rglob("*.lock"))
        assert not _check(place, before, [])
        git(place.repository, "reset", "--quiet", "--soft", "HEAD^")
    place.merge()

    assert (place.repository / ".git/killed").exists()
    assert not list((place.repository / ".git").rglob("*.lock"))
    assert _check(place, before, [])
    assert git(place.tree, "status", "--porcelain") == ""


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_killed_with_all_its_gits_it_is_as_it_was_or_merged(tmp_path: Path) -> None:
    chance = random.Random(17)
    place = _prepared(tmp_path, 0)
    begun_at = time.monotonic()
    place.merge()
    took_s = time.monotonic() - begun_at
    outcomes = set()
    for number in range(1, 31):
        place = _prepared(tmp_path, number)
        before = _state(place)
        _killed_with_its_gits(place.merge, chance.uniform(0, 1.2 * took_s))
        is_merged = _check(place, before, _recovered(place))
        outcomes.add(is_merged)
        # The machine may be slower now than at first: the kills keep to where a merge ends either way.
        took_s *= 0.85 if is_merged else 1.2
    assert outcomes == {True, False}
