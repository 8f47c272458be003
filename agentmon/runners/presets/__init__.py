"""Presets: programs that agentmon knows from data files, and which of them this machine has.

The files hold facts about programs; what a person changes lives in the database. Files are read here and nowhere else.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from agentmon.domain.agents import (
    Agent,
    Capability,
    CapabilitySource,
    DangerLevel,
    DiscoveryMethod,
    InteractionMode,
    SessionConfig,
    SessionIdSource,
    ToolType,
)
from agentmon.domain.errors import UsageError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.ids import AgentId, CapabilityId, new_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PRESETS_DIR: Final = Path(__file__).parent
"""The files have a second suffix, for ``ruff.toml`` and ``pytest.toml`` would be read by those programs themselves."""

_SLUG: Final = re.compile(r"[a-z][a-z0-9-]*")
_AGENT_KEYS: Final = frozenset(
    {
        *("slug", "name", "description", "tool_type", "binary", "base_args", "env_allowlist", "max_concurrent"),
        *("icon", "homepage", "session_config", "capability"),
    },
)
_CAPABILITY_KEYS: Final = frozenset(
    {
        *("key", "label", "description", "command_tokens", "args", "required", "requires_approval", "danger_level"),
        *("timeout_s", "max_output_bytes", "interaction_mode", "prompt_template", "mode"),
    },
)
_SESSION_KEYS: Final = frozenset(
    {
        *("bidirectional_protocol", "session_id_source", "session_id_field", "session_file_glob"),
        *("list_sessions_command", "list_sessions_pattern", "protocol_args", "screen_args"),
        *("resume_flags", "continue_flags", "flags", "environment", "permission_modes", "models"),
    },
)
_DEFAULT_TIMEOUT_S: Final = 300
_DEFAULT_MAX_OUTPUT_BYTES: Final = 10 * 1024 * 1024

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetCapability:
    """One thing that a preset's program can be asked to do; the fields mean what they mean in ``Capability``."""

    key: str
    label: str
    description: str
    interaction_mode: InteractionMode
    command_tokens: tuple[str, ...]
    prompt_template: str
    mode: ExecutionMode | None
    args_schema: Mapping[str, object]
    requires_approval: bool
    danger_level: DangerLevel
    timeout_s: int
    max_output_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetAgent:
    """A program as its preset describes it; the fields mean what they mean in ``Agent``."""

    slug: str
    name: str
    description: str
    tool_type: ToolType
    binary: str
    """The name to look for on PATH; empty for the agent that runs any command."""
    base_args: tuple[str, ...]
    env_allowlist: tuple[str, ...]
    max_concurrent: int
    icon: str
    homepage: str
    session_config: SessionConfig | None
    capabilities: tuple[PresetCapability, ...]
    binary_path: str = ""
    """Where ``find_installed`` saw the program; empty before that, and for the agent that runs any command."""


def load_presets(folder: Path = PRESETS_DIR) -> tuple[PresetAgent, ...]:
    """Return the agents of all files ``*.preset.toml`` of a folder: those that need no program first, then by slug.

    Raises:
        UsageError: A file is not TOML, or an entry is missing, unknown or of the wrong kind; the message names the
            file, the agent and the entry.
    """
    presets = [preset for path in sorted(folder.glob("*.preset.toml")) for preset in _read_file(path)]
    slugs = [preset.slug for preset in presets]
    repeated = sorted({slug for slug in slugs if slugs.count(slug) > 1})
    if repeated:
        raise UsageError(f"two presets are called {repeated[0]}")
    return tuple(sorted(presets, key=lambda preset: (preset.binary != "", preset.slug)))


def find_installed(environ: Mapping[str, str], presets: Sequence[PresetAgent] | None = None) -> tuple[PresetAgent, ...]:
    """Return the presets whose program is on the PATH of this environment, each with the path where it was found.

    Only absolute folders of PATH are searched: what a relative one means differs from folder to folder. The agent that
    runs any command is always among them.
    """
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    search_path = os.pathsep.join(folder for folder in folders if Path(folder).is_absolute())
    installed = []
    for preset in load_presets() if presets is None else presets:
        found = shutil.which(preset.binary, path=search_path) if preset.binary and search_path else None
        if found is not None or not preset.binary:
            installed.append(replace(preset, binary_path=found or ""))
    return tuple(installed)


def agents_of(presets: Sequence[PresetAgent]) -> tuple[Agent, ...]:
    """Return new agents with new ids for these presets; the ids sort in the order given, capabilities included.

    The agents keep the name of their program, not the path where it was found: which ``pytest`` or ``node`` is meant
    depends on the PATH of each run.
    """
    return tuple(_agent(preset) for preset in presets)


def _agent(preset: PresetAgent) -> Agent:
    agent_id = AgentId(new_id())
    return Agent(
        id=agent_id,
        slug=preset.slug,
        name=preset.name,
        tool_type=preset.tool_type,
        binary_path=preset.binary,
        base_args=preset.base_args,
        env_allowlist=preset.env_allowlist,
        max_concurrent=preset.max_concurrent,
        discovery_method=DiscoveryMethod.PATH_SCAN if preset.binary else DiscoveryMethod.PRESET,
        icon=preset.icon,
        description=preset.description,
        homepage=preset.homepage,
        session_config=preset.session_config,
        capabilities=tuple(
            Capability(
                id=CapabilityId(new_id()),
                agent_id=agent_id,
                key=capability.key,
                label=capability.label,
                description=capability.description,
                source=CapabilitySource.PRESET,
                interaction_mode=capability.interaction_mode,
                command_tokens=capability.command_tokens,
                prompt_template=capability.prompt_template,
                mode=capability.mode,
                args_schema=capability.args_schema,
                requires_approval=capability.requires_approval,
                danger_level=capability.danger_level,
                timeout_s=capability.timeout_s,
                max_output_bytes=capability.max_output_bytes,
            )
            for capability in preset.capabilities
        ),
    )


def _read_file(path: Path) -> list[PresetAgent]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"the preset file {path.name} cannot be read: {error}") from error
    root = _Entry(document, place=path.name, known=frozenset({"agent"}))
    return [_read_agent(agent, place=path.name) for agent in root.tables("agent")]


def _read_agent(table: Mapping[str, object], *, place: str) -> PresetAgent:
    entry = _Entry(table, place=place, known=_AGENT_KEYS)
    slug = entry.text("slug", pattern=_SLUG)
    entry.place = f"{place}, agent {slug}"
    capabilities = tuple(_read_capability(part, place=entry.place) for part in entry.tables("capability"))
    if len({capability.key for capability in capabilities}) < len(capabilities):
        raise UsageError(f"{entry.place}: two capabilities have the same key")
    return PresetAgent(
        slug=slug,
        name=entry.text("name"),
        description=entry.text("description", default=""),
        tool_type=_member(ToolType, entry.text("tool_type", default=ToolType.CLI_TOOL.value), place=entry.place),
        binary=entry.value("binary", str),
        base_args=entry.texts("base_args"),
        env_allowlist=entry.texts("env_allowlist"),
        max_concurrent=entry.count("max_concurrent", default=0),
        icon=entry.text("icon", default=""),
        homepage=entry.text("homepage", default=""),
        session_config=_read_session_config(entry),
        capabilities=capabilities,
    )


def _read_session_config(entry: _Entry) -> SessionConfig | None:
    table = entry.value("session_config", dict, default={})
    if not table:
        return None
    config = _Entry(table, place=f"{entry.place}, session_config", known=_SESSION_KEYS)
    environment = config.value("environment", dict, default={})
    flags: dict[str, object] = config.value("flags", dict, default={})
    return SessionConfig(
        bidirectional_protocol=_member(ExecutionMode, config.text("bidirectional_protocol"), place=config.place),
        session_id_source=_member(
            SessionIdSource, config.text("session_id_source", default="json_field"), place=config.place
        ),
        session_id_field=config.text("session_id_field", default=""),
        session_file_glob=config.text("session_file_glob", default=""),
        list_sessions_command=config.texts("list_sessions_command"),
        list_sessions_pattern=config.text("list_sessions_pattern", default=""),
        protocol_args=config.texts("protocol_args"),
        screen_args=config.texts("screen_args"),
        resume_flags=config.texts("resume_flags"),
        continue_flags=config.texts("continue_flags"),
        flags={
            name: _Entry(flags, place=f"{config.place}, flags", known=frozenset(flags)).texts(name) for name in flags
        },
        environment={str(name): str(value) for name, value in environment.items()},
        permission_modes=config.texts("permission_modes"),
        models=config.texts("models"),
    )


def _read_capability(table: Mapping[str, object], *, place: str) -> PresetCapability:
    entry = _Entry(table, place=place, known=_CAPABILITY_KEYS)
    key = entry.text("key", pattern=_SLUG)
    entry.place = f"{place}, capability {key}"
    properties = {name: dict(schema) for name, schema in entry.named_tables("args").items()}
    required = entry.texts("required")
    undescribed = [name for name in required if name not in properties]
    if undescribed:
        raise UsageError(f"{entry.place}: required names {undescribed[0]}, which args does not describe")
    mode = entry.text("mode", default="")
    interaction_mode = _member(
        InteractionMode, entry.text("interaction_mode", default=InteractionMode.TEMPLATE.value), place=entry.place
    )
    return PresetCapability(
        key=key,
        label=entry.text("label"),
        description=entry.text("description", default=""),
        interaction_mode=interaction_mode,
        command_tokens=entry.texts("command_tokens", required=interaction_mode is InteractionMode.TEMPLATE),
        prompt_template=entry.text("prompt_template", default=""),
        mode=_member(ExecutionMode, mode, place=entry.place) if mode else None,
        args_schema={
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        },
        requires_approval=entry.value("requires_approval", bool, default=False),
        danger_level=_member(DangerLevel, entry.count("danger_level", default=0), place=entry.place),
        timeout_s=entry.count("timeout_s", default=_DEFAULT_TIMEOUT_S),
        max_output_bytes=entry.count("max_output_bytes", default=_DEFAULT_MAX_OUTPUT_BYTES),
    )


_Member = TypeVar("_Member", ToolType, DangerLevel, ExecutionMode, InteractionMode, SessionIdSource)


def _member(kind: type[_Member], value: str | int, *, place: str) -> _Member:
    for member in kind:
        if member.value == value:
            return member
    allowed = ", ".join(str(member.value) for member in kind)
    raise UsageError(f"{place}: {value} is none of {allowed}")


class _Entry:
    """A table of a preset file, read with a check on each value; the errors name its place in the file."""

    def __init__(self, table: Mapping[str, object], *, place: str, known: frozenset[str]) -> None:
        unknown = sorted(set(table) - known)
        if unknown:
            raise UsageError(f"{place}: unknown entry {unknown[0]}; known are {', '.join(sorted(known))}")
        self._table = table
        self.place = place

    def value(self, key: str, kind: type[_Value], *, default: _Value | None = None) -> _Value:
        found = self._table.get(key, default)
        if found is None:
            raise UsageError(f"{self.place}: {key} is missing")
        if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
            raise UsageError(f"{self.place}: {key} must be a {_TOML_NAMES[kind]}")
        return found

    def text(self, key: str, *, default: str | None = None, pattern: re.Pattern[str] | None = None) -> str:
        found = self.value(key, str, default=default)
        if not found and default is None:
            raise UsageError(f"{self.place}: {key} is empty")
        if pattern is not None and not pattern.fullmatch(found):
            raise UsageError(f"{self.place}: {key} {found!r} may have lower-case letters, digits and dashes only")
        return found

    def count(self, key: str, *, default: int) -> int:
        found = self.value(key, int, default=default)
        if found < 0:
            raise UsageError(f"{self.place}: {key} must not be negative")
        return found

    def texts(self, key: str, *, required: bool = False) -> tuple[str, ...]:
        found: list[object] = self.value(key, list, default=None if required else [])
        words = tuple(word for word in found if isinstance(word, str))
        if len(words) < len(found):
            raise UsageError(f"{self.place}: {key} must be a list of strings")
        return words

    def tables(self, key: str) -> list[Mapping[str, object]]:
        found: list[object] = self.value(key, list)
        tables: list[Mapping[str, object]] = [table for table in found if isinstance(table, dict)]
        if not tables or len(tables) < len(found):
            raise UsageError(f"{self.place}: {key} must be tables, written [[…]]")
        return tables

    def named_tables(self, key: str) -> dict[str, Mapping[str, object]]:
        found: dict[str, object] = self.value(key, dict, default={})
        tables: dict[str, Mapping[str, object]] = {
            name: table for name, table in found.items() if isinstance(table, dict)
        }
        if len(tables) < len(found):
            raise UsageError(f"{self.place}: {key} must hold one table for each argument")
        return tables


_TOML_NAMES: Final[Mapping[type, str]] = {
    str: "string",
    int: "whole number",
    bool: "boolean",
    list: "list",
    dict: "table",
}
