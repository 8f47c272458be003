"""Folders that could break a snapshot or an undo: odd names, special files, links, repositories of all kinds."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import AgentmonError, ConflictError
from agentmon.workspaces.comparison import compare, patch
from agentmon.workspaces.patches import plan_lines
from agentmon.workspaces.undoing import apply, plan
from tests.workspaces.folders import files_of, fingerprint, git, held, make_repository, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agentmon.workspaces.snapshots import SnapshotStore


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo")


_NAMES = ("git~1", "GIT~1", ".git ", ".git.", "con", "aux.c", "-rf", ":(top)x", "x" * 255, "\u200c", "a\nb", "\udcff")


def test_names_that_mean_something_elsewhere_are_names(root: Path, store: SnapshotStore) -> None:
    before, files = store.take(root), files_of(root)
    for name in _NAMES:
        write(root / name, os.fsencode(name))
        write(root / "sub" / name, os.fsencode(name))
    changed = files_of(root)
    after = store.take(root)

    assert held(store, after) == changed
    assert after.uncovered == ()
    apply(plan(store, root, before, after))
    assert files_of(root) == files
    apply(plan(store, root, after, before))
    assert files_of(root) == changed


def test_what_git_takes_under_no_name_is_said_and_left_alone(root: Path, store: SnapshotStore) -> None:
    before = store.take(root)
    write(root / ".GIT/hooks/post-checkout")
    write(root / "new/.Git")
    write(root / "new/file")

    after = store.take(root)
    assert [one.path for one in after.uncovered] == [".GIT", "new/.Git"]
    apply(plan(store, root, before, after))

    assert not (root / "new/file").exists()
    assert (root / ".GIT/hooks/post-checkout").exists()
    assert (root / "new/.Git").exists()


def test_names_that_differ_in_capitals_alone_are_two_files_where_the_disk_says_so(
    root: Path, store: SnapshotStore
) -> None:
    """A repository that was copied from another system says that its disk does not tell them apart."""
    git(root, "config", "core.ignoreCase", "true")
    before, files = store.take(root), files_of(root)
    for name in ("Makefile", "makefile", "A.TXT", "Sub/b.txt", "SUB/b.txt"):
        write(root / name, name.encode())

    after = store.take(root)

    assert held(store, after) == files_of(root)
    apply(plan(store, root, before, after))
    assert files_of(root) == files


def _make_fifo(path: Path) -> None:
    os.mkfifo(path)


def _make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path))


@pytest.mark.parametrize("make", [_make_fifo, _make_socket])
def test_what_is_no_file_is_neither_read_nor_removed(
    root: Path, store: SnapshotStore, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    before = store.take(root)
    (root / "a.txt").unlink()
    make(root / "a.txt")
    make(root / "beside")
    write(root / "sub/b.txt", b"of the run\n")

    after = store.take(root)
    made = plan(store, root, before, after)
    apply(made)

    assert set(held(store, after)) == {"sub/b.txt"}
    assert [step.path for step in made.left_alone] == ["a.txt"]
    assert (root / "sub/b.txt").read_bytes() == b"b\n"
    assert not stat.S_ISREG((root / "a.txt").stat().st_mode)
    (root / "a.txt").unlink()
    apply(plan(store, root, before, after))
    assert (root / "a.txt").read_bytes() == b"a\n"
    assert not stat.S_ISREG((root / "beside").stat().st_mode)


def test_a_file_that_became_a_pipe_since_the_look_is_not_waited_for(root: Path, store: SnapshotStore) -> None:
    before = store.take(root)
    write(root / "a.txt", b"of the run\n")
    after = store.take(root)
    made = plan(store, root, before, after)
    (root / "a.txt").unlink()
    os.mkfifo(root / "a.txt")

    with pytest.raises(ConflictError):
        apply(made)


def test_links_in_a_circle_hide_nothing_and_stop_nothing(root: Path, store: SnapshotStore) -> None:
    write(root / ".gitignore", b"ignored\n")
    write(root / "ignored/file", b"kept\n")
    assert store.keep(root, ["ignored/file"]) == ()
    before, files = store.take(root), files_of(root)
    shutil.rmtree(root / "sub")
    shutil.rmtree(root / "ignored")
    for name, target in (("sub", "sub"), ("ignored", "ignored"), ("one", "two"), ("two", "one")):
        (root / name).symlink_to(target)
    assert store.keep(root, ["one/file", "sub/b.txt", "two"]) == ()

    after = store.take(root)

    assert {change.path for change in compare(store, before, after)} == {
        "sub", "sub/b.txt", "ignored/file", "one", "two",
    }  # fmt: skip
    made = plan(store, root, before, after)
    # The link that is ignored is none of the run, as far as anybody knows.
    assert [step.path for step in made.left_alone] == ["ignored/file"]
    apply(made)
    (root / "ignored").unlink()
    apply(plan(store, root, before, after))
    assert files_of(root) == files


def test_paths_that_are_too_long_are_said(root: Path, store: SnapshotStore) -> None:
    before = store.take(root)
    write(root / "new")
    current = os.open(root, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=current)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = inner
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=current))
    os.close(current)

    after = store.take(root)

    assert {change.path for change in compare(store, before, after)} == {"new"}
    assert [one.path.rstrip("d/") for one in after.uncovered] == [""]
    apply(plan(store, root, before, after))
    assert not (root / "new").exists()


@pytest.mark.proof
def test_files_that_change_and_vanish_while_they_are_read_stop_nothing(root: Path, store: SnapshotStore) -> None:
    for number in range(100):
        write(root / f"f{number}", b"0" * 2_000)
    before = store.take(root)
    is_over = threading.Event()

    def change() -> None:
        turn = 0
        while not is_over.is_set():
            turn += 1
            path = root / f"f{turn % 100}"
            with suppress(OSError):
                path.unlink(missing_ok=True)
                if turn % 3 == 0:
                    path.mkdir()
                    write(path / "inner")
                    shutil.rmtree(path)
                elif turn % 3 == 1:
                    path.write_bytes(os.urandom(turn % 3_000))

    hand = threading.Thread(target=change)
    hand.start()
    try:
        for _ in range(4):
            found = store.take(root)
            compare(store, before, found)
            with suppress(ConflictError):
                apply(plan(store, root, before, found))
    finally:
        is_over.set()
        hand.join()

    after = store.take(root)
    assert held(store, after) == files_of(root)
    assert after.uncovered == ()
    apply(plan(store, root, before, after))
    assert held(store, before) == files_of(root)


@pytest.mark.parametrize("what", ["folder", "root"])
def test_nothing_is_written_outside_where_a_link_comes_between_the_look_and_the_undo(
    tmp_path: Path, root: Path, store: SnapshotStore, what: str
) -> None:
    before = store.take(root)
    write(root / "sub/b.txt", b"of the run\n")
    write(root / "sub/new")
    after = store.take(root)
    made = plan(store, root, before, after)
    outside = tmp_path / "outside"
    shutil.copytree(root if what == "root" else root / "sub", outside, symlinks=True)
    untouched = fingerprint(outside)
    replaced = root if what == "root" else root / "sub"
    replaced.rename(tmp_path / "moved")
    replaced.symlink_to(outside)

    with pytest.raises(AgentmonError):
        apply(made)
    assert fingerprint(outside) == untouched
    # Another look sees the link, and goes round it.
    if what == "folder":
        apply(plan(store, root, before, after))
        assert fingerprint(outside) == untouched


# Lines


def _lines_of_the_run(root: Path, store: SnapshotStore, path: str) -> bytes:
    before = store.take(root)
    write(root / path, b"of the run\n")
    return patch(store, before, store.take(root), [path])


def test_lines_are_taken_back_in_one_step_with_the_mode_of_the_file(root: Path, store: SnapshotStore) -> None:
    lines = _lines_of_the_run(root, store, "sub/b.txt")
    (root / "sub/b.txt").chmod(0o600)
    repository = fingerprint(root / ".git")

    undone = apply(plan_lines(store, root, "sub/b.txt", lines))

    assert (root / "sub/b.txt").read_bytes() == b"b\n"
    assert stat.S_IMODE((root / "sub/b.txt").stat().st_mode) == 0o600
    assert fingerprint(root / ".git") == repository
    apply(plan(store, root, undone.before, undone.after))
    assert (root / "sub/b.txt").read_bytes() == b"of the run\n"
    with pytest.raises(ConflictError):
        plan_lines(store, root, "a.txt", lines)


def test_lines_of_a_file_behind_a_link_are_left_alone(tmp_path: Path, root: Path, store: SnapshotStore) -> None:
    lines = _lines_of_the_run(root, store, "sub/b.txt")
    (root / "sub").rename(tmp_path / "outside")
    (root / "sub").symlink_to(tmp_path / "outside")

    with pytest.raises(ConflictError):
        apply(plan_lines(store, root, "sub/b.txt", lines))

    assert (tmp_path / "outside/b.txt").read_bytes() == b"of the run\n"


def test_lines_in_a_file_that_is_ignored_by_now_are_taken_back(root: Path, store: SnapshotStore) -> None:
    lines = _lines_of_the_run(root, store, "fresh")
    write(root / ".gitignore", b"fresh\n")

    apply(plan_lines(store, root, "fresh", lines))

    assert not (root / "fresh").exists()


# Repositories


def _with_filters(root: Path) -> None:
    git(root, "config", "core.autocrlf", "true")
    git(root, "config", "filter.rot.clean", "tr a-z n-za-m")
    git(root, "config", "filter.rot.smudge", "tr a-z n-za-m")
    write(root / ".gitattributes", b"a.txt filter=rot\n*.crlf text eol=crlf\n")
    write(root / "lines.crlf", b"1\r\n2\n3\r\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "filters")


def _with_submodule(root: Path) -> None:
    other = make_repository(root.parent / "library", {"inner.txt": b"i\n"})
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "lib")
    git(root, "commit", "-q", "-m", "submodule")
    make_repository(root / "nested", {"n.txt": b"n\n"})


def _in_a_rebase(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "other")
    write(root / "a.txt", b"mine\n")
    git(root, "commit", "-q", "-am", "mine")
    git(root, "checkout", "-q", "main")
    write(root / "a.txt", b"theirs\n")
    git(root, "commit", "-q", "-am", "theirs")
    with pytest.raises(AssertionError):
        git(root, "rebase", "other")


def _sparse(root: Path) -> None:
    write(root / "left out/x")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "more")
    git(root, "sparse-checkout", "set", "sub")


def _with_pointers(root: Path) -> None:
    git(root, "config", "filter.lfs.clean", "false")
    git(root, "config", "filter.lfs.smudge", "false")
    git(root, "config", "filter.lfs.required", "true")
    write(root / ".gitattributes", b"*.bin filter=lfs diff=lfs merge=lfs -text\n")
    write(root / "large.bin", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")


def _watched(root: Path) -> None:
    script = root / ".git/spy"
    write(script, b"#!/bin/sh\ntouch .git/was-run\n", executable=True)
    git(root, "config", "core.fsmonitor", str(script))
    git(root, "config", "core.hooksPath", str(root / ".git"))
    shutil.copy(script, root / ".git/post-index-change")
    (root / ".git/was-run").unlink(missing_ok=True)


def _with_borrowed_objects(root: Path) -> None:
    shutil.move(root, root.parent / "lender")
    git(root.parent, "clone", "-q", "--shared", "lender", root.name)


def _unborn(root: Path) -> None:
    git(root, "checkout", "-q", "--orphan", "nothing")


def _locked(root: Path) -> None:
    for name in ("index.lock", "HEAD.lock", "config.lock", "packed-refs.lock"):
        write(root / ".git" / name)


def _staged(root: Path) -> None:
    write(root / "staged", b"staged\n")
    git(root, "add", "staged")
    git(root, "rm", "-q", "--cached", "a.txt")
    git(root, "stash", "push", "-q", "-u")
    write(root / "staged", b"again\n")
    git(root, "add", "-N", "staged")


def _of_sha256(root: Path) -> None:
    shutil.rmtree(root)
    make_repository(root, {"a.txt": b"a\n", "sub/b.txt": b"b\n"}, "--object-format=sha256")


def _linked(root: Path) -> None:
    shutil.move(root, root.parent / "main")
    git(root.parent / "main", "worktree", "add", "-q", "--detach", str(root))


_KINDS = {
    "linked": _linked,
    "filters": _with_filters,
    "submodule": _with_submodule,
    "rebase": _in_a_rebase,
    "sparse": _sparse,
    "pointers": _with_pointers,
    "watched": _watched,
    "borrowed": _with_borrowed_objects,
    "unborn": _unborn,
    "locked": _locked,
    "staged": _staged,
    "sha256": _of_sha256,
}


@pytest.mark.proof
@pytest.mark.parametrize("name", _KINDS)
def test_an_undo_leaves_a_repository_of_any_kind_as_it_is(
    tmp_path: Path, root: Path, store: SnapshotStore, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _KINDS[name](root)
    for variable in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    # Those around it too: of a worktree, of a lender, of a submodule.
    repositories = {path: fingerprint(path) for path in sorted(tmp_path.rglob(".git")) if path.is_dir()}
    assert repositories
    before, files = store.take(root), files_of(root)
    for path, (_, content) in files.items():
        if not (root / path).is_symlink():
            write(root / path, content + b"of the run\r\n", executable=True)
    (root / "sub/b.txt").unlink()
    for path in ("new", "sub/new", "lib/new", "nested/deep/new"):
        write(root / path, b"\x00\xff\r\n")
    changed = files_of(root)
    after = store.take(root)

    undone = apply(plan(store, root, before, after))
    assert files_of(root) == files
    apply(plan(store, root, undone.before, undone.after))
    assert files_of(root) == changed
    store.prune([before.id, after.id])
    apply(plan(store, root, before, after))

    assert files_of(root) == files
    assert {path: fingerprint(path) for path in repositories} == repositories


def test_a_layout_with_a_bare_repository_is_undone_and_left_as_it_is(tmp_path: Path, store: SnapshotStore) -> None:
    source = make_repository(tmp_path / "source")
    root = tmp_path / "layout"
    root.mkdir()
    git(tmp_path, "clone", "-q", "--bare", str(source), str(root / ".bare"))
    write(root / ".git", b"gitdir: ./.bare\n")
    git(root, "worktree", "add", "-q", "tree", "main")
    bare, files = fingerprint(root / ".bare"), files_of(root / "tree")
    before = store.take(root)
    write(root / "tree/a.txt", b"of the run\n")
    write(root / "tree/new/file")
    write(root / "beside")
    after = store.take(root)

    apply(plan(store, root, before, after))

    assert files_of(root / "tree") == files
    assert not (root / "beside").exists()
    assert fingerprint(root / ".bare") == bare
