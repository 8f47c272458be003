"""Waiting for a condition with a deadline, never for a time."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

DEADLINE_S = 30.0

_Found = TypeVar("_Found")


def wait_for(find: Callable[[], _Found], what: str = "the condition", *, deadline_s: float = DEADLINE_S) -> _Found:
    """Return the first true value that the function finds."""
    end = time.monotonic() + deadline_s
    while not (found := find()):
        assert time.monotonic() < end, f"not within {deadline_s:g} s: {what}"
        time.sleep(0.02)
    return found


async def until(
    find: Callable[[], Awaitable[bool]], what: str = "the condition", *, deadline_s: float = DEADLINE_S
) -> None:
    """Return once what is awaited is true."""
    end = time.monotonic() + deadline_s
    while not await find():
        assert time.monotonic() < end, f"not within {deadline_s:g} s: {what}"
        await asyncio.sleep(0.02)
