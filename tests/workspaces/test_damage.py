"""A store of snapshots that is damaged or full: nothing of the folder is lost, and the next snapshot is whole again."""

from __future__ import annotations

import os
import resource
import shutil
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import AgentmonError, SnapshotError
from agentmon.workspaces.comparison import compare, patch
from agentmon.workspaces.undoing import apply, plan, recover
from tests.workspaces.folders import files_of, fingerprint, git, held, make_repository, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agentmon.workspaces.snapshots import Snapshot, SnapshotStore


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", {"a.txt": b"a\n", "sub/b.txt": b"b\n", "x.bin": bytes(range(200))})


def _did(root: Path, store: SnapshotStore) -> tuple[Snapshot, Snapshot]:
    before = store.take(root)
    write(root / "a.txt", b"of the run\n")
    write(root / "x.bin", os.urandom(3_000))
    write(root / "new/file", b"new\n")
    (root / "sub/b.txt").unlink()
    return before, store.take(root)


def _all(store: SnapshotStore, *patterns: str) -> Iterator[Path]:
    for pattern in patterns:
        found = list(store.folder.glob(pattern))
        assert found, pattern
        yield from found


def _overwrite(*patterns: str, content: Callable[[bytes], bytes]) -> Callable[[SnapshotStore], None]:
    def damage(store: SnapshotStore) -> None:
        for file in _all(store, *patterns):
            file.chmod(0o600)
            file.write_bytes(content(file.read_bytes()))

    return damage


def _remove(*patterns: str) -> Callable[[SnapshotStore], None]:
    def damage(store: SnapshotStore) -> None:
        for file in _all(store, *patterns):
            shutil.rmtree(file) if file.is_dir() else file.unlink()

    return damage


_LOOSE = "objects-sha1/??/*"
_DAMAGES = {
    "no objects": _remove("objects-sha1"),
    "empty objects": _overwrite(_LOOSE, content=lambda _: b""),
    "cut objects": _overwrite(_LOOSE, content=lambda old: old[:-5]),
    "no index": _remove("roots/*/indexes/*/index"),
    "cut index": _overwrite("roots/*/indexes/*/index", content=lambda old: old[:-30]),
    "index of noise": _overwrite("roots/*/indexes/*/index", content=lambda _: os.urandom(500)),
    "no heads": _remove("git-*/HEAD", "roots/*/indexes/*/HEAD"),
    "no settings": _remove("git-*/config", "git-*/refs", "git-*/info", "roots/*/indexes/*/info"),
    "no memory": _remove("roots/*/indexes/*/memory.json"),
    "half a memory": _overwrite("roots/*/indexes/*/memory.json", content=lambda old: old[:20]),
    "half a snapshot": _overwrite("roots/*/snapshots/*.json", content=lambda old: old[:20]),
    "another root": _overwrite("roots/*/root", content=lambda _: b""),
}


@pytest.mark.proof
@pytest.mark.parametrize("name", _DAMAGES)
def test_a_damaged_store_costs_nothing_of_the_folder_and_the_next_run(
    root: Path, store: SnapshotStore, name: str
) -> None:
    first, _ = _did(root, store)
    files, repository = files_of(root), fingerprint(root / ".git")
    original = {path: git(root, "show", f"HEAD:{path}") for path in ("a.txt", "sub/b.txt")}
    ids = first.id, store.take(root).id

    _DAMAGES[name](store)

    try:
        before, after = map(store.get, ids)
        undone = apply(plan(store, root, before, after))
    except SnapshotError:
        assert files_of(root) == files
    else:
        assert undone.left_alone == ()
        assert {path: (root / path).read_text() for path in original} == original
    assert recover(store) == ()
    assert fingerprint(root / ".git") == repository
    # From here on all is as if nothing had been.
    snapshot, files = store.take(root), files_of(root)
    assert held(store, snapshot) == files
    write(root / "later", b"later\n")
    write(root / "a.txt", b"later\n")
    later = store.take(root)
    assert {change.path for change in compare(store, snapshot, later)} == {"later", "a.txt"}
    apply(plan(store, root, snapshot, later))
    assert files_of(root) == files


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_one_content_that_is_lost_takes_no_other_along(root: Path, store: SnapshotStore, damage: str) -> None:
    before, after = _did(root, store)
    (change,) = (change for change in compare(store, before, after) if change.path == "x.bin")
    assert change.before_ref is not None
    content = store.folder / "objects-sha1" / change.before_ref[:2] / change.before_ref[2:]
    content.chmod(0o600)
    content.unlink() if damage == "gone" else content.write_bytes(content.read_bytes()[:-8])
    # What the repository has is seen through it.
    of_person = root / ".git/objects" / change.before_ref[:2] / change.before_ref[2:]
    of_person.unlink()

    changes = {change.path: change for change in compare(store, before, after)}
    assert {path: change.can_undo for path, change in changes.items()} == {
        "a.txt": True,
        "new/file": True,
        "sub/b.txt": True,
        "x.bin": False,
    }
    assert changes["a.txt"].lines_added == 1
    assert b"a.txt" in patch(store, before, after)
    assert b"x.bin" not in patch(store, before, after)
    made = plan(store, root, before, after)
    assert [step.path for step in made.left_alone] == ["x.bin"]
    theirs = (root / "x.bin").read_bytes()
    apply(made)
    assert files_of(root) == {
        "a.txt": (0o100644, b"a\n"),
        "sub/b.txt": (0o100644, b"b\n"),
        "x.bin": (0o100644, theirs),
    }


def test_what_is_taken_back_is_kept_whole_first(root: Path, store: SnapshotStore) -> None:
    """What a run made has one copy in the store: an undo does not take that of the folder while it cannot be read."""
    before, after = _did(root, store)
    made = plan(store, root, before, after)
    (change,) = (change for change in compare(store, before, after) if change.path == "new/file")
    assert change.after_ref is not None
    content = store.folder / "objects-sha1" / change.after_ref[:2] / change.after_ref[2:]
    content.chmod(0o600)
    content.write_bytes(b"")
    files = files_of(root)

    with pytest.raises(SnapshotError):
        apply(made)

    assert files_of(root) == files
    assert recover(store) == ()


@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_pack_that_is_lost_is_set_aside(root: Path, store: SnapshotStore, damage: str) -> None:
    before, after = _did(root, store)
    write(root / "one more")
    store.take(root)
    store.prune([before.id, after.id])
    for pack in _all(store, "objects-sha1/pack/*.pack"):
        pack.chmod(0o600)
        pack.unlink() if damage == "gone" else pack.write_bytes(pack.read_bytes()[:-100])
    files = files_of(root)

    with pytest.raises(SnapshotError):
        apply(plan(store, root, before, after))

    assert files_of(root) == files
    snapshot = store.take(root)
    assert held(store, snapshot) == files
    store.prune([snapshot.id])
    assert held(store, snapshot) == files


@pytest.mark.parametrize("what", ["journal", "contents"])
def test_a_damaged_journal_writes_nothing_that_nobody_wrote(
    root: Path, store: SnapshotStore, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = _did(root, store)
    files = files_of(root)
    with monkeypatch.context() as killed:
        killed.setattr("agentmon.workspaces.undo_journal.Journal.run", _die)
        with pytest.raises(KeyboardInterrupt):
            apply(plan(store, root, before, after), {})
    (file,) = _all(store, f"roots/*/undo/{what}*")
    file.write_bytes(file.read_bytes()[:-3] + b"???")

    (found,) = recover(store)

    assert found.problem
    assert not {content for _, content in files_of(root).values()} - {
        content for _, content in (*files.values(), *held(store, before).values())
    }
    with pytest.raises(AgentmonError):
        apply(plan(store, root, before, after), {})
    shutil.rmtree(file.parent)
    apply(plan(store, root, before, after))
    assert files_of(root) == held(store, before)


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_one_damaged_place_keeps_no_other_from_being_finished(tmp_path: Path, store: SnapshotStore) -> None:
    other = tmp_path / "other"
    write(other / "f")
    store.take(other)
    (damaged,) = _all(store, "roots/*")
    (damaged / "place.json").write_bytes(b"[]")
    (damaged / "undo").mkdir()
    root = make_repository(tmp_path / "repo")
    before, after = _did(root, store)
    apply(plan(store, root, before, after), {"who": "me"})

    found = {recovered.root: recovered for recovered in recover(store)}

    assert found[other].problem
    assert not found[root].problem
    assert found[root].note == {"who": "me"}
    with pytest.raises(SnapshotError):
        store.take(other)


def test_a_store_without_room_blames_no_file(root: Path, store: SnapshotStore) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    store.take(root)
    for number in range(40):
        write(root / f"n{number}", os.urandom(30_000))
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(SnapshotError) as caught:
            store.take(root)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert os.strerror(27) in str(caught.value)
    snapshot = store.take(root)
    assert snapshot.uncovered == ()
    assert held(store, snapshot) == files_of(root)
