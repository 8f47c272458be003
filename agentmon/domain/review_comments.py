"""Comments of a person on lines that a run changed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.diffs import DiffSide
from agentmon.domain.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agentmon.domain.diffs import Diff, LineSpan
    from agentmon.domain.ids import ExecutionId

_QUOTED_LINES: Final = 12
_PLACE: Final = re.compile(r"(.+):(\d{1,9})(?:[-–](\d{1,9}))?", re.ASCII | re.DOTALL)


class Place(NamedTuple):
    """Lines of a file as people name them, counted from 1."""

    path: str
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewComment:
    """What a person says of lines."""

    id: str
    execution_id: ExecutionId
    span: LineSpan
    """In the changes of that run."""
    quoted: str
    """The lines."""
    text: str
    digest: str
    """Of the hunk with the first line, as ``Diff.hunk_digests`` names it; empty outside of any."""
    sent_at: datetime | None
    """When its agent got it; None while it is only written."""


def place_text(span: LineSpan) -> str:
    """Return path and lines as an agent and a person read them: ``src/app.py:12–14``."""
    lines = str(span.first_line) if span.first_line == span.last_line else f"{span.first_line}–{span.last_line}"
    return f"{span.path}:{lines}"


def read_place(text: str) -> Place:
    """Return the lines that ``src/app.py:12`` or ``src/app.py:12-14`` names.

    Raises:
        UsageError: It names none.
    """
    found = _PLACE.fullmatch(text)
    if found is None or not 0 < int(found[2]) <= int(found[3] or found[2]):
        raise UsageError(f"{text!r} names no lines", hint="such as src/app.py:12 or src/app.py:12-14")
    return Place(found[1], int(found[2]), int(found[3] or found[2]))


def hunk_at(diff: Diff, span: LineSpan, *, is_own: bool = True) -> str | None:
    """Return the name of the first hunk with any of these lines; None where none has.

    Args:
        diff: Of a run.
        span: The lines.
        is_own: Whether they are lines of that run; those of an earlier one are the old lines of this one.
    """
    path, side, first, last = span
    if not is_own:
        if side is DiffSide.OLD:
            return None
        side = DiffSide.OLD
    file = next((one for one in diff.files if (one.path if is_own else one.old_path) == path), None)
    if file is None:
        return None
    names = diff.hunk_digests(file)
    return next((name for hunk, name in zip(file.hunks, names, strict=True) if hunk.has(side, first, last)), None)


def message_text(comments: Sequence[ReviewComment]) -> str:
    """Return comments as one message to an agent: each with path, lines, the lines themselves, and what is said."""
    return "\n\n".join(_comment_text(one) for one in comments)


def _comment_text(comment: ReviewComment) -> str:
    lines = comment.quoted.split("\n")
    quoted = [f"> {line}" for line in lines[:_QUOTED_LINES]] + (["> …"] if len(lines) > _QUOTED_LINES else [])
    return "\n".join([place_text(comment.span), *quoted, comment.text])
