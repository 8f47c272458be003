"""Overlaps: two live runs whose work gets into each other's way.

The first frame of the board reads them, so that nothing heavy is imported here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.plain_text import plain_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import ExecutionId

MOST_PATHS: Final = 20
"""So many paths of an overlap are kept by name."""
_LONGEST_PATH: Final = 200
_AHEAD: Final = "merge conflict ahead: "
_AHEAD_SHORT: Final = "conflict: "
"""On cards, which are narrow."""


class OverlapKind(StrEnum):
    """How two runs get into each other's way; the gravest first."""

    DISCARDED = "discarded"
    """One took edits of the other back: by a stash, a reset, a checkout."""
    CHECKOUT = "checkout"
    """One moved the HEAD of the folder in which the other works, too."""
    FOLDER = "folder"
    """Both changed a path of one folder, or of two worktrees of a repository in ways that merge by themselves."""
    WORKTREES = "worktrees"
    """They changed one path in two worktrees of a repository, so that git cannot merge it: a conflict is ahead."""


class Overlap(NamedTuple):
    """What one live run has to do with another one, as the first sees it."""

    execution_id: ExecutionId
    other_id: ExecutionId
    other_number: int
    """That of the other's task."""
    kind: OverlapKind
    paths: tuple[str, ...] = ()
    """Relative to the top of the folder or repository; at most ``MOST_PATHS``."""
    path_count: int = 0
    is_own_doing: bool | None = None
    """Of a kind that one does to the other: whether this run did it; None where nobody knows who did."""
    detail: str = ""
    """Of a checkout: ``main → fix``."""


def overlap_line(overlaps: Sequence[Overlap]) -> str:
    """Return the gravest of a run's overlaps in one short line: ``⚠ #14 edits app.py too``; empty without any."""
    texts = overlap_texts(overlaps)
    return f"⚠ {texts[0].replace(_AHEAD, _AHEAD_SHORT)}" if texts else ""


def overlap_texts(overlaps: Sequence[Overlap]) -> tuple[str, ...]:
    """Return a run's overlaps in words, the gravest first; others that do the same to it share a text."""
    texts = []
    for kind in OverlapKind:
        for is_own_doing in (False, True, None):
            alike = [one for one in overlaps if one.kind is kind and one.is_own_doing is is_own_doing]
            if alike:
                texts.append(_text(kind, alike, is_own_doing=is_own_doing))
    return tuple(texts)


def overlap_notes(execution: Execution, number: int | str) -> tuple[str, ...]:
    """Return the overlaps of a run of task ``number`` in words, with the way back to what was discarded."""
    texts = overlap_texts(execution.overlaps)
    if any(one.kind is OverlapKind.DISCARDED and not one.is_own_doing for one in execution.overlaps):
        return (*texts, f"`agentmon undo {number} --redo` brings these edits back once nothing runs there")
    return texts


def _text(kind: OverlapKind, alike: Sequence[Overlap], *, is_own_doing: bool | None) -> str:
    others = ", ".join(f"#{number}" for number in sorted({one.other_number for one in alike}))
    edits = "edits" if len({one.other_number for one in alike}) == 1 else "edit"
    paths = _paths_text(max(alike, key=lambda one: one.path_count))
    match kind:
        case OverlapKind.DISCARDED if is_own_doing:
            return f"discarded edits of {others}: {paths}"
        case OverlapKind.DISCARDED:
            return f"{others if is_own_doing is False else 'something'} discarded its edits: {paths}"
        case OverlapKind.CHECKOUT if is_own_doing:
            return f"moved HEAD under {others}: {alike[0].detail}"
        case OverlapKind.CHECKOUT:
            return f"{others if is_own_doing is False else 'something'} moved HEAD: {alike[0].detail}"
        case OverlapKind.FOLDER:
            return f"{others} {edits} {paths} too"
        case OverlapKind.WORKTREES:
            return f"{_AHEAD}{others} {edits} {paths} too"


def _paths_text(overlap: Overlap) -> str:
    if not overlap.paths:
        return "files"
    first = plain_line(overlap.paths[0], max_characters=_LONGEST_PATH)
    return f"{first} and {overlap.path_count - 1} more" if overlap.path_count > 1 else first
