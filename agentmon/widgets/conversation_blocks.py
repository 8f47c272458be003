"""A conversation as blocks: messages, tool calls, changes of files and requests, in the order of time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.conversation import AskKind
from agentmon.domain.near_paths import near_text
from agentmon.domain.operations import MessageRole, OperationType
from agentmon.widgets.call_blocks import DiffBlock, OperationBlock, diff_block, summary_rows
from agentmon.widgets.cells import cut, even_line
from agentmon.widgets.local_time import local_time_text
from agentmon.widgets.plan_blocks import PlanBlock, is_plan_call
from agentmon.widgets.request_words import decision_style, decision_words, wish_words
from agentmon.widgets.text_rows import GrowingRows, Span, text_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from agentmon.domain.approvals import Approval
    from agentmon.domain.conversation import PlanNews
    from agentmon.domain.events import Event
    from agentmon.domain.ids import ExecutionId, OperationId
    from agentmon.domain.operations import Operation
    from agentmon.domain.sessions import Draft, Message
    from agentmon.widgets.block_view import Block
    from agentmon.widgets.text_rows import Row

_BLANK: Final[Row] = (Span(""),)
_INDENT: Final = "  "
_NESTED: Final = "│ "
_MS_PER_S: Final = 1000
_LONGEST_LINE: Final = 1000
_CLOCK_GRAIN_S: Final = 0.001
_CLOSE: Final = (OperationBlock, DiffBlock, PlanBlock)


@dataclass(frozen=True, slots=True)
class MessageBlock:
    """One message; what an agent thinks is one dim row until it is unfolded."""

    message: Message
    speaker: str
    time: str
    draft_key: str = ""
    """The key that it had while it was being written; empty when nobody saw that."""

    @property
    def key(self) -> str:
        """Its name in the view."""
        return self.draft_key or str(self.message.id)

    @property
    def can_unfold(self) -> bool:
        """Whether it is a thought."""
        return self.message.is_thinking

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:
        """Return who speaks, the text, and a blank row."""
        message = self.message
        indent = _NESTED if message.parent_ref else ""
        if message.is_thinking and not is_unfolded:
            return [_thought_row(message.content, width, indent), _BLANK]
        style = _ROLE_STYLES[message.role]
        head = (Span(indent, "muted"), Span(self.speaker, style), Span(f"  {self.time}", "muted"))
        text = "thinking" if message.is_thinking else ("muted" if message.role is MessageRole.SYSTEM else "text")
        return [head, *text_rows(message.content.rstrip(), width, text, indent=indent), _BLANK]


@dataclass(frozen=True, slots=True)
class DraftBlock:
    """A message that is being written, in the rows that it will have."""

    key: str
    """Its name in the view, which the whole message keeps."""
    draft: Draft
    speaker: str
    time: str
    wrapping: GrowingRows = field(default_factory=GrowingRows, compare=False)
    """Of the same message, whatever it has grown to."""

    @property
    def can_unfold(self) -> bool:
        """Whether it is a thought."""
        return self.draft.is_thinking

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:
        """Return who writes, the text as far as it has come, and a blank row."""
        draft = self.draft
        indent = _NESTED if draft.parent_ref else ""
        if draft.is_thinking and not is_unfolded:
            return [_thought_row(draft.text, width, indent), _BLANK]
        head = (
            Span(indent, "muted"),
            Span(self.speaker, _ROLE_STYLES[MessageRole.ASSISTANT]),
            Span(f"  {self.time}  writing…", "muted"),
        )
        style = "thinking" if draft.is_thinking else "text"
        return [head, *self.wrapping.rows(draft.text.rstrip(), width, style, indent=indent), _BLANK]


@dataclass(frozen=True, slots=True)
class AskBlock:
    """What was asked, and what was decided; unfolded with the whole request."""

    approval: Approval
    folder: str = ""
    """Paths below it are told from there."""

    @property
    def key(self) -> str:
        """Its name in the view."""
        return f"ask-{self.approval.id}"

    @property
    def can_unfold(self) -> bool:
        """Whether there is more than the line."""
        return bool(self.approval.detail or self.approval.reason)

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:
        """Return wish and decision in two rows, or with all that was to be decided on."""
        approval = self.approval
        is_pending = approval.status is ApprovalStatus.PENDING
        wish = cut(wish_words(approval, folder=self.folder), width - 2)
        rows: list[Row] = [(Span("◆ ", "warning"), Span(wish, "text"))]
        words = "waits for you: enter shows it, with the keys that decide" if is_pending else decision_words(approval)
        rows += text_rows(words, width, decision_style(approval), indent=_INDENT)
        if is_unfolded:
            if approval.reason:
                rows += text_rows(approval.reason, width, "muted", indent=_INDENT)
            if approval.detail:
                rows += summary_rows(approval.detail, width)
        return [*rows, _BLANK]


def draft_key_of(message: Draft | Message) -> str:
    """Return the key of a message that is first seen while it is being written."""
    return f"{message.execution_id}:{message.message_ref}"


def _thought_row(thought: str, width: int, indent: str) -> Row:
    line = even_line(thought, max_characters=_LONGEST_LINE)
    return (Span(indent, "muted"), Span(cut(f"∴ {line}", width), "thinking"))


_ROLE_STYLES: Final = {
    MessageRole.USER: "heading",
    MessageRole.ASSISTANT: "running",
    MessageRole.SYSTEM: "muted",
    MessageRole.TOOL: "muted",
}


def conversation_blocks(
    *,
    messages: Iterable[Message],
    operations: Sequence[Operation],
    approvals: Sequence[Approval],
    diffs: Iterable[Event],
    agent_name: str,
    now: datetime,
    plans: Mapping[ExecutionId, PlanNews] | None = None,
    folder: str = "",
    draft_keys: frozenset[str] = frozenset(),
) -> tuple[Block, ...]:
    """Return all of a conversation in the order of time, each thing once; paths below the folder are told from there.

    A question, a plan to agree to and a call that waits for a decision stand as the request. A call that was decided
    on carries the decision, and one that changed files carries the changes. All calls of a run that note its plan are
    one row, which shows the plan as it is now. A message that was shown while it was written keeps the key of its
    draft, which is one of ``draft_keys``.
    """
    names = {
        MessageRole.USER: "you",
        MessageRole.ASSISTANT: even_line(agent_name, max_characters=40),
        MessageRole.SYSTEM: "system",
        MessageRole.TOOL: "tool",
    }
    timed: list[tuple[float, int, Block]] = []
    for message in messages:
        draft_key = draft_key_of(message)
        block = MessageBlock(
            message,
            names[message.role],
            local_time_text(message.created_at, now),
            draft_key if draft_key in draft_keys else "",
        )
        timed.append((message.created_at.timestamp(), 0, block))
    known = {one.id for one in operations}
    decisions = {
        one.operation_id: one
        for one in sorted(approvals, key=lambda one: one.asked_at)
        if one.operation_id in known and one.ask_kind is AskKind.PERMISSION
    }
    carried = {one.id for one in decisions.values() if one.status is not ApprovalStatus.PENDING}
    standing = [one for one in approvals if one.id not in carried]
    asked = {
        one.operation_id
        for one in standing
        if one.ask_kind is not AskKind.PERMISSION or one.status is ApprovalStatus.PENDING
    }
    noted: set[ExecutionId] = set()
    changes, others = _changes_of_calls(operations, diffs, folder)
    for operation in operations:
        if operation.id in asked:
            continue
        run = operation.execution_id
        plan = None if run is None or plans is None or not is_plan_call(operation) else plans.get(run)
        if run is not None and plan is not None:
            if run not in noted:
                noted.add(run)
                timed.append((operation.started_at.timestamp(), 1, PlanBlock(str(run), plan)))
            continue
        call = OperationBlock(operation, folder, decisions.get(operation.id), tuple(changes.get(operation.id, ())))
        timed.append((operation.started_at.timestamp(), 1, call))
    timed += [(approval.asked_at.timestamp(), 2, AskBlock(approval, folder)) for approval in standing]
    timed += [(event.timestamp_ms / _MS_PER_S, 3, diff_block(event, folder)) for event in others]
    timed.sort(key=lambda one: one[:2])
    ordered: list[Block] = [block for _, _, block in timed]
    for at, (one, following) in enumerate(pairwise(ordered)):
        if isinstance(one, _CLOSE) and isinstance(following, _CLOSE):
            ordered[at] = replace(one, has_gap=False)
    return tuple(ordered)


def _changes_of_calls(
    operations: Iterable[Operation], diffs: Iterable[Event], folder: str
) -> tuple[dict[OperationId, list[DiffBlock]], list[Event]]:
    """Return the changes by the call that made them, and those that no call is known for.

    A change belongs to the call that it names, or else to the one of its run that names its file and ended nearest to
    it; each call changes a file once.
    """
    operations = list(operations)
    known = {str(one.id): one.id for one in operations}
    naming: dict[tuple[ExecutionId | None, str], list[Operation]] = {}
    for operation in operations:
        if operation.type is OperationType.WRITE:
            target = near_text(operation.target, folder)
            for path in {target, *target.split(", ")}:
                naming.setdefault((operation.execution_id, path), []).append(operation)
    changes: dict[OperationId, list[DiffBlock]] = {}
    others = []
    for event in diffs:
        change = diff_block(event, folder)
        if (named := known.get(str(event.payload.get("operation_id")))) is not None:
            changes.setdefault(named, []).append(change)
            continue
        at = event.timestamp_ms / _MS_PER_S
        calls = naming.get((event.execution_id, change.path), [])
        begun = [call for call in calls if call.started_at.timestamp() <= at + _CLOCK_GRAIN_S]
        if not begun:
            others.append(event)
            continue
        call = min(begun, key=lambda one: abs((one.finished_at or one.started_at).timestamp() - at))
        calls.remove(call)
        changes.setdefault(call.id, []).append(change)
    return changes, others
