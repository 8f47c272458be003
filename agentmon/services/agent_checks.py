"""What an agent or a capability may say: each wrong field is refused with the reason and the next step."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import InteractionMode
from agentmon.domain.any_command import ANY_COMMAND_SLUG
from agentmon.domain.errors import ArgumentsError, FieldError, UsageError
from agentmon.runners.adapters.template import check_arguments, fill_text, render_tokens
from agentmon.runners.environment import select_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from agentmon.domain.agents import Agent, Capability

_SLUG: Final = re.compile(r"[a-z][a-z0-9-]{0,59}")
_KEY: Final = re.compile(r"[a-z][a-z0-9-]{0,99}")
_COLOR: Final = re.compile(r"#[0-9a-fA-F]{6}|[a-z][a-z-]*|")
_LINE_MAX_CHARACTERS: Final = 200
_ICON_MAX_CHARACTERS: Final = 4
_TEXT_MAX_CHARACTERS: Final = 40_000
_TIERS: Final = range(1, 5)
_HOTTEST: Final = 2.0
_MOST_AT_ONCE: Final = 1000
_LONGEST_S: Final = 366 * 24 * 3600
_LARGEST_BYTES: Final = 1 << 40


def check_slug(slug: str) -> str:
    """Return the name by which people call an agent.

    Raises:
        FieldError: It cannot be one.
    """
    if not _SLUG.fullmatch(slug):
        raise FieldError(
            "slug", f"{slug!r} cannot name an agent", hint="small letters, digits and dashes, such as my-agent"
        )
    return slug


def check_tools(agent: Agent, names: Collection[str]) -> None:
    """Refuse names that cannot be those of tools, and an agent that takes no list of its tools.

    Raises:
        UsageError: The agent takes none, or a name cannot be one.
    """
    flags = {} if agent.session_config is None else agent.session_config.flags
    if "allow_tool" not in flags or "deny_tool" not in flags:
        raise UsageError(
            f"{agent.slug} cannot be told which of its tools it may use",
            hint="rules can answer its requests instead: `agentmon rules --help`",
        )
    for name in names:
        if not name.strip() or name.startswith("-") or not name.isprintable():
            raise UsageError(f"{name!r} is not the name of a tool", hint="such as Bash, WebFetch or 'Bash(git:*)'")


def check_agent(agent: Agent, names: Collection[str]) -> None:
    """Look at these fields of an agent as it is to be.

    Raises:
        FieldError: One of them cannot be so.
    """
    for name, check in _OF_AGENT.items():
        if name in names:
            check(agent)


def check_capability(agent: Agent, capability: Capability, names: Collection[str]) -> None:
    """Look at these fields of a capability as it is to be.

    Raises:
        FieldError: One of them cannot be so.
    """
    if "key" in names and not _KEY.fullmatch(capability.key):
        raise FieldError(
            "key",
            f"{capability.key!r} cannot name a capability",
            hint="small letters, digits and dashes, such as log-all",
        )
    if "label" in names:
        _require_line("label", capability.label, may_be_empty=False)
    if "description" in names:
        _require_text("description", capability.description)
    if "timeout_s" in names and not 0 <= capability.timeout_s <= _LONGEST_S:
        raise FieldError("timeout_s", "a run lasts up to a year", hint="0 means no limit")
    if "max_output_bytes" in names and not 0 <= capability.max_output_bytes <= _LARGEST_BYTES:
        raise FieldError("max_output_bytes", "a log has up to 1 TiB", hint="0 means no limit")
    if "args_schema" in names:
        _check_schema(capability.args_schema)
    if {"interaction_mode", "mode"} & set(names):
        _check_mode(agent, capability)
    if {"command_tokens", "args_schema"} & set(names):
        _check_words(agent, capability)
    if {"prompt_template", "args_schema"} & set(names):
        _check_prompt(capability)


def _check_schema(schema: Mapping[str, object]) -> None:
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 - dear to import, and seldom needed

    try:
        Draft202012Validator.check_schema(dict(schema))
    except SchemaError as error:
        raise FieldError("args_schema", f"the arguments are no JSON Schema: {error.message}") from error
    properties = schema.get("properties", {})
    if schema.get("type", "object") != "object" or not isinstance(properties, dict):
        raise FieldError("args_schema", "the arguments have to be an object with properties")
    required = schema.get("required", [])
    unknown = [name for name in required if name not in properties] if isinstance(required, list) else []
    if unknown:
        raise FieldError("args_schema", f"{unknown[0]} is required and not described", hint="describe it, or drop it")
    for name, described in properties.items():
        default = described.get("default") if isinstance(described, dict) else None
        if default is not None:
            try:
                check_arguments({"type": "object", "properties": {name: described}}, {name: default})
            except ArgumentsError as error:
                raise FieldError("args_schema", f"the default does not fit: {error}", hint=error.hint) from error


def _check_mode(agent: Agent, capability: Capability) -> None:
    is_prompt = capability.interaction_mode is InteractionMode.PROMPT
    if is_prompt and agent.session_config is None:
        raise FieldError(
            "interaction_mode", f"{agent.slug} takes no prompts", hint="only AI agents do; give it words to fill in"
        )
    if not is_prompt and capability.mode is not None:
        raise FieldError("mode", "only what takes a prompt is spoken to in a protocol")


def _check_words(agent: Agent, capability: Capability) -> None:
    _require_words("command_tokens", capability.command_tokens)
    try:
        words = render_tokens(capability, task_title="", args={}, prompt_additions="")
    except ArgumentsError as error:
        raise FieldError("command_tokens", str(error), hint=error.hint) from error
    is_whole = capability.interaction_mode is InteractionMode.TEMPLATE and not agent.binary_path
    if is_whole and not words and not capability.command_tokens:
        raise FieldError("command_tokens", "these words name no program", hint="the first word is the program")


def _check_prompt(capability: Capability) -> None:
    _require_text("prompt_template", capability.prompt_template)
    try:
        fill_text(
            capability.prompt_template,
            capability=capability,
            task_title="",
            task_description="",
            args={},
            prompt_additions="",
        )
    except ArgumentsError as error:
        raise FieldError("prompt_template", str(error), hint=error.hint) from error


def _check_name(agent: Agent) -> None:
    _require_line("name", agent.name, may_be_empty=False)


def _check_binary(agent: Agent) -> None:
    binary = agent.binary_path
    if not binary and agent.slug != ANY_COMMAND_SLUG:
        raise FieldError("binary_path", "which program?", hint="its name, or its whole path")
    if "/" in binary and not Path(binary).is_absolute():
        raise FieldError("binary_path", f"{binary} is neither a name nor a whole path", hint="such as /opt/tools/lint")
    if binary.startswith("-") or not binary.isprintable():
        raise FieldError("binary_path", f"{binary!r} cannot be the name of a program")


def _check_base_args(agent: Agent) -> None:
    _require_words("base_args", agent.base_args)


def _check_environment(agent: Agent) -> None:
    try:
        select_environment({}, allowlist=agent.env_allowlist)
    except UsageError as error:
        raise FieldError("env_allowlist", str(error), hint=error.hint) from error


def _check_working_dir(agent: Agent) -> None:
    if agent.working_dir is not None and not Path(agent.working_dir).is_absolute():
        raise FieldError("working_dir", f"{agent.working_dir} is no whole path", hint="such as /home/me/project")


def _check_active(agent: Agent) -> None:
    if agent.slug == ANY_COMMAND_SLUG and not agent.is_active:
        raise FieldError("is_active", "this one is always there: it runs the commands that you type yourself")


def _check_limit(agent: Agent) -> None:
    if not 0 <= agent.max_concurrent <= _MOST_AT_ONCE:
        raise FieldError(
            "max_concurrent", f"{agent.max_concurrent} is no limit", hint="0 means no limit, 1 one at a time"
        )


def _check_role(agent: Agent) -> None:
    _require_line("role", agent.role or "")


def _check_model(agent: Agent) -> None:
    model = agent.model
    if model is None:
        return
    _require_ai(agent, "model", "takes no model")
    if not model.strip() or model.startswith("-") or not model.isprintable():
        raise FieldError("model", f"{model!r} cannot be a model", hint=_models_hint(agent))


def _check_tier(agent: Agent) -> None:
    if agent.model_tier is not None and agent.model_tier not in _TIERS:
        raise FieldError("model_tier", f"{agent.model_tier} is no tier", hint="1 is the strongest, 4 the cheapest")


def _check_temperature(agent: Agent) -> None:
    temperature = agent.temperature
    if temperature is None:
        return
    _require_ai(agent, "temperature", "takes no temperature")
    if not 0 <= temperature <= _HOTTEST:
        raise FieldError("temperature", f"{temperature:g} is no temperature", hint="0 is the calmest, 2 the wildest")
    if not agent.takes_temperature:
        raise FieldError(
            "temperature",
            f"{agent.slug} cannot be told a temperature",
            hint="its description has no flags.temperature; its own settings may have one",
        )


def _check_instructions(agent: Agent) -> None:
    if agent.instructions is not None:
        _require_ai(agent, "instructions", "takes no instructions")
        _require_text("instructions", agent.instructions)


def _check_permission_modes(agent: Agent) -> None:
    config = agent.session_config
    modes = () if config is None else config.permission_modes
    if not modes or len(set(modes)) < len(modes):
        raise FieldError("permission_modes", f"{agent.slug} needs its permission modes, each once")


def _check_color(agent: Agent) -> None:
    if not _COLOR.fullmatch(agent.color):
        raise FieldError("color", f"{agent.color!r} is no colour", hint="such as #d97757 or green")


def _check_icon(agent: Agent) -> None:
    if len(agent.icon) > _ICON_MAX_CHARACTERS or not agent.icon.isprintable():
        raise FieldError("icon", "an icon is one sign", hint="such as ✳")


def _require_ai(agent: Agent, name: str, what: str) -> None:
    if agent.session_config is None:
        raise FieldError(name, f"{agent.slug} is no AI agent and {what}", hint="leave it empty")


def _models_hint(agent: Agent) -> str:
    models = () if agent.session_config is None else agent.session_config.models
    return f"such as {', '.join(models)}" if models else "a name as its vendor writes it"


def _require_line(name: str, text: str, *, may_be_empty: bool = True) -> None:
    if not may_be_empty and not text.strip():
        raise FieldError(name, f"{_shown(name)} is empty", hint="a few words are enough")
    if not text.isprintable() or len(text) > _LINE_MAX_CHARACTERS:
        raise FieldError(name, f"{_shown(name)} is one line of up to {_LINE_MAX_CHARACTERS} characters")


def _require_text(name: str, text: str) -> None:
    if len(text) > _TEXT_MAX_CHARACTERS or "\0" in text:
        raise FieldError(name, f"{_shown(name)} has up to {_TEXT_MAX_CHARACTERS:,} characters")


def _require_words(name: str, words: Sequence[str]) -> None:
    if any("\0" in word for word in words):
        raise FieldError(name, "a word has a NUL character in it, which no program can be given")


def _shown(name: str) -> str:
    return f"the {name.replace('_', ' ')}"


def _check_description(agent: Agent) -> None:
    _require_text("description", agent.description)


def _check_homepage(agent: Agent) -> None:
    _require_line("homepage", agent.homepage)
    if agent.homepage and not agent.homepage.startswith(("https://", "http://")):
        raise FieldError("homepage", f"{agent.homepage} is no address of a page", hint="it begins with https://")


_OF_AGENT: Final[Mapping[str, Callable[[Agent], None]]] = {
    "name": _check_name,
    "binary_path": _check_binary,
    "base_args": _check_base_args,
    "working_dir": _check_working_dir,
    "env_allowlist": _check_environment,
    "is_active": _check_active,
    "max_concurrent": _check_limit,
    "role": _check_role,
    "model": _check_model,
    "model_tier": _check_tier,
    "temperature": _check_temperature,
    "instructions": _check_instructions,
    "permission_modes": _check_permission_modes,
    "icon": _check_icon,
    "color": _check_color,
    "description": _check_description,
    "homepage": _check_homepage,
}
