"""All that is known of one agent, as named facts: for the pane beside the list and for its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.content import Content

from agentmon.domain.agents import DiscoveryMethod, InteractionMode, ParkReason, ToolType
from agentmon.domain.amounts import DOLLARS, MoneyFormat
from agentmon.domain.verifications import command_text
from agentmon.screens.agents.argument_schema import KIND_WORDS
from agentmon.widgets.agent_rows import agent_state, last_run_words, week_text
from agentmon.widgets.arguments_form import argument_specs, value_text
from agentmon.widgets.capability_rows import danger_words
from agentmon.widgets.cells import even_line, pad
from agentmon.widgets.local_time import local_time_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agentmon.domain.agents import Agent, Capability
    from agentmon.widgets.agent_rows import KnownAgent

FIRST_FACTS: Final = (
    "State",
    "Program",
    "Version",
    "Package",
    "Login",
    "Last run",
    "This week",
    "At a time",
    "Role",
    "Model",
    "Temperature",
    "Permissions",
    "Own tools",
)
"""What one looks for first."""
OTHER_FACTS: Final = (
    "Instructions",
    "Arguments",
    "Folder",
    "Environment",
    "Only in",
    "Came from",
    "Yours",
    "Web page",
)
_STYLES: Final = {
    "good": "$success",
    "bad": "$error",
    "warning": "$warning",
    "running": "$secondary",
    "muted": "$text-muted",
    "primary": "$primary",
    "text": "",
}
_CAME_FROM: Final = {
    DiscoveryMethod.PRESET: "a preset",
    DiscoveryMethod.PATH_SCAN: "found on this machine",
    DiscoveryMethod.MANUAL: "added by hand",
}
_FIELD_WORDS: Final = {
    "binary_path": "program",
    "base_args": "arguments",
    "working_dir": "folder",
    "env_allowlist": "environment",
    "is_active": "on or off",
    "max_concurrent": "at a time",
    "model_tier": "model tier",
    "session_config": "permissions",
    "tool_type": "kind",
    "mcp_enabled": "MCP",
}
_LONGEST: Final = 600
_FEW: Final = 3
_LABEL_CELLS: Final = 20
"""Where the label of a capability would have less, the marks of its danger stand without their words."""
_KEY_CELLS: Final = 14


def agent_facts(
    known: KnownAgent, now: datetime, money: MoneyFormat = DOLLARS, *, is_short: bool = False
) -> dict[str, Content]:
    """Return the facts by the names of ``FIRST_FACTS`` and ``OTHER_FACTS``; what is not known or not set has none.

    Args:
        known: Of whom.
        now: The present.
        money: How amounts are shown.
        is_short: Whether long lists are told by their first names and how many more there are.
    """
    agent, health = known
    facts = {
        "State": _state(known, now),
        "Program": _plain(agent.binary_path if health is None else health.found_path or agent.binary_path),
        "Version": _plain(agent.version),
        "Package": _package(agent),
        "Login": _login(known),
        "At a time": _plain(str(agent.max_concurrent) if agent.max_concurrent else "no limit of its own"),
        "This week": _plain(week_text(health, money)),
        "Role": _plain(agent.role),
        "Model": _plain(_model(agent)),
        "Temperature": _plain("" if agent.temperature is None else f"{agent.temperature:g}"),
        "Permissions": _modes(agent),
        "Own tools": _tools(agent),
        "Environment": _plain(_listed(agent.env_allowlist, is_short=is_short)),
        "Folder": _plain(agent.working_dir),
        "Isolation": _plain("" if agent.isolation is None else agent.isolation.value),
        "Sandbox": _plain("" if agent.sandbox is None else agent.sandbox.value),
        "Verification": _plain(command_text(agent.verify)),
        "Arguments": _plain(" ".join(agent.base_args)),
        "Only in": _plain("its workspace, whose file names it" if agent.workspace_id is not None else ""),
        "Came from": _plain(_CAME_FROM[agent.discovery_method]),
        "Yours": _plain(", ".join(_FIELD_WORDS.get(name, name.replace("_", " ")) for name in agent.edited_fields)),
        "Web page": _plain(agent.homepage),
        "Instructions": _plain(agent.instructions),
    }
    last = last_run_words(health, now)
    if last is not None:
        ago = "" if last.words.endswith(" now") else " ago"
        facts["Last run"] = Content.styled(f"{last.text}{ago}", _STYLES[last.style])
    return facts


def heading_content(agent: Agent) -> Content:
    """Return name, slug and what it is, in one line and one below."""
    kind = {ToolType.AI_AGENT: "AI agent", ToolType.DAEMON: "daemon", ToolType.SHELL_UTIL: "shell tool"}
    words = kind.get(agent.tool_type, "tool")
    parts: list[tuple[str, str]] = [
        (even_line(agent.name, max_characters=80), "bold"),
        (f"  {agent.slug} · {words}", "$text-muted"),
    ]
    if agent.description:
        parts.append((f"\n{even_line(agent.description, max_characters=_LONGEST)}", ""))
    return Content.assemble(*parts)


def capability_content(agent: Agent, width: int) -> Content:
    """Return a line for each capability: its key, what it does, and how dangerous it is.

    Args:
        agent: Whose they are.
        width: Cells of a line.
    """
    lines = [Content.styled(_count_text(len(agent.capabilities)), "bold")]
    for one in agent.capabilities:
        danger, style = danger_words(one)
        words = danger if one.is_enabled else "○ off"
        if width - _KEY_CELLS - len(words) <= _LABEL_CELLS:
            words = words.split(" ")[0]
        room = max(0, width - _KEY_CELLS - (len(words) + 1 if words else 0))
        lines.append(
            Content.assemble(
                (pad(even_line(one.key), _KEY_CELLS - 1) + " ", "$primary" if one.is_enabled else "$text-muted"),
                (pad(even_line(one.label), room), "" if one.is_enabled else "$text-muted"),
                (f" {words}" if words else "", _STYLES[style] if one.is_enabled else "$text-muted"),
            )
        )
    return Content("\n").join(lines)


def told_content(agent: Agent, capability: Capability) -> Content:
    """Return what the table has no room for: the command line, what it takes, and what holds it back."""
    danger, style = danger_words(capability)
    parts: list[tuple[str, str]] = [
        (f"{agent.slug}.{capability.key}", "$primary bold"),
        (f"  {even_line(capability.label)}", "bold"),
        (f"   {danger}" if danger else "", _STYLES[style]),
        ("" if capability.is_enabled else "   ○ off", "$text-muted"),
    ]
    if capability.description:
        parts.append((f"\n{even_line(capability.description, max_characters=_LONGEST)}", ""))
    if capability.interaction_mode is InteractionMode.PROMPT:
        parts.append(
            (
                f"\n{even_line(capability.prompt_template or 'the task is its message', max_characters=_LONGEST)}",
                "$text-muted",
            )
        )
    else:
        words = " ".join((agent.binary_path, *agent.base_args, *capability.command_tokens))
        parts.append((f"\n$ {even_line(words, max_characters=_LONGEST)}", "$secondary"))
    parts.extend((f"\n{argument}", "$text-muted") for argument in _arguments(capability))
    return Content.assemble(*parts)


def _arguments(capability: Capability) -> list[str]:
    """Return a line for each argument: its name, its kind or what can be chosen, and whether it has to be there."""
    lines = []
    for spec in argument_specs(capability.args_schema):
        kind = " | ".join(map(str, spec.choices)) if spec.choices else KIND_WORDS[spec.kind]
        notes = [kind, "needed" if spec.is_required else ""]
        if spec.default is not None:
            notes.append(f"default {value_text(spec, spec.default)}")
        notes.append(spec.description)
        told = " · ".join(note for note in notes if note)
        lines.append(f"{pad(even_line(spec.name), _KEY_CELLS)}{even_line(told, max_characters=_LONGEST)}")
    return lines


def _count_text(count: int) -> str:
    if not count:
        return "Can be asked for nothing yet"
    return "Can do 1 thing" if count == 1 else f"Can do {count} things"


def _listed(names: Sequence[str], *, is_short: bool) -> str:
    most = _FEW if is_short and len(names) > _FEW + 1 else len(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _plain(text: str | None) -> Content:
    return Content(even_line(text, max_characters=_LONGEST)) if text else Content("")


def _state(known: KnownAgent, now: datetime) -> Content:
    agent, health = known
    state = agent_state(known, now)
    note = ""
    if agent.missing_since is not None:
        note = f"gone since {local_time_text(agent.missing_since, now)}; install it, or D removes it"
    elif health is not None and health.found_path is None and agent.binary_path:
        note = health.missing_note or f"there is no {agent.binary_path} on the PATH; install it, or e names its path"
    elif agent.parked_until is not None and agent.parked_until > now:
        why = agent.park_note or ("its runs failed" if agent.park_reason is ParkReason.FAILURES else "")
        note = f"{why}; U lets it start now" if why else "U lets it start now"
    return Content.assemble(
        (state.text, _STYLES[state.style]), (f" – {even_line(note)}" if note else "", "$text-muted")
    )


def _package(agent: Agent) -> Content:
    section = f" ({agent.package_section})" if agent.package_section else ""
    return _plain(f"{agent.package_name}{section}" if agent.package_name else "")


def _login(known: KnownAgent) -> Content:
    health = known.health
    if health is None:
        return Content("")
    if health.is_logged_in is None:
        is_ai = known.agent.tool_type is ToolType.AI_AGENT
        note = even_line(health.login_note) or ("it cannot tell without being asked; t tries" if is_ai else "")
        return Content.styled(note, "$text-muted")
    words, style = ("✓ logged in", "$success") if health.is_logged_in else ("◆ not logged in", "$warning")
    note = f" – {even_line(health.login_note)}" if health.login_note else ""
    return Content.assemble((words, style), (note, "$text-muted"))


def _model(agent: Agent) -> str:
    tier = "" if agent.model_tier is None else f"tier {agent.model_tier}"
    own = agent.model or ("its own default" if agent.session_config is not None else "")
    return ", ".join(part for part in (own, tier) if part)


def _modes(agent: Agent) -> Content:
    modes = () if agent.session_config is None else agent.session_config.permission_modes
    if not modes:
        return Content("")
    others = f"  or {', '.join(modes[1:])}" if modes[1:] else ""
    return Content.assemble(even_line(modes[0]), (even_line(others), "$text-muted"))


def _tools(agent: Agent) -> Content:
    parts: list[tuple[str, str]] = []
    for allowed, words, style in ((True, "✓", "$success"), (False, "✗", "$error")):
        names = ", ".join(name for name, is_allowed in agent.tools.items() if is_allowed is allowed)
        if names:
            parts.append((f"{'  ' if parts else ''}{words} ", style))
            parts.append((even_line(names), ""))
    return Content.assemble(*parts)
