"""Random histories by two runs and a person: exactly what a run did is taken back, and nothing else moves."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentmon.workspaces.comparison import compare, patch
from agentmon.workspaces.files import git_mode
from agentmon.workspaces.snapshots import SnapshotStore
from agentmon.workspaces.three_way import UndoAction
from agentmon.workspaces.undoing import apply, plan
from tests.workspaces.folders import Files, files_of, fingerprint, git, held, make_repository
from tests.workspaces.random_histories import Hand, untouched

_SEEDS = st.integers(min_value=0, max_value=2**32)
_TIMES = st.integers(min_value=0, max_value=8)
_KINDS = ("git", "crlf", "unborn", "plain")


def _begin(folder: Path, kind: str, seed: int) -> Path:
    root = make_repository(
        folder / "root", {"a": b"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "sub/b": b"1\r\n2\r\n", "keep": b"k\n"}
    )
    Hand(root, seed).act(6)
    if kind == "crlf":
        git(root, "config", "core.autocrlf", "true")
    if kind in {"git", "crlf"}:
        git(root, "-c", "core.safecrlf=false", "add", "-A")
    else:
        shutil.rmtree(root / ".git")
    if kind == "unborn":
        git(root, "init", "-q")
    return root


def _undo_alone(kind: str, start: int, run: int, times: int) -> None:
    with TemporaryDirectory(prefix="history-") as folder:
        root = _begin(Path(folder).resolve(), kind, start)
        store = SnapshotStore(Path(folder) / "store")
        repository = fingerprint(root / ".git")
        files = [files_of(root)]
        taken = [store.take(root)]
        for hand in (run, run + 1, run + 2):
            Hand(root, hand).act(times)
            taken.append(store.take(root))
            files.append(files_of(root))
        for snapshot, expected in zip(taken, files, strict=True):
            assert held(store, snapshot) == expected

        undone = apply(plan(store, root, taken[0], taken[3]))
        assert files_of(root) == files[0]
        again = apply(plan(store, root, undone.before, undone.after))
        assert files_of(root) == files[3]
        assert again.after.tree == taken[3].tree
        store.prune([snapshot.id for snapshot in (taken[0], taken[1], undone.before, again.after)])
        apply(plan(store, root, taken[0], taken[3]))
        assert files_of(root) == files[0]
        assert fingerprint(root / ".git") == repository


def _undo_first_of_three(kind: str, start: int, run: int, times: int) -> None:
    with TemporaryDirectory(prefix="history-") as folder:
        root = _begin(Path(folder).resolve(), kind, start)
        store = SnapshotStore(Path(folder) / "store")
        before, files_before = store.take(root), files_of(root)
        Hand(root, run).act(times)
        after, files_after = store.take(root), files_of(root)
        # Another run, and a person.
        Hand(root, run + 1).act(times // 2)
        store.take(root)
        Hand(root, run + 2).act(times // 2)
        today = files_of(root)

        made = plan(store, root, before, after)
        undone = apply(made)

        now = files_of(root)
        assert undone.left_alone == ()
        steps = {step.path: step for step in made.steps}
        expected = untouched(files_before, files_after, today)
        for path in {*now, *expected, *today}:
            step = steps.get(path)
            if step is not None and not step.is_done:
                assert now.get(path) == today.get(path), path
            elif step is None or step.action is UndoAction.RESTORE:
                assert now.get(path) == expected.get(path), path
        for step in made.left_alone:
            assert files_after.get(step.path) != files_before.get(step.path)
        apply(plan(store, root, undone.before, undone.after))
        assert files_of(root) == today


def _patch_is_the_change(kind: str, start: int, run: int, times: int) -> None:
    with TemporaryDirectory(prefix="history-") as folder:
        root = _begin(Path(folder).resolve(), kind, start)
        store = SnapshotStore(Path(folder) / "store")
        before, files = store.take(root), files_of(root)
        copy = Path(folder) / "copy"
        shutil.copytree(root, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        Hand(root, run).act(times)
        after = store.take(root)
        whole = patch(store, before, after)

        touched = {path for c in compare(store, before, after) for path in (c.path, c.old_path) if path}
        now = files_of(root)
        assert touched == {path for path in files.keys() | now.keys() if files.get(path) != now.get(path)}
        if whole:
            git(copy, "apply", "--whitespace=nowarn", "-", data=whole)
        assert _as_git_knows(files_of(copy)) == _as_git_knows(now)


def _as_git_knows(files: Files) -> Files:
    return {path: (git_mode(mode), content) for path, (mode, content) in files.items()}


_PROPERTIES = {"alone": _undo_alone, "first of three": _undo_first_of_three, "patch": _patch_is_the_change}


@pytest.mark.proof
@pytest.mark.parametrize("kind", ["git", "plain"])
@pytest.mark.parametrize("name", _PROPERTIES)
@settings(max_examples=3, suppress_health_check=list(HealthCheck), derandomize=True)
@given(start=_SEEDS, run=_SEEDS, times=_TIMES)
def test_any_history(name: str, kind: str, start: int, run: int, times: int) -> None:
    _PROPERTIES[name](kind, start, run, times)


@pytest.mark.proof
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("name", _PROPERTIES)
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(start=_SEEDS, run=_SEEDS, times=_TIMES)
def test_many_histories(name: str, kind: str, start: int, run: int, times: int) -> None:
    _PROPERTIES[name](kind, start, run, times)
