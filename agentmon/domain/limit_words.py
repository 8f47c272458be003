"""Limits of time and size as people write them: ``15m``, ``1h30m``, ``10 MiB``, ``none``."""

from __future__ import annotations

import re
from typing import Final

from agentmon.domain.errors import UsageError

NO_LIMIT: Final = "none"
_NO_LIMIT_WORDS: Final = frozenset({"", "0", NO_LIMIT, "no", "no limit"})
_SECONDS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_TIME: Final = re.compile(r"(?:[0-9]{1,9}\s*[dhms]\s*)+", re.ASCII)
_TIME_PART: Final = re.compile(r"([0-9]{1,9})\s*([dhms])", re.ASCII)
_WHOLE: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_BYTES: Final = {
    "b": 1,
    "kb": 1_000,
    "mb": 1_000_000,
    "gb": 1_000_000_000,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
}
_SIZE: Final = re.compile(r"([0-9]{1,15})\s*([a-z]{1,3})?", re.ASCII)
_SIZE_NAMES: Final = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("GB", 10**9), ("MB", 10**6), ("KB", 10**3))
LONGEST_S: Final = 366 * 86_400
LARGEST_BYTES: Final = 1 << 40


def parse_time_limit(text: str) -> int:
    """Return the seconds of a limit; 0, which ``none`` and an empty text mean too, is no limit.

    A number alone counts seconds.

    Raises:
        UsageError: It is no duration, or longer than a year.
    """
    words = text.strip().lower()
    if words in _NO_LIMIT_WORDS:
        return 0
    if _WHOLE.fullmatch(words):
        seconds = int(words)
    elif _TIME.fullmatch(words):
        seconds = sum(int(count) * _SECONDS[unit] for count, unit in _TIME_PART.findall(words))
    else:
        raise UsageError(f"{text.strip()!r} is no duration", hint="for example 90s, 15m, 1h30m, or none for no limit")
    if seconds > LONGEST_S:
        raise UsageError(f"{text.strip()} is longer than a year", hint="none means no limit")
    return seconds


def time_limit_text(seconds: int) -> str:
    """Return the limit as ``parse_time_limit`` reads it: ``15m``, ``1h30m``, ``none``; nothing is rounded."""
    if seconds <= 0:
        return NO_LIMIT
    parts = []
    for unit, size in _SECONDS.items():
        count, seconds = divmod(seconds, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts)


def parse_size_limit(text: str) -> int:
    """Return the bytes of a limit; 0, which ``none`` and an empty text mean too, is no limit.

    A number alone counts bytes; ``MB`` is a million of them, ``MiB`` 1,048,576.

    Raises:
        UsageError: It is no size, or more than a TiB.
    """
    words = text.strip().lower()
    if words in _NO_LIMIT_WORDS:
        return 0
    found = _SIZE.fullmatch(words)
    factor = None if found is None else _BYTES.get(found[2] or "b")
    if found is None or factor is None:
        raise UsageError(f"{text.strip()!r} is no size", hint="for example 500 KB, 10 MiB, or none for no limit")
    size_bytes = int(found[1]) * factor
    if size_bytes > LARGEST_BYTES:
        raise UsageError(f"{text.strip()} is more than a TiB", hint="none means no limit")
    return size_bytes


def size_limit_text(size_bytes: int) -> str:
    """Return the limit as ``parse_size_limit`` reads it: ``10 MiB``, ``512 B``, ``none``; nothing is rounded."""
    if size_bytes <= 0:
        return NO_LIMIT
    for name, factor in _SIZE_NAMES:
        if size_bytes % factor == 0:
            return f"{size_bytes // factor} {name}"
    return f"{size_bytes} B"
