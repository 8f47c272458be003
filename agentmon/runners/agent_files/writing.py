"""Agents written as TOML, without what looks like a secret."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.domain.agents import InteractionMode
from agentmon.domain.argument_order import argument_names
from agentmon.domain.redaction import has_secret, redact
from agentmon.domain.verifications import command_text
from agentmon.runners.environment import looks_secret
from agentmon.runners.presets.reading import DEFAULT_MAX_OUTPUT_BYTES, DEFAULT_TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.agents import Agent, Capability

_HEAD = (
    "Agents of agentmon: `agentmon agents import FILE` takes them in. As .agentmon/agents.toml of a project they",
    "are offered there, once somebody has looked at them and trusts them.",
)


def write_agents_text(agents: Sequence[Agent]) -> tuple[str, tuple[str, ...]]:
    """Return the agents as a text, and what of them looks like a secret and is left out, by its place."""
    import tomlkit  # noqa: PLC0415 - dear to import, and seldom needed

    left_out: list[str] = []
    document = tomlkit.document()
    for line in _HEAD:
        document.add(tomlkit.comment(line))
    tables = tomlkit.aot()
    for agent in agents:
        form = _without_secrets(_agent_form(agent), agent.slug, left_out)
        if isinstance(form, dict):
            tables.append(tomlkit.item(_with_long_texts(form)))
    document.add("agent", tables)
    return tomlkit.dumps(document), tuple(left_out)


def _agent_form(agent: Agent) -> dict[str, object]:
    form: dict[str, object] = {
        "slug": agent.slug,
        "name": agent.name,
        "description": agent.description,
        "tool_type": agent.tool_type.value,
        "binary": _portable(agent.binary_path),
        "base_args": list(agent.base_args),
        "working_dir": _portable(agent.working_dir or ""),
        "isolation": "" if agent.isolation is None else agent.isolation.value,
        "sandbox": "" if agent.sandbox is None else agent.sandbox.value,
        "verify": command_text(agent.verify),
        "env_allowlist": list(agent.env_allowlist),
        "max_concurrent": agent.max_concurrent,
        "role": agent.role,
        "model": agent.model,
        "model_tier": agent.model_tier,
        "instructions": agent.instructions,
        "icon": agent.icon,
        "color": agent.color,
        "homepage": agent.homepage,
        "mcp_enabled": agent.mcp_enabled,
        "tools": dict(agent.tools),
        "session_config": {} if agent.session_config is None else agent.session_config.parts(),
    }
    form = {name: value for name, value in form.items() if value not in (None, "", [], {}, 0, False)}
    form |= {} if agent.temperature is None else {"temperature": agent.temperature}
    form |= {} if agent.is_active else {"enabled": False}
    named = {"slug": agent.slug, "name": agent.name, "binary": ""}
    return {**named, **form, "capability": [_capability_form(capability) for capability in agent.capabilities]}


def _capability_form(capability: Capability) -> dict[str, object]:
    is_template = capability.interaction_mode is InteractionMode.TEMPLATE
    properties, required = capability.args_schema.get("properties"), capability.args_schema.get("required")
    form: dict[str, object] = {
        "key": capability.key,
        "label": capability.label,
        "description": capability.description,
        "source": capability.source.value,
        "interaction_mode": "" if is_template else capability.interaction_mode.value,
        "prompt_template": capability.prompt_template,
        "mode": "" if capability.mode is None else capability.mode.value,
        "requires_approval": capability.requires_approval,
        "danger_level": int(capability.danger_level),
        "required": _plain(required),
    }
    form = {name: value for name, value in form.items() if value not in (None, "", [], 0, False)}
    if is_template or capability.command_tokens:
        form["command_tokens"] = list(capability.command_tokens)
    form |= {} if capability.timeout_s == DEFAULT_TIMEOUT_S else {"timeout_s": capability.timeout_s}
    if capability.max_output_bytes != DEFAULT_MAX_OUTPUT_BYTES:
        form["max_output_bytes"] = capability.max_output_bytes
    form |= {} if capability.is_enabled else {"enabled": False}
    if isinstance(properties, dict) and properties:
        form["args"] = {name: _plain(properties[name]) for name in argument_names(capability.args_schema)}
    return form


def _with_long_texts(value: object) -> object:
    """Return the value with each text of several lines written as such."""
    import tomlkit  # noqa: PLC0415 - as above

    match value:
        case dict():
            return {name: _with_long_texts(part) for name, part in value.items()}
        case list():
            return [_with_long_texts(part) for part in value]
        case str() if "\n" in value:
            return tomlkit.string(value, multiline=True)
        case _:
            return value


def _plain(value: object) -> object:
    """Return a value of JSON as TOML can hold it, which knows no null."""
    match value:
        case dict():
            return {str(key): _plain(part) for key, part in value.items() if part is not None}
        case list() | tuple():
            return [_plain(part) for part in value if part is not None]
        case _:
            return value


def _portable(path: str) -> str:
    """Return a path below the home folder as ``~/…``, which is right for others too."""
    home = str(Path.home())
    return "~" + path.removeprefix(home) if home != "/" and path.startswith(home + "/") else path


def _without_secrets(value: object, place: str, left_out: list[str]) -> object:
    match value:
        case dict():
            return {
                name: _without_secrets(part, f"{place}, {name}", left_out)
                for name, part in value.items()
                if not _is_left_out(str(name), part, place, left_out)
            }
        case list():
            return [_without_secrets(part, place, left_out) for part in value]
        case str() if has_secret(value):
            left_out.append(f"{place}: what looks like a secret is masked")
            return redact(value)
        case _:
            return value


def _is_left_out(name: str, part: object, place: str, left_out: list[str]) -> bool:
    is_variable = place.endswith(", environment") and isinstance(part, str)
    if is_variable and (looks_secret(name) or has_secret(str(part))):
        left_out.append(f"{place} {name}")
        return True
    return False
