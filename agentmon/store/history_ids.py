"""Ids and names of rows that are made of history: the same however often and in whatever order it is read."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from agentmon.domain.history import MAX_PLACE

_LARGEST_MS: Final = (1 << 48) - 1


def history_ref(agent_slug: str, ref: str) -> str:
    """Return how a row names the message or the call, told apart from what was told live."""
    return f"h:{agent_slug}:{ref}"


def history_id(name: str, *, at_ms: int, place: int) -> str:
    """Return a UUID version 7 of the moment, the place among records of the same moment, and a hash of the name.

    Source: RFC 9562, section 5.7.
    """
    digest = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big") & 0x3FFF_FFFF_FFFF_FFFF
    moment = min(max(at_ms, 0), _LARGEST_MS)
    value = moment << 80 | 0x7 << 76 | min(place, MAX_PLACE) << 64 | 0b10 << 62 | digest
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
