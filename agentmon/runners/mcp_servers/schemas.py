"""The arguments of a tool in the form that forms and command lines read: each with its own type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEFINITIONS: Final = ("#/$defs/", "#/definitions/")


def simple_schema(schema: Mapping[str, object]) -> dict[str, object]:
    """Return the schema of a tool with the types of its arguments in place.

    An argument that is one thing or nothing (``anyOf`` with ``null``) becomes that thing, and one that is described
    elsewhere in the same schema is described in its place. All else stays.
    """
    described = schema.get("properties")
    properties = described if isinstance(described, dict) else {}
    simple: dict[str, object] = {
        "type": "object",
        "properties": {name: _simple(schema, one) for name, one in properties.items()},
        "required": [],
    }
    return simple | {name: value for name, value in schema.items() if name not in {"$schema", "properties", "type"}}


def _simple(schema: Mapping[str, object], described: object) -> object:
    if not isinstance(described, dict):
        return described
    for key in ("anyOf", "oneOf"):
        branches = described.get(key)
        if isinstance(branches, list):
            real = [branch for branch in branches if isinstance(branch, dict) and branch.get("type") != "null"]
            if len(real) == 1:
                rest = {name: value for name, value in described.items() if name != key and value is not None}
                return _simple(schema, {**rest, **real[0]})
    reference = described.get("$ref")
    for start in _DEFINITIONS:
        if isinstance(reference, str) and reference.startswith(start):
            definitions = schema.get(start.strip("#/"))
            target = definitions.get(reference.removeprefix(start)) if isinstance(definitions, dict) else None
            if isinstance(target, dict) and "$ref" not in target:
                return {**target, **{name: value for name, value in described.items() if name != "$ref"}}
    return described
