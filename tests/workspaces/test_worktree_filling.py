"""What comes along into a new worktree: submodules from beside it, and the ignored files that are named."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.workspaces import worktree_filling, worktrees
from tests.workspaces.worktree_place import WorktreePlace, a_repository, commit, git, write

if TYPE_CHECKING:
    from agentmon.domain.worktrees import Worktree


@pytest.fixture
def place(tmp_path: Path) -> WorktreePlace:
    return WorktreePlace(tmp_path / "data" / "worktrees")


def _filled(place: WorktreePlace, source: Path) -> Worktree:
    made = place.made(source)
    with worktrees.held(made) as lock:
        worktree_filling.fill_submodules(Path(made.path), source, lock=lock, say=place.said.append)
    return made


def test_nested_submodules_are_filled_from_beside_it_with_their_origins_gone(
    tmp_path: Path, place: WorktreePlace
) -> None:
    inner = a_repository(tmp_path / "inner", deep="1")
    library = a_repository(tmp_path / "library", shallow="2")
    git(library, "submodule", "--quiet", "add", str(inner), "inner")
    commit(library, "nested")
    source = a_repository(tmp_path / "api")
    git(source, "submodule", "--quiet", "add", str(library), "lib")
    git(source, "submodule", "--quiet", "update", "--init", "--recursive")
    commit(source, "with library")
    shutil.rmtree(inner)
    shutil.rmtree(library)

    made = _filled(place, source)

    tree = Path(made.path)
    assert (tree / "lib" / "shallow").read_text() == "2"
    assert (tree / "lib" / "inner" / "deep").read_text() == "1"
    assert git(tree / "lib", "config", "remote.origin.url") == str(library)
    assert git(tree, "submodule", "status") == git(source, "submodule", "status")
    assert worktrees.find_losses(made) == ()
    assert git(source, "status", "--porcelain") == ""


def test_a_submodule_that_is_empty_beside_it_is_said_and_holds_up_nothing(tmp_path: Path, place: WorktreePlace) -> None:
    source = a_repository(tmp_path / "api")
    for name in ("one", "two"):
        git(source, "submodule", "--quiet", "add", str(a_repository(tmp_path / name)), name)
    commit(source, "with libraries")
    git(source, "submodule", "--quiet", "deinit", "--force", "one")

    made = _filled(place, source)

    assert [line for line in place.said if line.startswith("warning") and "one" in line]
    assert not list(Path(made.path, "one").iterdir())
    assert Path(made.path, "two", "readme").is_file()


def test_only_what_is_named_and_ignored_comes_along_byte_for_byte(tmp_path: Path, place: WorktreePlace) -> None:
    rules = ".env*\n*.key\nbig/\nlib/\n"
    source = a_repository(
        tmp_path / "api",
        **{
            ".gitignore": rules,
            ".worktreeinclude": "# needed\n.env*\n!.env.old\nbig/\nlink: lib/\nopen\nreadme\n",
            "readme": "1",
        },
    )
    write(
        source,
        **{".env": "A=1", ".env.old": "x", "own.key": "k", "open": "not ignored", "big__a__b": "2", "lib__x": "3"},
    )
    (source / "big" / "run").write_bytes(b"#!/bin/sh\n")
    (source / "big" / "run").chmod(0o755)
    (source / "big" / "link").symlink_to("a/b")
    os.mkfifo(source / "big" / "pipe")
    made = place.made(source)
    tree = Path(made.path)

    worktree_filling.bring_along(tree, source, say=place.said.append)

    assert (tree / ".env").read_text() == "A=1"
    assert (tree / "big" / "a" / "b").read_text() == "2"
    assert os.access(tree / "big" / "run", os.X_OK)
    assert (tree / "big" / "link").readlink() == Path("a/b")
    assert (tree / "lib").readlink() == source / "lib"
    assert not any((tree / name).exists() for name in (".env.old", "own.key", "open", "big/pipe"))
    assert worktrees.find_losses(made) == () or {loss.names for loss in worktrees.find_losses(made)} == {("big/",)}
    (tree / ".env").write_text("changed")
    worktree_filling.bring_along(tree, source, say=place.said.append)
    assert (tree / ".env").read_text() == "changed"


@pytest.mark.parametrize("rule", ["out/", "link: out/deep/"])
def test_nothing_is_put_out_of_the_working_tree_by_way_of_a_link(
    tmp_path: Path, place: WorktreePlace, rule: str
) -> None:
    source = a_repository(tmp_path / "api", **{".gitignore": "out/\n", ".worktreeinclude": f"{rule}\n"})
    write(source, out__deep__secret="1")
    made = place.made(source)
    outside = tmp_path / "outside"
    outside.mkdir()
    Path(made.path, "out").symlink_to(outside)

    worktree_filling.bring_along(Path(made.path), source, say=place.said.append)

    assert list(outside.iterdir()) == []


def test_a_file_that_does_not_fit_on_the_disk_is_said_and_not_left_there_in_part(
    tmp_path: Path, place: WorktreePlace
) -> None:
    source = a_repository(tmp_path / "api", **{".gitignore": "big\nsmall\n", ".worktreeinclude": "big\nsmall\n"})
    write(source, big="1" * 3_000_000, small="1")
    made = place.made(source)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, before[1]))
    try:
        worktree_filling.bring_along(Path(made.path), source, say=place.said.append)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert not Path(made.path, "big").exists()
    assert Path(made.path, "small").is_file()
    assert [line for line in place.said if line.startswith("warning") and "big" in line]
