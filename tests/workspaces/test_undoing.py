"""Taking back what a run did, on the files as they are today."""

from __future__ import annotations

import os
import shutil
import stat
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.changes import ChangeType
from agentmon.domain.errors import ConflictError, SnapshotError
from agentmon.workspaces.comparison import compare
from agentmon.workspaces.snapshots import SnapshotStore
from agentmon.workspaces.three_way import Side, UndoAction
from agentmon.workspaces.undoing import Undone, apply, plan
from tests.workspaces.folders import files_of, fingerprint, git, make_repository, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agentmon.workspaces.snapshots import Snapshot

_LINES = b"".join(b"line %d\n" % number for number in range(30))
_FILES = {
    "edited": _LINES,
    "moved": b"moved\n",
    "gone/deep/file": b"gone\n",
    "script": b"#!/bin/sh\n",
    "data.bin": bytes(range(256)) * 4,
    "crlf": b"one\r\ntwo\r\n",
    "becomes link": b"a file\n",
    "becomes folder": b"a file\n",
    "folder/becomes file": b"1\n",
    "stays": b"stays\n",
}


def _run(root: Path) -> None:
    """Do what a run can do, as a shell would."""
    write(root / "edited", _LINES.replace(b"line 3\n", b"line three\n"))
    (root / "moved").rename(root / "elsewhere")
    shutil.rmtree(root / "gone")
    (root / "script").chmod(0o755)
    write(root / "data.bin", os.urandom(3_000))
    write(root / "crlf", b"one\ntwo\n")
    (root / "becomes link").unlink()
    (root / "becomes link").symlink_to("/etc/passwd")
    (root / "becomes folder").unlink()
    write(root / "becomes folder/inner")
    shutil.rmtree(root / "folder")
    write(root / "folder")
    write(root / "new/deep/made")
    (root / "new/hollow").mkdir()
    write(root / "empty", b"")
    (root / "loop").symlink_to("loop")


def _did(root: Path, store: SnapshotStore, change: Callable[[Path], object]) -> tuple[Snapshot, Snapshot]:
    before = store.take(root)
    change(root)
    return before, store.take(root)


@pytest.fixture(params=["git", "unborn", "plain"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = make_repository(tmp_path / "root", _FILES)
    if request.param != "git":
        shutil.rmtree(root / ".git")
    if request.param == "unborn":
        git(root, "init", "-q")
    (root / "was hollow").mkdir()
    return root


def _folders_of(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_dir() and ".git" not in path.parts}


def test_everything_comes_back_and_the_undo_is_taken_back_too(root: Path, store: SnapshotStore) -> None:
    first = files_of(root), _folders_of(root)
    before, after = _did(root, store, _run)
    second = files_of(root), _folders_of(root)
    repository = fingerprint(root / ".git")

    undone = apply(plan(store, root, before, after))
    assert (files_of(root), _folders_of(root)) == first
    assert (undone.left_alone, undone.after.tree) == ((), before.tree)

    again = apply(plan(store, root, undone.before, undone.after))
    assert (files_of(root), _folders_of(root)) == second
    apply(plan(store, root, again.before, again.after))
    assert (files_of(root), _folders_of(root)) == first
    assert fingerprint(root / ".git") == repository


def test_a_plan_changes_nothing_and_says_what_it_would_do(root: Path, store: SnapshotStore) -> None:
    before, after = _did(root, store, _run)
    everything = fingerprint(root)

    actions = {step.path: step.action for step in plan(store, root, before, after).steps}

    assert fingerprint(root) == everything
    assert {path for path, action in actions.items() if action is UndoAction.REMOVE} == {
        "becomes folder/inner",
        "elsewhere",
        "empty",
        "folder",
        "loop",
        "new/deep/made",
    }
    assert set(actions.values()) == {UndoAction.REMOVE, UndoAction.RESTORE}


def test_what_the_run_did_not_touch_stays(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "root", {"a": b"a\n", ".gitignore": b"*.dat\nbuild/\n"})
    for path in ("results.dat", "build/large", "untracked/mine"):
        write(root / path, os.urandom(2_000))

    def change(root: Path) -> None:
        write(root / "a", b"changed\n")
        write(root / "build/by the run")
        write(root / "untracked/made")

    before, after = _did(root, store, change)
    write(root / "later")
    write(root / "untracked/later")
    expected = files_of(root)
    undone = apply(plan(store, root, before, after))

    del expected["untracked/made"]
    assert files_of(root) == expected | {"a": (0o100644, b"a\n")}
    apply(plan(store, root, undone.before, undone.after))
    assert files_of(root).keys() == expected.keys() | {"untracked/made"}


def test_what_a_person_did_since_is_merged(root: Path, store: SnapshotStore) -> None:
    before, after = _did(root, store, _run)
    write(root / "edited", (root / "edited").read_bytes().replace(b"line 20\n", b"line twenty\n"))
    write(root / "script", b"#!/bin/sh\necho\n", executable=True)

    made = plan(store, root, before, after)
    steps = {step.path: step for step in made.steps}
    apply(made)

    assert steps["edited"].action is steps["script"].action is UndoAction.MERGE
    assert (root / "edited").read_bytes() == _LINES.replace(b"line 20\n", b"line twenty\n")
    assert files_of(root)["script"] == (0o100644, b"#!/bin/sh\necho\n")


def test_a_renamed_file_that_was_edited_since_goes_back_with_the_edit(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "root", {"old": _LINES})
    before, after = _did(root, store, lambda root: (root / "old").rename(root / "new"))
    write(root / "new", _LINES + b"by a person\n")

    apply(plan(store, root, before, after))

    assert files_of(root) == {"old": (0o100644, _LINES + b"by a person\n")}


_TOUCHES: dict[str, Callable[[Path], object]] = {
    "same line": lambda root: write(root / "edited", _LINES.replace(b"line 3\n", b"mine\n")),
    "binary": lambda root: write(root / "data.bin", b"\0mine"),
    "new file": lambda root: write(root / "new/deep/made", b"mine\n"),
    "deleted": lambda root: (root / "edited").unlink(),
    "made anew": lambda root: write(root / "gone/deep/file", b"mine\n"),
    "link": lambda root: (root / "loop").replace(root / "becomes link"),
    "in the way": lambda root: write(root / "gone", b"mine\n"),
    "file in folder": lambda root: write(root / "becomes folder/mine", b"mine\n"),
}


@pytest.mark.parametrize("touch", _TOUCHES)
def test_a_conflict_is_left_alone_until_a_side_is_chosen(root: Path, store: SnapshotStore, touch: str) -> None:
    files = files_of(root)
    before, after = _did(root, store, _run)
    changed = files_of(root)
    _TOUCHES[touch](root)
    mine = files_of(root)
    foreign = {path for path in mine if mine[path] != changed.get(path)}

    (conflict,) = (made := plan(store, root, before, after)).left_alone
    apply(made)

    assert conflict.action is UndoAction.CONFLICT
    assert conflict.reason
    now = files_of(root)
    assert all(now[path] == mine[path] for path in foreign)
    expected = {path: state for path, state in files.items() if path not in {conflict.path, *foreign}}
    assert {path: state for path, state in now.items() if path not in {conflict.path, *foreign}} == expected

    kept = plan(store, root, before, after, choices={conflict.path: Side.NOW})
    assert kept.steps == () or touch in {"in the way", "file in folder"}
    if touch not in {"in the way", "file in folder"}:
        apply(plan(store, root, before, after, choices={conflict.path: Side.BEFORE}))
        assert files_of(root) == files


def test_only_some_paths_can_be_taken_back(root: Path, store: SnapshotStore) -> None:
    files = files_of(root)
    before, after = _did(root, store, _run)
    changed = files_of(root)

    apply(plan(store, root, before, after, paths=["edited", "elsewhere"]))

    del changed["elsewhere"]
    assert files_of(root) == changed | {path: files[path] for path in ("edited", "moved")}


def test_a_file_that_changes_behind_the_plan_stops_the_whole_undo(root: Path, store: SnapshotStore) -> None:
    before, after = _did(root, store, _run)
    made = plan(store, root, before, after)
    write(root / "edited", b"in the last moment\n")
    everything = fingerprint(root)

    with pytest.raises(ConflictError, match="edited"):
        apply(made)

    assert fingerprint(root) == everything


def test_nothing_is_written_through_a_link(tmp_path: Path, root: Path, store: SnapshotStore) -> None:
    before, after = _did(root, store, _run)
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    made = plan(store, root, before, after)
    (root / "gone").symlink_to(outside)

    if (root / ".git").exists():
        undone = apply(made)
        assert undone.left_alone == ("gone/deep/file",)
    conflicts = plan(store, root, before, after).left_alone
    assert [step.path for step in conflicts] == ["gone/deep/file"]
    assert files_of(outside) == {}


def test_a_file_that_cannot_be_written_takes_back_all(
    root: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = _did(root, store, _run)
    made = plan(store, root, before, after)
    everything = files_of(root)
    rename = os.rename
    calls = []

    def fails_once(source: str, target: str, **folders: int) -> None:
        calls.append(target)
        if len(calls) == 4:
            raise OSError(28, "No space left on device", target)
        rename(source, target, **folders)

    monkeypatch.setattr(os, "rename", fails_once)
    with pytest.raises(SnapshotError, match="No space left"):
        apply(made)

    assert files_of(root) == everything
    apply(made)
    assert files_of(root).keys() == _FILES.keys()


def test_a_large_file_is_named_as_one_that_cannot_come_back(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "root")
    store = SnapshotStore(tmp_path / "store", large_bytes=1_000)
    write(root / "old large", bytes(2_000))

    def change(root: Path) -> None:
        write(root / "old large", b"1" * 2_000)
        write(root / "new large", bytes(3_000))
        write(root / "a.txt", b"changed\n")

    before, after = _did(root, store, change)
    made = plan(store, root, before, after)
    apply(made)

    assert [(step.path, step.action) for step in made.left_alone] == [
        ("new large", UndoAction.IMPOSSIBLE),
        ("old large", UndoAction.IMPOSSIBLE),
    ]
    assert (root / "a.txt").read_bytes() == b"a\n"
    assert (root / "new large").read_bytes() == bytes(3_000)


def test_an_ignored_file_that_was_named_comes_back(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "root", {".gitignore": b".env\n"})
    write(root / ".env", b"SECRET=1\n")
    (root / ".env").chmod(0o600)
    before = store.take(root)
    store.keep(root, [".env"])
    write(root / ".env", b"SECRET=2\n")
    (root / ".env").chmod(0o600)
    undone = apply(plan(store, root, before, store.take(root)))

    assert (root / ".env").read_bytes() == b"SECRET=1\n"
    assert stat.S_IMODE((root / ".env").stat().st_mode) == 0o600
    apply(plan(store, root, undone.before, undone.after))
    assert (root / ".env").read_bytes() == b"SECRET=2\n"


def test_a_file_that_is_ignored_by_now_is_seen_all_the_same(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "root", {"data": b"1\n"})
    before, after = _did(root, store, lambda root: (root / "data").unlink())
    write(root / ".gitignore", b"data\n")
    write(root / "data", b"mine\n")

    (step,) = plan(store, root, before, after).steps

    assert (step.path, step.action) == ("data", UndoAction.CONFLICT)


def test_nested_repositories_are_undone_too(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "root")
    make_repository(root / "nested", {"n": b"n\n"})
    inner = fingerprint(root / "nested/.git")

    def change(root: Path) -> None:
        write(root / "nested/n", b"changed\n")
        write(root / "nested/deep/new")

    files = files_of(root)
    undone: Undone = apply(plan(store, root, *_did(root, store, change)))

    assert files_of(root) == files
    assert undone.left_alone == ()
    assert fingerprint(root / "nested/.git") == inner


def test_snapshots_of_another_folder_are_refused(tmp_path: Path, root: Path, store: SnapshotStore) -> None:
    before, after = _did(root, store, _run)
    with pytest.raises(SnapshotError, match="not of"):
        plan(store, make_repository(tmp_path / "other"), before, after)


@pytest.mark.proof
def test_the_store_is_its_owners_alone_and_the_folder_gets_the_modes_of_its_own(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.txt": b"a\n", "sub/b.txt": b"b\n"})
    before_umask = os.umask(0)
    try:
        store = SnapshotStore(tmp_path / "data" / "store")
        before = store.take(root)
        (root / "sub" / "b.txt").unlink()
        (root / "sub").rmdir()
        for number in range(3_000):
            write(root / f"many/{number}", b"%d\n" % number)
        after = store.take(root)
        apply(plan(store, root, before, after))
        store.prune([before.id])
    finally:
        os.umask(before_umask)

    open_to_others = [path for path in (tmp_path / "data").rglob("*") if path.lstat().st_mode & 0o077]
    assert open_to_others == []
    assert stat.S_IMODE((root / "sub" / "b.txt").stat().st_mode) == 0o644
    assert stat.S_IMODE((root / "sub").stat().st_mode) == 0o777


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o750, 0o4755, 0o444])
def test_permissions_that_git_does_not_know_come_back(tmp_path: Path, mode: int) -> None:
    root = make_repository(tmp_path / "repo")
    make_repository(root / "inner")
    files = [root / "a.txt", root / "inner" / "a.txt", root / "sub" / "b.txt"]
    for path in files:
        path.chmod(mode)
    store = SnapshotStore(tmp_path / "store")
    before = store.take(root)
    files[0].unlink()
    files[1].unlink()
    files[2].chmod(0o604)
    after = store.take(root)

    undone = apply(plan(store, root, before, after))
    modes = [stat.S_IMODE(path.stat().st_mode) for path in files]
    apply(plan(store, root, undone.before, undone.after))

    assert modes == [mode] * 3
    assert [path.exists() for path in files] == [False, False, True]
    assert stat.S_IMODE(files[2].stat().st_mode) == 0o604


def test_permissions_are_seen_to_change_at_once_and_whatever_most_files_have(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {str(number): b"x\n" for number in range(5)})
    for path in root.glob("?"):
        path.chmod(0o664)
    store = SnapshotStore(tmp_path / "store")
    taken = [store.take(root)]
    for mode in (0o600, 0o640, 0o664):
        (root / "3").chmod(mode)
        taken.append(store.take(root))

    found = [compare(store, taken[0], after) for after in taken]
    assert [[(one.path, one.change_type, one.after_mode) for one in changes] for changes in found] == [
        [],
        [("3", ChangeType.MODE, 0o100600)],
        [("3", ChangeType.MODE, 0o100640)],
        [],
    ]
