"""Work in threads whose end matters: one that is always waited for, and one that is waited for by nobody."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_Made = TypeVar("_Made")


async def to_its_end(work: Awaitable[_Made], *, stop: Callable[[], None] | None = None) -> _Made:
    """Return what the work returns; when the caller is cancelled, wait for its end first.

    A thread cannot be cancelled, and what it uses or opens is closed only behind it.

    Args:
        work: What is awaited.
        stop: Lets the work end soon.
    """
    working = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        if stop is not None:
            stop()
        await asyncio.wait([working])
        if not working.cancelled():
            # Nobody else asks for it.
            working.exception()
        raise


async def in_daemon_thread(work: Callable[[], _Made], *, name: str) -> _Made:
    """Return what the function returns, or raise what it raises; a caller that is cancelled leaves it alone.

    The end of the program does not wait for it either, as it does for ``asyncio.to_thread``.
    """
    loop = asyncio.get_running_loop()
    made: asyncio.Future[_Made] = loop.create_future()

    def settle(value: _Made | None, error: BaseException | None) -> None:
        if made.done():
            return
        if error is not None:
            made.set_exception(error)
        else:
            made.set_result(value)  # type: ignore[arg-type] # None only where the function returns it

    def run() -> None:
        value: _Made | None = None
        failure: BaseException | None = None
        try:
            value = work()
        except BaseException as error:  # noqa: BLE001 - raised again where the work is awaited
            failure = error
        try:
            loop.call_soon_threadsafe(settle, value, failure)
        except RuntimeError:
            # The loop is closed: whoever wanted to know is gone.
            return

    threading.Thread(target=run, name=name, daemon=True).start()
    return await made
