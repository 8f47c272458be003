"""Ending what a dead host left behind: every process that carries the marker of its execution."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import TYPE_CHECKING, Final

from agentmon.runners.host.family import send_to_same
from agentmon.runners.host.process_table import read_processes

if TYPE_CHECKING:
    from agentmon.domain.ids import ExecutionId
    from agentmon.runners.host.process_table import Process

_KILL_FOR_S: Final = 5.0
_LOOK_EVERY_S: Final = 0.1


async def end_strays(execution_id: ExecutionId, *, grace_s: float) -> tuple[int, ...]:
    """End the marked processes of an execution and return the pids of those that live on all the same.

    They are asked first and get ``grace_s`` seconds, then they are killed.
    """
    strays = await asyncio.to_thread(find_strays, execution_id)
    for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, _KILL_FOR_S)):
        deadline = time.monotonic() + patience_s
        for stray in strays:
            send_to_same(stray, number)
            # A halted process acts on the signal only once it goes on.
            send_to_same(stray, signal.SIGCONT)
        while strays and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK_EVERY_S)
            strays = await asyncio.to_thread(find_strays, execution_id)
            if number == signal.SIGKILL:
                for stray in strays:
                    send_to_same(stray, number)
    return tuple(stray.pid for stray in strays)


def find_strays(execution_id: ExecutionId) -> list[Process]:
    """Return the living processes that carry the marker of an execution; blocks."""
    marker = f"AGENTMON_EXECUTION_ID={execution_id}".encode()
    return [process for process in read_processes(marker) if process.has_marker]
