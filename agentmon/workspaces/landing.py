"""A base that moves to a commit together with the files and the index where it is checked out, or not at all.

What is to be done is written down before it begins. That the ref has moved decides: a kill before leaves all as it was,
and behind it ``recover`` goes on. Meanwhile the lock of the index keeps other gits from the half of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import shutil
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import ConflictError, GitError, SnapshotError
from agentmon.domain.merges import few
from agentmon.domain.plain_text import plain_line
from agentmon.private_folders import make_private_folder
from agentmon.workspaces import worktrees
from agentmon.workspaces.contained import ContainedFolder, folders_around
from agentmon.workspaces.files import LINK, as_replaced, refusals_told, replace_file
from agentmon.workspaces.git import Git, GitFailedError, GitTimeoutError, names
from agentmon.workspaces.index_lock import IndexLock, copy_index, locks_of, remove_left_locks
from agentmon.workspaces.merging import Checkout, find_blocked, is_ancestor
from agentmon.workspaces.repositories import Repository
from agentmon.workspaces.undo_journal import Journal, JournalStep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_log = logging.getLogger(__name__)

_RECORD: Final = "merge.json"
_BACK: Final = "back"
"""Marks one whose files could not be written, and which is taken back."""
_HASH: Final = "sha1"
_GITLINK: Final = "160000"
_SKIPPED: Final = "S"


class BaseMovedError(ConflictError):
    """Somebody moved the base, or changed a file, since it was looked at; nothing was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """What moves, and for whom."""

    worktree_id: str
    repository: str
    """The common git folder."""
    into: str
    base_commit: str
    """Its tip before."""
    result: str = ""
    """Its tip then; empty until it is known."""
    checkout: str | None = None
    """Where it is checked out."""
    git_dir: str | None = None
    """The git folder of that."""
    details: dict[str, str]
    """What is written into the database behind it."""

    @property
    def _git(self) -> Git:
        common = Path(self.repository)
        return worktrees.git_of(Repository(common, common))

    @property
    def place(self) -> Checkout | None:
        """The working tree that changes with it."""
        if self.checkout is None or self.git_dir is None:
            return None
        return Checkout(Path(self.checkout), Repository(Path(self.git_dir), Path(self.repository)))

    @property
    def mark(self) -> str:
        """Names the lock of the index as ours."""
        return f"agentmon-merge-{self.worktree_id}"

    @property
    def locks(self) -> list[Path]:
        """What git locks to move the base."""
        common = Path(self.repository)
        repository = self.place.repository if self.place is not None else Repository(common, common)
        return locks_of(repository, self.into)

    def tip(self) -> str | None:
        """Return where the base is now."""
        return worktrees.answer(self._git, "rev-parse", "--verify", "--quiet", f"refs/heads/{self.into}")

    def has_landed(self) -> bool:
        """Return whether the base has moved, to this commit or on from it."""
        tip = self.tip()
        return bool(self.result) and tip is not None and is_ancestor(self._git, self.result, tip)

    def move(self, *, since: float, lock: int, is_back: bool = False) -> None:
        """Move the base, or move it back, if it is still where it was.

        Args:
            since: When it was written down, by the clock of the disk.
            lock: A descriptor that git holds on to.
            is_back: Whether it moves back.

        Raises:
            BaseMovedError: It is not.
            GitError: A hook refused.
        """
        new, old = (self.base_commit, self.result) if is_back else (self.result, self.base_commit)
        folder = self.place.path if self.place is not None else Path(self.repository)
        git = Git(git_dir=folder, cwd=folder, acts_as_person=True, held_locks=(lock,))
        try:
            git.run("update-ref", "-m", "agentmon: merge", f"refs/heads/{self.into}", new, old)
        except (GitFailedError, GitTimeoutError) as error:
            if error.is_killed:
                remove_left_locks(self.locks, since=since)
            tip = self.tip()
            if tip == new:
                # It was killed behind that.
                return
            if tip != old:
                raise BaseMovedError(f"{self.into} was moved meanwhile", hint="try again") from error
            raise


@contextmanager
def alone(folder: Path) -> Iterator[int]:
    """Hold the lock of all merges, which a git that outlives its caller holds on; give its descriptor.

    Raises:
        ConflictError: Another merge is at work.
        SnapshotError: What is done meanwhile is refused by the system: the disk may be full.
    """
    with refusals_told(folder):
        make_private_folder(folder)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ConflictError("another merge is at work", hint="try again in a moment") from error
            yield descriptor
        finally:
            os.close(descriptor)


def write_down(folder: Path, landing: Landing) -> None:
    """Write down what is about to be done."""
    make_private_folder(folder)
    replace_file(folder / _RECORD, json.dumps(asdict(landing)).encode(), lasts=True)


def written_down(folder: Path) -> Iterator[tuple[Path, Landing]]:
    """Yield what was written down and is not forgotten, and remove what was never begun.

    What cannot be read stays where it is, and holds up no other.
    """
    for inner in sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else ():
        try:
            known = Landing(**json.loads((inner / _RECORD).read_bytes()))
        except FileNotFoundError:
            shutil.rmtree(inner)
        except (OSError, ValueError, TypeError) as error:
            _log.warning("%s cannot be read, and its merge is not finished: %s", inner / _RECORD, error)
        else:
            yield inner, known


def forget(folder: Path) -> None:
    """Forget what was written down."""
    (folder / _RECORD).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def forget_undone(folder: Path) -> None:
    """Forget what was written down where nothing of it was done; otherwise the next start goes on with it."""
    try:
        landing = Landing(**json.loads((folder / _RECORD).read_bytes()))
    except FileNotFoundError:
        return
    if not (folder / _BACK).exists() and not landing.has_landed():
        forget(folder)


def land(folder: Path, landing: Landing, *, tree: Path, lock: int) -> tuple[str, ...]:
    """Move the base to the commit, with the files and the index where it is checked out; return what was left alone.

    Args:
        folder: Where it is written down, with the commit in it.
        landing: What moves.
        tree: A working tree in which the commit is checked out.
        lock: A descriptor that git holds on to.

    Raises:
        BaseMovedError: The base or a file changed since it was looked at; nothing was done.
        ConflictError: Another git is at work; nothing was done.
        SnapshotError: A file could not be written, and all is as it was; or git failed.
    """
    place = landing.place
    since = _written_at(folder)
    if place is None:
        landing.move(since=since, lock=lock)
        return ()
    with IndexLock(place.repository, landing.mark):
        head = worktrees.answer(place.git(folder / "before"), "symbolic-ref", "--quiet", "HEAD")
        if head != f"refs/heads/{landing.into}":
            raise BaseMovedError(f"{landing.into} is not checked out in {place.path} any more", hint="try again")
        steps, new_folders, old_folders = _plan(folder, landing, place, tree)
        journal = Journal(folder / "files", place.path)
        journal.write(
            steps,
            partial(_contents, steps, place.path, tree),
            new_folders=new_folders,
            old_folders=old_folders,
            hash_name=_HASH,
            before="",
            note={},
        )
        if journal.differing(steps, _HASH):
            raise BaseMovedError(f"files in {place.path} changed meanwhile", hint="try again")
        landing.move(since=since, lock=lock)
        try:
            left = journal.run()
            _install_index(folder, landing, place)
        except OSError as error:
            (folder / _BACK).touch()
            _take_back(folder, landing, journal, lock=lock)
            where = plain_line(str(error.filename or place.path))
            raise SnapshotError(
                f"{where} could not be written ({error.strerror}), and nothing was merged",
                hint="check permissions and free space, then try again",
            ) from error
        journal.remove()
        return tuple(left)


def recover(folder: Path, landing: Landing, *, lock: int) -> tuple[bool, tuple[str, ...]]:
    """Finish what a kill broke off, or take it back; return whether it is done, and what was left alone.

    Doing it again is harmless.

    Raises:
        OSError: A file cannot be written; the next call tries again.
        GitError: git failed.
    """
    place = landing.place
    is_there = Path(landing.repository).is_dir()
    has_landed = is_there and landing.has_landed()
    left: tuple[str, ...] = ()
    if place is not None and place.repository.git_dir.is_dir():
        journal = Journal(folder / "files", place.path)
        index_lock = IndexLock(place.repository, landing.mark)
        if (folder / _BACK).exists():
            if journal.read():
                _take_back(folder, landing, journal, lock=lock)
            has_landed = False
        elif has_landed and journal.read():
            if not index_lock.is_held and not _is_as_before(folder, landing, place):
                # Somebody removed the lock and went on from there; whatever they did counts.
                left = journal.paths
            else:
                with index_lock:
                    left = tuple(journal.run())
                    _install_index(folder, landing, place)
                    journal.remove()
        index_lock.release()
    if is_there:
        remove_left_locks(landing.locks, since=_written_at(folder))
    return has_landed, left


def _written_at(folder: Path) -> float:
    """Return when a merge was written down, by the clock of the disk."""
    return (folder / _RECORD).stat().st_mtime


def _plan(
    folder: Path, landing: Landing, place: Checkout, tree: Path
) -> tuple[list[JournalStep], list[str], list[str]]:
    """Return what is done to files, the folders that may go, and those that come; git says what of it may be.

    Raises:
        BaseMovedError: Local changes would be overwritten that were not there before.
    """
    before, after = place.git(folder / "before"), place.git(folder / "after")
    copy_index(place.repository, folder / "before")
    words = (landing.base_commit, landing.result)
    changed = names(before.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", *words))
    if blocked := find_blocked(before, *words, changed):
        # They came since it was looked at.
        raise BaseMovedError(
            f"files in {place.path} changed meanwhile: {few([plain_line(path) for path in blocked])}", hint="try again"
        )
    # It knows by now which files are as git left them.
    if (folder / "before").exists():
        shutil.copy2(folder / "before", folder / "after")
    after.run("read-tree", "-m", *words)
    old, new = _entries(before), _entries(after)
    files, aside = ContainedFolder(place.path), ContainedFolder(tree)
    steps, gone, submodules = [], set(), []
    for path in sorted(old.keys() | new.keys()):
        was, becomes = old.get(path), new.get(path)
        if was == becomes or _is_skipped(was) or _is_skipped(becomes):
            continue
        if becomes is not None and becomes[1] == _GITLINK:
            submodules.append(path)
            continue
        if was is not None and was[1] == _GITLINK and becomes is None:
            # As with git, the folder of a submodule stays.
            continue
        now = None if files.is_folder(path) else files.state(path, _HASH)
        result = None if becomes is None else aside.state(path, _HASH)
        if now is not None and result is not None:
            result = as_replaced(now, result)
        if result is None:
            gone |= {*folders_around(path)}
        if now != result:
            steps.append(JournalStep(path, now, result))
    # What goes makes room for what comes.
    steps.sort(key=lambda step: step.result is not None)
    kept = {around for path in new for around in folders_around(path)}
    return steps, sorted(gone - kept, key=lambda path: (-path.count("/"), path)), submodules


def _entries(git: Git) -> Mapping[str, tuple[str, ...]]:
    """Return what an index has by path: how it is marked, mode, content and stage."""
    found = {}
    for line in names(git.run("ls-files", "-t", "-s", "-z")):
        known, _, path = line.partition("\t")
        found[path] = tuple(known.split(" "))
    return found


def _is_skipped(entry: tuple[str, ...] | None) -> bool:
    """Return whether a sparse checkout leaves a file out."""
    return entry is not None and entry[0] == _SKIPPED


def _contents(steps: Sequence[JournalStep], root: Path, tree: Path, refs: Sequence[str]) -> Iterator[bytes]:
    """Yield the contents behind ids: of files as they are, and as the tree has them."""
    sources = {step.now.ref: (root / step.path, step.now) for step in steps if step.now is not None}
    sources |= {step.result.ref: (tree / step.path, step.result) for step in steps if step.result is not None}
    for ref in refs:
        path, state = sources[ref]
        yield os.fsencode(path.readlink()) if state.mode == LINK else path.read_bytes()


def _install_index(folder: Path, landing: Landing, place: Checkout) -> None:
    """Let the index be that of the commit, since the files are."""
    # A git that was killed has left the other one locked, and one whose command was killed may be at work on it.
    index = folder / f"index-{os.getpid()}"
    shutil.copy2(folder / "after", index)
    place.git(index).run("update-index", "-q", "--refresh", fine=(0, 1))
    IndexLock(place.repository, landing.mark).install(index)


def _take_back(folder: Path, landing: Landing, journal: Journal, *, lock: int) -> None:
    """Let files and base be as they were, where a file could not be written; the index has not changed yet."""
    journal.run(backwards=True)
    if landing.tip() == landing.result:
        landing.move(since=_written_at(folder), lock=lock, is_back=True)
    journal.remove()
    (folder / _BACK).unlink()


def _is_as_before(folder: Path, landing: Landing, place: Checkout) -> bool:
    """Return whether nobody has committed or staged anything since."""
    if landing.tip() != landing.result:
        return False
    now = place.git(folder / "now")
    copy_index(place.repository, folder / "now")
    return _entries(now) == _entries(place.git(folder / "before"))


def run_post_merge(landing: Landing) -> None:
    """Let the person's hook know that a merge was made where the base is checked out; its exit code changes nothing."""
    if landing.place is not None:
        with contextlib.suppress(GitError):
            landing.place.person.run("hook", "run", "--ignore-missing", "post-merge", "--", "0")
