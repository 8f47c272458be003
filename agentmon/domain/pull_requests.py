"""Pull requests of tasks, as GitHub and GitLab have them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from agentmon.domain.ids import PullRequestId, TaskId


class PullRequestProgram(StrEnum):
    """What opens a pull request and is asked about it."""

    GH = "gh"
    GLAB = "glab"
    GIT = "git"
    """The branch was pushed, and nothing more: the server said where one can be opened."""


class PullRequestState(StrEnum):
    """What became of it."""

    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


class ChecksState(StrEnum):
    """What its checks say, all together."""

    PENDING = "pending"
    PASSED = "passed"
    FAILED = "failed"


class ReviewState(StrEnum):
    """What its reviewers say."""

    REQUIRED = "required"
    APPROVED = "approved"
    CHANGES_REQUESTED = "changes requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestStatus:
    """What its server said last."""

    state: PullRequestState = PullRequestState.OPEN
    is_draft: bool = False
    checks: ChecksState | None = None
    """None while there are none."""
    review: ReviewState | None = None
    """None while nobody is asked."""

    def label(self, number: int | None) -> str:
        """Return one line for cards: ``PR 7 · draft · checks passed · approved``; without a number: pushed."""
        if number is None:
            return "pushed"
        parts = [f"PR {number}"]
        if self.state is not PullRequestState.OPEN:
            return f"{parts[0]} {self.state.value}"
        if self.is_draft:
            parts.append("draft")
        if self.checks is not None:
            parts.append(f"checks {self.checks.value}")
        if self.review is not None:
            parts.append("review required" if self.review is ReviewState.REQUIRED else self.review.value)
        return " · ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """One that somebody opened for the branch of a task."""

    id: PullRequestId
    task_id: TaskId
    program: PullRequestProgram
    folder: str
    """The working tree in which the program is run; absolute."""
    branch: str
    base: str
    url: str
    """Of the pull request; after a plain push, where one can be opened or where it was pushed to."""
    number: int | None
    """None after a plain push."""
    status: PullRequestStatus
    error: str = ""
    """Why nobody could ask about it last."""
    asked_at: datetime | None = None
    created_at: datetime

    @property
    def label(self) -> str:
        """One line for cards."""
        return self.status.label(self.number)
