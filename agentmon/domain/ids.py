"""Identifiers: one type per kind of row, and the generator of time-ordered ids."""

from __future__ import annotations

import os
import time
from typing import Final, NewType

UserId = NewType("UserId", str)
WorkspaceId = NewType("WorkspaceId", str)
AgentId = NewType("AgentId", str)
CapabilityId = NewType("CapabilityId", str)
TaskId = NewType("TaskId", str)
ExecutionId = NewType("ExecutionId", str)
SessionId = NewType("SessionId", str)
CommandId = NewType("CommandId", str)
WorkerId = NewType("WorkerId", str)

LOCAL_USER_ID: Final = UserId("00000000-0000-0000-0000-000000000001")
"""The one user of a local database."""


def new_id() -> str:
    """Return a new UUID version 7 as 36 lower-case characters; ids made later sort later, to the millisecond.

    Source: RFC 9562, section 5.7.
    """
    unix_ms = time.time_ns() // 1_000_000
    random_bits = int.from_bytes(os.urandom(10), "big")
    value = (unix_ms & 0xFFFF_FFFF_FFFF) << 80
    value |= 0x7 << 76 | (random_bits >> 68 & 0xFFF) << 64
    value |= 0b10 << 62 | random_bits & 0x3FFF_FFFF_FFFF_FFFF
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
