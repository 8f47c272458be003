"""Work in a thread that nobody waits for when the program ends; ``asyncio.to_thread`` would hold the end up."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Made = TypeVar("_Made")


async def in_daemon_thread(work: Callable[[], _Made], *, name: str) -> _Made:
    """Return what the function returns, or raise what it raises; a caller that is cancelled leaves it alone."""
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
