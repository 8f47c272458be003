"""Folders and repositories for tests, and what is in them."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.workspaces.files import kept_mode

if TYPE_CHECKING:
    from agentmon.workspaces.snapshots import Snapshot, SnapshotStore

Files = dict[str, tuple[int, bytes]]
"""Mode and content by path; the content of a link is where it points to."""


def git(folder: Path, *words: str, data: bytes | None = None) -> str:
    """Run git as a person does, and return what it prints."""
    command = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false", *words]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_ALLOW_PROTOCOL": "file"}
    done = subprocess.run(command, cwd=folder, input=data, capture_output=True, check=False, env=environment)
    assert done.returncode == 0, (words, done.stderr)
    return os.fsdecode(done.stdout)


def make_repository(folder: Path, files: dict[str, bytes] | None = None, *words: str) -> Path:
    """Make a repository with one commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main", *words)
    for path, content in (files or {"a.txt": b"a\n", "sub/b.txt": b"b\n"}).items():
        write(folder / path, content)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def write(path: Path, content: bytes = b"x\n", *, executable: bool = False) -> None:
    """Write a file and the folders around it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o755 if executable else 0o644)


def files_of(root: Path) -> Files:
    """Return all files and links below a folder, but for what is in ``.git``."""
    found: Files = {}
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name != ".git"]
        links = [name for name in inner if (Path(folder) / name).is_symlink()]
        for name in (*names, *links):
            path = Path(folder) / name
            if name == ".git":
                continue
            content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(root))] = kept_mode(path.lstat().st_mode), content
    return found


def held(store: SnapshotStore, snapshot: Snapshot) -> Files:
    """Return what a snapshot has, read from the objects."""
    runner = store.git(snapshot)
    found: Files = {}
    for line in runner.run("ls-tree", "-r", "-z", "--full-tree", snapshot.tree).split(b"\0")[:-1]:
        facts, _, path = line.partition(b"\t")
        mode, _, ref = facts.decode().split(" ")
        content = runner.run("cat-file", "blob", ref) if mode != "160000" else ref.encode()
        found[os.fsdecode(path)] = snapshot.mode_of(os.fsdecode(path), int(mode, 8)), content
    return found


def fingerprint(folder: Path) -> dict[str, tuple[int, str]]:
    """Return mode and hash of each file and folder below a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = b"" if path.is_dir() else os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        found[str(path.relative_to(folder))] = path.lstat().st_mode, hashlib.sha256(content).hexdigest()
    return found


def size_of(folder: Path) -> int:
    """Return how many bytes the files below a folder have."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
