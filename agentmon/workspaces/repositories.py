"""The repository that a folder belongs to, found by its files: nothing of it is run, and nothing is written."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import SnapshotError
from agentmon.paths import find_workspace_root, is_repository
from agentmon.workspaces.git import Git, names

if TYPE_CHECKING:
    from collections.abc import Mapping

_ASKED: Final = r"^core\.(excludesfile|ignorecase|precomposeunicode|autocrlf)$|^extensions\.objectformat$"
_NOTHING_SET: Final = 1


@dataclass(frozen=True, slots=True)
class Repository:
    """Where the parts of a person's repository are."""

    git_dir: Path
    """Of this work tree."""
    common_dir: Path
    """Of all work trees together."""

    @property
    def index(self) -> Path:
        """The index of this work tree; an unborn one has none."""
        return self.git_dir / "index"

    @property
    def objects(self) -> Path:
        """The folder of objects."""
        return self.common_dir / "objects"

    @property
    def own_ignore_rules(self) -> Path:
        """The ignore rules that are not in the work tree."""
        return self.common_dir / "info" / "exclude"

    def has_commit(self) -> bool:
        """Return whether a commit is checked out, as its files say; true where they do not tell.

        Raises:
            OSError: They cannot be read.
        """
        head = (self.git_dir / "HEAD").read_bytes().strip()
        if not head.startswith(b"ref:") or (self.common_dir / "reftable").is_dir():
            return True
        ref = head.removeprefix(b"ref:").strip()
        if (self.common_dir / os.fsdecode(ref)).is_file():
            return True
        packed = self.common_dir / "packed-refs"
        return packed.is_file() and any(line.endswith(b" " + ref) for line in packed.read_bytes().splitlines())

    def head(self) -> str | None:
        """Return the commit that is checked out; None for a branch without any, or a HEAD that cannot be read."""
        git = Git(git_dir=self.git_dir)
        return git.run("rev-parse", "--verify", "--quiet", "HEAD", fine=(0, 1, 128)).decode().strip() or None


def find_root(folder: Path) -> Path:
    """Return the folder that a snapshot is of: the top of the repository, or the folder itself, without links.

    A folder that the repository around it ignores is none of its business.

    Raises:
        SnapshotError: There is no such folder.
    """
    if not folder.is_dir():
        raise SnapshotError(f"{folder} is not a folder", hint="It may have been moved or removed.")
    folder = folder.resolve()
    root = find_workspace_root(folder)
    if root == folder:
        return folder
    repository = find_repository(root)
    if repository is None:
        return folder
    git = Git(git_dir=repository.git_dir, work_tree=root, reads_settings_of_person=True)
    inner = os.path.relpath(folder, root)
    ignored = git.run("ls-files", "-z", "-o", "-i", "--directory", "--exclude-standard", "--", inner)
    return folder if any(folder.is_relative_to(root / name) for name in names(ignored)) else root


def find_repository(root: Path) -> Repository | None:
    """Return the repository whose work tree has its top in this folder, or None."""
    if not is_repository(root):
        return None
    git_dir = root / ".git"
    if git_dir.is_file():
        pointer = git_dir.read_bytes().removeprefix(b"gitdir:").strip()
        git_dir = root / os.fsdecode(pointer)
    if not (git_dir / "HEAD").is_file():
        return None
    git_dir = git_dir.resolve()
    try:
        common_dir = git_dir / os.fsdecode((git_dir / "commondir").read_bytes().strip())
    except FileNotFoundError:
        common_dir = git_dir
    return Repository(git_dir, common_dir.resolve())


def find_settings(root: Path) -> Mapping[str, str]:
    """Return what a person has set for a folder that matters to snapshots, by key in small letters."""
    repository = find_repository(root)
    # Without a repository the settings of the person alone count; the null device is no repository, and is not read.
    git = Git(git_dir=repository.git_dir if repository else Path(os.devnull), cwd=root, reads_settings_of_person=True)
    answer = git.run("config", "-z", "--get-regexp", _ASKED, fine=(0, _NOTHING_SET))
    found = dict(pair.partition("\n")[::2] for pair in names(answer))
    # Where git looks when nothing is set; it opens a home of "~" by itself only in what it is asked for by this type.
    config_home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    rules = found.get("core.excludesfile", f"{config_home}/git/ignore")
    found["core.excludesfile"] = str(Path(rules).expanduser())
    return found


def object_format(settings: Mapping[str, str]) -> str:
    """Return which hash a repository with these settings uses: ``sha1`` or ``sha256``."""
    return settings.get("extensions.objectformat", "sha1").lower()
