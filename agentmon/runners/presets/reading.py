"""One agent of a preset file: its tables in, a value out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import DangerLevel, InteractionMode, SessionConfig, SessionIdSource, ToolType
from agentmon.domain.errors import UsageError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.runners.presets.entries import Entry, member
from agentmon.runners.presets.preset import PresetAgent, PresetCapability, PresetLogin

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGE_MANAGERS: Final = frozenset({"brew", "cargo", "dpkg", "go", "npm", "pip", "pipx", "rpm", "uv"})

_SLUG: Final = re.compile(r"[a-z][a-z0-9-]*")
_COLOR: Final = re.compile(r"#[0-9a-f]{6}")
_AGENT_KEYS: Final = frozenset(
    {
        *("slug", "name", "description", "tool_type", "binary", "also_known_as", "base_args", "env_allowlist"),
        *("max_concurrent", "icon", "color", "homepage", "role", "session_config", "capability"),
        *("is_active", "packages", "version_args", "version_pattern", "login", "checked_with", "unchecked"),
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
_LOGIN_KEYS: Final = frozenset({"environment", "files", "command", "pattern", "may_be_elsewhere", "hint"})
_ARGUMENT_KINDS: Final = frozenset({"array", "boolean", "integer", "number", "object", "string"})
DEFAULT_TIMEOUT_S: Final = 300
DEFAULT_MAX_OUTPUT_BYTES: Final = 10 * 1024 * 1024


def read_agent(table: Mapping[str, object], *, place: str) -> PresetAgent:
    """Return the agent of a table ``[[agent]]``.

    Args:
        table: As TOML has it.
        place: The name of the file, for errors.

    Raises:
        UsageError: An entry is missing, unknown or of the wrong kind; the message names the agent and the entry.
    """
    entry = Entry(table, place=place, known=_AGENT_KEYS)
    slug = entry.text("slug", pattern=_SLUG)
    entry.place = f"{place}, agent {slug}"
    capabilities = tuple(_read_capability(part, place=entry.place) for part in entry.tables("capability"))
    if len({capability.key for capability in capabilities}) < len(capabilities):
        raise UsageError(f"{entry.place}: two capabilities have the same key")
    return PresetAgent(
        slug=slug,
        name=entry.text("name"),
        description=entry.text("description", default=""),
        tool_type=member(ToolType, entry.text("tool_type", default=ToolType.CLI_TOOL.value), place=entry.place),
        binary=_program_name(entry.value("binary", str), place=entry.place),
        also_known_as=tuple(_program_name(name, place=entry.place) for name in entry.texts("also_known_as")),
        base_args=entry.texts("base_args"),
        env_allowlist=entry.texts("env_allowlist"),
        max_concurrent=entry.count("max_concurrent", default=0),
        icon=entry.text("icon", default=""),
        color=_color(entry),
        homepage=entry.text("homepage", default=""),
        role=entry.text("role", default="") or None,
        packages=entry.named_texts("packages", known=PACKAGE_MANAGERS),
        is_active=entry.value("is_active", bool, default=True),
        version_args=entry.texts("version_args", default=("--version",)),
        version_pattern=entry.expression("version_pattern", groups=1),
        login=_read_login(entry),
        checked_with=entry.text("checked_with", default=""),
        unchecked=entry.text("unchecked", default=""),
        session_config=_read_session_config(entry),
        capabilities=capabilities,
    )


def _require_form(described: Mapping[str, object], *, place: str) -> None:
    """Refuse what no form can be made of; the whole JSON Schema is checked when the capability is used."""
    kind = described.get("type")
    if kind not in _ARGUMENT_KINDS:
        raise UsageError(f"{place}: type must be one of {', '.join(sorted(_ARGUMENT_KINDS))}")
    Entry(described, place=place, known=frozenset(described)).expression("pattern")


def _program_name(name: str, *, place: str) -> str:
    if "/" in name or "\0" in name:
        raise UsageError(f"{place}: {name!r} must be the name of a program as it stands on PATH, without a folder")
    return name


def _color(entry: Entry) -> str:
    color = entry.text("color", default="")
    if color and not _COLOR.fullmatch(color):
        raise UsageError(f"{entry.place}: color {color!r} must be written like #d97757, in small letters")
    return color


def _read_login(entry: Entry) -> PresetLogin | None:
    table = entry.value("login", dict, default={})
    if not table:
        return None
    login = Entry(table, place=f"{entry.place}, login", known=_LOGIN_KEYS)
    found = PresetLogin(
        environment=login.texts("environment"),
        files=login.texts("files"),
        command=login.texts("command"),
        pattern=login.expression("pattern"),
        may_be_elsewhere=login.value("may_be_elsewhere", bool, default=False),
        hint=login.text("hint", default=""),
    )
    if not (found.environment or found.files or found.command):
        raise UsageError(f"{login.place}: one of environment, files and command has to say how a login is told")
    outside = [path for path in found.files if not path.startswith(("~/", "/"))]
    if outside:
        raise UsageError(f"{login.place}: the file {outside[0]} must begin with ~/ or /")
    return found


def _read_session_config(entry: Entry) -> SessionConfig | None:
    table = entry.value("session_config", dict, default={})
    if not table:
        return None
    config = Entry(table, place=f"{entry.place}, session_config", known=_SESSION_KEYS)
    environment = config.value("environment", dict, default={})
    return SessionConfig(
        bidirectional_protocol=member(ExecutionMode, config.text("bidirectional_protocol"), place=config.place),
        session_id_source=member(
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
        flags=config.named_texts("flags"),
        environment={str(name): str(value) for name, value in environment.items()},
        permission_modes=config.texts("permission_modes"),
        models=config.texts("models"),
    )


def _read_capability(table: Mapping[str, object], *, place: str) -> PresetCapability:
    entry = Entry(table, place=place, known=_CAPABILITY_KEYS)
    key = entry.text("key", pattern=_SLUG)
    entry.place = f"{place}, capability {key}"
    properties = {name: dict(schema) for name, schema in entry.named_tables("args").items()}
    for name, described in properties.items():
        _require_form(described, place=f"{entry.place}, argument {name}")
    required = entry.texts("required")
    undescribed = [name for name in required if name not in properties]
    if undescribed:
        raise UsageError(f"{entry.place}: required names {undescribed[0]}, which args does not describe")
    mode = entry.text("mode", default="")
    interaction_mode = member(
        InteractionMode, entry.text("interaction_mode", default=InteractionMode.TEMPLATE.value), place=entry.place
    )
    return PresetCapability(
        key=key,
        label=entry.text("label"),
        description=entry.text("description", default=""),
        interaction_mode=interaction_mode,
        command_tokens=entry.texts("command_tokens", required=interaction_mode is InteractionMode.TEMPLATE),
        prompt_template=entry.text("prompt_template", default=""),
        mode=member(ExecutionMode, mode, place=entry.place) if mode else None,
        args_schema={
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        },
        requires_approval=entry.value("requires_approval", bool, default=False),
        danger_level=member(DangerLevel, entry.count("danger_level", default=0), place=entry.place),
        timeout_s=entry.count("timeout_s", default=DEFAULT_TIMEOUT_S),
        max_output_bytes=entry.count("max_output_bytes", default=DEFAULT_MAX_OUTPUT_BYTES),
    )
