"""What chaos did: every kill, every stop that was asked for, and when the disk was full or tmux was gone."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_MOST_SAID: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One kill -9."""

    at: float
    what: str
    pid: int
    execution_id: str | None = None
    """Whose host it was."""


@dataclass(slots=True)
class Window:
    """A stretch of time on the monotonic clock; it lasts until ``end`` is set."""

    begin: float
    end: float = float("inf")

    @property
    def seconds(self) -> float:
        """How long it lasted."""
        return self.end - self.begin


@dataclass(slots=True)
class Actions:
    """All that was done to the home from outside."""

    kills: list[Kill] = field(default_factory=list)
    full_disk: list[Window] = field(default_factory=list)
    without_tmux: list[Window] = field(default_factory=list)
    last_words: int = 0
    """How often the disk was filled when a run was about to end."""
    clock_steps: int = 0
    """How often the clock of some workers jumped."""
    stopped_tasks: set[int] = field(default_factory=set)
    """Numbers of the tasks that anybody ever asked to stop; whether that arrived is not known."""
    budgeted_tasks: set[int] = field(default_factory=set)
    """Numbers of the tasks that a budget may stop."""
    accepted_runs: Counter[int] = field(default_factory=Counter)
    """By the number of the task: how often a client said that it has queued a run."""
    reviews: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By what clients were to do with the work of tasks, and what became of it: done, refused or killed."""
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By the same: what clients said why not."""
    accepted_merges: Counter[tuple[str, int]] = field(default_factory=Counter)
    """By the event of the audit trail and the number of the task: how often a client said that it is done."""
    person_commits: set[str] = field(default_factory=set)
    """What the person has committed meanwhile, in the repository into which branches are merged."""
    client_words: list[str] = field(default_factory=list)
    """What clients said that no client may say."""

    def write(self, path: Path) -> None:
        """Write all of it as JSON, for whoever looks for the cause of a violation."""
        windows = {"full_disk": self.full_disk, "without_tmux": self.without_tmux}
        told = {
            "kills": [asdict(kill) for kill in self.kills],
            "stopped_tasks": sorted(self.stopped_tasks),
            "budgeted_tasks": sorted(self.budgeted_tasks),
            "accepted_runs": dict(self.accepted_runs),
            "reviews": {" ".join(what): count for what, count in self.reviews.items()},
            "refusals": {": ".join(what): count for what, count in self.refusals.most_common()},
            "person_commits": sorted(self.person_commits),
            "client_words": self.client_words,
        } | {name: [asdict(window) for window in found] for name, found in windows.items()}
        path.write_text(json.dumps(told, indent=1), encoding="utf-8")

    def note_kill(self, what: str, pid: int, execution_id: str | None = None) -> None:
        """Record a kill that reached its process."""
        self.kills.append(Kill(at=time.monotonic(), what=what, pid=pid, execution_id=execution_id))

    def note_review(self, review: str, number: int, code: int | None, *, said: str) -> None:
        """Record how a client ended that did something with the work of a task."""
        if code and code != -signal.SIGKILL:
            self.refusals[review, said[:_MOST_SAID]] += 1
        self.reviews[review, "killed" if code == -signal.SIGKILL else "refused" if code else "done"] += 1
        if review.startswith("merge:") and code == 0:
            self.accepted_merges["merge_undone" if review == "merge: undo" else "branch_merged", number] += 1

    @property
    def has_killed_git(self) -> bool:
        """Whether a git of agentmon's was ever killed."""
        return any(kill.what == "git" for kill in self.kills)

    def killed_hosts(self, execution_id: str) -> frozenset[int]:
        """Return the pids of the hosts of an execution that were killed."""
        return frozenset(kill.pid for kill in self.kills if kill.execution_id == execution_id)

    def killed_on_full_disk(self, execution_id: str) -> bool:
        """Return whether a host of the execution was killed while the disk was full, so that no file took more."""
        return any(
            window.begin <= kill.at <= window.end
            for kill in self.kills
            if kill.execution_id == execution_id
            for window in self.full_disk
        )
