"""The board as screens and the command line show it: pages of cards per column and the status line."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.amounts import DOLLARS, MoneyFormat
from agentmon.domain.changes import amount_text
from agentmon.domain.live_state import LiveState, elapsed_text, seen_state, state_label
from agentmon.domain.sightings import NO_SIGHTING
from agentmon.domain.spending import Spent
from agentmon.domain.task_status import AwaitedState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agentmon.domain.ids import ExecutionId, TaskId
    from agentmon.domain.overlaps import Overlap
    from agentmon.domain.sightings import Sighting
    from agentmon.domain.task_status import TaskStatus
    from agentmon.domain.verifications import Verdict

ALL_WORKSPACES: Final = "All workspaces"


class BoardSort(StrEnum):
    """In which order the cards of every column stand."""

    ORDER = "order"
    """Their own, as people moved them."""
    PRIORITY = "priority"
    DUE = "due"
    CHANGED = "changed"
    """What changed last comes first."""
    STATE = "state"
    """What needs a person, then what runs, what is queued, what failed, and the rest."""

    @property
    def next(self) -> BoardSort:
        """The order after this one."""
        orders = list(BoardSort)
        return orders[(orders.index(self) + 1) % len(orders)]


class Card(NamedTuple):
    """One task of a column with its newest execution, and what all of them cost."""

    task_id: TaskId
    number: int
    title: str
    """As the person typed it: not yet safe to draw."""
    status: TaskStatus
    priority: int
    agent_slug: str | None = None
    command_word: str | None = None
    """The program's name when the agent is the one that runs any command: what to show instead of its slug."""
    execution_id: ExecutionId | None = None
    """The newest execution; None when the task never ran."""
    log_file_path: str | None = None
    """Where its output is."""
    state: LiveState | None = None
    exit_code: int | None = None
    error: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    last_line: str | None = None
    cost_nano: int | None = None
    """Of all runs of the task whose cost is known; None when that of none is."""
    tokens_used: int = 0
    """Of all runs of the task."""
    unpriced_runs: int = 0
    """How many runs of the task took tokens whose price is not known."""
    money: MoneyFormat = DOLLARS
    """How its cost is shown."""
    changed_files: int = 0
    lines_added: int = 0
    lines_removed: int = 0
    """What all runs of the task changed, each file once."""
    activity_note: str | None = None
    """What its agent wants of a person, in a few words."""
    is_conversation: bool = False
    """Whether the newest execution is an agent's that can be spoken to."""
    waits_until: datetime | None = None
    """A queued execution does not start before: a retry, a schedule, a vendor's limit, a parked agent."""
    is_retry: bool = False
    """Whether a queued execution waits for that time since its last try failed."""
    waits_for: tuple[int, ...] = ()
    """Numbers of the tasks that keep it from starting: it depends on them, or works in the folder of one that runs."""
    awaited_states: Mapping[int, AwaitedState] = {}
    """By those numbers: what became of them."""
    subtask_count: int = 0
    subtasks_closed: int = 0
    next_run_at: datetime | None = None
    """The next time of its schedule."""
    due_at: datetime | None = None
    labels: tuple[str, ...] = ()
    """In the order of the alphabet."""
    archived_at: datetime | None = None
    """Off the board since then; None while it is on the board."""
    workspace_name: str = ""
    """The short name of its workspace, where the cards of all are shown together; else empty."""
    branch: str = ""
    worktree_path: str = ""
    """Of the git worktree in which its newest execution works; empty for the folder itself."""
    verification: Verdict | None = None
    """The newest verification of its newest execution."""
    pull_request: str = ""
    """Its newest pull request, with checks and review: ``PR 7 · checks passed``; empty for none."""
    overlaps: tuple[Overlap, ...] = ()
    """How its run and other live ones get into each other's way."""
    alternatives: Mapping[int, TaskStatus] = {}
    """The columns of the other cards that are done for the same, by number; without those that were let go."""
    sighting: Sighting = NO_SIGHTING
    """What is known of the newest execution while no worker is at work."""

    @property
    def is_on_offer(self) -> bool:
        """Whether it is open and on the board, so that as an alternative it may be taken or let go."""
        return self.status.is_open and self.archived_at is None

    @property
    def taken_number(self) -> int | None:
        """The alternative that was taken instead of it; None while it may still be taken itself, or was."""
        if not self.is_on_offer:
            return None
        return next((number for number, status in self.alternatives.items() if not status.is_open), None)

    @property
    def alternatives_text(self) -> str:
        """Of an open card the others that are done for the same, or which of them was taken; empty without any."""
        if not self.is_on_offer:
            return ""
        taken = self.taken_number
        if taken is not None:
            return f"#{taken} was taken instead"
        return f"or {', '.join(f'#{number}' for number in self.alternatives)}" if self.alternatives else ""

    def figures(self, now: datetime) -> tuple[str, ...]:
        """Return what tells it from its alternatives: program, state, changes, verification, time and cost.

        What is not known is empty.
        """
        label = self.state_label(now)
        return (
            self.command_word or self.agent_slug or "",
            "" if label is None else f"{label[0].glyph} {label[1]}",
            self.changes_text,
            "" if self.verification is None else self.verification.text,
            self.elapsed_text(now),
            self.spent_text,
        )

    @property
    def overlap_line(self) -> str:
        """The gravest of its overlaps: ``⚠ #14 edits app.py too``; empty without any."""
        if not self.overlaps:
            return ""
        from agentmon.domain.overlaps import overlap_line  # noqa: PLC0415 - most first frames have none

        return overlap_line(self.overlaps)

    @property
    def awaited_text(self) -> str:
        """What it waits for, and why those that will not be done by themselves are not: ``#7, #8 (cancelled)``.

        That one of them is not queued says something only beside a card that is.
        """
        is_queued = self.state is LiveState.QUEUED
        states = {
            number: state
            for number, state in self.awaited_states.items()
            if is_queued or state is not AwaitedState.NOT_QUEUED
        }
        return ", ".join(states[one].named(one) if one in states else f"#{one}" for one in self.waits_for)

    @property
    def spent_text(self) -> str:
        """What all runs of the task cost, or their tokens where no price is known; empty for nothing."""
        return Spent(self.cost_nano, self.tokens_used, self.unpriced_runs).short_text(self.money)

    @property
    def changes_text(self) -> str:
        """What all runs of the task changed: ``+120 −8 · 5 files``; empty for nothing."""
        return amount_text(self.changed_files, self.lines_added, self.lines_removed)

    @property
    def name(self) -> str:
        """What people call it: ``#12``, and ``api#12`` where numbers alone would not tell which one it is."""
        return f"{self.workspace_name}#{self.number}"

    def seen(self, sighting: Sighting | None) -> Card:
        """Return the card with what is known of its execution while no worker is at work; None for nothing."""
        if sighting is None or self.state is None:
            return self
        return self._replace(sighting=sighting, state=seen_state(self.state, sighting.last_seen_at))

    def state_label(self, now: datetime) -> tuple[LiveState, str] | None:
        """Return the state and the words for it, as every place shows them; None when it never ran."""
        if self.state is None:
            return None
        return state_label(
            self.state,
            now=now,
            exit_code=self.exit_code,
            error=self.error,
            waits_for=self.awaited_text,
            waits_until=self.waits_until,
            is_retry=self.is_retry,
            sighting=self.sighting,
        )

    def elapsed_text(self, now: datetime) -> str:
        """Return for how long the newest execution ran or has been running; empty when it never started."""
        return elapsed_text(self.started_at, self.ended_at or self.sighting.last_seen_at, now)


class ColumnPage(NamedTuple):
    """A part of a column: the cards from ``offset`` on, and how many the column has in all."""

    status: TaskStatus
    total: int = 0
    offset: int = 0
    cards: tuple[Card, ...] = ()
    card_limit: int | None = None
    """How many cards it should have at most; more only warn.

    None without a limit, while a filter hides cards, and where the cards of all workspaces are shown together.
    """
    workspaces_over: tuple[str, ...] = ()
    """Where the cards of all are shown together: short names of the workspaces that have more cards here than they
    should."""

    @property
    def is_over_limit(self) -> bool:
        """Whether it, or a workspace in it, has more cards than it should."""
        return bool(self.workspaces_over) or (self.card_limit is not None and self.total > self.card_limit)


class StatusLine(NamedTuple):
    """The numbers above the board."""

    running: int = 0
    """Executions that have or may have a process."""
    running_limit: int = 0
    queued: int = 0
    is_paused: bool = False
    """Whether nothing starts until somebody lets the queue go on."""
    needs_you: int = 0
    overlapping: int = 0
    """Live runs that get into the way of others."""
    cost_today_nano: int = 0
    """Of the answers with a known price."""
    tokens_today: int = 0
    unpriced_today: int = 0
    """Answers without a known price."""
    budget_today_nano: int | None = None
    """What everything together may cost in a day; None when there is no such budget."""
    money: MoneyFormat = DOLLARS
    """How all amounts are shown."""
    worker_seen_at: datetime | None = None
    """When a worker was last at work, while one is needed and none is: all the rest may be as old as that."""


class BoardPage(NamedTuple):
    """What one look at the board needs."""

    workspace_name: str
    """Of the only workspace, or ``ALL_WORKSPACES``."""
    workspaces: Mapping[str, str] = {}
    """Root paths by the short names on the cards, where the cards of all workspaces are shown together; else empty."""
    columns: Mapping[TaskStatus, ColumnPage] = {}
    sort: BoardSort = BoardSort.ORDER
    has_review: bool = True
    """Whether the column Review is in use; one that is not is shown only where it has cards."""
    status_line: StatusLine = StatusLine()
    import_percent: int | None = None
    """How much of the agents' histories an import has read; None while none goes on."""


class ColumnRequest(NamedTuple):
    """Which part of a column to read."""

    status: TaskStatus
    offset: int = 0
    limit: int = 60
    text_filter: str = ""
    """Keeps the cards that it fits; see ``board_filter``."""
    sort: BoardSort | None = None
    """In this order; None takes the one that is set."""
