"""A scanned command in the form of a capability: words with placeholders, and arguments as JSON Schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import Capability, DangerLevel
from agentmon.domain.argument_order import with_order
from agentmon.domain.ids import AgentId, CapabilityId, new_id
from agentmon.runners.capability_scanners.scanned import ScannedCapability, ScannedOption, ValueJoin, ValueKind

if TYPE_CHECKING:
    from collections.abc import Mapping

FREE_WORDS: Final = "words"
"""The argument of a command whose options nobody has learned yet."""
_HELP: Final = frozenset({"--help", "-help"})
_VALUE_SUFFIX: Final = "_value"
_LONGEST_DESCRIPTION: Final = 400


def to_capability(
    scanned: ScannedCapability, *, agent_id: AgentId, danger_level: DangerLevel = DangerLevel.SAFE
) -> Capability:
    """Return a new capability with a new id for a scanned command; one that is dangerous requires an approval."""
    return Capability(
        id=CapabilityId(new_id()),
        agent_id=agent_id,
        key=scanned.key,
        label=scanned.label,
        description=scanned.description,
        source=scanned.source,
        command_tokens=command_tokens(scanned),
        args_schema=with_order(args_schema(scanned)),
        danger_level=danger_level,
        requires_approval=danger_level >= DangerLevel.DANGEROUS,
    )


def command_tokens(scanned: ScannedCapability) -> tuple[str, ...]:
    """Return the words of a scanned command with their placeholders, the binary not among them."""
    if not scanned.is_learned:
        return (*scanned.subcommand, f"{{{{args.{FREE_WORDS}}}}}")
    tokens: list[str] = []
    options = _offered(scanned)
    for place, option in enumerate(options):
        if not option.is_positional:
            tokens += _option_tokens(option, value_key=_value_key(option, scanned))
            continue
        if scanned.takes_double_dash and "--" not in tokens and all(map(_is_positional, options[place:])):
            tokens.append("--")
        tokens.append(f"{{{{args.{option.key}}}}}")
    return (*scanned.subcommand, *tokens)


def args_schema(scanned: ScannedCapability) -> dict[str, object]:
    """Return the arguments of a scanned command as a JSON Schema of type ``object``.

    An option whose value may be left out and has no choices becomes two arguments: ``stat`` (true or false) and
    ``stat_value``. The question for help is no argument. Defaults stand in the descriptions alone, so that nothing is
    passed that nobody chose.
    """
    if not scanned.is_learned:
        words = {"type": "array", "title": "Words", "items": {"type": "string"}}
        return {"type": "object", "properties": {FREE_WORDS: words}, "required": []}
    properties: dict[str, Mapping[str, object]] = {}
    for option in _offered(scanned):
        if option.kind is not ValueKind.BOOLEAN and _has_bare_form(option):
            properties[option.key] = {"type": "boolean", **_words(option)}
            properties[_value_key(option, scanned)] = _value_schema(option)
        else:
            properties[option.key] = _value_schema(option)
    return {
        "type": "object",
        "properties": properties,
        "required": [option.key for option in scanned.options if option.is_required],
    }


def _offered(scanned: ScannedCapability) -> list[ScannedOption]:
    return [
        option
        for option in scanned.options
        if option.kind is not ValueKind.BOOLEAN or _HELP.isdisjoint(option.names) or option.is_required
    ]


def _value_key(option: ScannedOption, scanned: ScannedCapability) -> str:
    """Return the name of the argument for a value that may be left out, which no option has."""
    taken = {other.key for other in scanned.options}
    key = option.key + _VALUE_SUFFIX
    return key if key not in taken else key + _VALUE_SUFFIX


def _is_positional(option: ScannedOption) -> bool:
    return option.is_positional


def _option_tokens(option: ScannedOption, *, value_key: str) -> list[str]:
    name = option.spelling
    if option.kind is ValueKind.BOOLEAN:
        return [f"{{{{{name}{'*' if option.is_repeated else ''} args.{option.key}}}}}"]
    tokens = []
    argument = option.key
    if _has_bare_form(option):
        tokens.append(f"{{{{{name} args.{option.key}}}}}")
        argument = value_key
    if option.join is ValueJoin.WORD:
        return [*tokens, f"{{{{{name} args.{argument}}}}}"]
    if option.is_repeated:
        joined = "=" if option.join is ValueJoin.EQUALS else f"{option.join.value}+"
        return [*tokens, f"{{{{{name}{joined} args.{argument}}}}}"]
    return [*tokens, f"{name}{option.join.value}{{{{args.{argument}}}}}"]


def _has_bare_form(option: ScannedOption) -> bool:
    return option.is_value_optional and not option.choices


def _words(option: ScannedOption) -> dict[str, object]:
    title = ", ".join(option.names) or option.value_name
    described: dict[str, object] = {"title": title} if title else {}
    description = option.description[:_LONGEST_DESCRIPTION]
    if option.default is not None and "default" not in description:
        description = f"{description} (default: {option.default})".strip()
    return {**described, "description": description} if description else described


def _value_schema(option: ScannedOption) -> dict[str, object]:
    if option.kind is ValueKind.BOOLEAN:
        if option.is_repeated:
            return {"type": "integer", "minimum": 0, **_words(option)}
        return {"type": "boolean", **_words(option)}
    value: dict[str, object] = {"type": option.kind.value}
    if option.choices:
        value = {"type": ValueKind.STRING.value, "enum": list(option.choices)}
    words = _words(option)
    if option.value_name and not option.is_positional:
        words["title"] = f"{words.get('title', '')} {option.value_name}".strip()
    if option.is_repeated:
        return {"type": "array", "items": value, **words}
    return {**value, **words}
