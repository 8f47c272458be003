"""Fields of records that agents wrote: what is missing, of another type or out of range becomes an empty value."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_JSON_SPACE: Final = " \t\r\n"
_DECODER: Final = json.JSONDecoder()
MAX_COUNT: Final = 10**12
"""More tokens than any answer has: a larger number is damage, and would overflow a sum."""
MAX_REF_CHARACTERS: Final = 200
MAX_TEXT_CHARACTERS: Final = 4_096


def parse_record(line: bytes) -> dict[str, object] | None:
    """Return the object that the line holds; None when it is damaged or is no object."""
    text = line.decode("utf-8", "replace").strip(_JSON_SPACE)
    try:
        record, end = _DECODER.raw_decode(text)
    except (RecursionError, ValueError):
        return None
    return record if isinstance(record, dict) and end == len(text) else None


def text_in(holder: Mapping[str, object], name: str, max_characters: int = MAX_TEXT_CHARACTERS) -> str:
    """Return the text under the name, cut to its first characters; half surrogates and zeros are replaced."""
    value = holder.get(name)
    if not isinstance(value, str):
        return ""
    if len(value) <= max_characters and value.isprintable():
        return value
    return value[:max_characters].encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def ref_in(holder: Mapping[str, object], name: str) -> str:
    """Return the id under the name; empty when there is none, or one too long to be an id."""
    value = holder.get(name)
    if not isinstance(value, str) or len(value) > MAX_REF_CHARACTERS:
        return ""
    return value if value.isprintable() else text_in(holder, name)


def object_in(holder: Mapping[str, object], name: str) -> dict[str, object]:
    """Return the object under the name, or an empty one."""
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def objects_in(holder: Mapping[str, object], name: str) -> list[dict[str, object]]:
    """Return the objects of the list under the name."""
    value = holder.get(name)
    return [member for member in value if isinstance(member, dict)] if isinstance(value, list) else []


def count_in(holder: Mapping[str, object], name: str) -> int:
    """Return the number under the name, from 0 to ``MAX_COUNT``; 0 when it is no such number."""
    value = holder.get(name)
    if type(value) is int:
        return value if 0 <= value <= MAX_COUNT else 0
    return int(value) if isinstance(value, float) and 0 <= value <= MAX_COUNT else 0


def moment_in(holder: Mapping[str, object], name: str) -> int:
    """Return the ISO 8601 time under the name in UTC milliseconds; 0 when it is none. One without a zone is UTC."""
    value = holder.get(name)
    return moment_of(value) if isinstance(value, str) else 0


def moment_of(written: str) -> int:
    """Return the ISO 8601 time in UTC milliseconds; 0 when it is none. One without a zone is UTC."""
    try:
        at = datetime.fromisoformat(written)
        # Never rounded up: a moment before midnight is not one of the next day.
        return max(0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND)
    except (OverflowError, ValueError):
        return 0
