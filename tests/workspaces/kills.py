"""Kills at every step of a snapshot, of pruning and of an undo; a program of one thread: ``kills WHAT STRIDE``.

The process that works is forked, and kills itself at the n-th thing that it asks of the system. ``full`` fills the disk
there instead: from then on nothing new can be made or written.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import SnapshotError
from agentmon.workspaces.comparison import compare
from agentmon.workspaces.git import git_program
from agentmon.workspaces.snapshots import SnapshotStore
from agentmon.workspaces.undoing import apply, forget, plan, recover
from tests.workspaces.folders import files_of, fingerprint, git, held, make_repository, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.workspaces.snapshots import Snapshot

_CHANGES: Final = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.symlink", "os.chmod"}
_REFUSED: Final = 3
_EVENTS: Final = frozenset({*_CHANGES, "subprocess.Popen", "fcntl.flock"})


def is_killed(work: Callable[[], object], at: int) -> bool:
    """Return whether a process that does the work was killed at that step, and not done before."""
    count = 0

    def look(event: str, _: object) -> None:
        nonlocal count
        if event in _EVENTS:
            count += 1
            if count == at:
                os.kill(os.getpid(), signal.SIGKILL)

    status = _forked(work, look)
    assert status in {0, -signal.SIGKILL}, status
    return status != 0


def is_refused(work: Callable[[], object], at: int) -> bool:
    """Return whether a process that does the work ended with an error for a person, on a disk that is full by then."""
    count = 0

    def look(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        # Locks are opened for both, and are there.
        is_new = event == "open" and isinstance(arguments[2], int) and bool(arguments[2] & os.O_WRONLY)
        if is_new or event in {"os.mkdir", "os.symlink"}:
            count += 1
            if count >= at:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), arguments[0])

    status = _forked(work, look)
    assert status in {0, _REFUSED}, status
    return status != 0


def _forked(work: Callable[[], object], look: Callable[[str, tuple[object, ...]], None]) -> int:
    """Return the exit code of a process that does the work and is looked at; negative for a signal."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            sys.addaudithook(look)
            work()
        except SnapshotError:
            os._exit(_REFUSED)
        except BaseException:  # noqa: BLE001 - a forked process may not go on in the caller's place
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _change(root: Path, number: int) -> None:
    write(root / "a.txt", b"%d\n" % number)
    write(root / f"new/n{number}", os.urandom(20_000))
    (root / "sub/b.txt").chmod(0o755 if number % 2 else 0o644)
    (root / "link").unlink(missing_ok=True)
    (root / "link").symlink_to(f"n{number}")
    shutil.rmtree(root / f"new/n{number - 3}", ignore_errors=True)


def _left(store: SnapshotStore) -> list[str]:
    """Return what a kill left in a store."""
    odd = ("*.lock", "tmp_*", "*.new", "unfinished", "pruning", "index-*", "undo")
    return sorted(str(path.relative_to(store.folder)) for name in odd for path in store.folder.rglob(name))


def snapshots(folder: Path, stride: int) -> int:
    root = make_repository(folder / "root")
    make_repository(root / "nested", {"n": b"n\n"})
    store = SnapshotStore(folder / "store")
    first, files = store.take(root), files_of(root)
    at = kills = 0
    while True:
        at += stride
        _change(root, at)
        repository = fingerprint(root / ".git")
        was_killed = is_killed(lambda: store.take(root), at)
        kills += was_killed
        assert held(store, store.take(root)) == files_of(root), at
        assert held(store, first) == files, at
        assert fingerprint(root / ".git") == repository, at
        assert _left(store) == [], (at, _left(store))
        if not was_killed:
            return kills


def pruning(folder: Path, stride: int) -> int:
    root = make_repository(folder / "root")
    store = SnapshotStore(folder / "store")
    at = kills = 0
    while True:
        at += stride
        kept = []
        for number in range(3):
            _change(root, 10 * at + number)
            kept.append((store.take(root), files_of(root)))
        del kept[1]
        was_killed = is_killed(lambda: store.prune([snapshot.id for snapshot, _ in kept]), at)  # noqa: B023 - called here
        kills += was_killed
        for snapshot, files in kept:
            assert held(store, store.get(snapshot.id)) == files, at
        store.prune([snapshot.id for snapshot, _ in kept])
        for snapshot, files in kept:
            assert held(store, store.get(snapshot.id)) == files, at
        assert _left(store) == [], (at, _left(store))
        if not was_killed:
            return kills


def _run_that_is_undone(folder: Path) -> tuple[Path, SnapshotStore, Snapshot, Snapshot]:
    files = {"a.txt": b"a\n", "sub/b.txt": b"b\n", "gone/deep": b"g\n", "turns": b"t\n"}
    root = make_repository(folder / "root", files)
    store = SnapshotStore(folder / "store")
    before = store.take(root)
    _change(root, 1)
    shutil.rmtree(root / "gone")
    (root / "turns").unlink()
    write(root / "turns/inner")
    return root, store, before, store.take(root)


def undoing(folder: Path, stride: int) -> int:
    root, store, before, after = _run_that_is_undone(folder)
    files, changed = held(store, before), files_of(root)
    repository = fingerprint(root / ".git")
    at = kills = 0
    while True:
        at += stride
        made = plan(store, root, before, after)
        was_killed = is_killed(lambda: apply(made, {"at": at}), at)  # noqa: B023 - called here
        kills += was_killed
        # The one that goes on is killed too.
        is_killed(lambda: recover(store), 1 + at % 40)
        found = recover(store)
        assert all(recovered.left_alone == () and not recovered.problem for recovered in found), at
        now = files_of(root)
        assert now in (files, changed), (at, now.keys())
        # Who was killed has told nobody, so that this is how anybody hears of it.
        assert [recovered.note for recovered in found] == ([{"at": at}] if now == files else []), at
        for recovered in found:
            assert recovered.snapshots is not None
            forget(store, root, recovered.snapshots)
            between = [store.get(name) for name in recovered.snapshots]
            assert [held(store, snapshot) for snapshot in between] == [changed, files], at
        assert fingerprint(root / ".git") == repository, at
        today = store.take(root)
        assert _left(store) == [], (at, _left(store))
        assert (compare(store, before, today) == ()) == (now == files), at
        if now == files:
            apply(plan(store, root, after, before))
            assert files_of(root) == changed, at
        if not was_killed:
            return kills


def full(folder: Path, stride: int) -> int:
    root, store, before, after = _run_that_is_undone(folder)
    files, changed = held(store, before), files_of(root)
    folders = _folders_of(root)
    repository = fingerprint(root / ".git")
    at = refused = 0
    while True:
        at += stride
        made = plan(store, root, before, after)
        was_refused = is_refused(lambda: apply(made, {"at": at}), at)  # noqa: B023 - called here
        refused += was_refused
        assert files_of(root) in (files, changed) or (store.places()[0][1] / "undo/journal.json").exists(), at
        is_refused(lambda: recover(store), 1 + at % 9)
        for recovered in recover(store):
            assert recovered.snapshots is not None
            forget(store, root, recovered.snapshots)
        now = files_of(root)
        assert now in (files, changed), (at, now.keys())
        assert now == files or _folders_of(root) == folders, at
        assert fingerprint(root / ".git") == repository, at
        assert held(store, store.take(root)) == now, at
        assert _left(store) == [], (at, _left(store))
        if now == files:
            apply(plan(store, root, after, before))
            assert files_of(root) == changed, at
        if not was_refused:
            return refused


def _folders_of(root: Path) -> set[str]:
    return {folder for folder, _, _ in os.walk(root) if "/.git" not in folder}


def main() -> None:
    git_program()
    with TemporaryDirectory(prefix="kills-") as folder:
        os.environ["HOME"] = folder
        kills = {"snapshots": snapshots, "pruning": pruning, "undoing": undoing, "full": full}[sys.argv[1]](
            Path(folder).resolve(), int(sys.argv[2])
        )
        git(Path(folder) / "root", "fsck", "--strict")
        sys.stdout.write(f"{kills}\n")


if __name__ == "__main__":
    main()
