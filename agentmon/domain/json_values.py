"""Reads fields of JSON that a program wrote: what is missing or of another type becomes an empty value."""

from __future__ import annotations

import json
import re

from agentmon.domain.letters import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_REF_CHARACTERS = 200
MAX_COUNT = 2**63 - 1
MAX_DEPTH = 100
"""How deep lists and objects may stand in each other; what is deeper is not taken for a message of a program."""


TOO_DEEP = "The request is nested too deeply to be shown, so it is refused."
_OUTLINE_DEPTH = 4
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def is_deeper(value: object, depth: int = MAX_DEPTH) -> bool:
    """Return whether lists and objects stand in each other deeper than that; however deep, nothing is recursive."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(depth):
        if not level:
            return False
        members = (holder.values() if isinstance(holder, dict) else holder for holder in level)
        level = [member for some in members for member in some if isinstance(member, dict | list)]
    return bool(level)


def read_object(text: str | bytes) -> dict[str, object] | None:
    """Return the JSON object that a program wrote; None when it is none, or is deeper than ``MAX_DEPTH``."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and not is_deeper(found) else None


def read_outline(text: str) -> dict[str, object]:
    """Return what of a JSON object stands near its surface, with null for all that is deeper; {} when it is none.

    Of a request that is nested too deeply this tells whom to refuse it.
    """
    kept, depth, end = [], 0, 0
    for token in _STRUCTURE.finditer(text):
        mark = token.group()
        if mark in "[{":
            depth += 1
            if depth == _OUTLINE_DEPTH + 1:
                kept.append(text[end : token.start()] + "null")
        elif mark in "]}":
            depth -= 1
            if depth == _OUTLINE_DEPTH:
                end = token.end()
    kept.append(text[end:])
    return read_object("".join(kept)) or {}


def text_in(holder: Mapping[str, object], key: str) -> str:
    """Return the text under the key, or an empty one."""
    value = holder.get(key)
    return value if isinstance(value, str) else ""


def ref_in(holder: Mapping[str, object], key: str) -> str:
    """Return the id under the key; empty when there is none, or one too long to be an id."""
    value = holder.get(key)
    return value if isinstance(value, str) and len(value) <= MAX_REF_CHARACTERS else ""


def object_in(holder: Mapping[str, object], key: str) -> dict[str, object]:
    """Return the object under the key, or an empty one."""
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def list_in(holder: Mapping[str, object], key: str, max_members: int) -> list[object]:
    """Return the first members of the list under the key, whatever they are."""
    value = holder.get(key)
    return value[:max_members] if isinstance(value, list) else []


def objects_in(holder: Mapping[str, object], key: str, max_members: int | None = None) -> list[dict[str, object]]:
    """Return the objects among the first members of the list under the key, or among all of them."""
    value = holder.get(key)
    return [member for member in value[:max_members] if isinstance(member, dict)] if isinstance(value, list) else []


def texts_in(holder: Mapping[str, object], key: str, max_members: int | None = None) -> list[str]:
    """Return the texts among the first members of the list under the key, or among all of them."""
    value = holder.get(key)
    return [member for member in value[:max_members] if isinstance(member, str)] if isinstance(value, list) else []


def count_in(holder: Mapping[str, object], key: str) -> int:
    """Return the number under the key, from 0 to ``MAX_COUNT``; 0 when it is no such number."""
    value = holder.get(key)
    if type(value) is int:
        return value if 0 <= value <= MAX_COUNT else 0
    return int(value) if isinstance(value, float) and 0 <= value <= MAX_COUNT else 0


def optional_count_in(holder: Mapping[str, object], key: str) -> int | None:
    """Return the whole number under the key, from 0 to ``MAX_COUNT``; None when it is no such number."""
    value = holder.get(key)
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None


def as_json(value: object) -> str:
    """Return the value as JSON with its keys in order; an empty text when it is nested too deeply."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except (RecursionError, TypeError, ValueError):
        return ""


def one_line(text: str, max_characters: int) -> str:
    """Return the text with every run of white space as one space, cut with an ellipsis when it is longer."""
    return cut(" ".join(text[: 4 * max_characters].split()), max_characters)
