"""Who asks: the person at this machine, or a program that agentmon runs."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import NotFoundError
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.ids import LOCAL_USER_ID, ExecutionId
from agentmon.runners.ancestry import look_around

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.store.executions import ExecutionRepository

USER_ACTOR: Final = Actor(type=ActorType.USER, id=LOCAL_USER_ID)
_SOME_AGENT: Final = Actor(type=ActorType.AGENT, id="unknown")
"""One whose run cannot be told."""


async def find_actor(executions: ExecutionRepository, tmux_socket: Path) -> Actor:
    """Return the agent of this database in whose run this process was started, or the person.

    What agentmon's own tmux server started past a host is no person: only an agent asks it to. Nor is one behind whom
    nobody can look, as in a namespace of processes of its own.
    """
    around = await asyncio.to_thread(look_around, os.environ, tmux_socket)
    for execution_id in around.executions:
        try:
            execution = await executions.get(ExecutionId(execution_id))
        except NotFoundError:
            continue
        return Actor(type=ActorType.AGENT, id=execution.id)
    return _SOME_AGENT if around.is_below_tmux or not around.is_whole else USER_ACTOR
