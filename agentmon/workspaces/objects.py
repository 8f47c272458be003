"""The objects of the store: what is copied into them, packed, and found."""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING, Final

from agentmon.private_folders import make_private_folder
from agentmon.workspaces.git import GitFailedError, GitTimeoutError, names

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from agentmon.workspaces.git import Git

_PACKED_FROM: Final = 2_000
"""Loose objects: each takes a block of the disk, and a pack takes a file more that git has to open."""
HASHES: Final = ("sha1", "sha256")
_SHA1_LETTERS: Final = 40
_NO_MODE: Final = "000000"
_NOT_KEPT: Final = "160000"


def copy_missing(git: Git, before: str | None, after: str) -> None:
    """Copy into the store what differs between two trees, on both sides, where only a repository has it."""
    wanted = {after}
    if before is not None:
        parts = names(git.run("diff-tree", "-r", "-t", "-z", "--raw", "--no-renames", before, after))
        for facts in parts[::2]:
            old_mode, new_mode, old, new, _ = facts.lstrip(":").split(" ")
            wanted |= {ref for mode, ref in ((old_mode, old), (new_mode, new)) if mode not in {_NO_MODE, _NOT_KEPT}}
        wanted.add(before)
    missing = absent(git.without_alternates(), wanted)
    missing -= absent(git, missing)
    if not missing:
        return
    if len(missing) > _PACKED_FROM:
        write_pack(git, missing)
    else:
        pack = git.run("pack-objects", "-q", "--window=0", "--stdout", data=_lines(missing))
        git.without_alternates().run("unpack-objects", "-q", data=pack)


def require_tree(git: Git, tree: str) -> None:
    """Read a tree of the store.

    Raises:
        GitFailedError: It is not there, or damaged.
    """
    git.without_alternates().run("cat-file", "tree", tree)


def absent(git: Git, refs: Iterable[str]) -> set[str]:
    """Return those of some ids of objects that git does not find."""
    answer = git.run("cat-file", "--batch-check=%(objectname)", data=_lines(refs)).decode()
    return {line.removesuffix(" missing") for line in answer.splitlines() if line.endswith(" missing")}


def unreadable(git: Git, refs: Iterable[str]) -> set[str]:
    """Return those of some ids of contents whose content cannot be read; each is read."""
    found = list(refs)
    try:
        answer = git.run("cat-file", "--batch", data=_lines(found)) if found else b""
    except GitFailedError:
        if len(found) == 1:
            return set(found)
        middle = len(found) // 2
        return unreadable(git, found[:middle]) | unreadable(git, found[middle:])
    return absent(git, found) if b" missing\n" in answer else set()


def hash_of(ref: str) -> str:
    """Return the name of the hash that made an id."""
    return HASHES[len(ref) != _SHA1_LETTERS]


def write_pack(git: Git, refs: Iterable[str], *, is_small: bool = False) -> str:
    """Write one pack of objects into the store, and return its name without folder and suffix.

    Args:
        git: On the store.
        refs: Which objects.
        is_small: Whether to look for what is similar; it takes ten times as long.
    """
    objects = git.objects
    assert objects is not None
    words = ("pack-objects", "-q", *(() if is_small else ("--window=0",)), str(objects / "pack" / "pack"))
    name = git.run(*words, data=_lines(refs)).decode().strip()
    return f"pack-{name}"


def pack_loose(git: Git) -> None:
    """Put loose objects into one pack where there are many of them."""
    objects = git.objects
    assert objects is not None
    sample = objects / "17"
    if not sample.is_dir() or 256 * sum(1 for _ in sample.iterdir()) < _PACKED_FROM:
        return
    letters = len(git.run("hash-object", "-t", "blob", "--stdin").strip()) - 2
    loose = [
        folder.name + file.name
        for folder in objects.iterdir()
        if len(folder.name) == 2  # noqa: PLR2004 - as git names them
        for file in folder.iterdir()
        if len(file.name) == letters
    ]
    own = git.without_alternates()
    write_pack(own, loose)
    own.run("prune-packed", "-q")


def keep_only(git: Git, trees: set[str], refs: set[str]) -> None:
    """Remove all objects of the store but those that trees need and some others; nobody else may be at work on it."""
    assert git.objects is not None
    own = git.without_alternates()
    try:
        pack = _packed(own, trees, refs)
    except GitTimeoutError:
        raise
    except GitFailedError:
        set_damaged_aside(git)
        pack = _packed(own, trees, refs)
    for file in [*git.objects.glob("pack/*.idx"), *git.objects.glob("pack/*"), *git.objects.glob("??/*")]:
        if not pack or file.stem != pack:
            file.unlink(missing_ok=True)


def _packed(own: Git, trees: set[str], refs: set[str]) -> str:
    """Write what is needed into one pack, and return its name; empty where that is nothing."""
    trees = trees - absent(own, trees)
    if not trees:
        return ""
    # What a tree has from a repository alone is not there, and is not looked for.
    words = ("rev-list", "--objects", "--no-object-names", "--missing=allow-any", "--stdin")
    needed = {*own.run(*words, data=_lines(trees)).decode().split(), *(refs - absent(own, refs))}
    return write_pack(own, needed, is_small=True)


def set_damaged_aside(git: Git) -> None:
    """Move what cannot be read out of the objects of the store, so that it is written anew where it is there again."""
    objects = git.objects
    assert objects is not None
    aside = objects.with_name(f"damaged-{objects.name}")
    own = git.without_alternates()
    hash_name = HASHES[objects.name.endswith(HASHES[1])]
    damaged = [file for file in objects.glob("??/*") if not _is_whole(file, hash_name)]
    for index in objects.glob("pack/*.idx"):
        try:
            own.run("verify-pack", str(index))
        except GitFailedError:
            damaged += objects.glob(f"pack/{index.stem}.*")
    for file in damaged:
        target = aside / file.relative_to(objects)
        make_private_folder(target.parent)
        file.replace(target)


def _is_whole(loose: Path, hash_name: str) -> bool:
    try:
        content = zlib.decompress(loose.read_bytes())
    except zlib.error:
        return False
    return hashlib.new(hash_name, content).hexdigest() == loose.parent.name + loose.name


def remove_unfinished(objects: Path) -> None:
    """Remove what a killed git left among the objects; nobody else may be at work on them."""
    for file in [*objects.glob("??/tmp_obj_*"), *objects.glob("pack/tmp_*"), *objects.glob("pack/.tmp-*")]:
        file.unlink(missing_ok=True)


def _lines(refs: Iterable[str]) -> bytes:
    return "".join(f"{ref}\n" for ref in refs).encode()
