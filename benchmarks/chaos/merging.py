"""The repository into which branches of tasks are merged, with local changes of its person, and what holds of it."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.chaos.repository import (
    MADE,
    OWN_REFS,
    fsck_faults,
    git,
    ignore,
    left_locks,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.chaos.evidence import Evidence, Place

SHARED: Final = 6
"""How many files branches change at the same place, so that some conflict."""
DIARY: Final = "diary.txt"
"""What the person commits now and then."""
BASES: Final = ("main", "release")
"""The branches into which others are merged; the second one is checked out nowhere."""
_CART: Final = "def discounted(price, percent):\n    return price * (100 - percent) // 100\n"
_CART_TEST: Final = "import unittest\n\n\nclass DiscountTest(unittest.TestCase):\n    def test_it(self): ...\n"
SHOP: Final = {"shop/cart.py": _CART, "tests/__init__.py": "", "tests/test_discount.py": _CART_TEST}
"""What the conversations work on."""
_EVENTS: Final = (
    "SELECT v.event_type, v.payload, t.id, t.number FROM task_events v JOIN tasks t ON t.id = v.task_id "
    "WHERE v.event_type IN ('branch_merged', 'merge_undone') ORDER BY v.id"
)


class _Event(NamedTuple):
    """A merge, or one that was taken back, as the trail has it."""

    kind: str
    said: dict[str, str]
    task_id: str
    number: int


def make_trunk(place: Place) -> None:
    """Make the repository, with local changes of all kinds, and note what of it must stay."""
    trunk = place.trunk
    trunk.mkdir(mode=0o700)
    git(trunk, "init", "-q", "-b", BASES[0])
    for name, value in (("user.name", "Ann"), ("user.email", "ann@example.org")):
        git(trunk, "config", name, value)
    shared = {f"shared/{number}.txt": "first\nlast\n" for number in range(SHARED)}
    local = {f"mine/{name}.txt": f"{name}\n" for name in ("staged", "changed", "gone")}
    for name, text in {**SHOP, **shared, **local, DIARY: "\n"}.items():
        path = trunk / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="ascii")
    ignore(trunk)
    git(trunk, "add", "-A")
    git(trunk, "commit", "-q", "-m", "first")
    git(trunk, "branch", BASES[1])
    git(trunk, "branch", "aside")
    git(trunk, "tag", "v1")
    (trunk / "mine/staged.txt").write_text("changed\n", encoding="ascii")
    git(trunk, "add", "mine/staged.txt")
    (trunk / "mine/changed.txt").write_text("changed here\n", encoding="ascii")
    (trunk / "mine/gone.txt").unlink()
    (trunk / "mine/untracked.txt").write_text("untracked\n", encoding="ascii")
    facts = _facts(trunk) | {"first": git(trunk, "rev-parse", "HEAD").strip()}
    place.trunk_facts.write_text(json.dumps(facts), encoding="utf-8")


def trunk_faults(evidence: Evidence) -> Iterator[str]:
    """Yield what is not as the person left it but for merges, and what a merge left behind."""
    trunk = evidence.place.trunk
    before = json.loads(evidence.place.trunk_facts.read_text(encoding="utf-8"))
    for name, fact in _facts(trunk).items():
        if fact != before[name]:
            yield f"its {name} changed from {before[name]!r} to {fact!r}"
    yield from fsck_faults(trunk)
    yield from left_locks(evidence, trunk)


def merge_faults(evidence: Evidence) -> Iterator[str]:
    """Yield each merge that is done in part, that a branch has and the trail has not, or the other way round."""
    for path in evidence.place.home.glob("merges/*"):
        if path.name != "lock":
            yield f"{path} is left of one"
    with closing(sqlite3.connect(evidence.place.database, timeout=10)) as connection:
        events = [_Event(kind, json.loads(said), *task) for kind, said, *task in connection.execute(_EVENTS)]
        runs = connection.execute("SELECT id, task_id, status FROM executions").fetchall()
        noted = connection.execute(
            "SELECT path, merged_commit, reverted_by FROM worktrees WHERE merged_commit IS NOT NULL"
        ).fetchall()
    yield from _branch_faults(evidence, events, runs)
    known = {(event.kind, event.said["commit"]) for event in events}
    for path, commit, reverted_by in noted:
        told = {("branch_merged", commit)} | ({("merge_undone", reverted_by)} if reverted_by else set())
        if told - known:
            yield f"{path} is noted as merged by {commit} and taken back by {reverted_by}; the trail has another tale"
    done = Counter((event.kind, event.number) for event in events)
    for (kind, number), count in evidence.actions.accepted_merges.items():
        if done[kind, number] < count:
            yield f"#{number}: clients said {count} times that it is done ({kind}), the trail has {done[kind, number]}"


def _branch_faults(evidence: Evidence, events: list[_Event], runs: list[tuple[str, str, str]]) -> Iterator[str]:
    """Yield where branches are not one merge after the other, each with files of its task and of what it grew from."""
    trunk = evidence.place.trunk
    tips = dict.fromkeys(BASES, json.loads(evidence.place.trunk_facts.read_text(encoding="utf-8"))["first"])
    owners = {execution_id: task_id for execution_id, task_id, _ in runs}
    merged: set[str] = set()
    for event in events:
        commit = event.said["commit"]
        begun_at = event.said.get("from") or git(trunk, "rev-parse", f"{commit}^").strip()
        into = event.said.get("into") or next((name for name in BASES if _goes_on(evidence, tips[name], begun_at)), "")
        if into not in tips or not _goes_on(evidence, tips[into], begun_at):
            yield f"#{event.number}: {event.kind} {commit} goes on from {begun_at}, and the branches were at {tips}"
        tips[into] = commit
        made = git(trunk, "diff", "--no-renames", "--name-only", begun_at, commit, "--", "made/").splitlines()
        merged.add(event.task_id)
        for execution_id in {path.split("/")[1] for path in made}:
            # A branch brings along what its own base had by then.
            if owners.get(execution_id) not in merged:
                yield f"#{event.number}: {event.kind} {commit} has files of {execution_id}"
    succeeded = {execution_id for execution_id, _, status in runs if status == "succeeded"}
    for name in BASES:
        now = git(trunk, "rev-parse", f"refs/heads/{name}").strip()
        if not _goes_on(evidence, tips[name], now):
            yield f"{name} is at {now}, and the trail ends with {tips[name]}"
        yield from _half_merged(trunk, now, succeeded)


def _half_merged(trunk: Path, tip: str, succeeded: set[str]) -> Iterator[str]:
    """Yield the runs of whose files a commit has only some."""
    listed = git(trunk, "ls-tree", "-r", "--name-only", tip, "made/").splitlines()
    counts = Counter(path.split("/")[1] for path in listed)
    for execution_id in counts.keys() & succeeded:
        if counts[execution_id] != MADE:
            yield f"{tip} has {counts[execution_id]} of {MADE} files of {execution_id}"


def _goes_on(evidence: Evidence, tip: str, commit: str) -> bool:
    """Return whether a commit is that tip, or there is nothing between them but what the person committed."""
    if tip == commit:
        return True
    between = git(evidence.place.trunk, "rev-list", f"{tip}..{commit}").split()
    return bool(between) and evidence.actions.person_commits.issuperset(between)


def _facts(trunk: Path) -> dict[str, object]:
    refs = [line.split() for line in git(trunk, "show-ref").splitlines()]
    foreign = {f"refs/heads/{name}" for name in BASES}
    return {
        "HEAD": (trunk / ".git/HEAD").read_text(),
        "settings": (trunk / ".git/config").read_text(),
        "refs": [line for line in refs if line[1] not in foreign and not line[1].startswith(OWN_REFS)],
        "local changes": git(trunk, "status", "--porcelain", "--untracked-files=all"),
        "staged lines": git(trunk, "diff", "--cached"),
        "changed lines": git(trunk, "diff"),
    }


def commit_as_person(trunk: Path, number: int) -> str | None:
    """Write a line into the diary and commit it alone; return the commit, None where another git is at work."""
    (trunk / DIARY).write_text(f"day {number}\n", encoding="ascii")
    git(trunk, "commit", "-q", "--only", "-m", f"day {number}", "--", DIARY, check=False)
    commit, _, subject = git(trunk, "log", "-1", "--format=%H %s").strip().partition(" ")
    return commit if subject == f"day {number}" else None
