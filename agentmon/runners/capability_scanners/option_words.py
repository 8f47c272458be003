"""What the words about an option tell: what kind of value it takes, which ones, its default, whether it is repeated."""

from __future__ import annotations

import re
from typing import Final

from agentmon.runners.capability_scanners.scanned import ValueKind

_INTEGER_NAMES: Final = frozenset(
    {
        *("n", "num", "number", "int", "integer", "uint", "count", "uint8", "uint16", "uint32", "uint64", "int32"),
        *("int64", "port", "depth", "jobs", "lines", "cols", "columns", "pid", "int16", "long", "usize", "u16", "u32"),
        *("#", "u64", "i32", "i64", "+int", "max_depth", "max-depth"),
    }
)
_NUMBER_NAMES: Final = frozenset(
    {*("float", "float32", "float64", "decimal", "double", "seconds", "secs", "sec", "fractional seconds", "ratio")}
)
_BOOLEAN_NAMES: Final = frozenset({"bool", "boolean"})
_LIST_NAMES: Final = frozenset({"list", "strings", "stringarray", "stringslice", "map", "ints", "stringtostring"})
_PLACEHOLDERS: Final = frozenset(
    {
        *("file", "filename", "path", "dir", "directory", "folder", "data", "string", "str", "text", "name", "url"),
        *("uri", "host", "ip", "address", "number", "num", "n", "int", "value", "pkg", "glob", "package", "id", "key"),
        *("user", "pattern", "regex", "pid", "group", "command", "port", "date", "size", "bytes", "list", "format"),
        *("template", "location", "hex", "label", "var", "addr", "node", "hash", "template", "type", "expr", "any"),
    }
)
_CHOICE: Final = re.compile(r"[\w.:+/@%-]{1,40}")
_CHOICE_BRACES: Final = re.compile(r"\{([^{}\s]{1,300})\}|\{([^{}|]{1,300})\}")
_MARKED_CHOICES: Final = re.compile(
    r"\[(?:possible values|values|choices|allowed values|allowed): ?([^\]]{1,600})\]|\(choices: ([^)]{1,600})\)",
    re.IGNORECASE,
)
_CHOICE_QUOTES: Final = "\"'` "
_DEFAULT: Final = re.compile(
    r"[\[(](?:[^\[\]()]{0,60}[;,] ?)?(?:the )?default(?:s to| value is| value| is)?[:= ] ?"
    r"(?:\"([^\"]{0,200})\"|'([^']{0,200})'|([^\])\"';]{1,200}))",
    re.IGNORECASE,
)
_REQUIRED: Final = re.compile(r"\[required\]", re.IGNORECASE)
_REPEATED: Final = re.compile(
    r"multiple times|several times|more than once|be repeated|repeat(?:ed)? (?:to|for)|multiple (?:options|allowed)"
    r"|multiple uses|repeatable|specified multiple|given multiple|used multiple|\[array\]|several -|used many times",
    re.IGNORECASE,
)
_REST_OF_LIST: Final = re.compile(r"\[,[^\[\]]{0,60}\]")
_WHOLE_NUMBER: Final = re.compile(r"-?\d{1,18}")
_NUMBER: Final = re.compile(r"-?\d{1,18}\.\d{1,18}")
_YARGS_TYPES: Final = {"[number]": ValueKind.NUMBER, "[boolean]": ValueKind.BOOLEAN, "[string]": ValueKind.STRING}
_MOST_CHOICES: Final = 60


def plain_value_name(value: str) -> str:
    """Return how a value is called without its brackets: ``FILE`` for ``<FILE>...``."""
    name = _REST_OF_LIST.sub("", value).replace("...", "").replace("…", "").strip(" ,;:=.")
    if name[:1] + name[-1:] in {"<>", "[]", "{}", "()"} and name[:1] not in name[1:]:
        name = name[1:-1]
    return name.strip(" \"'")


def kind_of(value_name: str, description: str) -> ValueKind:
    """Return what kind of value an option takes that calls it by this name."""
    name = value_name.casefold()
    if name in _BOOLEAN_NAMES:
        return ValueKind.BOOLEAN
    if name in _INTEGER_NAMES:
        return ValueKind.STRING if name in {"n", "num"} and "+N" in description else ValueKind.INTEGER
    if name in _NUMBER_NAMES:
        return ValueKind.NUMBER
    if name.startswith(("integer range", "int range")):
        return ValueKind.INTEGER
    if name.startswith("float range"):
        return ValueKind.NUMBER
    if _WHOLE_NUMBER.fullmatch(name):
        return ValueKind.INTEGER
    return ValueKind.STRING


def told_kind(description: str) -> ValueKind | None:
    """Return the kind that yargs writes behind a description; None when it writes none."""
    return next((kind for mark, kind in _YARGS_TYPES.items() if mark in description), None)


def choices_of(value: str, description: str) -> tuple[str, ...]:
    """Return the values that an option takes, as far as its head or its description lists all of them."""
    marked = _MARKED_CHOICES.search(description)
    if marked:
        return _checked(re.split(r", ?", marked[1] or marked[2]), is_sure=True)
    braces = _CHOICE_BRACES.fullmatch(value.strip().removesuffix("..."))
    if braces:
        inside = braces[1] or braces[2]
        return _checked(re.split(r"[,|] ?", inside.replace(" ", "") if "|" in inside else inside))
    inside = plain_value_name(value).strip("()[]")
    return _checked(inside.split("|")) if "|" in inside else ()


def default_of(description: str) -> str | None:
    """Return the default that a description tells, as text; None when it tells none."""
    found = _DEFAULT.search(description)
    if found is None:
        return None
    text = found[1] or found[2] or found[3] or ""
    text = text.strip(" `")
    text = text.rstrip(".") or text
    return text if text and text.casefold() not in {"none", "null", "[]", "[", "map[]", "map[", "unset"} else None


def typed_default(text: str | None, kind: ValueKind) -> str | int | float | bool | None:
    """Return a default in the kind of its option; None when it is not of that kind."""
    if text is None:
        return None
    match kind:
        case ValueKind.BOOLEAN:
            return {"true": True, "false": False}.get(text.casefold())
        case ValueKind.INTEGER:
            return int(text) if _WHOLE_NUMBER.fullmatch(text) else None
        case ValueKind.NUMBER:
            if _WHOLE_NUMBER.fullmatch(text):
                return int(text)
            return float(text) if _NUMBER.fullmatch(text) else None
        case ValueKind.STRING:
            return text


def is_required(description: str) -> bool:
    """Tell whether a description says that its option must be given."""
    return _REQUIRED.search(description) is not None


def is_repeated(value: str, description: str) -> bool:
    """Tell whether an option may be given several times."""
    return (
        value.endswith(("...>", "...]"))
        or plain_value_name(value).casefold() in _LIST_NAMES
        or _REPEATED.search(description) is not None
    )


def _checked(found: list[str], *, is_sure: bool = False) -> tuple[str, ...]:
    """Return the words when they can be choices; unless that is sure, ``FILE|DIR`` only names what is meant."""
    words = [word.strip(_CHOICE_QUOTES) for word in found]
    is_list = 1 < len(words) <= _MOST_CHOICES and all(_CHOICE.fullmatch(word) for word in words)
    if not is_list or (not is_sure and any(word.casefold() in _PLACEHOLDERS or word == "..." for word in words)):
        return ()
    return tuple(dict.fromkeys(words))
