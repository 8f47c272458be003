"""Commands of clients, handed on to the hosts they are meant for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.domain.clock import Clock
    from agentmon.domain.ids import WorkerId
    from agentmon.store.live_executions import LiveExecutionRepository
    from agentmon.worker.watching import Watch


async def hand_on_commands(
    live: LiveExecutionRepository, watch: Watch, worker_id: WorkerId, clock: Clock, complain: Callable[[str], None]
) -> bool:
    """Write every command that no host has got yet where its host finds it; return whether all were.

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
            line = {"id": command.id, "type": command.type.value}
            await asyncio.to_thread(watched.folder.append_command, line)
        except OSError as error:
            # Its folder was removed, which the looks at the hosts settle, or the disk is full: later, then.
            complain(f"execution {command.execution_id}: a command cannot be handed on: {error}")
        else:
            delivered.append(command.id)
    if delivered:
        await live.mark_delivered(delivered, at=clock.now())
    return len(delivered) == len(commands)
