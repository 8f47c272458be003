"""What differs between two snapshots: files, patches and contents."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.changes import ChangeType, FileChange
from agentmon.domain.errors import NotFoundError
from agentmon.workspaces.files import NOT_KEPT, FileState
from agentmon.workspaces.git import names
from agentmon.workspaces.objects import absent, hash_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from agentmon.workspaces.git import Git
    from agentmon.workspaces.snapshots import Snapshot, SnapshotStore

_FORM: Final = ("-r", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", "-l2000")
_LETTERS: Final = {"A": ChangeType.CREATE, "D": ChangeType.DELETE, "R": ChangeType.RENAME}
_CONTENTS_AT_ONCE: Final = 200
_ARGUMENTS_BYTES: Final = 64_000
_MAX_PATHSPECS: Final = 500
"""Git looks at each of them for each file."""


class _Raw(NamedTuple):
    path: str
    old_path: str | None
    letter: str
    before: FileState | None
    after: FileState | None


def compare(store: SnapshotStore, before: Snapshot, after: Snapshot) -> tuple[FileChange, ...]:
    """Return what happened to each file between two snapshots, in the order of paths.

    Files that ``SnapshotStore.keep`` was told of in between count as they were then.

    Raises:
        SnapshotError: git failed.
    """
    with store.reading():
        git = store.git(before, after)
        trees = store.tree_before(before, after), after.tree
        answer = git.run("diff-tree", "-z", "-M", "--raw", "--numstat", *_FORM, *trees)
        parts = iter(names(answer))
        raws: list[_Raw] = []
        lines: dict[str, tuple[str, str]] = {}
        for part in parts:
            if part.startswith(":"):
                raws.append(_raw(part, parts))
            else:
                _add_lines(part, parts, lines)
        refs = {side[1] for raw in raws for side in (raw.before, raw.after) if side and side[0] != NOT_KEPT}
        missing = absent(git, refs)
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
        trees = store.tree_before(before, after), after.tree
        parts = iter(names(git.run("diff-tree", "-z", "-M", "--raw", *_FORM, *trees)))
        chosen = []
        kinds = set()
        for part in parts:
            raw = _raw(part, parts)
            is_kept = all(side is None or side[0] != NOT_KEPT for side in (raw.before, raw.after))
            kinds.add(is_kept)
            if is_kept and (not paths or raw.path in paths):
                chosen.append([raw.path, *([raw.old_path] if raw.old_path else [])])
        if not chosen:
            return b""
        within = chosen if paths or False in kinds else []
        form = ("-p", "-M", "--binary", "--full-index", *_FORM)
        return b"".join(git.run("diff-tree", *form, *trees, "--", *some) for some in _in_pieces(within))


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
        tree = store.tree_before(before, after) if completes else before.tree
        words = ("diff-tree", "-r", "-z", "--raw", "--no-renames")
        parts = iter(names(store.git(before, after).run(*words, tree, after.tree)))
        raws = [_raw(part, parts) for part in parts]
    return {raw.path: (raw.before, raw.after) for raw in raws}


def contents(git: Git, refs: Sequence[str]) -> Iterator[bytes]:
    """Yield the bytes behind some ids that are there, in their order."""
    for start in range(0, len(refs), _CONTENTS_AT_ONCE):
        piece = refs[start : start + _CONTENTS_AT_ONCE]
        answer = git.run("cat-file", "--batch", data="".join(f"{ref}\n" for ref in piece).encode())
        place = 0
        for _ in piece:
            end = answer.index(b"\n", place)
            size = int(answer[place:end].split(b" ")[2])
            yield answer[end + 1 : end + 1 + size]
            place = end + size + 2


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
        why_not = "its content is missing from the repository"
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
