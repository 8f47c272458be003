"""Changing the arguments of a capability one by one: its JSON Schema with one of them added, changed, moved, removed.

Whatever the schema says that no dialog shows stays in it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from agentmon.domain.argument_order import ORDER_KEY, argument_names, with_order
from agentmon.widgets.arguments_form import ArgumentKind, argument_specs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.widgets.arguments_form import ArgumentSpec

KIND_WORDS: Final = {
    ArgumentKind.TEXT: "text",
    ArgumentKind.INTEGER: "whole number",
    ArgumentKind.NUMBER: "number",
    ArgumentKind.BOOLEAN: "yes or no",
    ArgumentKind.CHOICE: "one of several",
    ArgumentKind.TEXTS: "several texts",
    ArgumentKind.JSON: "anything, as JSON",
}
_TYPES: Final = {
    ArgumentKind.TEXT: "string",
    ArgumentKind.INTEGER: "integer",
    ArgumentKind.NUMBER: "number",
    ArgumentKind.BOOLEAN: "boolean",
    ArgumentKind.TEXTS: "array",
}
_ARGUMENT_PLACEHOLDER: Final = re.compile(r"\{\{\s*(?:[^{}\s]+\s+)?args\.([^{}\s]+)\s*\}\}")
_OF_KIND: Final = ("type", "enum", "items")
"""What a schema says about the kind of an argument."""
_OF_VALUE: Final = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems"),
)
"""What makes no sense any more once an argument is of another kind."""


def with_argument(schema: Mapping[str, object], spec: ArgumentSpec, *, replaces: str | None) -> dict[str, Any]:
    """Return the schema with this argument in the place of one, or behind all others.

    Args:
        schema: Of type ``object``.
        spec: The argument.
        replaces: The name of the one whose place it takes; None adds it.
    """
    properties = _properties(schema)
    before = properties.get(replaces or "")
    described = _described(spec, before if isinstance(before, dict) else {}, _kind_of(schema, replaces))
    changed: dict[str, object] = {}
    for name, one in properties.items():
        if name == replaces:
            changed[spec.name] = described
        else:
            changed[name] = one
    changed.setdefault(spec.name, described)
    required = [name for name in _required(schema) if name not in {replaces, spec.name}]
    if spec.is_required:
        required.append(spec.name)
    return _with(schema, changed, required)


def without_argument(schema: Mapping[str, object], name: str) -> dict[str, Any]:
    """Return the schema without the argument."""
    properties = {other: one for other, one in _properties(schema).items() if other != name}
    return _with(schema, properties, [other for other in _required(schema) if other != name])


def with_argument_moved(schema: Mapping[str, object], name: str, steps: int) -> dict[str, Any]:
    """Return the schema with the argument so many places further down, or up; it stops at the ends."""
    properties = _properties(schema)
    order = list(properties)
    at = order.index(name)
    order.insert(max(0, min(at + steps, len(order) - 1)), order.pop(at))
    return _with(schema, {one: properties[one] for one in order}, _required(schema))


def with_placeholder_renamed(text: str, before: str, after: str) -> str:
    """Return the text with the placeholders of an argument naming it as it is called now."""
    pattern = rf"(\{{\{{[^{{}}]*?args\.){re.escape(before)}(\s*\}}\}})"
    return re.sub(pattern, lambda found: f"{found[1]}{after}{found[2]}", text)


def undescribed_arguments(text: str, schema: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of arguments that placeholders of the text name and the schema does not describe, each once."""
    named = (found[1] for found in _ARGUMENT_PLACEHOLDER.finditer(text))
    known = argument_names(schema)
    return tuple(name for name in dict.fromkeys(named) if name not in known)


def sample_arguments(schema: Mapping[str, object], *, is_least: bool = False) -> dict[str, object]:
    """Return a value for each argument, to show what a command line would be.

    A default or the first choice where there is one, otherwise the argument's name in capitals, the smallest number
    that is allowed, or yes.

    Args:
        schema: Of type ``object``.
        is_least: Whether only those are filled in that cannot be left out; the others have their default, or None.
    """
    return {
        spec.name: spec.default if is_least and not spec.is_required else _sample(spec)
        for spec in argument_specs(schema)
    }


def _sample(spec: ArgumentSpec) -> object:
    if spec.kind is ArgumentKind.BOOLEAN:
        return True
    if spec.default is not None:
        return spec.default
    if spec.choices:
        return spec.choices[0]
    match spec.kind:
        case ArgumentKind.INTEGER | ArgumentKind.NUMBER:
            number = spec.minimum if spec.minimum is not None else min(1, 1 if spec.maximum is None else spec.maximum)
            return int(number) if spec.kind is ArgumentKind.INTEGER else number
        case ArgumentKind.TEXTS:
            return [spec.name.upper()]
        case _:
            return spec.name.upper()


def _described(spec: ArgumentSpec, before: Mapping[str, object], kind_before: ArgumentKind | None) -> dict[str, object]:
    described = dict(before)
    if spec.kind is not kind_before:
        for word in (*_OF_KIND, *_OF_VALUE):
            described.pop(word, None)
        if spec.kind in _TYPES:
            described["type"] = _TYPES[spec.kind]
        if spec.kind is ArgumentKind.TEXTS:
            described["items"] = {"type": "string"}
    if spec.kind is ArgumentKind.CHOICE:
        described["enum"] = list(spec.choices)
        if all(isinstance(choice, str) for choice in spec.choices):
            described["type"] = "string"
        elif spec.kind is not kind_before:
            described.pop("type", None)
    given = {
        "title": spec.label if spec.label != spec.name.replace("_", " ") else None,
        "description": spec.description or None,
        "default": spec.default,
    }
    for word, value in given.items():
        if value is None:
            described.pop(word, None)
        else:
            described[word] = value
    return described


def _kind_of(schema: Mapping[str, object], name: str | None) -> ArgumentKind | None:
    return next((spec.kind for spec in argument_specs(schema) if spec.name == name), None)


def _properties(schema: Mapping[str, object]) -> dict[str, object]:
    found = schema.get("properties")
    return {name: found[name] for name in argument_names(schema)} if isinstance(found, dict) else {}


def _required(schema: Mapping[str, object]) -> list[str]:
    found = schema.get("required")
    return [str(name) for name in found] if isinstance(found, list | tuple) else []


def _with(schema: Mapping[str, object], properties: Mapping[str, object], required: Sequence[str]) -> dict[str, Any]:
    changed = dict(schema) | {"type": "object", "properties": dict(properties), ORDER_KEY: list(properties)}
    changed.pop("required", None)
    if required:
        changed["required"] = list(required)
    return with_order(changed)
