"""The repository in which all works, as its person left it; and of any, the worktrees and undos that agentmon makes."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.chaos.evidence import Evidence, Place

MADE: Final = 40
"""How many files a run of the kind ``changing`` makes."""
_FILES: Final = 120
SETUP: Final = "setup.txt"
"""What the set-up of a worktree writes, twice; ignored."""
_WHOLE: Final = "whole\n"
_SET_UP: Final = f"""[worktree]
setup = "printf half >{SETUP}; echo setup of $AGENTMON_TASK; sleep 0.2; echo whole >{SETUP}"
"""
OWN_REFS: Final = ("refs/heads/agentmon/", "refs/agentmon/")
PERSON: Final = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")


def make_repository(place: Place) -> None:
    """Make the repository, with something staged and something stashed, and note what must not change in it."""
    project = place.project
    project.mkdir(mode=0o700, exist_ok=True)
    git(project, "init", "-q", "-b", "main")
    ignore(project)
    (project / ".agentmon").mkdir()
    (project / ".agentmon/agents.toml").write_text(_SET_UP, encoding="ascii")
    for number in range(_FILES):
        path = project / f"part{number % 6}" / f"file{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n", encoding="ascii")
    git(project, "add", "-A")
    git(project, *PERSON, "commit", "-q", "-m", "first")
    git(project, "tag", "v1")
    (project / "part0/file0.txt").write_text("stashed\n", encoding="ascii")
    git(project, *PERSON, "stash", "push", "-q")
    (project / "part1/file1.txt").write_text("staged\n", encoding="ascii")
    git(project, "add", "part1/file1.txt")
    git(project, "rm", "-q", "--cached", "part2/file2.txt")
    place.repository_facts.write_text(json.dumps(_facts(project)), encoding="utf-8")


def ignore(repository: Path) -> None:
    """Let git ignore what is made beside the work; what the set-up writes is in the folder of the person, too."""
    (repository / ".git/info/exclude").write_text(f"/{SETUP}\n__pycache__\n/.agentmon\n", encoding="ascii")
    (repository / SETUP).write_text(_WHOLE, encoding="ascii")


def repository_faults(evidence: Evidence) -> Iterator[str]:
    """Yield what is not as the person left it: objects, index, HEAD, settings, refs, stash."""
    project = evidence.place.project
    before = json.loads(evidence.place.repository_facts.read_text(encoding="utf-8"))
    for name, fact in _facts(project).items():
        if fact != before[name]:
            yield f"its {name} changed from {str(before[name])[:200]} to {str(fact)[:200]}"
    yield from fsck_faults(project)
    yield from left_locks(evidence, project)


def fsck_faults(repository: Path) -> Iterator[str]:
    """Yield what git itself finds wrong in a repository."""
    fsck = git(repository, "fsck", "--strict", "--no-dangling", check=False)
    if fsck:
        yield f"git fsck: {fsck[:500]}"


def left_locks(evidence: Evidence, repository: Path) -> Iterator[str]:
    """Yield the locks that are left, but for those of a program whose own commit was cut off."""
    with closing(sqlite3.connect(evidence.place.database, timeout=10)) as connection:
        branches = dict(
            connection.execute(
                "SELECT e.id, w.branch FROM executions e JOIN worktrees w ON w.id = e.worktree_id"
            ).fetchall()
        )
        paths = dict(connection.execute("SELECT branch, path FROM worktrees").fetchall())
    cut_off = {branches.get(path.stem, "") for path in evidence.place.ledgers.glob("*.commits")}
    own = {repository / ".git/refs/heads" / f"{branch}.lock" for branch in cut_off}
    own_folders = {Path(paths[branch]).name for branch in cut_off & paths.keys()}
    git_dir = repository / ".git"
    for path in sorted({*git_dir.rglob("*.lock"), *git_dir.rglob("agentmon-merge-*")}):
        if path not in own and path.parent.name not in own_folders:
            yield f"{path} is left"


def undo_faults(evidence: Evidence) -> Iterator[str]:
    """Yield each undo that is done in part, or not as the audit trail has it."""
    for journal in evidence.place.home.glob("snapshots/roots/*/undo"):
        yield f"{journal} is left of one"
    for folder in (evidence.place.project, evidence.place.trunk, *_trees(evidence)):
        for path in folder.rglob(".agentmon-undo-*"):
            yield f"{path} is left of one"
    statement = (
        "SELECT e.id, t.number, w.path, (SELECT count(*) FROM task_events v WHERE v.task_id = t.id "
        "AND v.event_type = 'changes_undone') FROM executions e JOIN tasks t ON t.id = e.task_id "
        "JOIN worktrees w ON w.id = e.worktree_id WHERE e.status = 'succeeded' AND w.status = 'ready' "
        "AND e.session_id IS NULL "
        # What an undo of several runs was about is not told here.
        "AND 1 = (SELECT count(*) FROM executions x WHERE x.task_id = t.id)"
    )
    with closing(sqlite3.connect(evidence.place.database, timeout=10)) as connection:
        for execution_id, number, tree, undone in connection.execute(statement).fetchall():
            made = Path(tree) / "made" / execution_id
            count = len(list(made.iterdir())) if made.is_dir() else 0
            if count != (0 if undone % 2 else MADE):
                yield f"#{number}: {count} of {MADE} files are there, and the audit trail has {undone} undos and redos"


def worktree_faults(evidence: Evidence) -> Iterator[str]:
    """Yield each worktree that is there without a row, or the other way round, for files, set-up, git and branch."""
    statement = "SELECT path, branch, status, source FROM worktrees WHERE path IS NOT NULL"
    with closing(sqlite3.connect(evidence.place.database, timeout=10)) as connection:
        rows = connection.execute(statement).fetchall()
    repositories = (evidence.place.project, evidence.place.trunk)
    branches = {
        (str(one), name)
        for one in repositories
        for name in git(one, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/").split()
    }
    listed = [line for one in repositories for line in git(one, "worktree", "list", "--porcelain", "-z").split("\0")]
    registered = Counter(line.removeprefix("worktree ") for line in listed if line.startswith("worktree "))
    living = {path for path, _, status, _ in rows if status != "removed"}
    for path, branch, status, source in rows:
        known = Path(path).is_dir(), registered[path], (source, branch) in branches
        if status == "ready" and known != (True, 1, True):
            yield f"{path} is ready: its folder, its record of git and its branch are {known}"
        elif status == "ready" and Path(path, SETUP).read_text() != _WHOLE:
            yield f"{path} is ready, and its set-up did not come to its end"
        elif status == "making":
            yield f"{path} is still being made"
        elif status == "removed" and path not in living and (known[0] or known[1]):
            yield f"{path} was removed: its folder and its record of git are {known[:2]}"
    for path in registered.keys() - living - {str(one) for one in repositories}:
        yield f"git knows {path}, which is nobody's"
    for tree in _trees(evidence):
        if str(tree) not in living:
            yield f"{tree} is nobody's"
    for left in evidence.place.home.glob("worktrees/.removing/*"):
        yield f"{left} is half removed"


def _trees(evidence: Evidence) -> list[Path]:
    return [
        path for path in evidence.place.home.glob("worktrees/*/*") if path.is_dir() and ".removing" not in path.parts
    ]


def _facts(project: Path) -> dict[str, object]:
    git_dir = project / ".git"
    refs = [line for line in git(project, "show-ref", "--head").splitlines() if line.split()[1] not in {"refs/stash"}]
    objects = sorted(str(path.relative_to(git_dir)) for path in (git_dir / "objects").rglob("*") if path.is_file())
    return {
        "index": hashlib.sha256((git_dir / "index").read_bytes()).hexdigest(),
        "HEAD": (git_dir / "HEAD").read_text(),
        "settings": (git_dir / "config").read_text(),
        "refs": [line for line in refs if not line.split()[1].startswith(OWN_REFS)],
        "stash": git(project, "stash", "list", "--format=%H %gd"),
        "objects": hashlib.sha256("\n".join(objects).encode()).hexdigest(),
    }


def git(folder: Path, *words: str, check: bool = True) -> str:
    """Return what git prints; without ``check`` also what it says beside it."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_OPTIONAL_LOCKS": "0",
    }
    errors = None if check else subprocess.STDOUT
    done = subprocess.run(
        ["git", *words], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors, check=check
    )
    return os.fsdecode(done.stdout)
