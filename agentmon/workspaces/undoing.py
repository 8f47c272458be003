"""Taking back what happened between two snapshots, on the files as they are today.

What nobody touched since comes back byte for byte; what somebody did since is merged where that goes without a
conflict, and left alone where not. A plan says it all first, and is applied as a whole: a kill leaves a journal, from
which ``recover`` goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentmon.domain.changes import ChangeType
from agentmon.domain.errors import ConflictError, SnapshotError
from agentmon.domain.plain_text import plain_line
from agentmon.workspaces.comparison import compare, contents, sides
from agentmon.workspaces.contained import ContainedFolder
from agentmon.workspaces.files import NOT_KEPT
from agentmon.workspaces.git import names
from agentmon.workspaces.objects import absent, hash_of
from agentmon.workspaces.repositories import find_root
from agentmon.workspaces.three_way import Side, ThreeWay, UndoStep
from agentmon.workspaces.undo_journal import Journal, JournalStep

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from agentmon.workspaces.files import FileState
    from agentmon.workspaces.snapshots import Snapshot, SnapshotStore


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPlan:
    """What an undo would do; nothing is done yet."""

    store: SnapshotStore = field(repr=False, compare=False)
    root: Path
    now: Snapshot
    """The folder as the plan saw it."""
    steps: tuple[UndoStep, ...]
    """In the order of paths; files that are as they were before have none."""
    new_folders: tuple[str, ...]
    """Folders that go when they are empty, inner ones first."""
    old_folders: tuple[str, ...]
    """Empty folders that come back."""

    @property
    def left_alone(self) -> tuple[UndoStep, ...]:
        """Conflicts, and files whose content was not kept."""
        return tuple(step for step in self.steps if not step.is_done)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """An undo that was done: a change like any other, which ``plan`` takes back between these snapshots."""

    before: Snapshot
    after: Snapshot
    left_alone: tuple[str, ...]
    """Paths that somebody changed while it was done; the conflicts of the plan are not among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """An undo that was finished after a kill."""

    root: Path
    paths: tuple[str, ...]
    """What it changed."""
    left_alone: tuple[str, ...]
    """What of it somebody changed after the kill."""


def plan(
    store: SnapshotStore,
    root: Path,
    before: Snapshot,
    after: Snapshot,
    *,
    paths: Collection[str] = (),
    choices: Mapping[str, Side] | None = None,
) -> UndoPlan:
    """Return how what happened between two snapshots of a folder is taken back.

    Args:
        store: That has both.
        root: The folder, as for ``SnapshotStore.take``.
        before: The older one.
        after: The newer one.
        paths: Only these; a renamed file is named by its new path. All when empty.
        choices: Which side of a conflict to take, by path.

    Raises:
        SnapshotError: The snapshots are of another folder, or git failed.
    """
    top = find_root(root)
    if not top == before.root == after.root:
        raise SnapshotError(
            f"the snapshots are of {plain_line(str(before.root))}, not of {plain_line(str(top))}",
            hint="Undo it in the folder where it happened.",
        )
    changed = sides(store, before, after)
    changes = compare(store, before, after)
    renamed = {c.path: c.old_path for c in changes if c.change_type is ChangeType.RENAME and c.old_path}
    if paths:
        wanted = {*paths, *(old for new, old in renamed.items() if new in paths)}
        changed = {path: pair for path, pair in changed.items() if path in wanted}
        renamed = {new: old for new, old in renamed.items() if new in changed}
    files = ContainedFolder(top)
    now = store.take(top)
    today = _today(store, after, now, changed)
    # What an ignore rule of today hides from snapshots is there all the same.
    hidden = [path for path, state in today.items() if state is None and files.is_there(path)]
    if hidden:
        store.keep(top, hidden)
        now = store.take(top)
        today = _today(store, after, now, changed)
    git = store.git(before, after, now)
    states = [state for pair in changed.values() for state in pair] + [*today.values()]
    refs = {state.ref for state in states if state is not None and state.mode != NOT_KEPT}
    three_way = ThreeWay(git, missing=absent(git, refs), choices=choices or {})
    steps: dict[str, UndoStep | None] = {}
    for new, old in renamed.items():
        decided = three_way.decide_renamed((old, changed[old][0], today[old]), (new, changed[new][1], today[new]))
        if decided is not None:
            steps |= {new: None, old: None} | {step.path: step for step in decided}
    for path, (was, became) in changed.items():
        if path not in steps:
            steps[path] = three_way.decide(path, was, became, today[path])
    done = _with_clear_way(files, [step for _, step in sorted(steps.items()) if step is not None])
    old_folders = _folders(store, before)
    new_folders = {folder for step in done if step.is_done and step.result is None for folder in _around(step.path)}
    gone: set[str] = set()
    if not paths:
        new_folders |= {*after.empty_folders}
        gone = {folder for folder in before.empty_folders if not files.is_folder(folder)}
    return UndoPlan(
        store=store,
        root=top,
        now=now,
        steps=tuple(done),
        new_folders=tuple(sorted(new_folders - old_folders, key=lambda path: (-path.count("/"), path))),
        old_folders=tuple(sorted(gone)),
    )


def apply(plan: UndoPlan) -> Undone:
    """Do what a plan says: all of it, or nothing when a file changed since it was made.

    Raises:
        ConflictError: A file changed since; make another plan.
        SnapshotError: A file could not be written, and what was done is taken back; or git failed.
    """
    steps = [JournalStep(step.path, step.now, step.result) for step in plan.steps if step.is_done]
    with plan.store.alone(plan.root) as held:
        journal = Journal(held.folder / "undo", plan.root)
        if journal.read():
            journal.run()
            journal.remove()
        before = held.take()
        if differing := journal.differing(steps, hash_of(plan.now.tree)):
            raise ConflictError(
                f"{plain_line(differing[0])} changed in the meantime, and nothing was undone", hint="Look at it again."
            )
        _write(journal, plan.store, plan.now, steps, plan.new_folders, plan.old_folders)
        try:
            left = journal.run()
        except OSError as error:
            _write(journal, plan.store, plan.now, journal.reversed_steps(), plan.old_folders, ())
            journal.run()
            journal.remove()
            where = plain_line(str(error.filename or plan.root))
            raise SnapshotError(
                f"{where} could not be written ({error.strerror}), and nothing was undone",
                hint="Check permissions and free space, then undo again.",
            ) from error
        journal.remove()
        return Undone(before=before, after=held.take(), left_alone=tuple(left))


def recover(store: SnapshotStore) -> tuple[Recovered, ...]:
    """Finish every undo that a kill broke off; call it when nothing else is at work yet.

    Raises:
        OSError: A file cannot be written; the next call tries again.
    """
    found = []
    for root in store.roots():
        with store.alone(root) as held:
            journal = Journal(held.folder / "undo", root)
            if not journal.read():
                continue
            left = journal.run() if root.is_dir() else list(journal.paths)
            found.append(Recovered(root=root, paths=journal.paths, left_alone=tuple(left)))
            journal.remove()
    return tuple(found)


def _today(
    store: SnapshotStore,
    after: Snapshot,
    now: Snapshot,
    changed: Mapping[str, tuple[FileState | None, FileState | None]],
) -> dict[str, FileState | None]:
    since = sides(store, after, now, completes=False)
    return {path: since[path][1] if path in since else became for path, (_, became) in changed.items()}


def _write(
    journal: Journal,
    store: SnapshotStore,
    now: Snapshot,
    steps: Sequence[JournalStep],
    new_folders: Sequence[str],
    old_folders: Sequence[str],
) -> None:
    placed = [step.result.ref for step in steps if step.result is not None]
    journal.write(
        steps,
        contents(store.git(now), placed),
        new_folders=new_folders,
        old_folders=old_folders,
        hash_name=hash_of(now.tree),
    )


def _with_clear_way(files: ContainedFolder, steps: Sequence[UndoStep]) -> list[UndoStep]:
    """Return the steps, with those as conflicts in whose way something foreign stands."""
    removed = {step.path for step in steps if step.is_done and step.result is None}
    return [step.left_alone(reason) if (reason := _in_the_way(files, step, removed)) else step for step in steps]


def _in_the_way(files: ContainedFolder, step: UndoStep, removed: Collection[str]) -> str:
    if not step.is_done or step.result is None:
        return ""
    for folder in _around(step.path):
        if folder not in removed and files.is_there(folder):
            return f"{folder} is in the way"
    if files.is_folder(step.path):
        for inner in files.inner_paths(step.path):
            if inner not in removed:
                return f"{inner} is in the way"
    return ""


def _folders(store: SnapshotStore, snapshot: Snapshot) -> set[str]:
    """Return the folders that a snapshot knows."""
    listed = names(store.git(snapshot).run("ls-tree", "-r", "-d", "-z", "--name-only", "--full-tree", snapshot.tree))
    empty = snapshot.empty_folders
    return {*listed, *empty, *(folder for path in empty for folder in _around(path))}


def _around(path: str) -> Iterator[str]:
    """Yield the folders around a path, inner ones first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
