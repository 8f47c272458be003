"""What a new worktree needs beside its commit: submodules, and ignored files that come along."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import GitError
from agentmon.domain.plain_text import plain_line
from agentmon.domain.written_text import text_of
from agentmon.workspaces.git import Git, joined, names
from agentmon.workspaces.repositories import find_repository

if TYPE_CHECKING:
    from collections.abc import Callable

INCLUDE_FILE: Final = ".worktreeinclude"
_LINK: Final = "link:"
_CLONE: Final = 0x40049409
"""FICLONE of linux/fs.h."""
_GITLINK: Final = b"160000"
_DEEPEST: Final = 10
_MOST_WARNINGS: Final = 20


def fill_submodules(tree: Path, beside: Path, *, lock: int, say: Callable[[str], None], depth: int = 0) -> None:
    """Fill the submodules that are filled in the folder beside it, from there and without a network.

    One that cannot be filled is said, and keeps nothing from the run.
    """
    repository = find_repository(tree)
    if repository is None or depth > _DEEPEST or not (tree / ".gitmodules").is_file():
        return
    git = Git(git_dir=repository.git_dir, work_tree=tree, reads_settings_of_person=True, held_locks=(lock,))
    for name, path in _submodules(git, tree):
        filled = find_repository(beside / path)
        if filled is None:
            say(
                f"warning: the submodule {path} is empty, as in {beside}; `git submodule update --init {path}` fills it"
            )
            continue
        settings = {
            f"submodule.{name}.url": str(filled.common_dir),
            f"submodule.{name}.update": "checkout",
            "protocol.file.allow": "always",
        }
        try:
            replace(git, settings=settings).run("submodule", "--quiet", "update", "--init", "--no-fetch", "--", path)
        except GitError as error:
            say(f"warning: the submodule {path} is not filled: {error}")
            continue
        # What is fetched later comes from where it came from before.
        url = Git(git_dir=filled.git_dir, reads_settings_of_person=True).run(
            "config", "--get", "remote.origin.url", fine=(0, 1)
        )
        made = find_repository(tree / path)
        if made is not None and url.strip():
            Git(git_dir=made.git_dir).run("config", "remote.origin.url", os.fsdecode(url.strip()))
        say(f"submodule {path}")
        fill_submodules(tree / path, beside / path, lock=lock, say=say, depth=depth + 1)


def _submodules(git: Git, tree: Path) -> list[tuple[str, str]]:
    """Return name and path of each submodule of a tree that its commit has."""
    listed = git.run("ls-files", "-z", "--stage").split(b"\0")
    paths = {os.fsdecode(line.partition(b"\t")[2]) for line in listed if line.startswith(_GITLINK)}
    told = git.run(
        "config", "-z", "--file", str(tree / ".gitmodules"), "--get-regexp", r"^submodule\..*\.path$", fine=(0, 1)
    )
    found = []
    for pair in names(told):
        key, _, path = pair.partition("\n")
        if path in paths and not path.startswith(("/", "-")) and ".." not in Path(path).parts:
            found.append((key.removeprefix("submodule.").removesuffix(".path"), path))
    return found


def bring_along(tree: Path, beside: Path, *, say: Callable[[str], None]) -> None:
    """Copy the ignored files that ``.worktreeinclude`` names, in the form of ``.gitignore``; ``link:`` links.

    Only what git ignores comes along, and nothing that is there already is written over.

    Raises:
        GitError: git cannot be asked.
        OSError: The file cannot be read.
    """
    chosen = beside / INCLUDE_FILE
    if not chosen.is_file():
        return
    try:
        text = text_of(chosen.read_bytes(), errors="surrogateescape")
    except ValueError as error:
        say(f"warning: {INCLUDE_FILE} is left out: {error}")
        return
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    copied = [line for line in lines if not line.startswith(_LINK)]
    linked = [line.removeprefix(_LINK).strip() for line in lines if line.startswith(_LINK)]
    warnings: list[str] = []
    counts = [0, 0]
    for name in _ignored(beside, linked, whole_folders=True):
        counts[1] += _link(beside, tree, name.rstrip("/"), warnings)
    for name in _ignored(beside, copied, whole_folders=False):
        counts[0] += _copy(beside, tree, name, warnings)
    for warning in warnings[:_MOST_WARNINGS]:
        say(f"warning: {warning}")
    if any(counts):
        say(f"{INCLUDE_FILE}: {counts[0]} files copied, {counts[1]} linked")


def _ignored(folder: Path, globs: list[str], *, whole_folders: bool) -> list[str]:
    """Return the paths in a folder that the globs name and git ignores."""
    repository = find_repository(folder)
    if not globs or repository is None:
        return []
    git = Git(git_dir=repository.git_dir, work_tree=folder, reads_settings_of_person=True, takes_paths_literally=False)
    with NamedTemporaryFile(prefix="agentmon-") as rules:
        rules.write("\n".join(globs).encode("utf-8", "surrogateescape") + b"\n")
        rules.flush()
        words = ["ls-files", "-z", "--others", "--ignored", f"--exclude-from={rules.name}"]
        found = names(git.run(*words, *(["--directory"] if whole_folders else [])))
    return names(git.run("check-ignore", "-z", "--stdin", data=joined(found), fine=(0, 1))) if found else []


def _copy(beside: Path, tree: Path, name: str, warnings: list[str]) -> int:
    source, target = beside / name, tree / name
    try:
        if not _makes_room(target, tree):
            return 0
        status = source.lstat()
        if stat.S_ISLNK(status.st_mode):
            target.symlink_to(source.readlink())
        elif stat.S_ISREG(status.st_mode):
            _copy_file(source, target)
        else:
            warnings.append(f"{plain_line(name)} is no file, and was not copied")
            return 0
    except OSError as error:
        warnings.append(f"{plain_line(name)} was not copied: {error.strerror or error}")
        return 0
    return 1


def _copy_file(source: Path, target: Path) -> None:
    with source.open("rb") as read, target.open("xb") as written:
        try:
            try:
                fcntl.ioctl(written.fileno(), _CLONE, read.fileno())
            except OSError:
                shutil.copyfileobj(read, written, 1024 * 1024)
            shutil.copystat(source, target)
        except OSError:
            # Half a file looks whole to who reads it.
            target.unlink()
            raise


def _link(beside: Path, tree: Path, name: str, warnings: list[str]) -> int:
    try:
        if not _makes_room(tree / name, tree):
            return 0
        (tree / name).symlink_to(beside / name)
    except OSError as error:
        warnings.append(f"{plain_line(name)} was not linked: {error.strerror or error}")
        return 0
    return 1


def _makes_room(target: Path, tree: Path) -> bool:
    """Make the folder for what is not there yet; return False where it is, or where a link leads out of the tree."""
    if os.path.lexists(target) or not target.parent.resolve().is_relative_to(tree.resolve()):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    return True
