"""The arguments of a capability as rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from textual.strip import Strip

from agentmon.screens.agents.argument_schema import KIND_WORDS
from agentmon.widgets.arguments_form import ArgumentKind, argument_specs, value_text
from agentmon.widgets.row_table import Column, RowTable, TableRow
from agentmon.widgets.text_rows import Span

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.style import Style

    from agentmon.widgets.arguments_form import ArgumentSpec

ARGUMENT_COLUMNS: Final = (
    Column("Argument", 15),
    Column("Type", 15),
    Column("Needed", 6, from_width=48),
    Column("Default", 8, from_width=56),
    Column("Help", from_width=66),
)
_NONE: Final = "none yet; ctrl+n adds one"


class ArgumentTable(RowTable):
    """Says how the first argument comes while there is none."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(ARGUMENT_COLUMNS, id=id)

    def render_below(self, row: int, width: int, base: Style) -> Strip:
        """Return a line below the last row; the first of an empty table says what to do."""
        if row or self.rows:
            return super().render_below(row, width, base)
        style = self.style_of("muted", base)
        return Strip([Segment(f" {_NONE}", style)]).adjust_cell_length(width, style)


def argument_rows(schema: Mapping[str, object]) -> tuple[TableRow, ...]:
    """Return a row for each argument, in their order."""
    return tuple(
        TableRow(
            spec.name,
            (
                Span(spec.name, "primary"),
                Span(_kind_text(spec)),
                Span("yes" if spec.is_required else "", "warning"),
                Span(_default_text(spec), "muted"),
                Span(spec.description or spec.label, "muted"),
            ),
        )
        for spec in argument_specs(schema)
    )


def _kind_text(spec: ArgumentSpec) -> str:
    if spec.kind is ArgumentKind.CHOICE:
        return " ".join(str(choice) for choice in spec.choices)
    return KIND_WORDS[spec.kind]


def _default_text(spec: ArgumentSpec) -> str:
    if isinstance(spec.default, bool):
        return "yes" if spec.default else "no"
    return value_text(spec, spec.default)
