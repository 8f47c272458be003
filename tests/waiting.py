"""Waiting for a condition with a deadline, never for a time."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

DEADLINE_S = 120.0
"""Long, since only what fails ever takes it and a busy machine may be ten times as slow as a quiet one."""
_SHORTEST_REST_S = 0.01
_LONGEST_REST_S = 0.1

_Found = TypeVar("_Found")


def wait_for(find: Callable[[], _Found], what: str = "the condition", *, deadline_s: float = DEADLINE_S) -> _Found:
    """Return the first true value that the function finds."""
    began = time.monotonic()
    while not (found := find()):
        assert time.monotonic() < began + deadline_s, f"not within {deadline_s:g} s: {what}"
        time.sleep(next_look_s(began))
    return found


async def until(
    find: Callable[[], Awaitable[bool]], what: str = "the condition", *, deadline_s: float = DEADLINE_S
) -> None:
    """Return once what is awaited is true."""
    began = time.monotonic()
    while not await find():
        assert time.monotonic() < began + deadline_s, f"not within {deadline_s:g} s: {what}"
        await asyncio.sleep(next_look_s(began))


def next_look_s(began: float) -> float:
    """Return how long to rest before the next look, in seconds: a tenth of the time so far, since looking costs too.

    Args:
        began: When the wait began, monotonic.
    """
    return min(_LONGEST_REST_S, max(_SHORTEST_REST_S, (time.monotonic() - began) / 10))
