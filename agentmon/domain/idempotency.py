"""Requests that a client names, so that one that is sent again is not done again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """The name that a client gave a request, with what it asked for."""

    key: str
    action: str
    """The service call, such as ``run`` or ``approve``."""
    digest: str
    """SHA-256 of what was asked, in hexadecimal."""


def idempotency_key(key: str | None, action: str, asked: Mapping[str, object]) -> IdempotencyKey | None:
    """Return the key of a request; None when its client named none.

    Args:
        key: As the client wrote it.
        action: The service call.
        asked: All that the client asked for, as it asked and not as it was understood: ``in 2h`` is another moment
            when it is sent again.

    Raises:
        UsageError: The key is empty, too long, or no line of text.
    """
    if key is None:
        return None
    if not key or len(key) > _MAX_CHARACTERS or not key.isprintable():
        raise UsageError(
            f"an idempotency key is a line of 1 to {_MAX_CHARACTERS} characters", hint="such as a UUID: `uuidgen`"
        )
    canonical = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    return IdempotencyKey(key, action, hashlib.sha256(canonical.encode()).hexdigest())
