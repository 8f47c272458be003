"""Arguments of a capability as they are typed: ``path:string!``, ``max:integer=20``, ``level:low|high=low``."""

import json
import re
from collections.abc import Sequence

from agentmon.domain.argument_order import with_order
from agentmon.domain.errors import UsageError
from agentmon.domain.written_text import text_of
from agentmon.paths import expanded

_FORM = re.compile(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_-]*):(?P<kind>[^=!]+)(?P<required>!)?(?:=(?P<default>.*))?", re.DOTALL
)
_HINT = "such as path:string! (required), max:integer=20 (with a default), level:low|high, words:list"
_KINDS = ("string", "integer", "number", "boolean", "list")


def schema_of(arguments: Sequence[str]) -> dict[str, object]:
    """Return the JSON Schema of typed arguments.

    Raises:
        UsageError: One is not understood.
    """
    properties: dict[str, object] = {}
    required = []
    for text in arguments:
        found = _FORM.fullmatch(text)
        if found is None or found["name"] in properties:
            raise UsageError(f"{text!r} describes no argument", hint=_HINT)
        described = _described(found["kind"], text)
        if found["default"] is not None:
            described["default"] = _default(found["default"], described, text)
        properties[found["name"]] = described
        required += [found["name"]] if found["required"] else []
    return with_order({"type": "object", "properties": properties, "required": required, "additionalProperties": False})


def schema_from(path: str) -> dict[str, object]:
    """Return the JSON Schema in a file.

    Raises:
        UsageError: It cannot be read or is none.
    """
    try:
        schema = json.loads(text_of(expanded(path).read_bytes()))
    except (OSError, ValueError) as error:
        raise UsageError(f"the JSON Schema {path} cannot be read: {error}") from error
    if not isinstance(schema, dict):
        raise UsageError(f"{path} is no JSON Schema", hint='it is an object: {"type": "object", "properties": …}')
    return schema


def _described(kind: str, text: str) -> dict[str, object]:
    if "|" in kind:
        return {"type": "string", "enum": kind.split("|")}
    if kind == "list":
        return {"type": "array", "items": {"type": "string"}}
    if kind not in _KINDS:
        raise UsageError(f"{kind!r} in {text!r} is no type", hint=f"types are {', '.join(_KINDS)}, or a|b for a choice")
    return {"type": kind}


def _default(text: str, described: dict[str, object], whole: str) -> object:
    if described["type"] == "string":
        return text
    if described["type"] == "array":
        return text.split()
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"the default in {whole!r} is no {described['type']}", hint=_HINT) from error
