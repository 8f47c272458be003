"""Tool calls as blocks of a conversation: each once, with what was decided on it and what it changed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.amounts import count_text, duration_text
from agentmon.domain.json_values import read_object
from agentmon.domain.near_paths import near_text
from agentmon.domain.operations import OperationStatus, OperationType
from agentmon.widgets.cells import cells, cut, even_line, pad
from agentmon.widgets.request_words import decision_style, decision_words
from agentmon.widgets.text_rows import Span, diff_rows, is_diff, text_rows, wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.approvals import Approval
    from agentmon.domain.events import Event
    from agentmon.domain.operations import Operation
    from agentmon.widgets.text_rows import Row

_BLANK: Final[Row] = (Span(""),)
_INDENT: Final = "  "
_NESTED: Final = "│ "
_MS_PER_S: Final = 1000
_LONGEST_LINE: Final = 1000
_NAME_CELLS: Final = 30
_GLYPHS: Final = {
    OperationStatus.PENDING: ("◌", "running"),
    OperationStatus.SUCCESS: ("✓", "good"),
    OperationStatus.FAILED: ("✗", "bad"),
    OperationStatus.BLOCKED: ("⊘", "warning"),
    OperationStatus.CANCELLED: ("⊘", "muted"),
}


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
        counts = _counts(self.added_lines, self.removed_lines)
        room = max(0, width - _span_cells(counts) - 2)
        path = cut(even_line(self.path, max_characters=_LONGEST_LINE), room)
        line = (Span("± ", "primary"), Span(path, "text"), *counts)
        if is_unfolded:
            return [line, *diff_rows(self.diff.rstrip(), width, indent=_INDENT), _BLANK]
        return [line, *_gap(self.has_gap)]


@dataclass(frozen=True, slots=True)
class OperationBlock:
    """One tool call in one row, with what it changed; unfolded with what went in and what came out."""

    operation: Operation
    folder: str = ""
    """Paths below it are told from there."""
    decision: Approval | None = None
    """The request that was decided before it could run; it stands in a row of its own."""
    changes: tuple[DiffBlock, ...] = ()
    """The files that it changed; unfolded they stand for what went in and what came out, which say the same."""
    can_unfold: bool = True
    has_gap: bool = True
    """Whether a blank row sets it apart from the next; calls that follow each other stand close."""

    @property
    def key(self) -> str:
        """Its name in the view."""
        return str(self.operation.id)

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:
        """Return the row with the decision, or the call with all that is known of it."""
        rows = [self._line(width), *self._decision_rows(width, is_unfolded=is_unfolded)]
        if not is_unfolded:
            return [*rows, *_gap(self.has_gap)]
        operation = self.operation
        if operation.error:
            rows += text_rows(operation.error, width, "bad", indent=_INDENT)
        shown = [change for change in self.changes if change.diff]
        if shown:
            return [*rows, *_change_rows(shown, width), _BLANK]
        for name, summary in (("In", self._wanted), ("Out", operation.output_summary)):
            if summary.strip():
                rows.append((Span(f"{_INDENT}{name}", "primary"),))
                rows += summary_rows(summary, width)
        if not self._wanted.strip() and not operation.output_summary.strip():
            rows.append((Span(f"{_INDENT}It said nothing.", "muted"),))
        return [*rows, _BLANK]

    @property
    def _wanted(self) -> str:
        """What went in; a difference that was to be decided on is easier to read than the words of the tool."""
        detail = "" if self.decision is None else self.decision.detail
        return detail if is_diff(detail) else self.operation.input_summary

    def _line(self, width: int) -> Row:
        operation = self.operation
        indent = _NESTED if operation.parent_ref else ""
        glyph, style = _GLYPHS[operation.status]
        took = took_text(operation)
        tool = even_line(operation.tool_name, max_characters=60)
        added, removed = (
            sum(change.added_lines for change in self.changes),
            sum(change.removed_lines for change in self.changes),
        )
        counts: tuple[Span, ...] = _counts(added, removed) if self.changes else ()
        if counts and operation.type is not OperationType.WRITE:
            # Of a command nothing else says which files they are.
            names = [change.path.rpartition("/")[2] for change in self.changes]
            shown = names[0] if len(names) == 1 else f"· {len(names)} files"
            counts = (*counts, Span(f" {cut(even_line(shown, max_characters=_LONGEST_LINE), _NAME_CELLS)}", "text"))
        room = max(0, width - cells(indent) - cells(tool) - cells(took) - 4)
        named = even_line(near_text(operation.target, self.folder), max_characters=_LONGEST_LINE)
        target = cut(named, max(0, room - _span_cells(counts)))
        return (
            Span(indent, "muted"),
            Span(f"{glyph} ", style),
            Span(f"{tool} ", "bold"),
            Span(target, "muted"),
            *counts,
            Span(pad("", room - cells(target) - _span_cells(counts)), "muted"),
            Span(f" {took}", "muted"),
        )

    def _decision_rows(self, width: int, *, is_unfolded: bool) -> list[Row]:
        if self.decision is None:
            return []
        rows = text_rows(decision_words(self.decision), width, decision_style(self.decision), indent=_INDENT)
        if is_unfolded and self.decision.reason:
            rows += text_rows(f"“{self.decision.reason}”", width, "text", indent=_INDENT)
        return rows


def summary_rows(text: str, width: int) -> list[Row]:
    """Return what went into a tool or came out of it: differences coloured, a JSON object as a row for each name."""
    if is_diff(text):
        return diff_rows(text.rstrip(), width, indent=_INDENT * 2)
    if named := _named_values(text):
        return [row for name, value in named for row in _named_rows(name, value, width)]
    return text_rows(text.rstrip(), width, "text", indent=_INDENT * 2, at_words=False)


def _named_values(text: str) -> list[tuple[str, object]]:
    """Return the names and values of a JSON object; none for any other text, and for one that was cut off."""
    return list((read_object(text) or {}).items()) if text.startswith("{") else []


def _named_rows(name: str, value: object, width: int) -> list[Row]:
    """Return the value behind its name, or below it when it has several lines."""
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    head = f"{_INDENT * 2}{even_line(name, max_characters=_LONGEST_LINE)}: "
    if "\n" in shown.strip() or cells(head) > width // 2:
        below = text_rows(shown.rstrip(), width, "text", indent=_INDENT * 3, at_words=False)
        return [(Span(cut(head.rstrip(), width), "muted"),), *below]
    rows = wrapped(shown, width - cells(head), at_words=False)
    return [(Span(head if not at else " " * cells(head), "muted"), Span(row)) for at, row in enumerate(rows)]


def took_text(operation: Operation) -> str:
    """Return how long a tool call took: ``340ms``, ``4s``; empty while it is not known."""
    if operation.duration_ms is not None:
        ms = operation.duration_ms
        return f"{ms}ms" if ms < _MS_PER_S else duration_text(ms / _MS_PER_S)
    if operation.finished_at is None:
        return ""
    return duration_text((operation.finished_at - operation.started_at).total_seconds())


def tokens_text(operation: Operation) -> str:
    """Return the tokens that a tool call took part in: ``1.2 K``; empty when none are known."""
    tokens = operation.input_tokens + operation.output_tokens
    return count_text(tokens) if tokens else ""


def diff_block(event: Event, folder: str) -> DiffBlock:
    """Return the change of a file that an event of type ``diff`` tells; its path is told from the folder."""
    payload: Mapping[str, object] = event.payload
    added, removed = payload.get("added_lines"), payload.get("removed_lines")
    return DiffBlock(
        event_id=event.id,
        path=near_text(str(payload.get("path", "")), folder),
        diff=str(payload.get("diff") or ""),
        added_lines=added if isinstance(added, int) else 0,
        removed_lines=removed if isinstance(removed, int) else 0,
    )


def _change_rows(changes: list[DiffBlock], width: int) -> list[Row]:
    """Return the differences; each under its file when there are several."""
    rows: list[Row] = []
    for change in changes:
        if len(changes) > 1:
            rows.append((Span(cut(f"{_INDENT}{even_line(change.path)}", width), "heading"),))
        rows += diff_rows(change.diff.rstrip(), width, indent=_INDENT)
    return rows


def _counts(added: int, removed: int) -> tuple[Span, Span]:
    return Span(f" +{added}", "good"), Span(f" −{removed}", "bad")


def _span_cells(spans: tuple[Span, ...]) -> int:
    return sum(cells(span.text) for span in spans)


def _gap(has_gap: bool) -> list[Row]:
    return [_BLANK] if has_gap else []
