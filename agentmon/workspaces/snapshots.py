"""Snapshots: what a folder holds at one moment, kept outside of it; the repository of a person is only read.

A snapshot is a tree of git in the store's own objects, and a small file that says what the tree cannot. Contents that
the person's repository has are not copied, until a snapshot differs from the one before: what differs between two
snapshots of a folder is in the store, both sides, whatever becomes of the repository.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import shutil
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentmon.domain.errors import NotFoundError, SnapshotError
from agentmon.domain.plain_text import plain_line
from agentmon.paths import is_repository
from agentmon.private_folders import make_private_folder
from agentmon.workspaces.files import (
    NOT_KEPT,
    FolderModes,
    git_mode,
    leads_nowhere,
    refusals_told,
    replace_file,
)
from agentmon.workspaces.folder_index import FolderIndex, Limits, make_git_dir, tree_of_index
from agentmon.workspaces.git import Git, GitFailedError, GitTimeoutError, names
from agentmon.workspaces.objects import (
    HASHES,
    copy_missing,
    hash_of,
    keep_only,
    pack_loose,
    remove_unfinished,
    require_tree,
    set_damaged_aside,
)
from agentmon.workspaces.repositories import find_repository, find_root, find_settings, object_format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_LARGE_BYTES: Final = 32 << 20
_MAX_FILES: Final = 200_000
_MAX_BYTES: Final = 512 << 20
_MAX_NESTED: Final = 100
_GONE_HINT: Final = "Snapshots are removed together with the history of their runs."
_KNOWN: Final = ("head", "nested", "empty_folders", "uncovered", "limit", "trees", "tree")
_CLEANING_WAIT_S: Final = 0.5
_CLEANING_REST_S: Final = 0.01
_MOST_LATER: Final = 20


class Uncovered(NamedTuple):
    """A path whose content a snapshot does not have."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a folder holds at one moment."""

    id: str
    """By which the store gives it back; a folder that did not change since has the same one."""
    root: Path
    """The top of the repository, or the folder itself; paths are relative to it."""
    tree: str
    """The id of a tree in the store's objects."""
    head: str | None
    """The commit that is checked out; None without a repository or without any commit."""
    nested: tuple[str, ...]
    """Repositories within, whose files are covered like all others; what is in their ``.git`` is not."""
    empty_folders: tuple[str, ...]
    """Folders without any file, as far as they are known."""
    uncovered: tuple[Uncovered, ...]
    limit: str
    """Why only files that tool calls name are kept; empty where all are."""
    modes: Mapping[str, FolderModes] = field(default_factory=lambda: {"": FolderModes()}, repr=False, hash=False)
    """Of the files of each repository within and, by the empty path, of all others; paths are relative to it."""

    @property
    def taken_at(self) -> datetime:
        """When its folder was found like that first."""
        return taken_at(self.id)

    def mode_of(self, path: str, known_to_git: int) -> int:
        """Return the mode of a file of the tree, with its permission bits."""
        inner = max((one for one in self.nested if path.startswith(f"{one}/")), key=len, default="")
        return self.modes[inner].mode_of(path[len(inner) + 1 :] if inner else path, known_to_git)


class _Named(NamedTuple):
    """A path that no snapshot had, as it was when somebody named it."""

    number: int
    """Of the last snapshot before."""
    path: str
    mode: int
    """0 where it was not there."""
    ref: str


class HeldRoot(NamedTuple):
    """A root from which all others are kept away."""

    folder: Path
    """Where the store keeps what belongs to this root."""
    take: Callable[[], Snapshot]
    """As ``SnapshotStore.take``."""


@dataclass(slots=True)
class _Place:
    """What the store knows of one root, while its lock is held."""

    folder: Path
    root: Path
    locks: tuple[int, ...]
    number: int
    last: str
    named: list[_Named]


class SnapshotStore:
    """Snapshots of folders, in a folder of agentmon's own.

    Each method blocks, may be called in any thread and process, and waits for others that are at work on the same root.

    Args:
        folder: The folder of the store; made when it is not there, for nobody else to read.
        left_out: Further folders that are never looked at, where they lie within a root.
        large_bytes: Of a file with more bytes than these only the hash is kept.
        max_files: How many files outside of version control are kept of one root.
        max_bytes: How many bytes of them that no snapshot had yet are kept at one time.
    """

    def __init__(
        self,
        folder: Path,
        *,
        left_out: Sequence[Path] = (),
        large_bytes: int = _LARGE_BYTES,
        max_files: int = _MAX_FILES,
        max_bytes: int = _MAX_BYTES,
    ) -> None:
        with refusals_told(folder):
            make_private_folder(folder)
        self.folder = folder.resolve()
        self._left_out = (self.folder, *(out.resolve() for out in left_out))
        self._limits = Limits(large_bytes, max_files, max_bytes)

    def take(self, root: Path) -> Snapshot:
        """Return what a folder holds now.

        A file that vanishes or changes while it is read is taken as it is then, or told as uncovered.

        Args:
            root: The folder; of one within a repository the whole repository is taken.

        Raises:
            SnapshotError: There is no such folder, or git failed.
        """
        with self._at(find_root(root)) as place:
            return self._take(place)

    def keep(self, root: Path, paths: Iterable[str | Path], *, since: float | None = None) -> tuple[Uncovered, ...]:
        """Keep files that no snapshot has, before somebody writes them: ignored ones, or all where a limit is reached.

        Call it before the write. Snapshots have such a path from now on, and a comparison with an older one takes the
        path as it is now for its state before.

        Args:
            root: The folder, as for ``take``.
            paths: Absolute, or relative to ``root``; they need not be there.
            since: What was changed since then, in seconds since 1970, is too late to be kept; None keeps it as it is.

        Returns:
            The paths that cannot be kept, with the reason.

        Raises:
            SnapshotError: There is no such folder, or git failed.
        """
        top = find_root(root)
        uncovered = []
        owners: dict[Path, list[str]] = {}
        for path in paths:
            full = Path(os.path.normpath(root.resolve() / path))
            # A link that leads in a circle raises in ``Path.resolve``.
            full = Path(os.path.realpath(full.parent), full.name)
            if not full.is_relative_to(top) or full == top:
                uncovered.append(Uncovered(os.fspath(path), "is outside of the folder"))
                continue
            if leads_nowhere(full):
                continue
            owner = next(folder for folder in full.parents if folder == top or is_repository(folder))
            owners.setdefault(owner, []).append(str(full.relative_to(owner)))
        with self._at(top) as place:
            for owner, inner in owners.items():
                index = self._index(place, owner, find_settings(owner))
                prefix = "" if owner == top else f"{owner.relative_to(top)}/"
                for path in index.name(inner):
                    mode, ref = index.state_of(path) or (0, "")
                    if since is not None and _is_changed(owner / path, since):
                        mode, ref = NOT_KEPT, index.blob_id(b"written before it could be kept")
                    place.named.append(_Named(place.number, prefix + path, mode, ref))
                    if mode == NOT_KEPT:
                        uncovered.append(
                            Uncovered(prefix + path, "is too large, may not be read, or was written before")
                        )
            self._write_place(place)
        return tuple(uncovered)

    @contextlib.contextmanager
    def alone(self, root: Path) -> Iterator[HeldRoot]:
        """Keep all others away from a root: nobody else takes a snapshot of it, or takes something back in it.

        Args:
            root: As ``Snapshot.root`` has it.
        """
        with self._at(root) as place:
            yield HeldRoot(place.folder, functools.partial(self._take, place))

    def places(self) -> list[tuple[Path, Path]]:
        """Return the roots of which there are snapshots, each with the folder of ``HeldRoot``.

        Raises:
            SnapshotError: The store cannot be read.
        """
        with refusals_told(self.folder):
            return [(root, folder) for folder in self._place_folders() if (root := _read_root(folder)) is not None]

    def get(self, snapshot_id: str) -> Snapshot:
        """Return a snapshot by its id.

        Raises:
            NotFoundError: It was pruned, or was never taken.
        """
        key, _, number = snapshot_id.partition("-")
        if not (key.isalnum() and number.isdigit()):
            raise NotFoundError(f"{snapshot_id!r} is no snapshot")
        folder = self.folder / "roots" / key
        with refusals_told(folder):
            try:
                known = _read_json(folder / "snapshots" / f"{number}.json", *_KNOWN)
            except FileNotFoundError:
                raise NotFoundError(f"snapshot {snapshot_id} is gone", hint=_GONE_HINT) from None
            root = _require_root(folder)
        return _snapshot(snapshot_id, root, known)

    def newest(self, root: Path) -> Snapshot | None:
        """Return the last snapshot that was taken of a root, whether it is still there or not; None without any.

        Args:
            root: As ``Snapshot.root`` has it.
        """
        place = self.folder / "roots" / hashlib.sha256(os.fsencode(root)).hexdigest()[:16] / "place.json"
        try:
            return self.get(str(json.loads(place.read_bytes())["last"]))
        except (FileNotFoundError, NotFoundError):
            return None
        except (ValueError, KeyError) as error:
            raise SnapshotError(f"the store of snapshots is damaged: {place}", hint="Move that folder away.") from error

    def later(self, snapshot: Snapshot) -> list[Snapshot]:
        """Return what was taken of the same root after a snapshot, the oldest first; the newest 20 at most."""
        key, _, number = snapshot.id.partition("-")
        files = (self.folder / "roots" / key / "snapshots").glob("*.json")
        numbers = sorted(int(file.stem) for file in files if file.stem.isdigit() and int(file.stem) > int(number))
        found = []
        for one in numbers[-_MOST_LATER:]:
            with contextlib.suppress(NotFoundError):
                found.append(self.get(f"{key}-{one}"))
        return found

    def prune(self, keep: Iterable[str], *, refs: Iterable[str] = (), since: datetime | None = None) -> None:
        """Remove all snapshots but those with these ids, and what only they needed.

        Args:
            keep: Their ids.
            refs: Contents that stay all the same.
            since: Those that were taken since then stay too.

        Raises:
            SnapshotError: git failed, or the store is damaged; nothing that is needed was removed.
        """
        kept = set(keep)
        newest = float("inf") if since is None else since.timestamp() * 1e9

        def stays(file: Path) -> bool:
            place = file.parent.parent
            return f"{place.name}-{file.stem}" in kept or int(file.stem) >= newest or (place / "undo").exists()

        # Whoever looks at a folder waits meanwhile, and all that is kept is packed anew.
        unfinished = self.folder / "pruning"
        if all(map(stays, self.folder.glob("roots/*/snapshots/*.json"))) and not unfinished.exists():
            return
        trees: set[str] = set()
        kept_refs = set(refs)
        with refusals_told(self.folder), self._lock(self.folder / "lock", fcntl.LOCK_EX) as lock:
            unfinished.touch(mode=0o600)
            for hash_name in HASHES:
                remove_unfinished(self._objects(hash_name))
            for folder in self._place_folders():
                place = self._read_place(folder, lock)
                numbers = set()
                for file in (folder / "snapshots").glob("*.json"):
                    if stays(file):
                        numbers.add(int(file.stem))
                        trees.add(_read_json(file, *_KNOWN)["tree"])
                    else:
                        file.unlink()
                if not numbers and not (folder / "undo").exists():
                    shutil.rmtree(folder)
                    continue
                place.named = [named for named in place.named if named.number >= min(numbers, default=0)]
                self._write_place(place)
                kept_refs |= {named.ref for named in place.named if named.mode not in {0, NOT_KEPT}}
                trees |= {tree for index in (folder / "indexes").iterdir() if (tree := tree_of_index(index))}
            for hash_name in HASHES:
                trees_of_it = {ref for ref in trees if hash_of(ref) == hash_name}
                refs_of_it = {ref for ref in kept_refs if hash_of(ref) == hash_name}
                keep_only(self.git(hash_name=hash_name), trees_of_it, refs_of_it)
            unfinished.unlink()

    def tree_before(self, before: Snapshot, after: Snapshot) -> tuple[str, Mapping[str, int]]:
        """Return the tree of ``before``, completed by files that were kept and that it does not have; and their modes.

        Raises:
            GitError: git failed.
        """
        if before.id == after.id or before.root != after.root:
            return before.tree, {}
        key, _, number = before.id.partition("-")
        place = self._read_place(self.folder / "roots" / key)
        first: dict[str, _Named] = {}
        for named in place.named:
            if int(number) <= named.number < int(after.id.partition("-")[2]):
                first.setdefault(named.path, named)
        git = self.git(before)
        known = set(names(git.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", before.tree, "--", *first)))
        added = [named for named in first.values() if named.mode and named.path not in known]
        if not first or not added:
            return before.tree, {}
        with TemporaryDirectory(dir=place.folder, prefix="index-") as folder:
            git = replace(git, index=Path(folder) / "index")
            git.run("read-tree", before.tree)
            lines = b"".join(b"%o %s\t%s\0" % (git_mode(n.mode), n.ref.encode(), os.fsencode(n.path)) for n in added)
            git.run("update-index", "-z", "--index-info", data=lines)
            tree = git.run("write-tree", "--missing-ok").decode().strip()
        return tree, {named.path: named.mode for named in added}

    def git(self, *snapshots: Snapshot, hash_name: str = "sha1") -> Git:
        """Return a git that sees the store's objects and those of the repositories of some snapshots.

        Args:
            snapshots: Which decide on the hash, too.
            hash_name: Without any snapshot: ``sha1`` or ``sha256``.
        """
        if snapshots:
            hash_name = hash_of(snapshots[0].tree)
        git_dir = self.folder / f"git-{hash_name}"
        make_git_dir(git_dir, hash_name)
        tops = [snapshot.root / inner for snapshot in snapshots for inner in ("", *snapshot.nested)]
        return Git(git_dir=git_dir, objects=self._objects(hash_name), alternates=_object_folders(tops))

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Keep what is not needed from being removed, for as long as somebody reads several objects."""
        with refusals_told(self.folder), self._lock(self.folder / "lock", fcntl.LOCK_SH):
            yield

    # Taking

    def _take(self, place: _Place) -> Snapshot:
        try:
            return self._look(place)
        except GitTimeoutError:
            raise
        except GitFailedError:
            # What a loss of power has left half written is written anew.
            set_damaged_aside(self.git(hash_name=object_format(find_settings(place.root))))
            for index in (place.folder / "indexes").glob("*/index"):
                index.unlink()
            place.last = ""
            return self._look(place)

    def _look(self, place: _Place) -> Snapshot:
        settings = find_settings(place.root)
        hash_name = object_format(settings)
        trees: dict[str, str] = {}
        modes: dict[str, object] = {}
        nested: list[str] = []
        empty: list[str] = []
        uncovered: list[Uncovered] = []
        limits: list[str] = []
        waiting = [""]
        while waiting:
            inner = waiting.pop()
            prefix = f"{inner}/" if inner else ""
            folder = place.root / inner
            if inner:
                settings = find_settings(folder)
                if object_format(settings) != hash_name or len(nested) == _MAX_NESTED:
                    uncovered.append(Uncovered(inner, "has another hash, or is one repository too many"))
                    continue
            state = self._index(place, folder, settings).take()
            trees[inner], modes[inner] = state.tree, list(state.modes)
            nested += [inner] if inner else []
            empty += [prefix + path for path in state.empty_folders]
            uncovered += [Uncovered(prefix + path, reason) for path, reason in state.uncovered]
            limits += [state.limit] if state.limit else []
            waiting += [prefix + path for path in state.nested]
        repository = find_repository(place.root)
        known: dict[str, object] = {
            "head": repository.head() if repository else None,
            "nested": sorted(nested),
            "empty_folders": sorted(empty),
            "uncovered": sorted(map(list, uncovered)),
            "limit": limits[0] if limits else "",
            "trees": trees,
            "modes": modes,
        }
        last = self._last(place)
        if last is not None and all(last.get(name) == value for name, value in known.items()):
            require_tree(self.git(hash_name=hash_name), str(last["tree"]))
            return _snapshot(place.last, place.root, last)
        tops = [place.root / inner for inner in ("", *nested)]
        git = replace(self.git(hash_name=hash_name), alternates=_object_folders(tops), held_locks=place.locks)
        known["tree"] = _whole_tree(git, trees)
        copy_missing(git, str(last["tree"]) if last else None, str(known["tree"]))
        require_tree(git, str(known["tree"]))
        # No number comes twice, also when all that is known of this root was pruned.
        place.number = max(place.number + 1, time.time_ns())
        place.last = f"{place.folder.name}-{place.number}"
        replace_file(place.folder / "snapshots" / f"{place.number}.json", json.dumps(known).encode(), lasts=True)
        self._write_place(place)
        pack_loose(git)
        return _snapshot(place.last, place.root, known)

    def _index(self, place: _Place, folder: Path, settings: Mapping[str, str]) -> FolderIndex:
        inner = os.path.relpath(folder, place.root)
        return FolderIndex(
            place.folder / "indexes" / hashlib.sha256(os.fsencode(inner)).hexdigest()[:16],
            root=folder,
            repository=find_repository(folder),
            objects=self._objects(object_format(settings)),
            settings=settings,
            left_out=self._left_out,
            limits=self._limits,
            held_locks=place.locks,
        )

    def _objects(self, hash_name: str) -> Path:
        objects = self.folder / f"objects-{hash_name}"
        make_private_folder(objects / "pack")
        return objects

    def _last(self, place: _Place) -> dict[str, object] | None:
        try:
            return _read_json(place.folder / "snapshots" / f"{place.last.partition('-')[2]}.json", *_KNOWN)
        except (FileNotFoundError, SnapshotError):
            return None

    # Places and locks

    @contextlib.contextmanager
    def _at(self, root: Path) -> Iterator[_Place]:
        folder = self.folder / "roots" / _key(root)
        with refusals_told(self.folder), self._lock(self.folder / "lock", fcntl.LOCK_SH) as shared:
            make_private_folder(folder / "snapshots")
            with self._lock(folder / "lock", fcntl.LOCK_EX) as own:
                if _read_root(folder) != root:
                    replace_file(folder / "root", os.fsencode(root))
                # Stays behind a kill, until nobody else is at work on the objects.
                unfinished = folder / "unfinished"
                is_clean = not unfinished.exists() or self._clean_up(folder, shared)
                unfinished.touch(mode=0o600)
                yield self._read_place(folder, shared, own)
                if is_clean:
                    unfinished.unlink()

    def _clean_up(self, folder: Path, shared: int) -> bool:
        """Remove what a kill left among the objects, and return whether that was possible."""
        # Who was killed may let go of this lock a moment after that of the place.
        deadline = time.monotonic() + _CLEANING_WAIT_S
        try:
            while not _is_exclusive(shared):
                if time.monotonic() > deadline:
                    return False
                time.sleep(_CLEANING_REST_S)
            for hash_name in HASHES:
                remove_unfinished(self._objects(hash_name))
            for left in folder.glob("index-*"):
                shutil.rmtree(left)
            for left in (folder / "snapshots").glob("*.new"):
                left.unlink()
            return True
        finally:
            fcntl.flock(shared, fcntl.LOCK_SH)

    @contextlib.contextmanager
    def _lock(self, path: Path, kind: int) -> Iterator[int]:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, kind)
            yield descriptor
        finally:
            os.close(descriptor)

    def _place_folders(self) -> list[Path]:
        # Without this file a place is one that a kill left unmade.
        return [file.parent for file in (self.folder / "roots").glob("*/root")]

    def _read_place(self, folder: Path, *locks: int) -> _Place:
        root = _require_root(folder)
        try:
            known = _read_json(folder / "place.json", "number", "last", "named")
        except FileNotFoundError:
            return _Place(folder, root, locks, 0, "", [])
        return _Place(folder, root, locks, known["number"], known["last"], [_Named(*named) for named in known["named"]])

    def _write_place(self, place: _Place) -> None:
        known = {"number": place.number, "last": place.last, "named": place.named}
        replace_file(place.folder / "place.json", json.dumps(known).encode(), lasts=True)


def taken_at(snapshot_id: str) -> datetime:
    """Return when a folder was first found as this snapshot has it."""
    return datetime.fromtimestamp(int(snapshot_id.rpartition("-")[2]) / 1e9, UTC)


def _is_changed(path: Path, since: float) -> bool:
    """Return whether a file was changed since a time, or else its folder where it is not there."""
    for place in (path, path.parent):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return place.lstat().st_ctime >= since
    return False


def _is_exclusive(lock: int) -> bool:
    """Try to keep all others from a lock, and return whether that went."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _key(root: Path) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def _read_root(folder: Path) -> Path | None:
    """Return the root that a place is of; None where it was not written down, or does not fit the place."""
    try:
        root = Path(os.fsdecode((folder / "root").read_bytes()))
    except FileNotFoundError:
        return None
    return root if _key(root) == folder.name else None


def _require_root(folder: Path) -> Path:
    root = _read_root(folder)
    if root is None and (folder / "root").exists():
        raise _damage(folder / "root")
    if root is None:
        raise NotFoundError("the snapshots of this folder are gone", hint=_GONE_HINT)
    return root


def _read_json(path: Path, *keys: str) -> dict[str, Any]:
    """Return what a file of the store holds.

    Raises:
        FileNotFoundError: There is none.
        SnapshotError: It does not hold all these keys.
    """
    try:
        known = json.loads(path.read_bytes())
    except ValueError as error:
        raise _damage(path) from error
    if not (isinstance(known, dict) and known.keys() >= {*keys}):
        raise _damage(path)
    return known


def _damage(path: Path) -> SnapshotError:
    place = plain_line(str(path))
    return SnapshotError(f"{place} is damaged", hint="Move the folder that it is in away; its runs cannot be undone.")


def _snapshot(snapshot_id: str, root: Path, known: Mapping[str, object]) -> Snapshot:
    values = json.loads(json.dumps(known))
    return Snapshot(
        id=snapshot_id,
        root=root,
        tree=values["tree"],
        head=values["head"],
        nested=tuple(values["nested"]),
        empty_folders=tuple(values["empty_folders"]),
        uncovered=tuple(Uncovered(*pair) for pair in values["uncovered"]),
        limit=values["limit"],
        modes={inner: FolderModes(*modes) for inner, modes in values.get("modes", {"": []}).items()},
    )


def _object_folders(tops: Iterable[Path]) -> tuple[Path, ...]:
    found = [repository.objects for top in tops if (repository := find_repository(top))]
    return tuple(dict.fromkeys(found))


def _whole_tree(git: Git, trees: Mapping[str, str]) -> str:
    """Return one tree of a folder's own tree (by the empty name) and those of the repositories within."""
    tree = trees[""]
    empty = git.run("hash-object", "-t", "tree", "--stdin").decode().strip()
    # Outer ones first, since each changes the tree that is given.
    for inner in sorted(filter(None, trees), key=lambda path: path.count("/")):
        if trees[inner] != empty:
            tree = _with_subtree(git, tree, inner.split("/"), trees[inner])
    return tree


def _with_subtree(git: Git, tree: str | None, parts: Sequence[str], subtree: str) -> str:
    lines = names(git.run("ls-tree", "-z", tree)) if tree else []
    by_name = {line.partition("\t")[2]: line for line in lines}
    name, *inner = parts
    if inner:
        below = by_name.get(name, "")
        below_tree = below.split(" ")[2].partition("\t")[0] if below.startswith("040000") else None
        subtree = _with_subtree(git, below_tree, inner, subtree)
    by_name[name] = f"040000 tree {subtree}\t{name}"
    data = b"".join(os.fsencode(line) + b"\0" for line in by_name.values())
    return git.run("mktree", "-z", "--missing", data=data).decode().strip()
