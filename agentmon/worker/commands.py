"""Commands of clients, handed on to the hosts they are meant for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.executions import CommandType

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.domain.clock import Clock
    from agentmon.domain.ids import WorkerId
    from agentmon.store.live_executions import LiveExecutionRepository
    from agentmon.worker.screen_watching import ScreenWatch
    from agentmon.worker.watching import Watch


_FOR_SCREENS: Final = frozenset(
    {CommandType.MESSAGE, CommandType.INTERRUPT, CommandType.SET_MODEL, CommandType.SET_PERMISSION_MODE}
)
"""What an agent in its own screen is told by keys rather than by its host."""
_FOR_EVERY_TRY: Final = frozenset({CommandType.STOP, CommandType.KILL, CommandType.PAUSE, CommandType.RESUME})
"""What counts for whichever try reads it; all else was said to the agent of one try."""


async def hand_on_commands(
    live: LiveExecutionRepository,
    watch: Watch,
    screens: ScreenWatch,
    worker_id: WorkerId,
    clock: Clock,
    complain: Callable[[str], None],
) -> bool:
    """Write every command that no host has got yet where its host finds it; return whether all were.

    A message for an agent in its own screen counts as handed on when the agent has taken it.

    Raises:
        StoreError: The next call hands on the same again, which a host obeys once.
    """
    delivered = []
    commands = await live.undelivered_commands(worker_id)
    for command in commands:
        watched = watch.find(command.execution_id)
        if watched is None:
            continue
        try:
            if watched.claimed.execution.mode is ExecutionMode.TMUX and command.type in _FOR_SCREENS:
                if await screens.take(command):
                    delivered.append(command.id)
                continue
            line = {**command.payload, "id": command.id, "type": command.type.value}
            if command.type not in _FOR_EVERY_TRY:
                line["attempt"] = watched.claimed.execution.attempt
            await asyncio.to_thread(watched.folder.append_command, line)
        except OSError as error:
            # Its folder was removed, which the looks at the hosts settle, or the disk is full: later, then.
            complain(f"execution {command.execution_id}: a command cannot be handed on: {error}")
        else:
            delivered.append(command.id)
    if delivered:
        await live.mark_delivered(delivered, at=clock.now())
    return len(delivered) == len(commands)
