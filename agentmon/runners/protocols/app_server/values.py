"""Reads values out of messages whose shape is not to be relied on; nothing here raises."""

from __future__ import annotations

import json

MAX_COUNT = 2**63 - 1


def as_object(value: object) -> dict[str, object]:
    """Return the value when it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object, max_members: int) -> list[object]:
    """Return the first members of the value when it is a list, else none."""
    return value[:max_members] if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return the value when it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int:
    """Return the value when it is a whole number of 0 to 2^63 - 1, else 0."""
    return value if type(value) is int and 0 <= value <= MAX_COUNT else 0


def as_optional_count(value: object) -> int | None:
    """Return the value when it is a whole number of 0 to 2^63 - 1, else None."""
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None


def as_line(text: str) -> str:
    """Return the text with every run of white space as one space."""
    return " ".join(text.split())


def as_json(value: object) -> str:
    """Return the value as JSON with its keys in order; an empty text when it is nested too deeply."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except (RecursionError, TypeError, ValueError):
        return ""
