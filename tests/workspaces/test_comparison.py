"""What a comparison says, and patches that git takes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.changes import ChangeType
from agentmon.domain.errors import NotFoundError
from agentmon.workspaces.comparison import compare, content, patch
from tests.workspaces.folders import files_of, git, make_repository, write

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.domain.changes import FileChange
    from agentmon.workspaces.snapshots import Snapshot, SnapshotStore

_LINES = b"".join(b"line %d\n" % number for number in range(40))
_FILES = {
    "edited": _LINES,
    "moved": _LINES + b"moved\n",
    "gone": b"gone\n",
    "script": b"#!/bin/sh\n",
    "data.bin": bytes(range(256)) * 4,
    "becomes link": b"a file\n",
}


def _change_all(root: Path) -> None:
    write(root / "edited", _LINES.replace(b"line 7\n", b"line seven\n") + b"no end of line")
    (root / "moved").rename(root / "elsewhere")
    write(root / "elsewhere", _LINES + b"moved on\n")
    (root / "gone").unlink()
    (root / "script").chmod(0o755)
    write(root / "data.bin", bytes(range(255, -1, -1)) * 4)
    (root / "becomes link").unlink()
    (root / "becomes link").symlink_to("edited")
    write(root / "ne\nw\udcff", b"new\r\n")
    write(root / "empty", b"")


def _compared(root: Path, store: SnapshotStore) -> tuple[Snapshot, Snapshot, dict[str, FileChange]]:
    before = store.take(root)
    _change_all(root)
    after = store.take(root)
    return before, after, {change.path: change for change in compare(store, before, after)}


@pytest.mark.parametrize("is_repository", [True, False])
def test_each_kind_of_change_is_told(tmp_path: Path, store: SnapshotStore, is_repository: bool) -> None:
    root = make_repository(tmp_path / "root", _FILES)
    if not is_repository:
        shutil.rmtree(root / ".git")

    _, _, changes = _compared(root, store)

    assert {path: change.change_type for path, change in changes.items()} == {
        "edited": ChangeType.MODIFY,
        "elsewhere": ChangeType.RENAME,
        "gone": ChangeType.DELETE,
        "script": ChangeType.MODE,
        "data.bin": ChangeType.MODIFY,
        "becomes link": ChangeType.MODIFY,
        "ne\nw\udcff": ChangeType.CREATE,
        "empty": ChangeType.CREATE,
    }
    edited, link = changes["edited"], changes["becomes link"]
    assert (edited.lines_added, edited.lines_removed, edited.is_binary) == (2, 1, False)
    assert changes["elsewhere"].old_path == "moved"
    assert (changes["data.bin"].is_binary, changes["data.bin"].lines_added) == (True, 0)
    assert (link.before_mode, link.after_mode) == (0o100644, 0o120000)
    assert (changes["script"].before_mode, changes["script"].after_mode) == (0o100644, 0o100755)
    assert all(change.can_undo for change in changes.values())
    assert content(store, edited.before_ref or "") == _LINES
    assert content(store, link.after_ref or "") == b"edited"


def test_the_patch_is_taken_by_git_and_back(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "root", _FILES)
    copy = tmp_path / "copy"
    shutil.copytree(root, copy, symlinks=True)
    before_it = files_of(root)
    before, after, _ = _compared(root, store)

    whole = patch(store, before, after)
    git(copy, "apply", "-", data=whole)
    assert files_of(copy) == files_of(root)
    git(copy, "apply", "-R", "-", data=whole)
    assert files_of(copy) == before_it
    git(copy, "apply", "-", data=patch(store, before, after, ["elsewhere", "data.bin"]))
    assert {"elsewhere", "edited", "gone"} <= files_of(copy).keys()
    assert "moved" not in files_of(copy)
    assert patch(store, before, before) == b""
    assert patch(store, before, after, ["no such path"]) == b""


def test_settings_of_the_person_do_not_shape_the_patch(tmp_path: Path, store: SnapshotStore) -> None:
    root = make_repository(tmp_path / "root", _FILES)
    for words in (["diff.noprefix", "true"], ["color.ui", "always"], ["diff.algorithm", "patience"]):
        git(root, "config", *words)
        git(root, "config", "--global", *words)
    write(root / ".gitattributes", b"edited -diff\n*.bin diff=hex\n")
    git(root, "config", "diff.hex.textconv", "od -c")
    before, after, changes = _compared(root, store)

    assert not changes["edited"].is_binary
    assert b"\n-line 7\n+line seven\n" in patch(store, before, after, ["edited"])
    assert b"\x1b" not in patch(store, before, after)


def test_two_worktrees_can_be_compared(tmp_path: Path, store: SnapshotStore) -> None:
    main = make_repository(tmp_path / "main", _FILES)
    git(main, "worktree", "add", "-q", str(tmp_path / "one"))
    git(main, "worktree", "add", "-q", str(tmp_path / "two"))
    write(tmp_path / "one/edited", b"one\n")
    git(tmp_path / "two", "mv", "gone", "kept")
    git(tmp_path / "two", "commit", "-q", "-m", "two")

    changes = compare(store, store.take(tmp_path / "one"), store.take(tmp_path / "two"))

    assert {change.path: change.change_type.value for change in changes} == {"edited": "modify", "kept": "rename"}


def test_a_content_that_was_never_kept_is_told(store: SnapshotStore) -> None:
    with pytest.raises(NotFoundError):
        content(store, "1" * 40)
