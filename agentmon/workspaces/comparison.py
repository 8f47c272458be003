"""What differs between two snapshots: files, patches and contents."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.changes import ChangeType, FileChange
from agentmon.domain.diffs import quoted_path
from agentmon.domain.errors import NotFoundError, SnapshotError
from agentmon.workspaces.files import NOT_KEPT, FileState, git_mode
from agentmon.workspaces.git import GitFailedError, GitTimeoutError, names
from agentmon.workspaces.objects import absent, hash_of, unreadable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from agentmon.workspaces.git import Git
    from agentmon.workspaces.snapshots import Snapshot, SnapshotStore

_FORM: Final = ("-r", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", "-l2000")
_LETTERS: Final = {"A": ChangeType.CREATE, "D": ChangeType.DELETE, "R": ChangeType.RENAME}
_CONTENTS_AT_ONCE: Final = 200
_SHOWN: Final = 20
_ARGUMENTS_BYTES: Final = 64_000
_MAX_PATHSPECS: Final = 500
"""Git looks at each of them for each file."""


class _Raw(NamedTuple):
    path: str
    old_path: str | None
    letter: str
    before: FileState | None
    after: FileState | None


class _Modes:
    """Two snapshots to compare, and the permission bits of their files, of which git does not know all."""

    def __init__(self, store: SnapshotStore, before: Snapshot, after: Snapshot, *, completes: bool = True) -> None:
        self._before, self._after = before, after
        tree, self._named = store.tree_before(before, after) if completes else (before.tree, {})
        self.trees = tree, after.tree

    def completed(self, git: Git, raws: Sequence[_Raw]) -> list[_Raw]:
        """Return what differs with all permission bits, and the files of which nothing else differs."""
        found = [
            raw._replace(
                before=raw.before and self._state_before(raw.old_path or raw.path, raw.before),
                after=raw.after and self._state_after(raw.path, raw.after),
            )
            for raw in raws
        ]
        known = {path for raw in raws for path in (raw.path, raw.old_path)}
        for path, state in self._same(git):
            before, after = self._state_before(path, state), self._state_after(path, state)
            if path not in known and before != after:
                found.append(_Raw(path, None, "M", before, after))
        return found

    def _state_before(self, path: str, state: FileState) -> FileState:
        return state._replace(mode=self._named.get(path) or self._before.mode_of(path, state.mode))

    def _state_after(self, path: str, state: FileState) -> FileState:
        return state._replace(mode=self._after.mode_of(path, state.mode))

    def _same(self, git: Git) -> Iterator[tuple[str, FileState]]:
        """Yield files of the newer tree, all whose permission bits may have changed among them."""
        before, after = self._before.modes, self._after.modes
        if before == after and not self._named:
            return
        paths = set(self._named)
        if all(before.get(inner, ())[:2] == modes[:2] for inner, modes in after.items()):
            for inner, modes in after.items():
                differing = before[inner].others.items() ^ modes.others.items()
                paths |= {f"{inner}/{path}" if inner else path for path, _ in differing}
            pieces = _in_pieces([[path] for path in sorted(paths)]) if paths else iter(())
        else:
            pieces = iter([[]])
        for piece in pieces:
            for line in names(git.run("ls-tree", "-r", "-z", "--full-tree", self._after.tree, "--", *piece)):
                facts, _, path = line.partition("\t")
                mode, _, ref = facts.split(" ")
                yield path, FileState(int(mode, 8), ref)


def compare(store: SnapshotStore, before: Snapshot, after: Snapshot) -> tuple[FileChange, ...]:
    """Return what happened to each file between two snapshots, in the order of paths.

    Files that ``SnapshotStore.keep`` was told of in between count as they were then.

    Raises:
        SnapshotError: git failed.
    """
    with store.reading():
        git = store.git(before, after)
        modes = _Modes(store, before, after)
        trees = modes.trees
        words = ("diff-tree", "-z", "-M", "--raw", "--numstat", *_FORM)
        try:
            raws, lines = _listed(git.run(*words, *trees))
            missing = absent(git, _refs(raws))
        except GitTimeoutError:
            raise
        except GitFailedError:
            # One content that cannot be read hides none of the others.
            raws, lines = _listed(git.run("diff-tree", "-z", "--raw", "--no-renames", *_FORM, *trees))
            missing = unreadable(git, _refs(raws))
            whole = [[raw.path] for raw in raws if not _refs([raw]) & missing]
            for some in _in_pieces(whole) if whole else ():
                lines |= _listed(git.run(*words, "--no-renames", *trees, "--", *some))[1]
        raws = modes.completed(git, raws)
    changes = [_change(raw, lines.get(raw.path), missing) for raw in raws]
    return tuple(sorted(changes, key=lambda change: change.path))


def patch(store: SnapshotStore, before: Snapshot, after: Snapshot, paths: Collection[str] = ()) -> bytes:
    """Return a patch that ``git apply`` takes, binary contents included.

    Files whose content was not kept are left out.

    Args:
        store: That has both snapshots.
        before: The older one.
        after: The newer one.
        paths: Only these; a renamed file is named by its new path. All when empty.

    Raises:
        SnapshotError: git failed.
    """
    with store.reading():
        git = store.git(before, after)
        trees = store.tree_before(before, after)[0], after.tree
        try:
            return _patch(git, trees, paths, "-M", missing=())
        except GitTimeoutError:
            raise
        except GitFailedError:
            raws, _ = _listed(git.run("diff-tree", "-z", "--raw", "--no-renames", *_FORM, *trees))
            return _patch(git, trees, paths, "--no-renames", missing=unreadable(git, _refs(raws)))


def bare_patch(store: SnapshotStore, before: Snapshot, after: Snapshot, paths: Collection[str]) -> bytes:
    """Return a patch of these files without lines around the changes, renames and binary contents: only to be read.

    Raises:
        SnapshotError: git failed.
    """
    form = ("-p", "--no-renames", "-U0", *_FORM)
    with store.reading():
        git = store.git(before, after)
        trees = store.tree_before(before, after)[0], after.tree
        within = _in_pieces([[path] for path in sorted(paths)])
        return b"".join(git.run("diff-tree", *form, *trees, "--", *some) for some in within) if paths else b""


def sides(
    store: SnapshotStore, before: Snapshot, after: Snapshot, *, completes: bool = True
) -> dict[str, tuple[FileState | None, FileState | None]]:
    """Return what was at each path that differs, before and after; a renamed file is two paths here.

    Args:
        store: That has both snapshots.
        before: The older one.
        after: The newer one.
        completes: Whether files that were named in between count as they were then.

    Raises:
        SnapshotError: git failed.
    """
    with store.reading():
        git, modes = store.git(before, after), _Modes(store, before, after, completes=completes)
        parts = iter(names(git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", *modes.trees)))
        raws = modes.completed(git, [_raw(part, parts) for part in parts])
    return {raw.path: (raw.before, raw.after) for raw in raws}


def compare_sides(
    store: SnapshotStore, sides: Mapping[str, tuple[FileState | None, FileState | None]]
) -> tuple[tuple[FileChange, str], ...]:
    """Return what happened to files of which both sides are in the store, the first 20 with unified hunks.

    Raises:
        SnapshotError: git failed.
    """
    refs = [side.ref for pair in sides.values() for side in pair if side is not None]
    if not refs:
        return ()
    with store.reading():
        git = store.git(hash_name=hash_of(refs[0]))
        with TemporaryDirectory(prefix="index-") as folder:
            trees = [tree_of(replace(git, index=Path(folder) / str(at)), sides, at) for at in (0, 1)]
        raws, lines = _listed(git.run("diff-tree", "-z", "-M", "--raw", "--numstat", *_FORM, *trees))
        missing = absent(git, refs)
        found: list[tuple[FileChange, str]] = []
        for raw in raws:
            before = raw.before and sides[raw.old_path or raw.path][0]
            change = _change(
                raw._replace(before=before, after=raw.after and sides[raw.path][1]), lines.get(raw.path), missing
            )
            found.append((change, _hunks(git, trees, raw) if len(found) < _SHOWN else ""))
    known = {path for change, _ in found for path in (change.path, change.old_path)}
    for path, (before, after) in sides.items():
        if path not in known and before is not None and after is not None and before != after:
            found.append((_change(_Raw(path, None, "M", before, after), None, missing), ""))
    return tuple(sorted(found, key=lambda one: one[0].path))


def _hunks(git: Git, trees: Sequence[str], raw: _Raw) -> str:
    paths = [path for path in (raw.path, raw.old_path) if path]
    text = git.run("diff-tree", "-p", "-M", *_FORM, *trees, "--", *paths).decode("utf-8", "replace")
    return text[text.index("\n@@ ") + 1 :] if "\n@@ " in text else ""


def tree_of(git: Git, sides: Mapping[str, Sequence[FileState | None]], at: int) -> str:
    """Return the tree of one side of some files; the index of ``git`` is empty, and written."""
    lines = b"".join(
        b"%o %s\t%s\0" % (git_mode(side.mode), side.ref.encode(), os.fsencode(path))
        for path, pair in sides.items()
        if (side := pair[at]) is not None
    )
    git.run("update-index", "-z", "--index-info", data=lines)
    return git.run("write-tree", "--missing-ok").decode().strip()


def states(store: SnapshotStore, snapshot: Snapshot, paths: Collection[str]) -> dict[str, FileState]:
    """Return what a snapshot has at some paths; one that is not there is left out.

    Raises:
        SnapshotError: git failed.
    """
    found = {}
    for line in names(store.git(snapshot).run("ls-tree", "-r", "-z", "--full-tree", snapshot.tree)) if paths else ():
        facts, _, path = line.partition("\t")
        if path in paths:
            mode, _, ref = facts.split(" ")
            found[path] = FileState(snapshot.mode_of(path, int(mode, 8)), ref)
    return found


def renames(changes: Iterable[FileChange]) -> dict[str, str]:
    """Return the old paths of renamed files by their new ones."""
    return {one.path: one.old_path for one in changes if one.change_type is ChangeType.RENAME and one.old_path}


def contents(git: Git, refs: Sequence[str]) -> Iterator[bytes]:
    """Yield the bytes behind some ids, in their order.

    Raises:
        SnapshotError: One is not there, or damaged.
    """
    for start in range(0, len(refs), _CONTENTS_AT_ONCE):
        piece = refs[start : start + _CONTENTS_AT_ONCE]
        answer = git.run("cat-file", "--batch", data="".join(f"{ref}\n" for ref in piece).encode())
        place = 0
        for ref in piece:
            end = answer.index(b"\n", place)
            if answer.endswith(b" missing", place, end):
                raise SnapshotError(f"the content {ref} is lost", hint="The other files can be undone by their names.")
            size = int(answer[place:end].split(b" ")[2])
            yield answer[end + 1 : end + 1 + size]
            place = end + size + 2


def sizes(store: SnapshotStore, refs: Collection[str]) -> dict[str, int]:
    """Return how many bytes are behind ids of contents; those that are gone are left out.

    Raises:
        SnapshotError: git failed.
    """
    if not refs:
        return {}
    git = store.git(hash_name=hash_of(next(iter(refs))))
    asked = "".join(f"{ref}\n" for ref in refs).encode()
    answer = git.run("cat-file", "--batch-check=%(objectname) %(objectsize)", data=asked).decode()
    pairs = (line.split(" ") for line in answer.splitlines())
    return {ref: int(size) for ref, size in pairs if size.isdigit()}


def content(store: SnapshotStore, ref: str) -> bytes:
    """Return the bytes behind the ``before_ref`` or ``after_ref`` of a change; of a link what it points to.

    Raises:
        NotFoundError: It was not kept, or was pruned.
        SnapshotError: git failed.
    """
    git = store.git(hash_name=hash_of(ref))
    if absent(git, [ref]):
        raise NotFoundError("this content was not kept", hint="It was too large, or its run's history was removed.")
    return git.run("cat-file", "blob", ref)


def _in_pieces(paths: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Yield paths as many as fit into the arguments of one program; nothing at all means everything, once."""
    piece: list[str] = []
    size = 0
    for names_of_file in paths:
        length = sum(len(os.fsencode(name)) + 1 for name in names_of_file)
        if piece and (size + length > _ARGUMENTS_BYTES or len(piece) > _MAX_PATHSPECS):
            yield piece
            piece, size = [], 0
        piece += names_of_file
        size += length
    if piece or not paths:
        yield piece


def _raw(facts: str, parts: Iterator[str]) -> _Raw:
    old_mode, new_mode, old, new, letter = facts[1:].split(" ")
    path = next(parts)
    old_path = None
    if letter[0] == "R":
        old_path, path = path, next(parts)
    before = FileState(int(old_mode, 8), old) if old_mode != "000000" else None
    after = FileState(int(new_mode, 8), new) if new_mode != "000000" else None
    return _Raw(path, old_path, letter[0], before, after)


def _patch(
    git: Git, trees: tuple[str, str], paths: Collection[str], renames: str, *, missing: Collection[str]
) -> bytes:
    chosen = []
    is_all = not paths
    for raw in _listed(git.run("diff-tree", "-z", renames, "--raw", *_FORM, *trees))[0]:
        is_kept = all(side is None or side.mode != NOT_KEPT for side in (raw.before, raw.after))
        if not is_kept or any(ref in missing for ref in _refs([raw])):
            is_all = False
        elif not paths or raw.path in paths:
            chosen.append([raw.path, *([raw.old_path] if raw.old_path else [])])
    if not chosen:
        return b""
    form = ("-p", renames, "--binary", "--full-index", *_FORM)
    pieces = _in_pieces([] if is_all else chosen)
    return b"".join(git.run("diff-tree", *form, *trees, "--", *some) for some in pieces)


def _listed(answer: bytes) -> tuple[list[_Raw], dict[str, tuple[str, str]]]:
    """Return the files of an answer with ``--raw``, and by path how many lines came and went, as far as it has them."""
    parts = iter(names(answer))
    raws: list[_Raw] = []
    lines: dict[str, tuple[str, str]] = {}
    for part in parts:
        if part.startswith(":"):
            raws.append(_raw(part, parts))
        else:
            _add_lines(part, parts, lines)
    return raws, lines


def _refs(raws: Iterable[_Raw]) -> set[str]:
    return {side.ref for raw in raws for side in (raw.before, raw.after) if side and side.mode != NOT_KEPT}


def _add_lines(facts: str, parts: Iterator[str], lines: dict[str, tuple[str, str]]) -> None:
    added, removed, path = facts.split("\t", 2)
    if not path:
        # A renamed file: its old path and its new one stand by themselves.
        next(parts)
        path = next(parts)
    lines[path] = added, removed


def _change(raw: _Raw, lines: tuple[str, str] | None, missing: Collection[str]) -> FileChange:
    added, removed = lines or ("0", "0")
    sides = [side for side in (raw.before, raw.after) if side is not None]
    is_whole = all(mode != NOT_KEPT for mode, _ in sides)
    change_type = _LETTERS.get(raw.letter, ChangeType.MODIFY)
    if change_type is ChangeType.MODIFY and raw.before and raw.after and raw.before[1] == raw.after[1]:
        change_type = ChangeType.MODE
    why_not = ""
    if not is_whole:
        why_not = "its content was not kept: it is too large, or could not be read"
    elif any(ref in missing for _, ref in sides):
        why_not = "its content is missing or damaged"
    return FileChange(
        path=raw.path,
        change_type=change_type,
        old_path=raw.old_path,
        before_ref=raw.before[1] if raw.before else None,
        after_ref=raw.after[1] if raw.after else None,
        before_mode=raw.before[0] if raw.before else None,
        after_mode=raw.after[0] if raw.after else None,
        lines_added=int(added) if added != "-" and is_whole else 0,
        lines_removed=int(removed) if removed != "-" and is_whole else 0,
        is_binary=added == "-" or not is_whole,
        can_undo=not why_not,
        why_not=why_not,
    )


def patch_of_file(git: Git, path: str, before: FileState | None, after: FileState | None) -> bytes:
    """Return what makes one state of a file of another, as a patch to be read; contents that are no text are not in it.

    Args:
        git: Sees both contents, and may write objects.
        path: Of the file.
        before: The older state; None where the file is not there.
        after: The newer one.

    Raises:
        GitError: git failed.
    """
    name = os.fsencode(path)
    old, new = quoted_path(b"a/" + name), quoted_path(b"b/" + name)
    head = b"diff --git %b %b\n" % (old, new)
    if before is None and after is not None:
        head += b"new file mode %o\n" % after.mode
    elif after is None and before is not None:
        head += b"deleted file mode %o\n" % before.mode
    elif before is not None and after is not None and before.mode != after.mode:
        head += b"old mode %o\nnew mode %o\n" % (before.mode, after.mode)
    if any(state is not None and state.mode == NOT_KEPT for state in (before, after)):
        return head + b"Binary files %b and %b differ\n" % (old, new)
    empty = git.run("hash-object", "-w", "--stdin").decode().strip()
    refs = [empty if state is None else state.ref for state in (before, after)]
    if refs[0] == refs[1]:
        return head
    lines = git.run("diff", "--no-ext-diff", "--no-textconv", *refs)
    start = lines.find(b"\n@@ ")
    if start < 0:
        return head + b"Binary files %b and %b differ\n" % (old, new)
    return head + b"--- %b\n+++ %b" % (old, new) + lines[start:]
