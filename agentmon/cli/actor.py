"""Who gives a command: the person, or a program that agentmon runs."""

import asyncio
import os

from agentmon.bootstrap import Services
from agentmon.domain.errors import NotFoundError
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.ids import ExecutionId
from agentmon.runners.ancestry import find_executions_around
from agentmon.services.actors import USER_ACTOR


async def find_actor(services: Services) -> Actor:
    """Return the agent of this database from whose run the command comes, or the person."""
    for execution_id in await asyncio.to_thread(find_executions_around, os.environ):
        try:
            execution = await services.executions.get(ExecutionId(execution_id))
        except NotFoundError:
            continue
        return Actor(type=ActorType.AGENT, id=execution.id)
    return USER_ACTOR
