"""What waits for a person, one below the other: a request of an agent, or an agent that waits for a message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.conversation import AskKind
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.widgets.cells import cells, cut, even_line, pad
from agentmon.widgets.request_words import decision_style, decision_words, waited_text, wish_words
from agentmon.widgets.text_rows import Span, text_rows

if TYPE_CHECKING:
    from datetime import datetime

    from agentmon.domain.approvals import ApprovalListing
    from agentmon.domain.executions import Execution, ExecutionListing
    from agentmon.domain.ids import ExecutionId, TaskId
    from agentmon.widgets.block_view import Block
    from agentmon.widgets.text_rows import Row

_BLANK: Final[Row] = (Span(""),)
_WAITS_FOR_WORDS: Final = "waits for a message"


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxItem:
    """One thing that waits, or waited when it was shown first."""

    listing: ApprovalListing | None = None
    """The request; None for an agent that waits without one."""
    execution: ExecutionListing | None = None
    """The execution that waits for a message, or in the queue for what will not be done."""
    since: datetime

    @property
    def key(self) -> str:
        """Its name in the list."""
        if self.listing is not None:
            return str(self.listing.approval.id)
        return "" if self.execution is None else f"execution-{self.execution.execution.id}"

    @property
    def task_id(self) -> TaskId | None:
        """The task that it belongs to."""
        if self.listing is not None:
            return self.listing.task_id
        return None if self.execution is None else self.execution.execution.task_id

    @property
    def execution_id(self) -> ExecutionId | None:
        """The execution that waits."""
        if self.listing is not None:
            return self.listing.approval.execution_id
        return None if self.execution is None else self.execution.execution.id

    @property
    def is_pending(self) -> bool:
        """Whether it is a request that can be decided."""
        return self.listing is not None and self.listing.approval.status is ApprovalStatus.PENDING

    @property
    def is_over(self) -> bool:
        """Whether it is a run that a budget stopped."""
        return self.execution is not None and self.execution.execution.end_reason is EndReason.BUDGET

    @property
    def waits_to_start(self) -> bool:
        """Whether nothing runs yet that could be spoken to or entered."""
        is_start = self.is_pending and self.listing is not None and self.listing.approval.ask_kind is AskKind.START
        return is_start or self.waits_for_tasks

    @property
    def waits_for_tasks(self) -> bool:
        """Whether it is a queued run whose task waits for what will not be done by itself."""
        return self.execution is not None and self.execution.execution.status is ExecutionStatus.QUEUED


@dataclass(frozen=True, slots=True)
class InboxBlock:
    """Two rows of the list: the task with its waiting time, and what is wanted."""

    item: InboxItem
    waited: str
    can_unfold: bool = False

    @property
    def key(self) -> str:
        """Its name in the view."""
        return self.item.key

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:  # noqa: ARG002 - there is nothing folded
        """Return the two rows and a blank one."""
        listing, execution = self.item.listing, self.item.execution
        if listing is not None:
            number, title, agent = listing.task_number, listing.task_title, listing.agent_slug
            is_open = self.item.is_pending
            wanted = wish_words(listing.approval, folder=listing.working_dir)
            wish = f" {wanted if is_open else decision_words(listing.approval)}"
            style = "warning" if is_open else decision_style(listing.approval)
            wish_style = "text" if is_open else "muted"
        elif execution is not None:
            number, title, agent = execution.task_number, execution.task_title, execution.agent_slug
            note = even_line(_note(execution.execution), max_characters=200)
            wish, style, wish_style = f" {note}", "muted" if self.item.is_over else "warning", "text"
        else:
            return [_BLANK]
        lead = f"{'◆' if style == 'warning' else '·'} #{number} "
        behind = 0 if listing is None else listing.more
        more = (
            [(Span(cut(f"  {behind:,} more requests of this run are not listed", width), "muted"),)] if behind else []
        )
        room = max(0, width - cells(lead) - cells(self.waited) - 1)
        return [
            (
                Span(lead, style),
                Span(pad(even_line(title, max_characters=300), room), "bold" if style == "warning" else "muted"),
                Span(f" {self.waited}", "muted"),
            ),
            (Span(f"  {even_line(agent, max_characters=40)}", "muted"), Span(cut(wish, width), wish_style)),
            *more,
            _BLANK,
        ]


@dataclass(frozen=True, slots=True)
class IdleBlock:
    """An agent that waits for a message, or a run that waits for tasks, told in full."""

    listing: ExecutionListing
    waited: str
    key: str = "idle"
    can_unfold: bool = False

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:  # noqa: ARG002 - there is nothing folded
        """Return who waits for what, and the keys that help."""
        execution = self.listing.execution
        is_over = execution.end_reason is EndReason.BUDGET
        rows = text_rows(f"#{self.listing.task_number} {self.listing.task_title}", width, "bold")
        rows.append(_BLANK)
        rows += text_rows(f"{self.listing.agent_slug}: {_note(execution)}", width)
        if is_over:
            rows += text_rows("Raise the budget, then run it again from its task.", width, "muted")
        else:
            rows += text_rows(f"It has waited for {self.waited}.", width, "muted")
        if execution.last_line:
            rows += [_BLANK, *text_rows(f"› {execution.last_line}", width, "muted")]
        rows.append(_BLANK)
        keys = "m sends a message · " if execution.mode.is_conversation else ""
        keys += "a enters its terminal · enter opens the task"
        if is_over:
            keys = "enter opens the task"
        elif execution.status is ExecutionStatus.QUEUED:
            keys = "y starts it anyway or takes it out of the queue · enter opens the task"
        return rows + text_rows(keys, width, "muted")


def _note(execution: Execution) -> str:
    """Return what it waits for, or why it was stopped."""
    note = execution.error if execution.end_reason is EndReason.BUDGET else execution.activity_note
    return note or _WAITS_FOR_WORDS


def inbox_blocks(items: tuple[InboxItem, ...], now: datetime) -> tuple[Block, ...]:
    """Return the rows of the list."""
    return tuple(InboxBlock(item, waited_text(item.since, now)) for item in items)
