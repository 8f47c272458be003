"""Fields of records that agents wrote: what is missing, of another type or out of range becomes an empty value."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import orjson

from agentmon.domain.billing import Confidence

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUMBER: Final = re.compile(r"[0-9]{10,17}(?:\.[0-9]{1,9})?")
_FROM_MS: Final = 946_684_800_000
_UP_TO_MS: Final = 95_617_584_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_AROUND: Final = " \t\r\n\0"
"""Around a record: a file that was not written to its end before a power cut may go on with zeros."""
_DECODER: Final = json.JSONDecoder()
MAX_COUNT: Final = 10**9
"""More tokens than any answer has: a larger number is damage, and would overflow a sum."""
MAX_RUNNING_TOTAL: Final = 10**12
"""More tokens than any conversation has."""
MAX_MOMENT_MS: Final = 10**15
_MAX_TRIES: Final = 8
_MODEL_WITH_KINDS: Final = "claude"
"""In the names of models that are billed by how long a cache lives."""
_MAX_MILLISECONDS: Final = 253_402_300_799_999
"""The end of the year 9999."""
MAX_REF_CHARACTERS: Final = 200
MAX_TEXT_CHARACTERS: Final = 4_096


def confidence_of_writes(model: str, written: int) -> Confidence:
    """Return how sure the numbers of an answer are whose tokens written to a cache were told without their kind."""
    return Confidence.ASSUMED if written and _MODEL_WITH_KINDS in model.lower() else Confidence.EXACT


def parse_record(line: bytes) -> dict[str, object] | None:
    """Return the object that the line holds; None when it is damaged or is no object."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _parse_leniently(line)
    return record if isinstance(record, dict) else None


def _parse_leniently(line: bytes) -> dict[str, object] | None:
    """Return what other programs write and JSON does not know: odd bytes, half surrogates, NaN, zeros around it."""
    text = line.decode("utf-8", "replace").strip(_AROUND)
    try:
        record, end = _DECODER.raw_decode(text)
    except (RecursionError, ValueError):
        return None
    return record if isinstance(record, dict) and end == len(text) else None


def record_behind_torn(line: bytes, beginnings: tuple[bytes, ...]) -> dict[str, object] | None:
    """Return the whole record behind one that was cut off within the same line, or None.

    A program that was killed while it wrote leaves half a line, and the next one writes on right behind it.

    Args:
        line: A damaged one.
        beginnings: How whole records begin.
    """
    at = len(line)
    for _ in range(_MAX_TRIES):
        at = max(line.rfind(beginning, 1, at) for beginning in beginnings)
        if at < 0:
            return None
        record = parse_record(line[at:])
        if record is not None:
            return record
    return None


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


def count_in(holder: Mapping[str, object], name: str, max_count: int = MAX_COUNT) -> int:
    """Return the number under the name, from 0 to the largest one; 0 when it is no such number."""
    value = holder.get(name)
    if type(value) is int:
        return value if 0 <= value <= max_count else 0
    return int(value) if isinstance(value, float) and 0 <= value <= max_count else 0


def milliseconds_in(holder: Mapping[str, object], name: str) -> int:
    """Return the UTC milliseconds that stand as a number under the name; 0 when it is no such number."""
    value = holder.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _MAX_MILLISECONDS:
        return 0
    return int(value)


def moment_in(holder: Mapping[str, object], name: str) -> int:
    """Return the time under the name in UTC milliseconds; 0 when it is none.

    It is written in ISO 8601, without a zone in UTC, or as a number of seconds, milli- or microseconds since 1970.
    """
    value = holder.get(name)
    if isinstance(value, str):
        return _moment_of_number(float(value)) if _NUMBER.fullmatch(value) else moment_of(value)
    return _moment_of_number(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _moment_of_number(number: float) -> int:
    """Return the time in UTC milliseconds; 0 for one before the year 2000 or after 5000, whatever it counts."""
    for unit in (1000, 1, 0.001):
        if _FROM_MS <= number * unit < _UP_TO_MS:
            return int(number * unit)
    return 0


def moment_of(written: str) -> int:
    """Return the ISO 8601 time in UTC milliseconds; 0 when it is none. One without a zone is UTC."""
    try:
        at = datetime.fromisoformat(written)
        # Never rounded up: a moment before midnight is not one of the next day.
        return max(0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND)
    except (OverflowError, ValueError):
        return 0
