"""A conversation as blocks: messages, tool calls, changes of files and requests, in the order of time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from agentmon.domain.amounts import count_text, duration_text
from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.conversation import AskKind, PlanStatus
from agentmon.domain.near_paths import near_text
from agentmon.domain.operations import MessageRole, OperationStatus
from agentmon.widgets.cells import cells, cut, even_line, pad
from agentmon.widgets.local_time import local_time_text
from agentmon.widgets.request_words import decision_style, decision_words, wish_words
from agentmon.widgets.text_rows import Span, diff_rows, is_diff, text_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from agentmon.domain.approvals import Approval
    from agentmon.domain.conversation import PlanNews
    from agentmon.domain.events import Event
    from agentmon.domain.operations import Operation
    from agentmon.domain.sessions import Message
    from agentmon.widgets.block_view import Block
    from agentmon.widgets.text_rows import Row

_BLANK: Final[Row] = (Span(""),)
_INDENT: Final = "  "
_NESTED: Final = "│ "
_MS_PER_S: Final = 1000
_LONGEST_LINE: Final = 1000
_GLYPHS: Final = {
    OperationStatus.PENDING: ("◌", "running"),
    OperationStatus.SUCCESS: ("✓", "good"),
    OperationStatus.FAILED: ("✗", "bad"),
    OperationStatus.BLOCKED: ("⊘", "warning"),
    OperationStatus.CANCELLED: ("⊘", "muted"),
}
_PLAN_MARKS: Final = {
    PlanStatus.PENDING: ("☐", "muted"),
    PlanStatus.IN_PROGRESS: ("▸", "running"),
    PlanStatus.COMPLETED: ("☑", "good"),
}


@dataclass(frozen=True, slots=True)
class MessageBlock:
    """One message; what an agent thinks is one dim row until it is unfolded."""

    message: Message
    speaker: str
    time: str

    @property
    def key(self) -> str:
        """Its name in the view."""
        return str(self.message.id)

    @property
    def can_unfold(self) -> bool:
        """Whether it is a thought."""
        return self.message.is_thinking

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:
        """Return who speaks, the text, and a blank row."""
        message = self.message
        indent = _NESTED if message.parent_ref else ""
        if message.is_thinking and not is_unfolded:
            thought = even_line(message.content, max_characters=_LONGEST_LINE)
            return [(Span(indent, "muted"), Span(cut(f"∴ {thought}", width), "thinking")), _BLANK]
        style = _ROLE_STYLES[message.role]
        head = (Span(indent, "muted"), Span(self.speaker, style), Span(f"  {self.time}", "muted"))
        text = "thinking" if message.is_thinking else ("muted" if message.role is MessageRole.SYSTEM else "text")
        return [head, *text_rows(message.content.rstrip(), width, text, indent=indent), _BLANK]


@dataclass(frozen=True, slots=True)
class OperationBlock:
    """One tool call in one row; unfolded with what went in and what came out."""

    operation: Operation
    folder: str = ""
    """Paths below it are told from there."""
    can_unfold: bool = True
    has_gap: bool = True
    """Whether a blank row sets it apart from the next; calls that follow each other stand close."""

    @property
    def key(self) -> str:
        """Its name in the view."""
        return str(self.operation.id)

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:
        """Return the row, or the call with both summaries."""
        operation = self.operation
        indent = _NESTED if operation.parent_ref else ""
        glyph, style = _GLYPHS[operation.status]
        took = took_text(operation)
        tool = even_line(operation.tool_name, max_characters=60)
        room = max(0, width - cells(indent) - cells(tool) - cells(took) - 4)
        target = pad(even_line(near_text(operation.target, self.folder), max_characters=_LONGEST_LINE), room)
        line = (
            Span(f"{indent}", "muted"),
            Span(f"{glyph} ", style),
            Span(f"{tool} ", "bold"),
            Span(target, "muted"),
            Span(f" {took}", "muted"),
        )
        if not is_unfolded:
            return [line, *_gap(self.has_gap)]
        rows: list[Row] = [line]
        if operation.error:
            rows += text_rows(operation.error, width, "bad", indent=_INDENT)
        for name, summary in (("In", operation.input_summary), ("Out", operation.output_summary)):
            if summary.strip():
                rows.append((Span(f"{_INDENT}{name}", "primary"),))
                rows += summary_rows(summary, width)
        if not operation.input_summary.strip() and not operation.output_summary.strip():
            rows.append((Span(f"{_INDENT}It said nothing.", "muted"),))
        return [*rows, _BLANK]


@dataclass(frozen=True, slots=True)
class DiffBlock:
    """A file that was changed, in one row; unfolded with the difference."""

    event_id: int
    path: str
    diff: str
    added_lines: int
    removed_lines: int
    has_gap: bool = True
    """As that of a call."""

    @property
    def key(self) -> str:
        """Its name in the view."""
        return f"diff-{self.event_id}"

    @property
    def can_unfold(self) -> bool:
        """Whether the agent showed the difference."""
        return bool(self.diff)

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:
        """Return the file with its counts, or the whole difference."""
        counts = f" +{self.added_lines} −{self.removed_lines}"
        room = max(0, width - len(counts) - 2)
        path = cut(even_line(self.path, max_characters=_LONGEST_LINE), room)
        line = (
            Span("± ", "primary"),
            Span(path, "text"),
            Span(f" +{self.added_lines}", "good"),
            Span(f" −{self.removed_lines}", "bad"),
        )
        if is_unfolded:
            return [line, *diff_rows(self.diff, width, indent=_INDENT), _BLANK]
        return [line, *_gap(self.has_gap)]


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
        words = "waits for you: y shows it, with the keys that decide" if is_pending else decision_words(approval)
        rows += text_rows(words, width, decision_style(approval), indent=_INDENT)
        if is_unfolded:
            if approval.reason:
                rows += text_rows(approval.reason, width, "muted", indent=_INDENT)
            if approval.detail:
                rows += summary_rows(approval.detail, width)
        return [*rows, _BLANK]


_ROLE_STYLES: Final = {
    MessageRole.USER: "heading",
    MessageRole.ASSISTANT: "running",
    MessageRole.SYSTEM: "muted",
    MessageRole.TOOL: "muted",
}


def summary_rows(text: str, width: int) -> list[Row]:
    """Return what went into a tool or came out of it; differences are coloured."""
    if is_diff(text):
        return diff_rows(text.rstrip(), width, indent=_INDENT * 2)
    return text_rows(text.rstrip(), width, "text", indent=_INDENT * 2, at_words=False)


def _gap(has_gap: bool) -> list[Row]:
    return [_BLANK] if has_gap else []


def took_text(operation: Operation) -> str:
    """Return how long a tool call took: ``340ms``, ``4s``; empty while it is not known."""
    if operation.duration_ms is not None:
        ms = operation.duration_ms
        return f"{ms}ms" if ms < _MS_PER_S else duration_text(ms / _MS_PER_S)
    if operation.finished_at is None:
        return ""
    return duration_text((operation.finished_at - operation.started_at).total_seconds())


def conversation_blocks(
    *,
    messages: Iterable[Message],
    operations: Sequence[Operation],
    approvals: Sequence[Approval],
    diffs: Iterable[Event],
    agent_name: str,
    now: datetime,
    folder: str = "",
) -> tuple[Block, ...]:
    """Return all of a conversation in the order of time; paths below the folder are told from there.

    A question stands once, as the request, with its answer: the call would say it again.
    """
    names = {
        MessageRole.USER: "you",
        MessageRole.ASSISTANT: even_line(agent_name, max_characters=40),
        MessageRole.SYSTEM: "system",
        MessageRole.TOOL: "tool",
    }
    timed: list[tuple[float, int, Block]] = []
    for message in messages:
        block = MessageBlock(message, names[message.role], local_time_text(message.created_at, now))
        timed.append((message.created_at.timestamp(), 0, block))
    asked = {one.operation_id for one in approvals if one.ask_kind is AskKind.QUESTION}
    done = [operation for operation in operations if operation.id not in asked]
    timed += [(operation.started_at.timestamp(), 1, OperationBlock(operation, folder)) for operation in done]
    timed += [(approval.asked_at.timestamp(), 2, AskBlock(approval, folder)) for approval in approvals]
    timed += [(event.timestamp_ms / _MS_PER_S, 3, _diff_block(event, folder)) for event in diffs]
    timed.sort(key=lambda one: one[:2])
    ordered: list[Block] = [block for _, _, block in timed]
    for at, (one, following) in enumerate(pairwise(ordered)):
        if isinstance(one, OperationBlock | DiffBlock) and isinstance(following, OperationBlock | DiffBlock):
            ordered[at] = replace(one, has_gap=False)
    return tuple(ordered)


def plan_rows(plan: PlanNews, width: int, *, most: int) -> list[Row]:
    """Return the plan as a checklist of at most so many rows; steps that are done make room first."""
    steps = list(plan.steps)
    done = sum(step.status is PlanStatus.COMPLETED for step in steps)
    rows: list[Row] = [(Span("Plan ", "heading"), Span(f"{done} of {len(steps)} done", "muted"))]
    room = max(1, most - 1)
    first = max(
        0,
        min(
            next((at for at, step in enumerate(steps) if step.status is not PlanStatus.COMPLETED), 0), len(steps) - room
        ),
    )
    for step in steps[first : first + room]:
        mark, style = _PLAN_MARKS[step.status]
        text = "muted" if step.status is PlanStatus.COMPLETED else "text"
        rows.append(
            (Span(f"{mark} ", style), Span(cut(even_line(step.text, max_characters=_LONGEST_LINE), width - 2), text))
        )
    return rows


def tokens_text(operation: Operation) -> str:
    """Return the tokens that a tool call took part in: ``1.2 K``; empty when none are known."""
    tokens = operation.input_tokens + operation.output_tokens
    return count_text(tokens) if tokens else ""


def _diff_block(event: Event, folder: str) -> DiffBlock:
    payload: Mapping[str, object] = event.payload
    added, removed = payload.get("added_lines"), payload.get("removed_lines")
    return DiffBlock(
        event_id=event.id,
        path=near_text(str(payload.get("path", "")), folder),
        diff=str(payload.get("diff") or ""),
        added_lines=added if isinstance(added, int) else 0,
        removed_lines=removed if isinstance(removed, int) else 0,
    )
