"""Whether a run waits for a person's leave: by what its capability is set to, and by what its command line says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import DangerLevel, InteractionMode
from agentmon.domain.any_command import ANY_COMMAND_KEY, ANY_COMMAND_SLUG

if TYPE_CHECKING:
    from agentmon.domain.agents import Agent, Capability
    from agentmon.domain.danger import DangerFinding

_MOST_TOLD: Final = 3
_WORDS: Final = {
    DangerLevel.SAFE: "harmless",
    DangerLevel.CAUTION: "changes files",
    DangerLevel.DANGEROUS: "dangerous",
    DangerLevel.DESTRUCTIVE: "destroys things",
}
_TYPED_WHOLE: Final = frozenset({(ANY_COMMAND_SLUG, ANY_COMMAND_KEY), ("sh", "script")})
"""Capabilities whose whole command is written by whoever starts them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartDanger:
    """How dangerous one start is."""

    level: DangerLevel
    reason: str = ""
    """What it would do, or what says that it waits; empty when there is nothing to say."""
    name: str
    """What a person types before a start of level 3: ``git.push``, or the command itself where it was typed whole."""
    waits: bool
    """Whether a person has to allow it first."""


def start_danger(
    agent: Agent, capability: Capability, finding: DangerFinding, *, is_typed: bool, held_for: str = ""
) -> StartDanger:
    """Return how dangerous a start is, and whether it waits.

    The higher of both levels counts: that of the capability, and what the rules say to the command line. A level that
    a person has set counts alone. A command that a person has typed whole, or the mode that a person has chosen for an
    agent, does not wait for what the rules say: the person has said it already.

    Args:
        agent: Who works.
        capability: What it is asked to do.
        finding: What the rules say to the filled command line.
        is_typed: Whether a person gave what it works with, and no agent.
        held_for: Why it waits whatever it would do, such as an agent that starts another's card; empty for no reason.
    """
    is_set_by_person = "danger_level" in capability.edited_fields
    level = capability.danger_level if is_set_by_person else max(capability.danger_level, finding.level)
    is_whole = (agent.slug, capability.key) in _TYPED_WHOLE
    is_said = is_typed and (is_whole or capability.interaction_mode is InteractionMode.PROMPT)
    counted = capability.danger_level if is_said else level
    name = f"{agent.slug}.{capability.key}"
    told = [f"{one.command}: {one.text}" for one in finding.reasons if one.level is finding.level][:_MOST_TOLD]
    reasons = told if finding.level is level else []
    if capability.danger_level is level and level >= DangerLevel.DANGEROUS and finding.level < level:
        reasons = [f"{name} is set to level {level.value}"]
    if held_for:
        reasons.append(held_for)
    if capability.requires_approval:
        reasons.append(f"{name} asks before each start")
    return StartDanger(
        level=level,
        reason="; ".join(reasons),
        name=finding.reasons[0].command if is_whole and finding.reasons else name,
        waits=bool(held_for) or capability.requires_approval or counted >= DangerLevel.DANGEROUS,
    )


def level_words(level: DangerLevel) -> str:
    """Return a level in a word or two: ``dangerous``."""
    return _WORDS[level]


def danger_text(level: DangerLevel, reason: str) -> str:
    """Return level and reason in a line: ``level 3, destroys things: rm: deletes …``."""
    said = f"level {level.value}, {level_words(level)}"
    return f"{said}: {reason}" if reason else said
