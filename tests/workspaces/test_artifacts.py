"""Files that a run wrote outside of version control are found by the names that its tool calls gave them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from typing import TYPE_CHECKING

from agentmon.workspaces import artifacts
from agentmon.workspaces.artifacts import find_artifacts, sha256_of, size_of
from tests.workspaces.folders import make_repository, write

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_files_that_git_does_not_keep_are_found_as_far_as_calls_name_them(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "root", {".gitignore": b"dist/\n*.log\n", "kept.log": b"tracked\n", "a": b"a\n"})
    write(root / "sub" / "b", b"b\n")
    old = tmp_path / "old"
    old.touch()
    past = time.time() + 100
    for name in ("dist/out", "dist/unnamed", "sub/more.log", "new"):
        write(root / name, b"made\n")
    write(tmp_path / "elsewhere", b"made\n")
    (root / "dist" / "link").symlink_to("out")
    targets = ["dist/out", f"a, new, {root}/sub/more.log", "../elsewhere", "dist/link", "dist", "gone", "a\0b", ""]

    found = find_artifacts(root, targets, since=time.time() - 60)
    assert found == tuple(map(str, (tmp_path / "elsewhere", root / "dist" / "out", root / "sub" / "more.log")))
    assert find_artifacts(root / "sub", ["more.log", "../dist/out"], since=0.0) == found[1:]
    assert find_artifacts(root, targets, since=past) == ()


def test_in_a_folder_without_git_all_is_recorded_as_changes(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    write(root / "made", b"made\n")
    write(tmp_path / "elsewhere", b"made\n")
    assert find_artifacts(root, ["made", "../elsewhere"], since=0.0) == (str(tmp_path / "elsewhere"),)


def test_a_repository_in_the_folder_says_itself_what_it_ignores(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "root", {"a": b"a\n"})
    make_repository(root / "inner", {".gitignore": b"*.log\n"})
    git = ("git", "-C", str(root), "-c", "protocol.file.allow=always")
    subprocess.run([*git, "submodule", "--quiet", "add", "./inner", "sub"], check=True)
    for name in ("root/inner/made.log", "root/sub/made.log", "root/sub/made", "elsewhere"):
        write(tmp_path / name, b"made\n")

    found = find_artifacts(root, ["inner/made.log", "sub/made.log", "sub/made", "../elsewhere"], since=0.0)

    assert found == tuple(str(tmp_path / name) for name in ("elsewhere", "root/inner/made.log", "root/sub/made.log"))


def test_size_and_hash_are_those_of_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"made\n")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(file)
    assert (size_of(str(file)), sha256_of(str(file))) == (5, hashlib.sha256(b"made\n").hexdigest())
    others = [str(tmp_path / name) for name in ("gone", "pipe", "link")]
    assert [(size_of(one), sha256_of(one)) for one in others] == 3 * [(None, None)]
    monkeypatch.setattr(artifacts, "_MOST_HASHED", 4)
    assert (size_of(str(file)), sha256_of(str(file))) == (5, None)
