"""Merging what a task's branch has into its base."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import ConflictError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_NAMES: Final = 5
_LONGEST_BODY: Final = 1200
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_TRAILER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*: *\S.*")


class MergeHow(StrEnum):
    """What becomes of the commits of a branch."""

    SQUASH = "squash"
    """One commit on the base."""
    MERGE = "merge"
    """A merge commit, also where the base could be moved forward."""
    REBASE = "rebase"
    """Each again on top of the base, with its own message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a merge made of its base."""

    how: MergeHow
    into: str
    before: str
    """The tip of the base before."""
    commit: str
    """Its tip then."""
    reverted_by: str | None = None
    """The commit that took it back; None while it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileConflict:
    """A file that git cannot merge by itself."""

    path: str
    kind: str
    """As git calls it: ``contents``, ``modify/delete``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a merge, or taking one back, would do; found out without touching anything."""

    into: str
    """The branch that gets it."""
    base_commit: str
    """Its tip."""
    how: MergeHow | None
    """None for a commit that takes a merge back."""
    tip: str = ""
    """The tip of the task's branch, without what is uncommitted."""
    commits: tuple[str, ...] = ()
    """The subjects of the commits that the base gets or loses, the newest first."""
    uncommitted: tuple[str, ...] = ()
    """Files in the worktree that are committed on the task's branch first."""
    files: int = 0
    """How many files of the base change."""
    conflicts: tuple[FileConflict, ...] = ()
    checkout: str | None = None
    """The folder in which the base is checked out, and whose files change too; None where it is nowhere."""
    blocked: tuple[str, ...] = ()
    """Files there with changes of their own that would be overwritten."""

    @property
    def is_possible(self) -> bool:
        """Whether nothing is in its way."""
        return not self.conflicts and not self.blocked


class MergeConflictsError(ConflictError):
    """git cannot merge some files by itself; nothing was touched.

    Attributes:
        forecast: With the files.
    """

    def __init__(self, forecast: Forecast, *, hint: str) -> None:
        names = few([conflict.path for conflict in forecast.conflicts])
        super().__init__(f"conflicts with {forecast.into}: {names}; nothing was changed", hint=hint)
        self.forecast = forecast


def trailer_lines(template: str, *, number: int, title: str, branch: str) -> tuple[str, ...]:
    """Return the trailers of a commit message, without those that stand empty.

    Args:
        template: Trailers separated by semicolons, with ``{number}``, ``{title}`` and ``{branch}``.
        number: Of the task.
        title: Of the task.
        branch: That is merged.

    Raises:
        UsageError: One is no trailer, or names something else.
    """
    known = {"number": str(number), "title": " ".join(title.split()), "branch": branch}
    lines = []
    for part in filter(None, map(str.strip, template.split(";"))):
        unknown = [name for name in _PLACEHOLDER.findall(part) if name not in known]
        if unknown:
            raise UsageError(
                f"the trailer {part!r} has {{{unknown[0]}}}", hint="{number}, {title} and {branch} can be used"
            )
        if not _TRAILER.fullmatch(part):
            raise UsageError(f"{part!r} is not a trailer", hint="such as Task: {number}")
        lines.append(_PLACEHOLDER.sub(lambda found: known[found[1]], part))
    return tuple(lines)


def proposed_message(title: str, summary: str, trailers: Sequence[str]) -> str:
    """Return a commit message: the title, what the agent said last, and trailers.

    Args:
        title: Of the task.
        summary: The last words of its agent; cut after a paragraph where it is long.
        trailers: The last lines.
    """
    subject = " ".join(title.split())
    body = summary.strip()
    if len(body) > _LONGEST_BODY:
        cut = body[:_LONGEST_BODY]
        body = (cut.rpartition("\n\n")[0] or cut.rpartition(" ")[0] or cut).rstrip()
    return "\n\n".join(part for part in (subject, body, "\n".join(trailers)) if part) + "\n"


def forecast_lines(forecast: Forecast, branch: str) -> list[str]:
    """Return what a merge of a branch, or taking one back, would do; the first line says what it is."""
    commits = f"{len(forecast.commits)} {'commit' if len(forecast.commits) == 1 else 'commits'}"
    if forecast.uncommitted and not forecast.commits:
        commits = "uncommitted work"
    where = f" in {forecast.checkout}" if forecast.checkout else " (checked out nowhere)"
    if forecast.how is None:
        lines = [f"revert {commits} on {forecast.into}{where}"]
    else:
        lines = [f"{forecast.how.value} {commits} of {branch} into {forecast.into}{where}"]
    if forecast.uncommitted:
        lines.append(f"commit first: {few(forecast.uncommitted)}")
    lines += [f"conflict ({one.kind}): {one.path}" for one in forecast.conflicts]
    lines += [f"local changes in the way: {path}" for path in forecast.blocked]
    if forecast.is_possible:
        lines.append(f"{forecast.files} {'file' if forecast.files == 1 else 'files'} would change; no conflicts")
    return lines


def solve_text(forecast: Forecast) -> str:
    """Return what an agent is told to do about conflicts."""
    what = "Rebase your branch onto" if forecast.how is MergeHow.REBASE else "Merge"
    end = "" if forecast.how is MergeHow.REBASE else " into your branch"
    files = "\n".join(f"- {conflict.path} ({conflict.kind})" for conflict in forecast.conflicts)
    return (
        f"Your branch conflicts with {forecast.into}. Commit what is uncommitted. {what} {forecast.into}{end}, resolve "
        f"the conflicts in these files so that both sides' intent is kept, check the result, and commit:\n\n{files}\n\n"
        f"Do not change {forecast.into} itself, and do not push."
    )


def few(names: Sequence[str]) -> str:
    """Return the first names of many as one text."""
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{shown} and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else shown
