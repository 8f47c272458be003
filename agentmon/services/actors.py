"""Who asks: the person at this machine, or a program that agentmon runs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import NotFoundError
from agentmon.domain.events import UNSEEN_ACTOR, Actor, ActorType
from agentmon.domain.ids import LOCAL_USER_ID, ExecutionId
from agentmon.runners.ancestry import look_around

if TYPE_CHECKING:
    from agentmon.paths import Paths
    from agentmon.store.executions import ExecutionRepository
    from agentmon.store.worker_heartbeats import HeartbeatRepository

USER_ACTOR: Final = Actor(type=ActorType.USER, id=LOCAL_USER_ID)
_SOME_AGENT: Final = Actor(type=ActorType.AGENT, id="unknown")
"""One whose run cannot be told."""
_MOST_WORKERS: Final = 8
"""Newest workers whose tmux servers are looked for, wherever the environment says that agentmon's data is."""


async def find_actor(executions: ExecutionRepository, heartbeats: HeartbeatRepository, paths: Paths) -> Actor:
    """Return the agent of this database in whose run this process was started, or the person.

    What agentmon's own tmux server started past a host is no person: only an agent asks it to. Nor is one behind whom
    nobody can look, as in a namespace of processes of its own.
    """
    workers = await heartbeats.newest(limit=_MOST_WORKERS)
    sockets = {paths.tmux_socket, *(paths.tmux_socket_in(Path(one.run_dir)) for one in workers if one.run_dir)}
    around = await asyncio.to_thread(look_around, os.environ, sockets)
    for execution_id in around.executions:
        try:
            execution = await executions.get(ExecutionId(execution_id))
        except NotFoundError:
            continue
        return Actor(type=ActorType.AGENT, id=execution.id)
    if not around.is_whole:
        return UNSEEN_ACTOR
    return _SOME_AGENT if around.is_below_tmux else USER_ACTOR
