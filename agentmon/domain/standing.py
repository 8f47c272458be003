"""What is left of a difference in the files as they are now: nothing, all, or something else than it made."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentmon.domain.diffs import Diff, FileDiff, Hunk, HunkLines


class Standing(StrEnum):
    """What became of lines that a run changed."""

    TAKEN_BACK = "undone"
    """They are what they were before it."""
    CHANGED = "changed since"


class _Lines(NamedTuple):
    """Lines of one text; a place between two lines when the size is 0."""

    first: int
    """Counted from 1; of a place the line behind it."""
    size: int


def standings(diff: Diff, since: Diff, whole: Diff) -> Mapping[str, Standing]:
    """Return what became of the hunks, and of the files without any, that are not as the difference left them.

    Args:
        diff: From before to after.
        since: From after to now, without lines around and without renames.
        whole: From before to now, in the same form.

    Returns:
        By the names that ``Diff.hunk_digests`` and ``Diff.file_digest`` give.
    """
    touched = {file.path: file for file in since.files}
    differing = {file.path: file for file in whole.files}
    found: dict[str, Standing] = {}
    for file in diff.files:
        now, then = touched.get(file.path), differing.get(file.old_path)
        if now is None:
            continue
        for hunk, name in zip(file.hunks, diff.hunk_digests(file), strict=True):
            states = {_state(block, now, then) for block in _blocks(hunk, diff.lines(hunk))}
            if states != {None}:
                found[name] = Standing.TAKEN_BACK if states == {Standing.TAKEN_BACK} else Standing.CHANGED
        if not file.hunks:
            found[diff.file_digest(file)] = Standing.TAKEN_BACK if then is None else Standing.CHANGED
    return found


def _state(block: tuple[_Lines, _Lines], now: FileDiff, then: FileDiff | None) -> Standing | None:
    old, new = block
    # What came back of removed lines stands beside those that are left.
    if not _touches(now, new, is_beside_too=old.size > new.size):
        return None
    is_other = then is not None and _touches(then, old, is_beside_too=True)
    return Standing.CHANGED if is_other else Standing.TAKEN_BACK


def _blocks(hunk: Hunk, lines: HunkLines) -> Iterator[tuple[_Lines, _Lines]]:
    """Yield the lines of both texts of each block of changes."""
    for start, middle, end in lines.blocks:
        old, new = lines.numbers(start)
        # Where a side has no line at all, its number is that of the line above.
        yield (
            _Lines(old + (not hunk.old_count), middle - start),
            _Lines(new + (not hunk.new_count), end - middle),
        )


def _touches(file: FileDiff, lines: _Lines, *, is_beside_too: bool) -> bool:
    """Return whether the older text of a file is another one now in these lines, or had lines put beside them."""
    first, end = lines.first, lines.first + lines.size
    for hunk in file.hunks:
        start, stop = hunk.old_start, hunk.old_start + hunk.old_count
        if not hunk.old_count:
            start = stop = start + 1
        is_growing = hunk.new_count > hunk.old_count
        if start < end and first < stop:
            return True
        if is_growing and (is_beside_too or not lines.size) and start <= end and first <= stop:
            return True
    return file.is_binary
