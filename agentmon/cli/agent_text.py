"""Agents and their capabilities in words, for a terminal."""

import shlex
from collections.abc import Sequence

from agentmon.cli.columns import table
from agentmon.cli.local_time import local_words
from agentmon.cli.wait_text import parked_text
from agentmon.domain.agent_files import AgentFileState, FileTrust, default_text, file_facts
from agentmon.domain.agent_health import AgentHealth
from agentmon.domain.agents import Agent, Capability, InteractionMode
from agentmon.domain.argument_order import argument_names
from agentmon.domain.errors import AgentmonError
from agentmon.domain.limit_words import size_limit_text, time_limit_text
from agentmon.domain.plain_text import exact_line, plain_line
from agentmon.domain.start_danger import level_words
from agentmon.domain.tasks import Workspace
from agentmon.domain.verifications import command_text
from agentmon.runners.adapters.arguments import describe_argument
from agentmon.runners.adapters.prompt import command_before_arguments

_LONGEST_TEXT = 300


def state_words(agent: Agent) -> str:
    """Return why nothing of an agent starts now; empty when it may."""
    parts = []
    if agent.removed_at is not None:
        parts.append(f"removed {local_words(agent.removed_at)}")
    elif not agent.is_active:
        parts.append("off")
    if agent.missing_since is not None:
        parts.append(f"gone since {local_words(agent.missing_since)}")
    parts.append(parked_text(agent))
    return "; ".join(part for part in parts if part)


def agent_lines(agent: Agent, health: AgentHealth | None, workspace: Workspace | None, width: int) -> list[str]:
    """Return all about one agent: its fields, then its capabilities as a table."""
    facts = [(name, text) for name, text in _facts(agent, health, workspace) if text]
    longest = max(len(name) for name, _ in facts)
    lines = [f"{name.ljust(longest)}  {text}" for name, text in facts]
    if agent.instructions:
        lines += ["", "instructions", *(f"  {line}" for line in agent.instructions.splitlines())]
    rows = [capability_row(agent, capability) for capability in agent.capabilities]
    return [*lines, "", *table(("CAPABILITY", "DANGER", "STATE", "COMMAND"), rows, width)]


def capability_row(agent: Agent, capability: Capability) -> tuple[str, str, str, str]:
    """Return key, danger, state and command line of a capability."""
    is_prompt = capability.interaction_mode is InteractionMode.PROMPT
    told = "takes a prompt: " if is_prompt else ""
    state = "" if capability.is_enabled else "off"
    if capability.requires_approval:
        state = f"{state}, asks first".removeprefix(", ")
    try:
        command = shlex.join(command_before_arguments(agent, capability))
    except AgentmonError as error:
        told, command = "", f"cannot run: {error}"
    danger = f"{capability.danger_level.value} {level_words(capability.danger_level)}"
    return capability.key, danger, state, plain_line(f"{told}{command}", max_characters=_LONGEST_TEXT)


def capability_lines(agent: Agent, capability: Capability) -> list[str]:
    """Return all about one capability, with its arguments."""
    key, danger, state, command = capability_row(agent, capability)
    lines = [
        f"{agent.slug}.{key}  {plain_line(capability.label)}",
        *([plain_line(capability.description)] if capability.description else []),
        f"command  {command}",
        f"danger   {danger}" + (f", {state}" if state else ""),
        f"limits   {time_limit_text(capability.timeout_s)}, log {size_limit_text(capability.max_output_bytes)}",
        f"source   {capability.source.value}",
    ]
    properties, required = capability.args_schema.get("properties"), capability.args_schema.get("required")
    for name in argument_names(capability.args_schema):
        described = properties[name] if isinstance(properties, dict) else None
        about = described if isinstance(described, dict) else {}
        is_required = isinstance(required, list | tuple) and name in required
        lines.append(f"  {plain_line(describe_argument(name, about))}" + ("; required" if is_required else ""))
    return lines


def file_lines(state: AgentFileState) -> list[str]:
    """Return what a workspace's file of agents would run, whole: nobody can trust what is cut."""
    lines = [f"{state.path}: {_TRUST_WORDS[state.trust]}", *(f"note: {note}" for note in state.notes)]
    if state.setup:
        lines += ["", "in each new worktree it runs", *_exact_lines("    $ ", state.setup)]
    if state.verification:
        lines += ["", "to verify the work of AI agents it runs", *_exact_lines("    $ ", state.verification)]
    for agent in state.agents:
        lines += ["", f"{agent.slug}  {exact_line(agent.name)}" + ("" if agent.is_active else "  (off)")]
        for name, text in file_facts(agent).items():
            lines += _exact_lines(f"  {name:<12}", text)
        for command in (one for one in state.commands if one.agent == agent.slug):
            asks = ", asks first" if command.requires_approval else ""
            lines.append(f"  {exact_line(command.capability)}  (danger {command.danger_level.value}{asks})")
            lines += _exact_lines("    $ ", command.command_line)
            lines += _exact_lines("    > ", command.prompt)
            for name, value in command.defaults.items():
                lines += _exact_lines(f"    {exact_line(name)} = ", default_text(value))
    return lines


def table_of(agents: Sequence[Agent], width: int) -> list[str]:
    """Return a line for each agent."""
    rows = []
    for agent in agents:
        capabilities = ", ".join(capability.key for capability in agent.capabilities if capability.is_enabled)
        remarks = "; ".join(part for part in (state_words(agent), capabilities) if part)
        name = plain_line(agent.name, max_characters=30)
        rows.append((agent.slug, name, agent.tool_type.value, str(agent.max_concurrent or "none"), remarks))
    return table(("SLUG", "NAME", "TYPE", "LIMIT", "CAPABILITIES"), rows, width)


_TRUST_WORDS = {
    FileTrust.NONE: "there is no such file",
    FileTrust.UNTRUSTED: "not trusted, so nothing of it is used",
    FileTrust.CHANGED: "changed since it was trusted, so nothing of it starts",
    FileTrust.TRUSTED: "trusted",
    FileTrust.BROKEN: "cannot be used",
    FileTrust.GONE: "was trusted and is gone",
}


def _exact_lines(before: str, text: str) -> list[str]:
    """Return a text behind some words, each of its lines below the first; none for an empty text."""
    lines = text.splitlines()
    return [f"{before if not at else ' ' * len(before)}{exact_line(line)}" for at, line in enumerate(lines)]


def _facts(agent: Agent, health: AgentHealth | None, workspace: Workspace | None) -> list[tuple[str, str]]:
    config = agent.session_config
    found = "" if health is None else health.found_path or ""
    program = agent.binary_path or "(the command itself names it)"
    logged_in = "" if health is None or health.is_logged_in is None else ("yes" if health.is_logged_in else "no")
    note = f" ({health.login_note})" if health is not None and logged_in and health.login_note else ""
    return [
        ("slug", agent.slug),
        ("name", plain_line(agent.name)),
        ("description", plain_line(agent.description)),
        ("state", state_words(agent) or "on"),
        ("type", agent.tool_type.value),
        ("program", program + (f" → {found}" if found and found != agent.binary_path else "")),
        ("first words", shlex.join(agent.base_args)),
        ("version", agent.version or ""),
        ("package", agent.package_name or ""),
        ("logged in", logged_in + note),
        ("folder", agent.working_dir or ""),
        ("isolation", "" if agent.isolation is None else agent.isolation.value),
        ("sandbox", "" if agent.sandbox is None else agent.sandbox.value),
        ("verify", plain_line(command_text(agent.verify))),
        ("workspace", "" if agent.workspace_id is None or workspace is None else workspace.name),
        ("limit", f"{agent.max_concurrent} at one time" if agent.max_concurrent else "none"),
        ("environment", ", ".join(agent.env_allowlist)),
        ("role", plain_line(agent.role or "")),
        ("model", agent.model or ""),
        ("tier", "" if agent.model_tier is None else str(agent.model_tier)),
        ("temperature", "" if agent.temperature is None else f"{agent.temperature:g}"),
        ("modes", "" if config is None else ", ".join(config.permission_modes)),
        ("tools", _tools_text(agent)),
        ("homepage", agent.homepage),
        ("yours", ", ".join(agent.edited_fields)),
    ]


def _tools_text(agent: Agent) -> str:
    return ", ".join(name if is_allowed else f"no {name}" for name, is_allowed in sorted(agent.tools.items()))
