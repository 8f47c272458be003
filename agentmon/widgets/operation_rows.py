"""Tool calls as rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.domain.changes import call_amount_text
from agentmon.domain.ids import LOCAL_USER_ID
from agentmon.domain.near_paths import near_text
from agentmon.domain.operations import OperationStatus
from agentmon.widgets.call_blocks import OperationBlock, tokens_text, took_text
from agentmon.widgets.row_table import Column, TableRow
from agentmon.widgets.text_rows import Span

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentmon.domain.operations import Operation
    from agentmon.widgets.text_rows import Row

OPERATION_COLUMNS: Final = (
    Column("#", 4, from_width=60, is_right=True),
    Column("State", 11),
    Column("Type", 8, from_width=70),
    Column("Tool", 14),
    Column("Target"),
    Column("Changes", 20, from_width=100),
    Column("Time", 7, from_width=60, is_right=True),
    Column("Tokens", 7, from_width=90, is_right=True),
    Column("Approved by", 16, from_width=110),
)
_WORDS: Final = {
    OperationStatus.PENDING: ("◌ waits", "warning"),
    OperationStatus.SUCCESS: ("✓ done", "good"),
    OperationStatus.FAILED: ("✗ failed", "bad"),
    OperationStatus.BLOCKED: ("⊘ blocked", "warning"),
    OperationStatus.CANCELLED: ("⊘ cancelled", "muted"),
}


def operation_rows(operations: Iterable[Operation], folder: str = "") -> tuple[TableRow, ...]:
    """Return a row for each tool call, in their order; paths below the folder are told from there."""
    rows = []
    for operation in operations:
        words, style = _WORDS[operation.status]
        if operation.status is OperationStatus.PENDING and operation.approved:
            words, style = "● running", "running"
        approver = "you" if operation.approved_by == LOCAL_USER_ID else operation.approved_by
        approved = approver or ("yes" if operation.approved else "")
        cells = (
            Span(str(operation.number or ""), "muted"),
            Span(words, style),
            Span(operation.type.value, "muted"),
            Span(operation.tool_name),
            Span(near_text(operation.target, folder), "muted"),
            Span(call_amount_text(operation.changes)),
            Span(took_text(operation), "muted"),
            Span(tokens_text(operation), "muted"),
            Span(approved, "muted"),
        )
        rows.append(TableRow(str(operation.id), cells))
    return tuple(rows)


class OperationDetail(OperationBlock):
    """A tool call with both summaries, without folding."""

    __slots__ = ()

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:  # noqa: ARG002 - always unfolded
        """Return the call with both summaries."""
        return super().rows(width, is_unfolded=True)
