"""Taking back what happened between two snapshots, on the files as they are today.

What nobody touched since comes back byte for byte; what somebody did since is merged where that goes without a
conflict, and left alone where not. A plan says it all first, and is applied as a whole: a kill leaves a journal, from
which ``recover`` goes on. Whoever wrote down that it is done lets it be forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agentmon.domain.errors import ConflictError, SnapshotError
from agentmon.domain.plain_text import plain_line
from agentmon.workspaces.comparison import compare, contents, patch_of_file, renames, sides, states
from agentmon.workspaces.contained import ContainedFolder, folders_around
from agentmon.workspaces.files import NOT_KEPT, refusals_told
from agentmon.workspaces.git import names
from agentmon.workspaces.objects import absent, hash_of
from agentmon.workspaces.repositories import find_root
from agentmon.workspaces.three_way import ThreeWay, UndoAction, UndoStep
from agentmon.workspaces.undo_journal import Journal, JournalStep

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from agentmon.workspaces.files import FileState
    from agentmon.workspaces.snapshots import HeldRoot, Snapshot, SnapshotStore
    from agentmon.workspaces.three_way import Side


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
    """An undo that a kill broke off, and that was finished."""

    root: Path
    paths: tuple[str, ...]
    """What it changed."""
    left_alone: tuple[str, ...]
    """What of it somebody changed after the kill."""
    note: Mapping[str, Any]
    """What ``apply`` was given."""
    snapshots: tuple[str, str] | None
    """The ids of those before and after it, between which ``plan`` takes it back; None where it did nothing."""
    problem: str = ""
    """Why it is not finished, and the next call tries again; empty where it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What happened to files in some time, to be taken back."""

    sides: Mapping[str, tuple[FileState | None, FileState | None]]
    """By path: what was there before, and after."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Old paths by new ones."""
    old_folders: frozenset[str] = frozenset()
    """Empty folders that were there before."""
    new_folders: frozenset[str] = frozenset()
    """Empty folders that were there after."""
    damaged: frozenset[str] = frozenset()
    """Contents that cannot be read."""


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
    return plan_all(store, root, before, [stretch_between(store, root, before, after, paths)], choices=choices)


def stretch_between(
    store: SnapshotStore, root: Path, before: Snapshot, after: Snapshot, paths: Collection[str] = ()
) -> Stretch:
    """Return what happened between two snapshots of a folder.

    Raises:
        SnapshotError: The snapshots are of another folder, or git failed.
    """
    top = find_root(root)
    if not top == before.root == after.root:
        raise SnapshotError(
            f"the snapshots are of {plain_line(str(before.root))}, not of {plain_line(str(top))}",
            hint="Undo it in the folder where it happened.",
        )
    changed, changes = sides(store, before, after), compare(store, before, after)
    renamed = renames(changes)
    # Those of files that could not be compared were looked for one by one.
    damaged = frozenset(ref for one in changes if not one.can_undo for ref in (one.before_ref, one.after_ref) if ref)
    if not paths:
        return Stretch(
            sides=changed,
            renamed=renamed,
            old_folders=frozenset(before.empty_folders),
            new_folders=frozenset(after.empty_folders),
            damaged=damaged,
        )
    wanted = {*paths, *(old for new, old in renamed.items() if new in paths)}
    changed = {path: pair for path, pair in changed.items() if path in wanted}
    renamed = {new: old for new, old in renamed.items() if new in changed}
    return Stretch(sides=changed, renamed=renamed, damaged=damaged)


def plan_all(
    store: SnapshotStore,
    root: Path,
    before: Snapshot,
    stretches: Sequence[Stretch],
    *,
    choices: Mapping[str, Side] | None = None,
) -> UndoPlan:
    """Return how several stretches of time are taken back as one, each on what the one before it leaves.

    Args:
        store: That has the contents of all.
        root: The folder, as for ``SnapshotStore.take``.
        before: From before all of them: its folders stay.
        stretches: The newest first.
        choices: Which side of a conflict to take, by path.

    Raises:
        SnapshotError: git failed.
    """
    with refusals_told(root):
        return _planned(store, find_root(root), before, stretches, choices or {})


def _planned(
    store: SnapshotStore, top: Path, before: Snapshot, stretches: Sequence[Stretch], choices: Mapping[str, Side]
) -> UndoPlan:
    files = ContainedFolder(top)
    now = store.take(top)
    paths = {path for stretch in stretches for path in stretch.sides}
    today = states(store, now, paths)
    # What an ignore rule of today hides from snapshots is there all the same.
    hidden = [path for path in paths if path not in today and files.is_there(path)]
    if hidden:
        store.keep(top, hidden)
        now = store.take(top)
        today = states(store, now, paths)
    refs = {
        state.ref
        for found in (today.values(), *(pair for stretch in stretches for pair in stretch.sides.values()))
        for state in found
        if state is not None and state.mode != NOT_KEPT
    }
    git = store.git(before, now)
    missing = absent(git, refs).union(*(stretch.damaged for stretch in stretches))
    fold = _Fold(ThreeWay(git, missing=missing, choices=choices), today)
    for stretch in stretches:
        fold.take_back(stretch)
    done = _with_clear_way(files, fold)
    known_folders = _folders(store, before)
    new_folders = {
        folder for step in done if step.is_done and step.result is None for folder in folders_around(step.path)
    }
    new_folders |= {folder for stretch in stretches for folder in stretch.new_folders}
    gone = {folder for folder in stretches[-1].old_folders if not files.is_folder(folder)} if stretches else set[str]()
    return UndoPlan(
        store=store,
        root=top,
        now=now,
        steps=tuple(done),
        new_folders=tuple(sorted(new_folders - known_folders, key=lambda path: (-path.count("/"), path))),
        old_folders=tuple(sorted(gone)),
    )


class _Fold:
    """Stretches of time that are taken back one after the other, on paper.

    Args:
        three_way: Decides on each file.
        today: What is at each path now; one that is not there has none.
    """

    def __init__(self, three_way: ThreeWay, today: Mapping[str, FileState]) -> None:
        self._three_way = three_way
        self._today = today
        self._states: dict[str, FileState | None] = dict(today)
        self._done: dict[str, list[UndoStep]] = {}
        self._left: dict[str, UndoStep] = {}
        self._together: list[set[str]] = []

    def take_back(self, stretch: Stretch) -> None:
        """Take the next older one back."""
        remaining = dict(stretch.sides)
        for new, old in stretch.renamed.items():
            both = [(path, stretch.sides[path], self._states.get(path)) for path in (old, new)]
            (_, (before, _), at_old), (_, (_, after), at_new) = both
            steps = self._three_way.decide_renamed((old, before, at_old), (new, after, at_new))
            if steps is not None:
                del remaining[new], remaining[old]
                self._together.append({new, old})
                self._take(steps)
        decided = [
            self._three_way.decide(path, before, after, self._states.get(path))
            for path, (before, after) in remaining.items()
        ]
        self._take([step for step in decided if step is not None])

    def steps(self) -> list[UndoStep]:
        """Return what is done to each path in the end, in the order of paths."""
        self._leave_together()
        found = dict(self._left)
        for path, steps in self._done.items():
            result, now = self._states.get(path), self._today.get(path)
            if path not in found and result != now:
                action = UndoAction.MERGE if any(one.action is UndoAction.MERGE for one in steps) else steps[-1].action
                action = UndoAction.REMOVE if result is None else action
                found[path] = replace(steps[-1], action=action, now=now, result=result)
        return [found[path] for path in sorted(found)]

    def leave(self, step: UndoStep, reason: str) -> None:
        """Leave a path alone that would be changed."""
        self._left[step.path] = step.left_alone(reason)

    def _take(self, steps: Sequence[UndoStep]) -> None:
        for step in steps:
            if step.is_done:
                self._states[step.path] = step.result
                self._done.setdefault(step.path, []).append(step)
            elif step.path not in self._left:
                now = self._today.get(step.path)
                self._left[step.path] = replace(step, now=now, result=now)

    def _leave_together(self) -> None:
        """Leave alone what belongs to a path that is left alone: else the content of a renamed file would be lost."""
        waiting = True
        while waiting:
            waiting = False
            for path in (path for group in self._together if group & self._left.keys() for path in group):
                if path in self._done and path not in self._left:
                    now = self._today.get(path)
                    self._left[path] = replace(self._done[path][-1], now=now).left_alone("renamed, and changed since")
                    waiting = True


def step_patch(plan: UndoPlan, step: UndoStep) -> bytes:
    """Return what a step does to its file today, as a patch to be read; of a conflict what taking it back would do.

    Raises:
        SnapshotError: git failed.
    """
    wanted = step.result if step.is_done else step.before
    with plan.store.reading():
        return patch_of_file(plan.store.git(plan.now), step.path, step.now, wanted)


def apply(plan: UndoPlan, note: Mapping[str, object] | None = None) -> Undone:
    """Do what a plan says: all of it, or nothing when a file changed since it was made.

    Args:
        plan: What to do.
        note: What ``recover`` has to give to who writes down what was undone, after a kill; then ``forget`` is called
            when that is written down.

    Raises:
        ConflictError: A file changed since; make another plan.
        SnapshotError: A file could not be written, and what was done is taken back; or git failed.
    """
    steps = [JournalStep(step.path, step.now, step.result) for step in plan.steps if step.is_done]
    with plan.store.alone(plan.root) as held, refusals_told(plan.root):
        journal = Journal(held.folder / "undo", plan.root)
        if journal.read():
            raise ConflictError("another undo of this folder is not finished", hint="Undo again in a moment.")
        before = held.take()
        if differing := journal.differing(steps, hash_of(plan.now.tree)):
            raise ConflictError(
                f"{plain_line(differing[0])} changed in the meantime, and nothing was undone", hint="Look at it again."
            )
        try:
            journal.write(
                steps,
                partial(contents, plan.store.git(plan.now)),
                new_folders=plan.new_folders,
                old_folders=plan.old_folders,
                hash_name=hash_of(plan.now.tree),
                before=before.id,
                note=note or {},
            )
        except SnapshotError:
            journal.remove()
            raise
        except OSError as error:
            journal.remove()
            raise SnapshotError(
                f"{plain_line(str(held.folder))} could not be written ({error.strerror}), and nothing was undone",
                hint="Check its permissions and free space, then undo again.",
            ) from error
        left = _run(journal, plan.root)
        try:
            after = held.take()
            if note is None:
                journal.remove()
            else:
                journal.end(after.id)
        except (OSError, SnapshotError) as error:
            raise SnapshotError(
                f"all is undone, but that could not be written down: {error}",
                hint="It is written down at the next start of agentmon, and can be taken back then.",
            ) from error
        return Undone(before=before, after=after, left_alone=tuple(left))


def _run(journal: Journal, root: Path) -> list[str]:
    try:
        return journal.run()
    except OSError as error:
        where = f"{plain_line(str(error.filename or root))} could not be written ({error.strerror})"
        try:
            journal.run(backwards=True)
        except OSError as again:
            raise SnapshotError(
                f"{where}, and only a part is undone; the rest follows at the next start of agentmon",
                hint=f"Check permissions and free space of {plain_line(str(again.filename or root))}.",
            ) from error
        journal.remove()
        raise SnapshotError(
            f"{where}, and nothing was undone", hint="Check permissions and free space, then undo again."
        ) from error


def forget(store: SnapshotStore, root: Path, snapshots: tuple[str, str]) -> None:
    """Let an undo be forgotten that was applied with a note, and is written down.

    Args:
        store: The snapshots.
        root: Of the undo.
        snapshots: The ids of those before and after it.

    Raises:
        SnapshotError: The store cannot be written.
    """
    with store.alone(root) as held:
        journal = Journal(held.folder / "undo", root)
        if journal.read() and journal.ended == snapshots:
            journal.remove()


def recover(store: SnapshotStore) -> tuple[Recovered, ...]:
    """Finish every undo that a kill broke off, and return those that nobody has written down yet.

    One that cannot be finished keeps none of the others from it.
    """
    found: list[Recovered] = []
    for root, folder in store.places():
        if not (folder / "undo").exists():
            continue
        try:
            with store.alone(root) as held, refusals_told(root):
                found += _recovered(Journal(folder / "undo", root), root, held)
        except SnapshotError as error:
            problem = str(error)
            found.append(Recovered(root=root, paths=(), left_alone=(), note={}, snapshots=None, problem=problem))
    return tuple(found)


def _recovered(journal: Journal, root: Path, held: HeldRoot) -> Iterator[Recovered]:
    if not journal.read():
        return
    left: list[str] = []
    if not root.is_dir():
        left = list(journal.paths)
        journal.remove()
    elif journal.ended is None:
        left = journal.run()
        journal.end(held.take().id)
    yield Recovered(root=root, paths=journal.paths, left_alone=tuple(left), note=journal.note, snapshots=journal.ended)


def _with_clear_way(files: ContainedFolder, fold: _Fold) -> list[UndoStep]:
    """Return the steps, with those as conflicts in whose way something foreign stands, or each other."""
    while True:
        steps = fold.steps()
        removed = {step.path for step in steps if step.is_done and step.result is None}
        made = {step.path for step in steps if step.is_done and step.result is not None}
        filled = {folder for path in made for folder in folders_around(path)}
        blocked = [(step, reason) for step in steps if (reason := _in_the_way(files, step, removed, made, filled))]
        if not blocked:
            return steps
        for step, reason in blocked:
            fold.leave(step, reason)


def _in_the_way(
    files: ContainedFolder, step: UndoStep, removed: Collection[str], made: Collection[str], filled: Collection[str]
) -> str:
    """Return what stands where a step makes a file, once those are made and removed, and these folders are filled."""
    if not step.is_done or step.result is None:
        return ""
    for folder in folders_around(step.path):
        if folder in made or (folder not in removed and files.is_there(folder)):
            return f"{folder} is in the way"
    if step.path in filled:
        return "it would be a folder, too"
    if step.now is None and files.is_there(step.path):
        return "something that is no file is in the way"
    if files.is_folder(step.path):
        for inner in files.inner_paths(step.path):
            if inner not in removed:
                return f"{inner} is in the way"
    return ""


def _folders(store: SnapshotStore, snapshot: Snapshot) -> set[str]:
    """Return the folders that a snapshot knows."""
    listed = names(store.git(snapshot).run("ls-tree", "-r", "-d", "-z", "--name-only", "--full-tree", snapshot.tree))
    empty = snapshot.empty_folders
    return {*listed, *empty, *(folder for path in empty for folder in folders_around(path))}
