"""The private index of one folder: what git knows of its files, kept outside of the folder and of its repository.

It names the raw bytes of files, where the index of a person names what filters made of them. It is a cache of what is
in the folder: it may be removed, and is made anew.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import stat
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.paths import is_repository
from agentmon.private_folders import make_private_folder
from agentmon.workspaces.files import (
    EXECUTABLE,
    NOT_KEPT,
    PLAIN,
    FolderModes,
    blob_id,
    git_mode,
    kept_mode,
    leads_nowhere,
    refusals_told,
    replace_file,
)
from agentmon.workspaces.git import Git, GitFailedError, GitTimeoutError, joined, names
from agentmon.workspaces.repositories import object_format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from agentmon.workspaces.git import RunningGit
    from agentmon.workspaces.repositories import Repository

# Undoes what repositories ask to be done to the bytes of files; to git no other file of attributes counts more.
_ATTRIBUTES: Final = b"* -text -eol -crlf -filter -ident -working-tree-encoding !diff !merge\n"
_CONVERTING: Final = frozenset({"text", "eol", "crlf", "filter", "ident", "working-tree-encoding"})
_MAX_PATHSPECS: Final = 200
_LISTING_LIMIT_S: Final = 60.0
_LIMIT_HOLDS_S: Final = 3_600.0
_PIECE: Final = 1 << 20
_ROOM_BYTES: Final = 1 << 16
_LONGEST_PATH: Final = 4_095
"""In bytes, as the system takes them."""
_CLOCK_LAG_S: Final = 0.05
"""More than the times of files lag behind the clock."""
_WALK: Final = ("ls-files", "-z", "-o", "--directory", "--exclude-standard")
_REFUSED: Final = re.compile(r"(?:.*/)?\.git(?=/|$)", re.DOTALL | re.IGNORECASE)
"""Git takes no file of this name or below it, however it is spelled."""


class Limits(NamedTuple):
    """How much is kept of one folder."""

    large_bytes: int
    """A file with more than these is known by its hash only."""
    max_files: int
    """With more files than these outside of version control, only those that are named are kept."""
    max_bytes: int
    """So it is where files that no snapshot had yet have more bytes together, large ones not counted."""


class _Others(NamedTuple):
    """What is not in the index."""

    files: list[str]
    folders: list[str]
    """Those without any file in the index, but with something in them; with a slash."""
    nested: list[str]
    empty: list[str]
    uncovered: dict[str, str]
    """What cannot be taken, with the reason."""


class FolderState(NamedTuple):
    """What a folder holds."""

    tree: str
    """The id of a tree in the objects of the store; without nested repositories."""
    nested: tuple[str, ...]
    """Folders that are work trees of repositories of their own."""
    empty_folders: tuple[str, ...]
    """Folders without a file, as far as git finds them."""
    uncovered: tuple[tuple[str, str], ...]
    """Paths whose content is not kept, with the reason."""
    limit: str
    """Why only named files are kept; empty where all are."""
    modes: FolderModes


@dataclass(slots=True)
class _Memory:
    """What is known of the index since the last time."""

    index: list[int] = field(default_factory=list)
    """Which file the index was when ``tree`` was made of it."""
    tree: str = ""
    index_of_person: list[int] = field(default_factory=list)
    not_kept: dict[str, list[object]] = field(default_factory=dict)
    """By path: size, times and inode of a file, the id that stands for it, and the reason."""
    named: dict[str, bool] = field(default_factory=dict)
    """Paths that are kept although they are ignored, and whether the index has them."""
    usual_modes: list[int] = field(default_factory=list)
    """Of plain and of executable files; empty until all files were looked at."""
    modes: dict[str, int] = field(default_factory=dict)
    """Of files that have another one, by path."""
    fresh: list[str] = field(default_factory=list)
    """Files whose permissions are looked at again: git sees no change of them within the second of another change."""
    limit: str = ""
    limit_until: float = 0.0
    """When to look again, in seconds since 1970."""


class FolderIndex:
    """The private index of one folder.

    Args:
        folder: A folder of the store, for this index alone; the caller holds its lock.
        root: Whose files.
        repository: To which they belong, if any.
        objects: Where contents go.
        settings: What the person has set, as ``find_settings`` says.
        left_out: Folders whose files are not looked at.
        limits: How much is kept.
        held_locks: The descriptors of the caller's locks.
    """

    def __init__(
        self,
        folder: Path,
        *,
        root: Path,
        repository: Repository | None,
        objects: Path,
        settings: Mapping[str, str],
        left_out: Iterable[Path],
        limits: Limits,
        held_locks: tuple[int, ...],
    ) -> None:
        self._folder = folder
        self._root = root
        self._repository = repository
        self._format = object_format(settings)
        self._limits = limits
        own = [repository.git_dir, repository.common_dir] if repository else []
        self._left_out = tuple(
            f"{out.relative_to(root)}/" for out in (*left_out, *own) if out != root and out.is_relative_to(root)
        )
        self._index = folder / "index"
        make_git_dir(folder, self._format)
        # After a kill; whoever made it has ended, since the lock would still be held.
        (folder / "index.lock").unlink(missing_ok=True)
        self._converts_all = settings.get("core.autocrlf", "false") not in {"false", "0", "no", "off", ""}
        self.git = Git(
            git_dir=folder,
            work_tree=root,
            objects=objects,
            alternates=(repository.objects,) if repository else (),
            settings={
                "core.excludesFile": settings["core.excludesfile"],
                # A repository that was copied here from such a disk says so too.
                "core.ignoreCase": settings.get("core.ignorecase", "false") if _folds_case(root) else "false",
                "core.precomposeUnicode": settings.get("core.precomposeunicode", "false"),
            },
            held_locks=held_locks,
        )
        self._write_ignore_rules()
        self._memory = self._read_memory()

    def take(self) -> FolderState:
        """Bring the index up to what the folder holds, and return that.

        Raises:
            GitError: git failed twice.
        """
        try:
            return self._take()
        except GitTimeoutError:
            raise
        except GitFailedError:
            self._require_room()
            # A damaged index, or contents that the repository no longer has: all files are read anew.
            self._index.unlink(missing_ok=True)
            self._memory = _Memory(named=dict.fromkeys(self._memory.named, False))
            return self._take(seeds=False)

    def name(self, paths: Iterable[str]) -> list[str]:
        """Keep these paths from now on, and return those that were not kept before, as no snapshot has them.

        Args:
            paths: Relative to the folder; what the index has already, and what needs no naming, is passed over.
        """
        unknown = [path for path in paths if path not in self._memory.named and not self._is_left_out(path)]
        if not unknown:
            return []
        if not self._memory.limit:
            known = set(names(self.git.run("ls-files", "-z", "--", *unknown)))
            others = ("ls-files", "-z", "-o", "-i", "--directory", "--exclude-standard", "--")
            # What is not there yet is asked for by its name: git lists files only.
            ignored = names(self.git.run(*others, *unknown))
            rules = self._ignored_by_rule([path for path in unknown if path not in known])
            unknown = [
                path
                for path in unknown
                if path not in known
                and (path in rules or any(path == name or path.startswith(_folder(name)) for name in ignored))
            ]
        self._memory.named |= dict.fromkeys(unknown, False)
        self._write_memory()
        return unknown

    def state_of(self, path: str) -> tuple[int, str] | None:
        """Return mode and id of a path as it is in the folder now, with its content kept; None when it is not there."""
        kept, gone, not_kept = self._sort([path])
        if gone:
            return None
        if path in not_kept:
            return NOT_KEPT, str(not_kept[path][-2])
        if not kept:
            return None
        full = self._root / path
        mode = kept_mode(full.lstat().st_mode)
        content = os.fsencode(full.readlink()) if stat.S_ISLNK(mode) else full.read_bytes()
        return mode, self.git.run("hash-object", "-w", "--stdin", "--no-filters", data=content).decode().strip()

    def _take(self, *, seeds: bool = True) -> FolderState:
        again: list[str] = []
        if not self._index.exists():
            self._memory.named = dict.fromkeys(self._memory.named, False)
            self._memory.not_kept, self._memory.usual_modes = {}, []
            again = self._seed() if seeds else self._tracked()
        elif self._index_of_person() != self._memory.index_of_person:
            again = self._tracked_though_ignored()
        with self.git.start(*_WALK) as walk:
            changed, gone = self._changed()
            # Git lists no folder that has the name of a file in the index.
            instead = [f"{path}/" for path in (*changed, *gone) if self._is_folder(path)]
            others = self._others(walk, instead)
        again += [path for path, is_known in self._memory.named.items() if not is_known and self._is_there(path)]
        self._bring_in([*changed, *others.files, *again], gone)
        self._note_modes()
        empty = [*others.empty, *self._empty_below(others.folders)]
        signature = _signature(self._index)
        if not self._memory.tree or signature != self._memory.index:
            self._memory.tree = self.git.run("write-tree").decode().strip()
            self._memory.index = _signature(self._index)
        self._write_memory()
        uncovered = {path: str(known[-1]) for path, known in self._memory.not_kept.items()}
        plain, executable = self._memory.usual_modes
        uncovered |= others.uncovered
        return FolderState(
            self._memory.tree,
            tuple(sorted(others.nested)),
            tuple(sorted(set(empty))),
            tuple(sorted(uncovered.items())),
            self._memory.limit,
            FolderModes(plain, executable, self._memory.modes),
        )

    # What differs from the index

    def _changed(self) -> tuple[list[str], list[str]]:
        """Return paths of the index whose files look different, and paths that are no longer there."""
        look = self.git.start("diff-files", "-z", "--raw")
        parts = names(look.end())
        changed: list[str] = []
        gone: list[str] = []
        for fields, path in zip(parts[::2], parts[1::2], strict=True):
            (gone if fields.endswith("D") else changed).append(path)
        if look.warnings:
            # Git passes over what it cannot look at.
            known = names(self.git.run("ls-files", "-z"))
            gone += [path for path in known if leads_nowhere(f"{self._root}/{path}")]
        return changed, gone

    def _others(self, walk: RunningGit, instead: list[str]) -> _Others:
        """Return what is not in the index; nothing where a limit is reached."""
        found = _Others([], [], [], [], {})
        memory = self._memory
        if memory.limit and time.time() < memory.limit_until:
            return found
        memory.limit = ""
        try:
            for path in [*names(walk.end()), *instead]:
                if not self._is_left_out(path) and not self._is_refused(path, found):
                    self._sort_in(path, found)
            found.uncovered.update(_unopened(walk.warnings))
            if found.folders:
                git = replace(self.git, limit_s=_LISTING_LIMIT_S)
                within = git.start("ls-files", "-z", "-o", "--exclude-standard", "--", *_within(found.folders))
                for path in names(within.end()):
                    if not self._is_left_out(path) and not self._is_refused(path, found):
                        (found.nested if path.endswith("/") else found.files).append(path.rstrip("/"))
                found.uncovered.update(_unopened(within.warnings))
        except GitTimeoutError:
            memory.limit = "it takes too long to list them"
        # Those of folders without a name, where all were listed, are there twice.
        files, nested = list(dict.fromkeys(found.files)), list(dict.fromkeys(found.nested))
        memory.limit = memory.limit or self._limit_of(files)
        if memory.limit:
            memory.limit_until = time.time() + _LIMIT_HOLDS_S
            return _Others([], [], [], [], {})
        return found._replace(files=files, nested=nested)

    def _limit_of(self, files: Sequence[str]) -> str:
        """Return which limit files that are not in the index go beyond; empty for none."""
        known = 0 if self._repository else _entries(self._index)
        if known + len(files) > self._limits.max_files:
            return f"more than {self._limits.max_files:,} files"
        total = 0
        for path in files:
            with contextlib.suppress(OSError):
                size = os.lstat(f"{self._root}/{path}").st_size
                total += size if size <= self._limits.large_bytes else 0
        is_much = total > self._limits.max_bytes
        return f"more than {self._limits.max_bytes >> 20:,} MB of files outside of version control" if is_much else ""

    def _is_refused(self, path: str, found: _Others) -> bool:
        """Return whether a path cannot be in an index, and say so in what was found."""
        if refused := _REFUSED.match(path):
            found.uncovered[refused[0]] = "git takes no file of this name"
        elif len(os.fsencode(f"{self._root}/{path}")) > _LONGEST_PATH:
            found.uncovered[path] = "its path is too long"
        else:
            return False
        return True

    def _sort_in(self, path: str, found: _Others) -> None:
        if not path.endswith("/"):
            found.files.append(path)
        elif is_repository(self._root / path):
            found.nested.append(path[:-1])
        elif _is_empty(self._root / path):
            found.empty.append(path[:-1])
        else:
            found.folders.append(path)

    def _empty_below(self, folders: list[str]) -> list[str]:
        """Return the empty folders below some that were not in the index before."""
        if not folders:
            return []
        empty = []
        for path in names(self.git.run(*_WALK, "--", *_within(folders))):
            if not path.endswith("/") or self._is_left_out(path):
                continue
            for folder, inner, files in os.walk(self._root / path):
                if is_repository(Path(folder)):
                    inner.clear()
                elif not inner and not files:
                    empty.append(str(Path(folder).relative_to(self._root)))
        return empty

    # Bringing it in

    def _bring_in(self, present: Iterable[str], gone: Iterable[str]) -> None:
        """Put files into the index as they are, and take out those that are gone."""
        kept, missing, not_kept = self._sort(dict.fromkeys(present))
        removed = {*gone, *missing}
        memory = self._memory
        stand_ins = {path: known for path, known in not_kept.items() if memory.not_kept.get(path) != known}
        self._put([(path, 0, "") for path in removed] + [(p, NOT_KEPT, str(k[-2])) for p, k in stand_ins.items()])
        failed = self._add(kept)
        vanished = [path for path in failed if not self._is_there(path)]
        unread = {path: [0, 0, 0, 0, self.blob_id(os.fsencode(path)), "could not be kept"] for path in failed}
        for path in vanished:
            del unread[path]
        self._put([(path, 0, "") for path in vanished] + [(p, NOT_KEPT, str(k[-2])) for p, k in unread.items()])
        for path in (*removed, *vanished, *kept):
            memory.not_kept.pop(path, None)
        memory.not_kept |= stand_ins | unread
        for path in (*removed, *vanished, *stand_ins, *unread):
            memory.modes.pop(path, None)
        memory.fresh += kept
        for path in memory.named.keys() & {*removed, *vanished}:
            memory.named[path] = False
        for path in memory.named.keys() & {*kept, *stand_ins, *unread} - {*vanished}:
            memory.named[path] = True

    def _note_modes(self) -> None:
        """Look at the permissions of what was changed, of files that the index has by now; at first of all."""
        memory, found = self._memory, dict[str, int]()
        paths, memory.fresh = memory.fresh, []
        if not memory.usual_modes:
            paths, memory.modes = [path for _, mode, path in self._entries("-v") if stat.S_ISREG(mode)], {}
        for path in dict.fromkeys(paths):
            second = int(time.time() - _CLOCK_LAG_S)
            with contextlib.suppress(OSError):
                there = os.lstat(f"{self._root}/{path}")
                if stat.S_ISREG(there.st_mode) and path not in memory.not_kept:
                    found[path] = kept_mode(there.st_mode)
                    memory.fresh += [path] if int(there.st_ctime) >= second else []
        if not memory.usual_modes:
            counts = Counter(found.values())
            for usual in (PLAIN, EXECUTABLE):
                same = [mode for mode in counts if git_mode(mode) == usual]
                memory.usual_modes.append(max(same, key=lambda mode: (counts[mode], mode), default=usual))
        for path, mode in found.items():
            if mode == memory.usual_modes[git_mode(mode) == EXECUTABLE]:
                memory.modes.pop(path, None)
            else:
                memory.modes[path] = mode

    def _sort(self, paths: Iterable[str]) -> tuple[list[str], list[str], dict[str, list[object]]]:
        """Tell paths apart: whose content is kept, which are no file, and what stands for the others."""
        kept, missing, not_kept = [], [], {}
        root = str(self._root)
        for path in paths:
            full = f"{root}/{path}"
            try:
                found = os.lstat(full)
            except (FileNotFoundError, NotADirectoryError):
                missing.append(path)
                continue
            except OSError as error:
                not_kept[path] = [0, 0, 0, 0, self.blob_id(os.fsencode(path)), error.strerror]
                continue
            if stat.S_ISLNK(found.st_mode):
                kept.append(path)
            elif not stat.S_ISREG(found.st_mode):
                missing.append(path)
            elif found.st_size > self._limits.large_bytes:
                not_kept[path] = self._not_kept(path, found)
            elif not os.access(full, os.R_OK):
                known = [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
                not_kept[path] = [*known, self.blob_id(repr(known).encode()), "may not be read"]
            else:
                kept.append(path)
        return kept, missing, not_kept

    def _not_kept(self, path: str, found: os.stat_result) -> list[object]:
        known: list[object] = [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
        before = self._memory.not_kept.get(path)
        if before is not None and before[:4] == known:
            return before
        reason = f"larger than {self._limits.large_bytes >> 20} MB"
        try:
            with (self._root / path).open("rb") as content:
                digest = hashlib.new(self._format, b"blob %d\0" % found.st_size)
                while piece := content.read(_PIECE):
                    digest.update(piece)
        except OSError as error:
            return [*known, self.blob_id(repr(known).encode()), f"{reason}, and {error.strerror}"]
        return [*known, digest.hexdigest(), reason]

    def blob_id(self, content: bytes) -> str:
        """Return the id that git gives to a content."""
        return blob_id(content, self._format)

    def _put(self, entries: Sequence[tuple[str, int, str]]) -> None:
        """Put entries into the index by mode and id; mode 0 takes one out."""
        if not entries:
            return
        nothing = "0" * len(self.blob_id(b""))
        lines = joined(f"{mode:o} {blob or nothing}\t{path}" for path, mode, blob in entries)
        self.git.run("update-index", "-z", "--index-info", data=lines)

    def _add(self, paths: list[str]) -> list[str]:
        """Read files into the index, and return those with which git failed: they vanish or change as it reads."""
        if not paths:
            return []
        try:
            self.git.run("update-index", "-z", "--add", "--remove", "--replace", "--stdin", data=joined(paths))
        except GitFailedError:
            (self._folder / "index.lock").unlink(missing_ok=True)
            self._require_room()
            if len(paths) == 1:
                return paths
            middle = len(paths) // 2
            return self._add(paths[:middle]) + self._add(paths[middle:])
        return []

    def _require_room(self) -> None:
        """Raise where the store takes nothing more, so that no file is blamed for that."""
        objects = self.git.objects
        assert objects is not None
        with refusals_told(objects), TemporaryFile(dir=objects) as probe:
            probe.write(os.urandom(_ROOM_BYTES))
            probe.flush()

    # Where the index comes from

    def _seed(self) -> list[str]:
        """Begin with the index of the person, and return the paths whose files have to be read all the same."""
        if self._repository is None or not self._copy_index_of_person():
            return []
        entries = list(self._entries("-v"))
        converted = self._converted([path for _, _, path in entries])
        again, out = [], []
        for tag, mode, path in entries:
            if mode == NOT_KEPT or tag in "Ss":
                # Nested repositories are looked at by themselves, and what is skipped is not in the folder.
                out.append(path)
            elif tag != "H" or path in converted:
                again.append(path)
        self._put([(path, 0, "") for path in dict.fromkeys([*out, *again])])
        return list(dict.fromkeys(again))

    def _copy_index_of_person(self) -> bool:
        repository = self._repository
        assert repository is not None
        self._memory.index_of_person = self._index_of_person()
        try:
            with repository.index.open("rb") as index:
                content, found = index.read(), os.fstat(index.fileno())
        except FileNotFoundError:
            return False
        for shared in repository.git_dir.glob("sharedindex.*"):
            replace_file(self._folder / shared.name, shared.read_bytes())
        # Git takes a file that is no older than the index for one that may have changed unseen.
        replace_file(self._index, content, times_ns=(found.st_mtime_ns, found.st_mtime_ns))
        return True

    def _entries(self, *words: str) -> Iterator[tuple[str, int, str]]:
        """Yield tag, mode and path of each entry of the index."""
        for line in names(self.git.run("ls-files", "-z", "-s", *words)):
            facts, _, path = line.partition("\t")
            tag, mode, _ = facts.split(" ", 2)
            yield tag, int(mode, 8), path

    def _converted(self, paths: list[str]) -> set[str]:
        """Return the paths that the index of the person may name by other bytes than those of the file."""
        if self._converts_all:
            return set(paths)
        git = self._git_of_person()
        parts = names(git.run("check-attr", "-a", "-z", "--stdin", data=joined(paths)))
        triples = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
        return {path for path, name, value in triples if name in _CONVERTING and value != "unset"}

    def _tracked_though_ignored(self) -> list[str]:
        self._memory.index_of_person = self._index_of_person()
        git = self._git_of_person()
        listed = names(git.run("ls-files", "-z", "-c", "-i", "-t", "--exclude-standard"))
        return [line[2:] for line in listed if line.startswith("H ") and (self._root / line[2:]).is_file()]

    def _tracked(self) -> list[str]:
        if self._repository is None:
            return []
        listed = names(self._git_of_person().run("ls-files", "-z", "-t"))
        return [line[2:] for line in listed if not line.startswith("S ") and not (self._root / line[2:]).is_dir()]

    def _git_of_person(self) -> Git:
        assert self._repository is not None
        return Git(git_dir=self._repository.git_dir, work_tree=self._root, reads_settings_of_person=True)

    def _index_of_person(self) -> list[int]:
        return _signature(self._repository.index) if self._repository else []

    # Small facts

    def _ignored_by_rule(self, paths: Sequence[str]) -> set[str]:
        git = replace(self.git, takes_paths_literally=False)
        return set(names(git.run("check-ignore", "-z", "--stdin", data=joined(paths), fine=(0, 1)))) if paths else set()

    def _is_left_out(self, path: str) -> bool:
        return path.startswith(self._left_out)

    def _is_there(self, path: str) -> bool:
        """Return whether there is a file at the path itself, and not behind a link."""
        full = f"{self._root}/{path}"
        folder = os.path.dirname(full)  # noqa: PTH120 - no link that leads in a circle may raise here
        return os.path.realpath(folder) == folder and (os.path.islink(full) or os.path.isfile(full))  # noqa: PTH113, PTH114

    def _is_folder(self, path: str) -> bool:
        full = f"{self._root}/{path}"
        return os.path.isdir(full) and os.path.realpath(full) == full  # noqa: PTH112 - too long a path may not raise

    def _write_ignore_rules(self) -> None:
        rules = b""
        if self._repository is not None:
            try:
                rules = self._repository.own_ignore_rules.read_bytes() + b"\n"
            except FileNotFoundError:
                rules = b""
        rules += b"".join(b"/" + _as_rule(out) + b"\n" for out in self._left_out if "\n" not in out)
        place = self._folder / "info" / "exclude"
        if not place.exists() or place.read_bytes() != rules:
            replace_file(place, rules)

    def _read_memory(self) -> _Memory:
        try:
            return _Memory(**json.loads((self._folder / "memory.json").read_bytes()))
        except FileNotFoundError:
            return _Memory()
        except (ValueError, TypeError):
            # Half of a file after a loss of power: what it says is found out anew.
            self._index.unlink(missing_ok=True)
            return _Memory()

    def _write_memory(self) -> None:
        replace_file(self._folder / "memory.json", json.dumps(asdict(self._memory)).encode())


def tree_of_index(folder: Path) -> str | None:
    """Return the tree that holds all that the index in a folder of the store names.

    An index that was left in between is removed; it is made anew when it is needed.
    """
    try:
        memory = _Memory(**json.loads((folder / "memory.json").read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        memory = _Memory()
    if memory.tree and memory.index == _signature(folder / "index"):
        return memory.tree
    (folder / "index").unlink(missing_ok=True)
    return None


def make_git_dir(folder: Path, hash_name: str) -> None:
    """Make the few files by which git takes a folder for a repository; its objects lie elsewhere."""
    if all((folder / name).exists() for name in ("info/attributes", "refs", "config", "HEAD")):
        return
    make_private_folder(folder / "info")
    make_private_folder(folder / "refs")
    # The first looks at several folders make it at the same time.
    held = os.open(folder / "info", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        replace_file(folder / "info" / "attributes", _ATTRIBUTES)
        version = "0" if hash_name == "sha1" else f"1\n[extensions]\n\tobjectFormat = {hash_name}"
        replace_file(folder / "config", f"[core]\n\trepositoryFormatVersion = {version}\n".encode())
        replace_file(folder / "HEAD", b"ref: refs/heads/none\n")
    finally:
        os.close(held)


def _signature(path: Path) -> list[int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return []
    return [found.st_ino, found.st_size, found.st_mtime_ns]


def _entries(index: Path) -> int:
    try:
        with index.open("rb") as file:
            return int.from_bytes(file.read(12)[8:], "big")
    except FileNotFoundError:
        return 0


def _unopened(warnings: str) -> dict[str, str]:
    """Return the folders that git could not open, with the reason."""
    start = "warning: could not open directory '"
    found = {}
    for line in warnings.splitlines():
        if line.startswith(start):
            folder, end, reason = line.removeprefix(start).rpartition("': ")
            # Git cuts a line that is too long.
            is_long = not end or reason == os.strerror(errno.ENAMETOOLONG)
            found[(folder or reason).rstrip("/")] = "its path is too long" if is_long else "may not be read"
    return found


def _folds_case(folder: Path) -> bool:
    """Return whether a disk does not tell small letters from capitals; true where a name has no letters."""
    try:
        return folder.samefile(folder.with_name(folder.name.swapcase()))
    except (OSError, ValueError):
        return False


def _within(folders: list[str]) -> list[str]:
    """Return what to look through for some folders: nothing named is everything."""
    return folders if len(folders) <= _MAX_PATHSPECS else []


def _is_empty(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False


def _folder(path: str) -> str:
    return path if path.endswith("/") else f"{path}/"


def _as_rule(path: str) -> bytes:
    return os.fsencode("".join(f"\\{letter}" if letter in "\\*?[ " else letter for letter in path))
