"""What an agent can be asked to do, as rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import CapabilitySource, DangerLevel, InteractionMode
from agentmon.domain.limit_words import size_limit_text, time_limit_text
from agentmon.widgets.row_table import Column, TableRow
from agentmon.widgets.text_rows import Span

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentmon.domain.agents import Capability

CAPABILITY_COLUMNS: Final = (
    Column("Capability", 15),
    Column("Does"),
    Column("Command", 30, from_width=150),
    Column("Danger", 19),
    Column("Time", 6, from_width=76, is_right=True),
    Column("Output", 8, from_width=110, is_right=True),
    Column("From", 8, from_width=66),
)
DANGER_WORDS: Final = {
    DangerLevel.SAFE: ("", "muted"),
    DangerLevel.CAUTION: ("! changes files", "text"),
    DangerLevel.DANGEROUS: ("!! dangerous", "warning"),
    DangerLevel.DESTRUCTIVE: ("!!! destroys things", "bad"),
}
"""The words of each level and their style; the marks tell it without colour."""
SOURCE_WORDS: Final = {
    CapabilitySource.MANUAL: "yours",
    CapabilitySource.BUILTIN: "agentmon",
    CapabilitySource.PRESET: "preset",
    CapabilitySource.SCAN_HELP: "help",
    CapabilitySource.SCAN_COMPLETION: "shell",
    CapabilitySource.SCAN_FIG: "fig",
    CapabilitySource.SCAN_MCP: "mcp",
    CapabilitySource.SCAN_MAN: "manual",
    CapabilitySource.LLM_GENERATED: "an agent",
}
_ASKS: Final = "asks first"
_OFF: Final = "○ off"


def capability_rows(capabilities: Iterable[Capability]) -> tuple[TableRow, ...]:
    """Return a row for each capability, in their order."""
    rows = []
    for one in capabilities:
        ground = "text" if one.is_enabled else "muted"
        danger, style = danger_words(one)
        source = SOURCE_WORDS[one.source] + ("*" if one.edited_fields else "")
        cells = (
            Span(one.key, "primary" if one.is_enabled else "muted"),
            Span(does_text(one), ground),
            Span(command_text(one), "muted"),
            Span(danger, style) if one.is_enabled else Span(_OFF, "muted"),
            Span(time_limit_text(one.timeout_s) if one.timeout_s else "∞", "muted"),
            Span(size_limit_text(one.max_output_bytes) if one.max_output_bytes else "∞", "muted"),
            Span(source, "muted"),
        )
        rows.append(TableRow(one.key, cells))
    return tuple(rows)


def danger_words(capability: Capability) -> tuple[str, str]:
    """Return how dangerous it is, or that it asks before it starts, and the style."""
    words, style = DANGER_WORDS[capability.danger_level]
    if capability.requires_approval and capability.danger_level < DangerLevel.DANGEROUS:
        return f"! {_ASKS}" if words else _ASKS, "warning"
    return words, style


def does_text(capability: Capability) -> str:
    """Return what it does, in as few words as there are."""
    return capability.description.rstrip(".") or capability.label


def command_text(capability: Capability) -> str:
    """Return the words behind the program's name, with their placeholders, or that it takes a message."""
    if capability.interaction_mode is InteractionMode.PROMPT:
        return "a conversation"
    return " ".join(capability.command_tokens)
