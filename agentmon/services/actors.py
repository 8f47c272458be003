"""Who asks: the person at this machine, or a program that agentmon runs."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import NotFoundError
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.ids import LOCAL_USER_ID, ExecutionId
from agentmon.runners.ancestry import find_executions_around

if TYPE_CHECKING:
    from agentmon.store.executions import ExecutionRepository

USER_ACTOR: Final = Actor(type=ActorType.USER, id=LOCAL_USER_ID)


async def find_actor(executions: ExecutionRepository) -> Actor:
    """Return the agent of this database in whose run this process was started, or the person."""
    for execution_id in await asyncio.to_thread(find_executions_around, os.environ):
        try:
            execution = await executions.get(ExecutionId(execution_id))
        except NotFoundError:
            continue
        return Actor(type=ActorType.AGENT, id=execution.id)
    return USER_ACTOR
