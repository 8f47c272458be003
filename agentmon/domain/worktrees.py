"""Worktrees of a repository that agentmon makes for its runs."""

from __future__ import annotations

import hashlib
import posixpath
import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agentmon.domain.ids import TaskId, WorkspaceId, WorktreeId
    from agentmon.domain.merges import Merged

BRANCH_TEMPLATE: Final = "agentmon/{number}-{title}"
_TITLE_MAX_CHARACTERS: Final = 40
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
# Source: git-check-ref-format(1).
_NO_BRANCH: Final = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/]|/$|\.$|(^|/)\.|\.lock(/|$)|^@$")


FOLDER_HINT: Final = "`agentmon settings workspace.max_per_folder 0` lets any number work there"
"""How a run that waits for another one of its folder need not."""


def shared_folder_note(numbers: Sequence[int]) -> str:
    """Return the warning that is due before one more run starts in a folder in which others work."""
    who = ", ".join(f"#{number}" for number in numbers)
    works = "works" if len(numbers) == 1 else "work"
    return f"{who} {works} there too: a stash, reset or branch switch hits all; a worktree keeps them apart"


class Isolation(StrEnum):
    """Where a run works."""

    AUTO = "auto"
    """The folder, but for an AI agent while another one works there: that gets a worktree of its own."""
    FOLDER = "folder"
    WORKTREE = "worktree"
    """Always in a worktree of its own; never in the folder, also when none can be made."""


class WorktreeStatus(StrEnum):
    """How far a worktree has come."""

    MAKING = "making"
    """Its folder may be there in part; what a kill cut off is finished or taken back at the next start."""
    READY = "ready"
    FAILED = "failed"
    """It could not be made or set up; what there is of it stays until it is removed."""
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree:
    """A worktree that agentmon made; only what has a row is ever removed."""

    id: WorktreeId
    workspace_id: WorkspaceId
    task_id: TaskId
    task_number: int
    task_title: str = ""
    is_task_closed: bool = False
    """Whether its task is done, cancelled or deleted."""
    source: str
    """The working tree that it was made from; absolute."""
    repository: str | None = None
    """The common git folder; None until git was asked."""
    path: str
    branch: str
    base_branch: str | None = None
    """The branch from which it was made; None for a detached head. What was asked for, until it is made."""
    base_commit: str | None = None
    """None while nothing of it is on the disk."""
    status: WorktreeStatus = WorktreeStatus.MAKING
    error: str | None = None
    merged: Merged | None = None
    """How its branch was merged last."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a run would find in its folder: AI agents at work there, and what follows from that."""

    numbers: tuple[int, ...]
    """Of their tasks."""
    isolation: Isolation
    """What holds for the run."""
    max_per_folder: int
    """How many of them may work in one folder; 0 is any number."""
    is_chosen: bool
    """Whether anybody chose what holds: for the run, its task, its agent or its workspace."""
    can_isolate: bool
    """Whether it can have a worktree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreePlaces:
    """Where worktrees are made, and what their branches are called."""

    folder: str
    """Absolute path; everything in it is agentmon's own."""
    branch_template: str = BRANCH_TEMPLATE

    def path_of(self, source: str, *, number: int, title: str) -> str:
        """Return the path of a task's worktree, without a suffix: of one that is made from ``source``."""
        digest = hashlib.sha256(source.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        name = short_title(posixpath.basename(source.rstrip("/")) or "root")
        return f"{self.folder}/{name}-{digest}/{number}-{short_title(title)}"


class LossKind(StrEnum):
    """What would be lost with a worktree."""

    UNCOMMITTED = "uncommitted"
    UNTRACKED = "untracked"
    IGNORED = "ignored"
    COMMITS = "commits"
    """On no other branch and no tag; a recovery ref keeps them."""
    UNPUSHED = "unpushed"
    """Those of them that no remote has."""
    SUBMODULE = "submodule"
    IN_PROGRESS = "in progress"
    """A rebase, merge, cherry-pick or bisect."""
    UNREADABLE = "unreadable"
    """git cannot say what is in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Something that would be lost with a worktree."""

    kind: LossKind
    count: int
    names: tuple[str, ...] = ()
    """The first of them: paths, or commits with their subject."""

    @property
    def words(self) -> str:
        """One line: ``2 untracked: notes.md, out/``."""
        shown = ", ".join(self.names)
        more = f" and {self.count - len(self.names)} more" if self.count > len(self.names) else ""
        return f"{self.count} {self.kind.value}: {shown}{more}" if shown else f"{self.count} {self.kind.value}"


def short_title(title: str) -> str:
    """Return the title as a part of paths and branches: small letters, digits and hyphens, at most 40 characters.

    A title without any is ``task``.
    """
    plain = unicodedata.normalize("NFKD", title.lower()).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    if len(words) > _TITLE_MAX_CHARACTERS:
        cut = words[: _TITLE_MAX_CHARACTERS + 1]
        words = (cut.rpartition("-")[0] or cut[:_TITLE_MAX_CHARACTERS]).strip("-")
    return words or "task"


def branch_name(template: str, *, number: int, title: str) -> str:
    """Return the branch of a task's worktree, without a suffix.

    Raises:
        UsageError: The template names something else than ``{number}`` and ``{title}``, not its number, or makes no
            name of a branch.
    """
    known = {"number": str(number), "title": short_title(title)}
    unknown = [name for name in _PLACEHOLDER.findall(template) if name not in known]
    if unknown:
        raise UsageError(f"the branch {template!r} has {{{unknown[0]}}}", hint="{number} and {title} can be used")
    if "{number}" not in template:
        raise UsageError(f"the branch {template!r} is the same for all tasks", hint="put {number} into it")
    name = _PLACEHOLDER.sub(lambda found: known[found[1]], template)
    if _NO_BRANCH.search(name) or name.startswith("refs/"):
        raise UsageError(f"{name!r} cannot be the name of a branch", hint=f"such as {BRANCH_TEMPLATE}")
    return name


def is_readable_base(base: str) -> bool:
    """Return whether the text can be given to git as a commit: no option, and nothing that no name of one has."""
    return bool(base) and not base.startswith("-") and base.isprintable() and ":" not in base
