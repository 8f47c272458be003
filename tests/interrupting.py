"""Cancels work at one of its awaits, as the end of an application or ctrl+c does at any of them."""

from __future__ import annotations

import asyncio
import types
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator


class Moment(Enum):
    """When the work is cancelled."""

    WAITING = "while it waits"
    """What it waits for may go on, as a statement does in the thread of its connection."""
    ANSWERED = "when the answer is there"
    """The work never sees it."""


async def interrupt(work: Coroutine[Any, Any, object], at: int, moment: Moment) -> bool:
    """Cancel the work at its await of this number, counted from 0, and wait for all that it left behind.

    Returns:
        Whether the work came to its end before.
    """
    before = asyncio.all_tasks()
    task = asyncio.ensure_future(_interrupted(work, at, moment))
    (outcome,) = await asyncio.gather(task, return_exceptions=True)
    while left := asyncio.all_tasks() - before:
        await asyncio.wait(left)
    if isinstance(outcome, BaseException) and not isinstance(outcome, asyncio.CancelledError):
        raise outcome
    return outcome is None


async def _interrupted(work: Coroutine[Any, Any, object], at: int, moment: Moment) -> None:
    await _steps(work, at, moment)


@types.coroutine
def _steps(work: Coroutine[Any, Any, object], at: int, moment: Moment) -> Generator[Any, Any, None]:
    """Hand every await of the work on to the event loop; the task is cancelled at one of them."""
    task = asyncio.current_task()
    assert task is not None
    answer, error, step = None, None, 0
    while True:
        try:
            awaited = work.send(answer) if error is None else work.throw(error)
        except StopIteration:
            return
        if step == at and (awaited is None or moment is Moment.WAITING):
            asyncio.get_running_loop().call_soon(task.cancel)
        elif step == at:
            # Told before the task is, since it was here first.
            awaited.add_done_callback(lambda _: task.cancel())
        step += 1
        answer, error = None, None
        try:
            answer = yield awaited
        except BaseException as raised:  # noqa: BLE001 - all of it is the work's
            error = raised
