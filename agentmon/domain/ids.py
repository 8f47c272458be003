"""Identifiers: one type per kind of row, and the generator of time-ordered ids."""

from __future__ import annotations

import os
import threading
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
OperationId = NewType("OperationId", str)
MessageId = NewType("MessageId", str)
ApprovalId = NewType("ApprovalId", str)
ApprovalRuleId = NewType("ApprovalRuleId", str)
BudgetId = NewType("BudgetId", str)
WorktreeId = NewType("WorktreeId", str)
PullRequestId = NewType("PullRequestId", str)

LOCAL_USER_ID: Final = UserId("00000000-0000-0000-0000-000000000001")
"""The one user of a local database."""

_ID_DIGITS: Final = 32

_lock: Final = threading.Lock()
_newest = 0


def made_at_ms(made_id: str) -> int:
    """Return when ``new_id`` made the id, in UTC milliseconds; 0 for an id that it did not make."""
    digits = made_id.replace("-", "")
    is_made = len(digits) == _ID_DIGITS and digits[12] == "7" and all(digit in "0123456789abcdef" for digit in digits)
    return int(digits[:12], 16) if is_made else 0


def new_id() -> str:
    """Return a new UUID version 7 as 36 lower-case characters; of two made in one process the later sorts later.

    Source: RFC 9562, section 5.7, with the counter of section 6.2, method 1, in the 12 bits after the version.
    """
    global _newest  # noqa: PLW0603 - the last time and count, guarded by the lock
    with _lock:
        _newest = max(_newest + 1, time.time_ns() // 1_000_000 << 12)
        unix_ms, count = _newest >> 12, _newest & 0xFFF
    random_bits = int.from_bytes(os.urandom(8), "big") & 0x3FFF_FFFF_FFFF_FFFF
    value = (unix_ms & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | count << 64 | 0b10 << 62 | random_bits
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
