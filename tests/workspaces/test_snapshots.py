"""What a snapshot holds, and what it leaves alone."""

from __future__ import annotations

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import NotFoundError, SnapshotError
from agentmon.workspaces.comparison import compare, content
from agentmon.workspaces.snapshots import SnapshotStore
from tests.waiting import DEADLINE_S
from tests.workspaces.folders import files_of, fingerprint, git, held, make_repository, size_of, write

if TYPE_CHECKING:
    from collections.abc import Callable

ODD_NAMES = (
    "My Project",
    "it's",
    "ü-漢",
    "-dash",
    "trailing ",
    "two\nlines",
    'quote"d',
    "back\\slash",
    "col:on",
    "*?[a]",
    "\udcff\udcfe",
)


def _paths(store: SnapshotStore, root: Path) -> set[str]:
    return set(held(store, store.take(root)))


def test_a_snapshot_holds_every_file_that_is_not_ignored_byte_for_byte(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "repo")
    write(root / "a.txt", b"edited\n")
    write(root / "untracked/deep/new.bin", bytes(range(256)))
    write(root / "run.sh", b"#!/bin/sh\n", executable=True)
    write(root / "empty", b"")
    (root / "link").symlink_to("a.txt")
    (root / "dangling").symlink_to("nowhere")
    (root / "folder link").symlink_to("sub")
    expected = files_of(root)
    write(root / ".gitignore", b"*.log\n/out/\n")
    expected[".gitignore"] = (0o100644, b"*.log\n/out/\n")
    write(root / "noise.log")
    write(root / "out/result")

    assert held(store, store.take(root)) == expected


@pytest.mark.parametrize("state", ["plain", "staged", "unborn", "detached", "conflict", "rebase", "locked", "stash"])
def test_the_repository_is_left_as_it_is(tmp_path: Path, store: SnapshotStore, state: str) -> None:
    root = make_repository(tmp_path / "repo")
    if state == "unborn":
        root = tmp_path / "unborn"
        root.mkdir()
        git(root, "init", "-q")
    write(root / "a.txt", b"mine\n")
    if state == "staged":
        git(root, "add", "a.txt")
        git(root, "rm", "-q", "--cached", "sub/b.txt")
        write(root / "later.txt")
        git(root, "add", "-N", "later.txt")
    elif state == "detached":
        git(root, "checkout", "-q", "--detach")
    elif state in {"conflict", "rebase"}:
        git(root, "checkout", "-q", "-b", "other")
        git(root, "commit", "-q", "-am", "mine")
        git(root, "checkout", "-q", "main")
        write(root / "a.txt", b"theirs\n")
        git(root, "commit", "-q", "-am", "theirs")
        with pytest.raises(AssertionError):
            git(root, "rebase" if state == "rebase" else "merge", "other")
    elif state == "locked":
        write(root / ".git/index.lock", b"")
    elif state == "stash":
        git(root, "stash")
        write(root / "a.txt", b"again\n")
    before = fingerprint(root / ".git")

    snapshot = store.take(root)
    write(root / "new.txt", b"new\n")
    later = store.take(root)
    compare(store, snapshot, later)

    assert held(store, later) == files_of(root)
    assert {change.path for change in compare(store, snapshot, later)} == {"new.txt"}
    assert fingerprint(root / ".git") == before


def test_a_folder_without_repository_gets_nothing_but_is_kept_whole(tmp_path: Path, store: SnapshotStore) -> None:
    root = tmp_path / "plain"
    write(root / "a/b.txt", b"1\r\n2\r\n")
    write(root / "c.bin", os.urandom(100_000))
    (root / "hollow").mkdir()
    before = fingerprint(root)

    snapshot = store.take(root)

    assert held(store, snapshot) == files_of(root)
    assert (snapshot.root, snapshot.head, snapshot.limit) == (root, None, "")
    assert snapshot.empty_folders == ("hollow",)
    assert fingerprint(root) == before


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_of_folders_and_files_come_through(tmp_path: Path, name: str) -> None:
    root = make_repository(tmp_path / name / "repo" / name, {f"{name}/{name}": b"1\n", name + "2": b"2\n"})
    store = SnapshotStore(tmp_path / name / "store" / name)
    first = store.take(root)
    write(root / name / f"new {name}")
    (root / (name + "2")).unlink()
    (root / f"link {name}").symlink_to(name)

    second = store.take(root)

    assert held(store, second) == files_of(root)
    assert {change.path for change in compare(store, first, second)} == {
        f"{name}/new {name}",
        name + "2",
        f"link {name}",
    }


def test_a_folder_two_hundred_levels_deep_is_taken(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "repo")
    deep = "/".join(["lvl"] * 200)
    write(root / deep / "file", b"deep\n")

    assert held(store, store.take(root))[f"{deep}/file"] == (0o100644, b"deep\n")


def test_a_link_to_a_folder_is_the_folder_and_a_folder_within_is_its_repository(
    tmp_path: Path, store: SnapshotStore
) -> None:
    root = make_repository(tmp_path / "repo")
    (tmp_path / "link").symlink_to(root)

    first = store.take(tmp_path / "link")

    assert (first.root, first.head) == (root, git(root, "rev-parse", "HEAD").strip())
    assert store.take(root / "sub").id == first.id


def test_a_folder_that_its_repository_ignores_is_a_folder_of_its_own(tmp_path: Path, store: SnapshotStore) -> None:
    home = make_repository(tmp_path / "home", {".gitignore": b"*\n!.gitignore\n"})
    write(home / "project/a.txt")

    snapshot = store.take(home / "project")

    assert (snapshot.root, set(held(store, snapshot))) == (home / "project", {"a.txt"})


def test_a_missing_folder_is_refused(tmp_path: Path, store: SnapshotStore) -> None:
    with pytest.raises(SnapshotError, match="is not a folder"):
        store.take(tmp_path / "nowhere")


# Filters and settings


def _set_autocrlf(root: Path) -> None:
    git(root, "config", "core.autocrlf", "true")


def _set_input(root: Path) -> None:
    git(root, "config", "core.autocrlf", "input")
    git(root, "config", "core.safecrlf", "true")


def _attributes(line: bytes) -> Callable[[Path], None]:
    return lambda root: write(root / ".gitattributes", line)


def _filter(root: Path) -> None:
    write(root / ".gitattributes", b"*.txt filter=shout\n")
    git(root, "config", "filter.shout.clean", "tr a-z A-Z")
    git(root, "config", "filter.shout.smudge", "tr A-Z a-z")
    git(root, "config", "filter.shout.required", "true")


@pytest.mark.parametrize(
    "prepare",
    [
        _set_autocrlf,
        _set_input,
        _attributes(b"* text=auto\n"),
        _attributes(b"*.txt text eol=crlf\n"),
        _attributes(b"*.txt ident\n"),
        _attributes(b"*.txt working-tree-encoding=UTF-16LE-BOM\n"),
        _filter,
    ],
    ids=["autocrlf", "input", "auto", "eol", "ident", "encoding", "filter"],
)
def test_what_filters_would_change_comes_back_as_it_is(
    tmp_path: Path, store: SnapshotStore, prepare: Callable[[Path], None]
) -> None:
    root = make_repository(tmp_path / "repo", {"z": b"z\n"})
    prepare(root)
    text = "one\r\ntwo\r\n$Id: mine $\r\n"
    write(root / "a.txt", text.encode())
    if (root / ".gitattributes").exists() and b"encoding" in (root / ".gitattributes").read_bytes():
        write(root / "a.txt", text.encode("utf-16"))
    git(root, "-c", "core.safecrlf=false", "add", "-A")
    git(root, "commit", "-q", "-m", "converted")
    assert git(root, "status", "--porcelain") == ""

    first = store.take(root)
    assert held(store, first) == files_of(root)
    write(root / "a.txt", b"lone\n\r\r\n")
    second = store.take(root)

    assert held(store, second) == files_of(root)
    (change,) = compare(store, first, second)
    assert content(store, change.after_ref or "") == b"lone\n\r\r\n"


def test_a_pointer_of_large_files_stays_one_and_its_content_too(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "repo", {".gitattributes": b"*.bin filter=lfs diff=lfs merge=lfs -text\n"})
    write(root / "p.bin", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "pointer")
    git(root, "config", "filter.lfs.clean", "false")
    git(root, "config", "filter.lfs.process", "false")
    git(root, "config", "filter.lfs.required", "true")
    write(root / "p.bin", bytes(range(256)))

    assert held(store, store.take(root)) == files_of(root)


def test_marks_of_the_index_hide_nothing(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(
        tmp_path / "repo", {"assumed": b"1\n", "skipped": b"2\n", "gone": b"3\n", ".gitignore": b"ig\n"}
    )
    write(root / "ig", b"tracked all the same\n")
    git(root, "add", "-f", "ig")
    git(root, "update-index", "--assume-unchanged", "assumed")
    git(root, "update-index", "--skip-worktree", "skipped", "gone")
    write(root / "assumed", b"changed\n")
    write(root / "skipped", b"changed\n")
    (root / "gone").unlink()

    assert held(store, store.take(root)) == files_of(root)
    write(root / "ig", b"changed\n")
    write(root / "assumed", b"changed again\n")
    assert held(store, store.take(root)) == files_of(root)


def test_an_ignored_file_counts_from_when_it_is_tracked(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "repo", {".gitignore": b"*.log\n"})
    write(root / "a.log")
    assert "a.log" not in _paths(store, root)
    git(root, "add", "-f", "a.log")
    assert "a.log" in _paths(store, root)


@pytest.mark.parametrize("words", [[], ["--sparse-index"]])
def test_a_sparse_checkout_is_what_is_there(tmp_path: Path, store: SnapshotStore, words: list[str]) -> None:
    root = make_repository(tmp_path / "repo", {"top": b"1\n", "in/a": b"2\n", "out/b": b"3\n", "out/deep/c": b"4\n"})
    git(root, "sparse-checkout", "init", "--cone", *words)
    git(root, "sparse-checkout", "set", "in")
    assert not (root / "out").exists()
    before = fingerprint(root / ".git")

    first = store.take(root)
    assert held(store, first) == files_of(root)
    write(root / "out/b", b"back\n")
    write(root / "in/new", b"new\n")

    second = store.take(root)
    assert held(store, second) == files_of(root)
    assert {change.path for change in compare(store, first, second)} == {"out/b", "in/new"}
    assert fingerprint(root / ".git") == before


@pytest.mark.parametrize("setting", ["core.splitIndex", "core.untrackedCache", "index.version"])
def test_other_forms_of_the_index_are_read(tmp_path: Path, store: SnapshotStore, setting: str) -> None:
    root = make_repository(tmp_path / "repo")
    git(root, "config", setting, "4" if setting == "index.version" else "true")
    write(root / "c", b"c\n")
    git(root, "add", "c")
    git(root, "update-index", "--split-index" if "splitIndex" in setting else "--force-write-index")
    git(root, "status")
    write(root / "d", b"d\n")
    before = fingerprint(root / ".git")

    assert held(store, store.take(root)) == files_of(root)
    assert fingerprint(root / ".git") == before


def test_hooks_and_monitors_of_the_repository_are_not_run(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "repo")
    for name in ("fsmonitor-watchman", "post-index-change", "reference-transaction", "pre-commit"):
        write(root / ".git/hooks" / name, b"#!/bin/sh\ntouch '%s/ran'\n" % os.fsencode(tmp_path), executable=True)
    git(root, "config", "core.fsmonitor", str(root / ".git/hooks/fsmonitor-watchman"))
    git(root, "config", "diff.external", f"touch '{tmp_path}/ran'")
    git(root, "config", "core.pager", f"touch '{tmp_path}/ran'")
    first = store.take(root)
    write(root / "a.txt", b"other\n")
    compare(store, first, store.take(root))

    assert not (tmp_path / "ran").exists()


def test_rules_of_the_person_and_of_the_clone_hold(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "repo")
    rules = Path(os.environ["HOME"]) / ".config/git/ignore"
    write(rules, b"*.mine\n")
    write(root / ".git/info/exclude", b"*.clone\n")
    for name in ("a.mine", "b.clone", "c.other", "d.set"):
        write(root / name)
    assert _paths(store, root) == {"a.txt", "sub/b.txt", "c.other", "d.set"}
    write(tmp_path / "rules", b"*.set\n")
    git(root, "config", "core.excludesFile", str(tmp_path / "rules"))
    write(root / "later.mine")

    assert _paths(store, root) == {"a.txt", "sub/b.txt", "c.other", "later.mine", "a.mine", "d.set"}


def test_variables_for_git_change_nothing(
    tmp_path: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_repository(tmp_path / "repo")
    other = make_repository(tmp_path / "other", {"o": b"o\n"})
    for name, value in {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / "index"),
        "GIT_CONFIG_PARAMETERS": "'core.autocrlf=true'",
        "GIT_OBJECT_DIRECTORY": str(other / "objects"),
        "GIT_TRACE": str(tmp_path / "trace"),
    }.items():
        monkeypatch.setenv(name, value)
    write(root / "a.txt", b"1\r\n")

    assert held(store, store.take(root)) == files_of(root)
    assert not (tmp_path / "trace").exists()


# Repositories of other kinds


def test_a_linked_worktree_is_taken_by_itself(tmp_path: Path, store: SnapshotStore) -> None:
    main = make_repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    root = tmp_path / "tree"
    write(root / "a.txt", b"side\n")
    write(root / "new")
    before = fingerprint(main / ".git")

    assert held(store, store.take(root)) == files_of(root)
    assert held(store, store.take(main)) == files_of(main)
    assert fingerprint(main / ".git") == before


def test_submodules_and_nested_repositories_are_covered_with_what_is_dirty(
    tmp_path: Path, store: SnapshotStore
) -> None:
    library = make_repository(tmp_path / "library", {"lib.c": b"lib\n"})
    root = make_repository(tmp_path / "repo")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "vendor/lib")
    git(root, "commit", "-q", "-m", "submodule")
    make_repository(root / "deep/nested", {"n": b"n\n"})
    make_repository(root / "deep/nested/inner", {"i": b"i\n"})
    git_folder = root / "unborn"
    git_folder.mkdir()
    git(git_folder, "init", "-q")
    write(git_folder / "u", b"u\n")
    first = store.take(root)
    assert first.nested == ("deep/nested", "deep/nested/inner", "unborn", "vendor/lib")
    assert held(store, first) == files_of(root)

    write(root / "vendor/lib/lib.c", b"edited\n")
    write(root / "deep/nested/inner/new", b"new\n")
    git(root / "deep/nested", "commit", "-q", "--allow-empty", "-m", "more")
    before = fingerprint(root / ".git"), fingerprint(root / "deep/nested/.git")
    second = store.take(root)

    assert held(store, second) == files_of(root)
    assert {change.path for change in compare(store, first, second)} == {"vendor/lib/lib.c", "deep/nested/inner/new"}
    assert (fingerprint(root / ".git"), fingerprint(root / "deep/nested/.git")) == before


def test_the_root_of_a_submodule_is_taken_by_itself(tmp_path: Path, store: SnapshotStore) -> None:
    library = make_repository(tmp_path / "library", {"lib.c": b"lib\n"})
    root = make_repository(tmp_path / "repo")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")

    snapshot = store.take(root / "lib")

    assert (snapshot.root, held(store, snapshot)) == (root / "lib", {"lib.c": (0o100644, b"lib\n")})


def test_a_shallow_clone_is_taken(tmp_path: Path, store: SnapshotStore) -> None:
    source = make_repository(tmp_path / "source")
    git(source, "commit", "-q", "--allow-empty", "-m", "second")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{source}", "shallow")
    root = tmp_path / "shallow"
    write(root / "new")

    assert held(store, store.take(root)) == files_of(root)


def test_a_bare_layout_leaves_out_its_objects(tmp_path: Path, store: SnapshotStore) -> None:
    source = make_repository(tmp_path / "source")
    root = tmp_path / "layout"
    root.mkdir()
    git(tmp_path, "clone", "-q", "--bare", str(source), str(root / ".bare"))
    write(root / ".git", b"gitdir: ./.bare\n")
    git(root, "worktree", "add", "-q", "tree", "main")
    write(root / "tree/new", b"new\n")

    snapshot = store.take(root)

    assert snapshot.nested == ("tree",)
    assert set(held(store, snapshot)) == {"tree/a.txt", "tree/sub/b.txt", "tree/new"}


def test_another_kind_of_hash_works_too(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "repo", None, "--object-format=sha256")
    first = store.take(root)
    write(root / "a.txt", b"changed\n")
    second = store.take(root)

    assert held(store, second) == files_of(root)
    (change,) = compare(store, first, second)
    assert content(store, change.before_ref or "") == b"a\n"
    store.prune([first.id, second.id])
    assert held(store, second) == files_of(root)


def test_pruning_that_has_nothing_to_remove_waits_for_nobody(tmp_path: Path, store: SnapshotStore) -> None:
    snapshot = store.take(make_repository(tmp_path / "repo"))
    pruning = threading.Thread(target=store.prune, args=([snapshot.id],), daemon=True)

    with store.reading():
        pruning.start()
        pruning.join(DEADLINE_S / 10)
        is_over = not pruning.is_alive()

    assert is_over


# What is left out, and limits


def test_the_store_itself_is_never_taken(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    write(root / "a")
    write(root / "data/agentmon.db")
    store = SnapshotStore(root / "data/snapshots", left_out=[root / "data"])

    first = store.take(root)

    assert set(held(store, first)) == {"a"}
    assert store.take(root).id == first.id
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700


def test_a_large_file_is_known_by_its_hash_only(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo")
    store = SnapshotStore(tmp_path / "store", large_bytes=1_000)
    before = store.take(root)
    write(root / "large", bytes(2_000))
    first = store.take(root)
    assert store.take(root).id == first.id
    assert first.uncovered[0].path == "large"
    write(root / "large", b"1" * 2_000)
    second = store.take(root)

    (created,) = compare(store, before, first)
    (change,) = compare(store, first, second)
    blob = git(root, "hash-object", "--no-filters", "large").strip()
    assert (change.after_ref, change.can_undo, change.is_binary) == (blob, False, True)
    assert not created.can_undo
    with pytest.raises(NotFoundError):
        content(store, blob)
    write(root / "large", b"small again\n")
    assert held(store, store.take(root)) == files_of(root)


def test_too_many_files_are_told_and_named_ones_kept(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    for number in range(12):
        write(root / f"f{number}", b"%d\n" % number)
    store = SnapshotStore(tmp_path / "store", max_files=10)
    first = store.take(root)
    assert (first.limit, held(store, first)) == ("more than 10 files", {})

    assert store.keep(root, ["f3"]) == ()
    write(root / "f3", b"changed\n")
    write(root / "f4", b"changed\n")
    second = store.take(root)

    (change,) = compare(store, first, second)
    assert (change.path, change.change_type.value) == ("f3", "modify")
    assert content(store, change.before_ref or "") == b"3\n"


def test_too_many_bytes_at_one_time_are_told_and_not_kept(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    write(root / "first", b"a" * 600)
    store = SnapshotStore(tmp_path / "store", large_bytes=2_000, max_bytes=1_000)
    first = store.take(root)
    write(root / "large", b"b" * 3_000)
    second = store.take(root)
    for number in range(3):
        write(root / f"f{number}", b"c" * 500)
    third = store.take(root)

    assert (first.limit, second.limit, set(held(store, second))) == ("", "", {"first", "large"})
    assert third.limit
    assert set(held(store, third)) == {"first", "large"}


# Files that are named


def test_an_ignored_file_that_is_named_before_the_write_is_kept(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "repo", {".gitignore": b".env\nout/\n"})
    write(root / ".env", b"SECRET=1\n")
    write(root / "out/other", b"untouched\n")
    first = store.take(root)

    assert store.keep(root, [root / ".env", "out/new", "../outside"])[0].path == "../outside"
    write(root / ".env", b"SECRET=2\n")
    write(root / "out/new", b"new\n")
    second = store.take(root)

    changes = {change.path: change for change in compare(store, first, second)}
    assert {path: change.change_type.value for path, change in changes.items()} == {
        ".env": "modify",
        "out/new": "create",
    }
    assert content(store, changes[".env"].before_ref or "") == b"SECRET=1\n"
    write(root / ".env", b"SECRET=3\n")
    third = store.take(root)
    assert [change.path for change in compare(store, second, third)] == [".env"]
    (root / ".env").unlink()
    (gone,) = compare(store, third, store.take(root))
    assert gone.change_type.value == "delete"
    write(root / ".env", b"SECRET=4\n")
    assert ".env" in _paths(store, root)


def test_a_named_file_that_is_not_ignored_is_covered_by_the_snapshot_before(
    tmp_path: Path, store: SnapshotStore
) -> None:
    root = make_repository(tmp_path / "repo")
    first = store.take(root)
    write(root / "by shell")
    store.keep(root, ["by shell", "a.txt", "sub"])
    write(root / "by shell", b"more\n")

    (change,) = compare(store, first, store.take(root))
    assert change.change_type.value == "create"


# Costs, and removing


def test_an_unchanged_folder_costs_next_to_nothing(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "repo", {f"d{n % 10}/f{n}": b"%d\n" % n for n in range(1_000)})
    store.take(root)
    before = size_of(store.folder)

    first, second = store.take(root), store.take(root)

    assert first.id == second.id
    assert size_of(store.folder) - before <= 10_000
    assert before < 1_000_000


def test_what_differed_survives_the_repository(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "repo")
    first = store.take(root)
    write(root / "a.txt", b"second\n")
    git(root, "commit", "-q", "-a", "--amend", "-m", "other")
    second = store.take(root)
    git(root, "reflog", "expire", "--expire=now", "--all")
    git(root, "gc", "-q", "--prune=now")

    (change,) = compare(store, first, second)
    assert change.can_undo
    assert content(store, change.before_ref or "") == b"a\n"
    assert content(store, change.after_ref or "") == b"second\n"


def test_pruning_keeps_what_kept_snapshots_need(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "repo")
    plain = tmp_path / "plain"
    write(plain / "p", b"p\n")
    other = store.take(plain)
    taken = []
    for number in range(6):
        write(root / "a.txt", os.urandom(50_000))
        write(root / f"n{number}", b"%d\n" % number)
        taken.append((store.take(root), files_of(root)))
    before = fingerprint(root / ".git")
    size = size_of(store.folder)

    store.prune([taken[1][0].id, taken[3][0].id])

    assert size_of(store.folder) < size - 100_000
    for snapshot, files in (taken[1], taken[3]):
        assert held(store, store.get(snapshot.id)) == files
    for gone in (taken[0][0], taken[5][0], other):
        with pytest.raises(NotFoundError):
            store.get(gone.id)
    assert {change.path for change in compare(store, taken[1][0], taken[3][0])} == {"a.txt", "n2", "n3"}
    assert fingerprint(root / ".git") == before
    again = store.take(root)
    assert held(store, again) == files_of(root)
    assert again.id not in {snapshot.id for snapshot, _ in taken}
    assert held(store, store.take(plain)) == files_of(plain)


def test_a_damaged_index_is_made_anew(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "repo")
    store.take(root)
    (index,) = store.folder.glob("roots/*/indexes/*/index")
    index.write_bytes(b"DIRC nonsense")
    write(root / "new")

    assert held(store, store.take(root)) == files_of(root)
    (memory,) = store.folder.glob("roots/*/indexes/*/memory.json")
    memory.write_bytes(b"{")
    write(root / "newer")
    assert held(store, store.take(root)) == files_of(root)


def test_a_lock_and_unfinished_objects_are_cleaned(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "repo")
    store.take(root)
    (index,) = store.folder.glob("roots/*/indexes/*/index")
    left = [
        index.with_name("index.lock"),
        store.folder / "objects-sha1/pack/tmp_pack_1",
        index.parents[2] / "unfinished",
    ]
    for path in left:
        path.touch()
    write(root / "new")

    assert held(store, store.take(root)) == files_of(root)
    assert not any(path.exists() for path in left)


@pytest.mark.proof
def test_many_new_files_are_packed(tmp_path: Path, store: SnapshotStore) -> None:
    root = tmp_path / "plain"
    for number in range(4_000):
        write(root / f"d{number % 40}/f{number}", b"%d\n" % number)

    snapshot = store.take(root)

    assert len(list(store.folder.glob("objects-sha1/??/*"))) < 1_000
    assert len(store.git(snapshot).run("ls-tree", "-r", "--name-only", snapshot.tree).splitlines()) == 4_000


def test_a_type_changes_from_file_to_folder_and_link(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "repo")
    taken = [(store.take(root), files_of(root))]
    (root / "a.txt").unlink()
    write(root / "a.txt/inner", b"1\n")
    (root / "sub/b.txt").unlink()
    (root / "sub").rmdir()
    (root / "sub").symlink_to("a.txt")
    taken.append((store.take(root), files_of(root)))
    (root / "sub").unlink()
    write(root / "sub", b"a file\n")
    (root / "a.txt/inner").unlink()
    (root / "a.txt").rmdir()
    taken.append((store.take(root), files_of(root)))
    (root / "sub").unlink()
    os.mkfifo(root / "sub")
    taken.append((store.take(root), {}))

    for snapshot, files in taken:
        assert held(store, snapshot) == files


def test_a_tracked_folder_behind_a_link_is_gone_from_the_snapshot(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "repo")
    write(tmp_path / "elsewhere/b.txt", b"foreign\n")
    store.take(root)
    (root / "sub/b.txt").unlink()
    (root / "sub").rmdir()
    (root / "sub").symlink_to(tmp_path / "elsewhere")

    assert held(store, store.take(root)) == files_of(root)


def test_an_ignored_file_that_was_written_already_is_not_taken_for_what_it_was_before(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {".gitignore": b".env*\n"})
    write(root / ".env", b"before\n")
    write(root / ".env2", b"before\n")
    store = SnapshotStore(tmp_path / "store")
    before = store.take(root)
    announced_at = (root / ".env2").stat().st_ctime + 1

    assert store.keep(root, [".env"], since=announced_at) == ()
    assert [one.path for one in store.keep(root, [".env2"], since=announced_at - 2)] == [".env2"]
    write(root / ".env", b"after\n")
    write(root / ".env2", b"after\n")
    changes = {one.path: one for one in compare(store, before, store.take(root))}

    assert {path: one.can_undo for path, one in changes.items()} == {".env": True, ".env2": False}


def test_the_first_looks_at_several_folders_are_made_at_once(tmp_path: Path) -> None:
    for turn in range(4):
        roots = [tmp_path / f"{turn}-{number}" for number in range(8)]
        for root in roots:
            root.mkdir()
            (root / "a").write_text("1\n")
        store = SnapshotStore(tmp_path / f"store-{turn}")
        with ThreadPoolExecutor(len(roots)) as looking:
            taken = list(looking.map(store.take, roots))

        assert {snapshot.root for snapshot in taken} == set(roots)
