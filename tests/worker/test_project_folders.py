from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from agentmon.worker.project_folders import ProjectFolders, find_repository
from tests.workspaces.worktree_place import a_repository


def git(folder: Path, *words: str) -> None:
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", "-C", str(folder), *author, *words], check=True, capture_output=True)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with a folder in it."""
    if shutil.which("git") is None:
        pytest.skip("this machine has no git")
    repository = tmp_path.resolve() / "shop"
    (repository / "src" / "cart").mkdir(parents=True)
    git(repository, "init", "-q")
    return repository


def test_a_folder_belongs_to_the_repository_around_it(shop: Path) -> None:
    projects = ProjectFolders()

    assert projects.project_of(str(shop / "src" / "cart")) == str(shop)
    assert projects.project_of(str(shop)) == str(shop)


def test_a_worktree_belongs_to_the_repository_that_it_was_made_from(shop: Path, tmp_path: Path) -> None:
    git(shop, "commit", "-q", "--allow-empty", "-m", "first")
    git(shop, "worktree", "add", "-q", str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere" / "src").mkdir()

    assert ProjectFolders().project_of(str(tmp_path / "elsewhere" / "src")) == str(shop)


def test_a_submodule_is_a_project_of_its_own(shop: Path) -> None:
    part = shop / "part"
    part.mkdir()
    (part / ".git").write_text(f"gitdir: {shop}/.git/modules/part\n")

    assert ProjectFolders().project_of(str(part)) == str(part)


@pytest.mark.parametrize("folder", ["/no/such/folder", "relative/folder", "C:\\work", "/bad\0name", "/" + "x" * 5000])
def test_what_lies_in_no_repository_is_a_project_of_its_own(folder: str) -> None:
    assert ProjectFolders().project_of(folder) == folder


def test_a_folder_that_is_a_mark_of_nothing_known_counts_as_a_repository(tmp_path: Path) -> None:
    odd = tmp_path / "odd"
    odd.mkdir()
    (odd / ".git").write_bytes(b"\xff\xfe")

    assert ProjectFolders().project_of(str(odd)) == str(odd)
    assert ProjectFolders().project_of(str(Path(odd, "deeper", "still"))) == str(odd)


def test_a_repository_around_a_folder_counts_once_it_has_a_commit(tmp_path: Path) -> None:
    unborn, source = tmp_path / "unborn", a_repository(tmp_path / "api", src__a="1")
    unborn.mkdir()
    git(unborn, "init", "--quiet")
    git(source, "worktree", "add", "--quiet", str(tmp_path / "linked"))
    (tmp_path / "link").symlink_to(source / "src")

    assert find_repository(str(unborn)) is None
    assert find_repository(str(tmp_path)) is None
    assert find_repository(str(tmp_path / "gone")) is None
    assert find_repository(str(tmp_path / "link")) == str(source)
    git(source, "pack-refs", "--all")
    assert find_repository(str(source)) == str(source)
    assert find_repository(str(tmp_path / "linked")) == str(tmp_path / "linked")
    git(source, "switch", "--quiet", "--detach")
    assert find_repository(str(source)) == str(source)
