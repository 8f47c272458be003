"""What a scan would make of an agent's capabilities, as rows of a table and as the whole of one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.content import Content

from agentmon.domain.capability_proposals import ProposalChange
from agentmon.screens.agents.capability_preview import danger_line, preview_text
from agentmon.widgets.arguments_form import argument_specs
from agentmon.widgets.capability_rows import DANGER_WORDS, SOURCE_WORDS, does_text
from agentmon.widgets.cells import even_line
from agentmon.widgets.row_table import Column, TableRow
from agentmon.widgets.text_rows import Span

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from agentmon.domain.agents import CapabilitySource
    from agentmon.domain.capability_proposals import CapabilityProposal
    from agentmon.screens.agents.capability_preview import Preview

PROPOSAL_COLUMNS: Final = (
    Column("", 1),
    Column("Is", 7),
    Column("Capability", 18),
    Column("Does"),
    Column("Args", 4, from_width=60, is_right=True),
    Column("Danger", 19, from_width=76),
    Column("From", 14, from_width=96),
)
_CHANGE_STYLES: Final = {
    ProposalChange.NEW: "good",
    ProposalChange.CHANGED: "warning",
    ProposalChange.SAME: "muted",
}
_FIELD_WORDS: Final = {
    "args_schema": "arguments",
    "command_tokens": "command",
    "danger_level": "danger",
    "requires_approval": "asking first",
}
_LONGEST: Final = 2000
_LONGEST_COMMAND: Final = 280


def proposal_rows(proposals: Iterable[CapabilityProposal], marked: Collection[str]) -> tuple[TableRow, ...]:
    """Return a row for each proposal, in their order.

    Args:
        proposals: What a scan found.
        marked: Keys of those that are to be accepted.
    """
    rows = []
    for one in proposals:
        capability = one.capability
        danger, style = DANGER_WORDS[capability.danger_level]
        ground = "muted" if one.change is ProposalChange.SAME else "text"
        cells = (
            Span("✓" if capability.key in marked else "", "good"),
            Span(one.change.value, _CHANGE_STYLES[one.change]),
            Span(capability.key, "primary" if ground == "text" else ground),
            Span(does_text(capability), ground),
            Span(str(len(argument_specs(capability.args_schema)) or ""), "muted"),
            Span(danger, style),
            Span(sources_text(one.sources), "muted"),
        )
        rows.append(TableRow(capability.key, cells))
    return tuple(rows)


def sources_text(sources: Iterable[CapabilitySource]) -> str:
    """Return who told of it: ``help, shell``."""
    return ", ".join(SOURCE_WORDS[source] for source in sources)


def proposal_detail(proposal: CapabilityProposal, preview: Preview) -> Content:
    """Return what accepting the proposal would do: the command line, its arguments, what changes and what stays."""
    capability = proposal.capability
    lines = [preview_text(preview, max_characters=_LONGEST_COMMAND)]
    if capability.danger_level:
        lines.append(danger_line(capability.danger_level, "; ".join(proposal.danger_reasons)))
    arguments = [f"{spec.name}*" if spec.is_required else spec.name for spec in argument_specs(capability.args_schema)]
    lines += _fact("arguments", ", ".join(arguments))
    lines += _fact("told by", sources_text(proposal.sources))
    lines += _fact("changes", _fields_text(proposal.changed_fields))
    lines += _fact("stays as you have it", _fields_text(proposal.kept_fields))
    return Content("\n").join(lines)


def _fields_text(names: Iterable[str]) -> str:
    return ", ".join(_FIELD_WORDS.get(name, name) for name in names)


def _fact(name: str, words: str) -> list[Content]:
    if not words:
        return []
    return [Content.assemble((f"{name}  ", "$text-muted"), even_line(words, max_characters=_LONGEST))]
