"""Lines that a program writes over and over, as progress bars do: only what was written last can be seen."""

from __future__ import annotations

from typing import Final

_RETURNS: Final = (b"\r", b"\x1b[1G", b"\x1b[G")
"""What goes back to the beginning of the line."""


def is_rewritten(part: bytes) -> bool:
    """Return whether a part of a line goes back to the beginning of the line."""
    return any(code in part for code in _RETURNS)


def newest_states(line: bytes, most_bytes: int) -> bytes:
    """Return the last ``most_bytes`` of a rewritten line, or somewhat more: from the beginning of a state on.

    Nothing is left out that was not written over. A line that is not rewritten comes back as it is.
    """
    limit = len(line) - most_bytes
    if limit <= 0:
        return line
    starts = (at + len(code) for code in _RETURNS if (at := line.rfind(code, 0, limit)) >= 0)
    return line[max(starts, default=0) :]


def whole_states(tail: bytes) -> bytes:
    """Return the tail of a rewritten line from the first state on that is whole, where one with text is."""
    start = min((at for code in _RETURNS if (at := tail.find(code)) >= 0), default=0)
    states = tail[start:]
    return states if states.strip(b"\r\n") else tail
