"""Tells from a file's first and last bytes when what it records began and ended."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from agentmon.usage.fields import moment_in

_STRETCH_BYTES: Final = 16_384
_TIMESTAMP: Final = re.compile(rb'"timestamp"\s*:\s*"?([0-9T:.Z+-]{10,40})')


def begun_and_ended_ms(path: str) -> tuple[int, int]:
    """Return the first time stamp near the beginning and the last one near the end, UTC; 0 for one not found."""
    try:
        with Path(path).open("rb", buffering=0) as opened:
            head = opened.read(_STRETCH_BYTES)
            size = opened.seek(0, 2)
            opened.seek(max(0, size - _STRETCH_BYTES))
            tail = opened.read(_STRETCH_BYTES)
    except OSError:
        return 0, 0
    first, last = _TIMESTAMP.search(head), _TIMESTAMP.findall(tail)
    return _moment(first[1]) if first else 0, _moment(last[-1]) if last else 0


def _moment(written: bytes) -> int:
    return moment_in({"at": written.decode("ascii", "replace")}, "at")
