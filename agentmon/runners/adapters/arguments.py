"""Arguments of a capability: checked against its JSON Schema, and read from the words of a command line."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import ArgumentsError
from agentmon.domain.former_names import with_present_names
from agentmon.domain.letters import cut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jsonschema.exceptions import ValidationError

_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,4000}")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_BOOLEANS: Final = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}
_KIND_WORDS: Final = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "nothing",
    "number": "a number",
    "object": "an object",
    "string": "text",
}
_SHOWN_VALUE_MAX_CHARACTERS: Final = 60


def check_arguments(schema: Mapping[str, object], args: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments with the schema's defaults filled in, in the order of the schema.

    A former name of an argument means the present one. An argument that is None counts as left out on purpose: it gets
    no default. Arguments that the schema does not describe are refused unless its ``additionalProperties`` says
    otherwise. References to other documents are never fetched.

    Raises:
        ArgumentsError: An argument is missing, unknown or does not fit, or the schema itself is not valid; the message
            names the argument and the hint says what is allowed.
    """
    properties = _properties(schema)
    args = with_present_names(schema, args)
    _refuse_unknown(schema, properties, args)
    checked: dict[str, object] = {}
    for name, described in properties.items():
        if name in args:
            checked[name] = args[name]
        elif "default" in described:
            checked[name] = described["default"]
    checked |= {name: value for name, value in args.items() if name not in properties}
    given = {
        name: value
        for name, value in checked.items()
        if value is not None or "null" in _kinds(properties.get(name, {}))
    }
    if given or schema.get("required"):
        _validate(schema, properties, given)
    return checked


def coerce_arguments(
    schema: Mapping[str, object],
    words: Mapping[str, str | Sequence[str]],
) -> dict[str, object]:
    """Return arguments typed as the schema wants them, read from words of a command line or of a form.

    ``20`` becomes a number where one is wanted, ``yes`` and ``true`` become true, an argument that takes a list takes
    every word given for it, and an object is read as JSON. Where text is allowed, the word stays as it is. What the
    values may be is not checked here: ``check_arguments`` does that.

    Raises:
        ArgumentsError: A word cannot be read as what the schema wants, several are given where one is taken, or the
            argument is unknown.
    """
    properties = _properties(schema)
    words = with_present_names(schema, words)
    _refuse_unknown(schema, properties, words)
    return {name: _coerce(name, properties.get(name, {}), given) for name, given in words.items()}


def describe_argument(name: str, described: Mapping[str, object]) -> str:
    """Return one line about what an argument may be: ``count: a whole number, at least 1; default 20``."""
    choices = described.get("enum")
    if isinstance(choices, list):
        parts = ["one of " + ", ".join(_shown(choice) for choice in choices)]
    else:
        parts = [" or ".join(_KIND_WORDS.get(kind, kind) for kind in _kinds(described)) or "any value"]
    for key, words in (("minimum", "at least"), ("maximum", "at most"), ("pattern", "in the form")):
        if key in described:
            parts.append(f"{words} {described[key]}")
    line = f"{name}: {', '.join(parts)}"
    if "default" in described:
        line += f"; default {_shown(described['default'])}"
    return line


def _properties(schema: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    found = schema.get("properties", {})
    if not isinstance(found, dict):
        raise ArgumentsError("the arguments of this capability are not described by a valid JSON Schema")
    return {name: described if isinstance(described, dict) else {} for name, described in found.items()}


def _kinds(described: Mapping[str, object]) -> tuple[str, ...]:
    found = described.get("type", ())
    if isinstance(found, str):
        return (found,)
    return tuple(str(kind) for kind in found) if isinstance(found, list) else ()


def _refuse_unknown(
    schema: Mapping[str, object],
    properties: Mapping[str, Mapping[str, object]],
    names: Mapping[str, object],
) -> None:
    if schema.get("additionalProperties", False) is not False or "patternProperties" in schema:
        return
    unknown = [name for name in names if name not in properties]
    if unknown:
        raise ArgumentsError(f"there is no argument {_shown(unknown[0])}", hint=_known_line(properties))


def _known_line(properties: Mapping[str, Mapping[str, object]]) -> str:
    if not properties:
        return "this capability takes no arguments"
    return "known arguments: " + ", ".join(properties)


def _validate(
    schema: Mapping[str, object],
    properties: Mapping[str, Mapping[str, object]],
    given: Mapping[str, object],
) -> None:
    # Imported here: 60 to 120 ms that a command without arguments need not pay.
    from jsonschema import Draft202012Validator  # noqa: PLC0415
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    try:
        Draft202012Validator.check_schema(schema)
        # The library's own default registry would fetch a reference to a URL.
        faults = list(Draft202012Validator(schema, registry=Registry()).iter_errors(given))
    except (SchemaError, Unresolvable) as error:
        words = error.message if isinstance(error, SchemaError) else str(error)
        raise ArgumentsError(
            f"the arguments of this capability are not described by a valid JSON Schema: {words}"
        ) from error
    if faults:
        raise _arguments_error(min(faults, key=_fault_order), properties)


def _fault_order(fault: ValidationError) -> tuple[bool, str]:
    return (fault.validator != "required", str(fault.json_path))


def _arguments_error(fault: ValidationError, properties: Mapping[str, Mapping[str, object]]) -> ArgumentsError:
    path = list(fault.absolute_path)
    if not path:
        missing = _missing(fault)
        if not missing:
            return ArgumentsError(f"the arguments do not fit: {_cut(fault.message)}", hint=_known_line(properties))
        # The library reports one fault for each missing name, in this order, and this is the first.
        name = missing[0]
        return ArgumentsError(f"argument {name} is missing", hint=describe_argument(name, properties.get(name, {})))
    name = str(path[0])
    place = name + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path[1:])
    return ArgumentsError(
        f"argument {place} {_fault_words(fault)}, not {_shown(fault.instance)}",
        hint=describe_argument(name, properties.get(name, {})),
    )


def _missing(fault: ValidationError) -> list[str]:
    if fault.validator != "required" or not isinstance(fault.validator_value, list):
        return []
    given = fault.instance if isinstance(fault.instance, dict) else {}
    return [str(name) for name in fault.validator_value if name not in given]


def _fault_words(fault: ValidationError) -> str:
    limit = fault.validator_value
    match fault.validator:
        case "type":
            kinds = limit if isinstance(limit, list) else [limit]
            return "must be " + " or ".join(_KIND_WORDS.get(str(kind), str(kind)) for kind in kinds)
        case "enum" if isinstance(limit, list):
            return "must be one of " + ", ".join(_shown(choice) for choice in limit)
        case "minimum":
            return f"must be at least {limit}"
        case "maximum":
            return f"must be at most {limit}"
        case "minLength" | "minItems" if limit == 1:
            return "must not be empty"
        case "minLength" | "minItems":
            return f"must have at least {limit} {_unit(fault)}"
        case "maxLength" | "maxItems":
            return f"must have at most {limit} {_unit(fault)}"
        case "pattern":
            return f"must have the form {limit}"
        case _:
            return f"must fit {fault.validator}: {_shown(limit)}"


def _unit(fault: ValidationError) -> str:
    return "items" if str(fault.validator).endswith("Items") else "characters"


def _coerce(name: str, described: Mapping[str, object], given: str | Sequence[str]) -> object:
    kinds = _kinds(described)
    words = [given] if isinstance(given, str) else list(given)
    if "array" in kinds and (len(words) != 1 or "string" not in kinds):
        items = described.get("items")
        item: Mapping[str, object] = items if isinstance(items, dict) else {}
        return [_coerce_word(name, item, word) for word in words]
    if len(words) != 1:
        raise ArgumentsError(
            f"argument {name} takes one value, and {len(words)} are given", hint=describe_argument(name, described)
        )
    return _coerce_word(name, described, words[0])


def _coerce_word(name: str, described: Mapping[str, object], word: str) -> object:
    choices = described.get("enum")
    if isinstance(choices, list):
        for choice in choices:
            if word == (choice if isinstance(choice, str) else json.dumps(choice)):
                return choice
    kinds = _kinds(described)
    if not kinds or "string" in kinds:
        return word
    for kind in kinds:
        found = _read_as(kind, word)
        if found is not None:
            return found[0]
    wanted = " or ".join(_KIND_WORDS.get(kind, kind) for kind in kinds)
    raise ArgumentsError(
        f"argument {name} must be {wanted}, not {_shown(word)}", hint=describe_argument(name, described)
    )


def _read_as(kind: str, word: str) -> tuple[object] | None:
    """Return the word's value in a tuple of one, since None is a value too; None when it is not of this kind."""
    word = word.strip()
    match kind:
        case "integer" if _WHOLE_NUMBER.fullmatch(word):
            return (int(word),)
        case "number" if _WHOLE_NUMBER.fullmatch(word):
            return (int(word),)
        case "number" if _NUMBER.fullmatch(word):
            return (float(word),)
        case "boolean" if word.lower() in _BOOLEANS:
            return (_BOOLEANS[word.lower()],)
        case "null" if word in {"", "null"}:
            return (None,)
        case "object":
            try:
                found = json.loads(word)
            except (ValueError, RecursionError):
                return None
            return (found,) if isinstance(found, dict) else None
        case _:
            return None


def _shown(value: object) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, default=str)
    return _cut(text)


def _cut(text: str) -> str:
    return cut(text, _SHOWN_VALUE_MAX_CHARACTERS)
