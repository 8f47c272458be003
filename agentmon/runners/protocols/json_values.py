"""Reads fields of JSON that a program wrote: what is missing or of another type becomes an empty value."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_REF_CHARACTERS = 200
MAX_COUNT = 2**63 - 1


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


def objects_in(holder: Mapping[str, object], key: str) -> list[dict[str, object]]:
    """Return the objects of the list under the key, without what else is in it."""
    value = holder.get(key)
    return [member for member in value if isinstance(member, dict)] if isinstance(value, list) else []


def texts_in(holder: Mapping[str, object], key: str) -> list[str]:
    """Return the texts of the list under the key, without what else is in it."""
    value = holder.get(key)
    return [member for member in value if isinstance(member, str)] if isinstance(value, list) else []


def count_in(holder: Mapping[str, object], key: str) -> int:
    """Return the number under the key, from 0 to ``MAX_COUNT``; 0 when it is no such number."""
    value = holder.get(key)
    if isinstance(value, float) and 0 <= value <= MAX_COUNT:
        value = int(value)
    return value if type(value) is int and 0 <= value <= MAX_COUNT else 0


def one_line(text: str, max_characters: int) -> str:
    """Return the text with every run of white space as one space, cut with an ellipsis when it is longer."""
    words = " ".join(text[: 4 * max_characters].split())
    return words if len(words) <= max_characters else words[: max_characters - 1] + "…"
