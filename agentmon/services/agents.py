"""Agents: the programs of this machine that can be given work."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from agentmon.domain.agents import DiscoveryMethod
from agentmon.domain.errors import NotFoundError, UsageError
from agentmon.runners.presets import agents_of, find_installed
from agentmon.worker.wake import wake_worker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.agents import Agent
    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.ids import AgentId
    from agentmon.paths import Paths
    from agentmon.store.agents import AgentRepository
    from agentmon.store.parking import ParkingRepository


class AgentService:
    """Reads the registry; the presets whose programs are on the PATH enter it at the first look."""

    def __init__(self, repository: AgentRepository, parking: ParkingRepository, paths: Paths, clock: Clock) -> None:
        self._repository = repository
        self._parking = parking
        self._paths = paths
        self._clock = clock
        self._is_scanned = False
        self._scan = asyncio.Lock()

    async def list(self, *, active_only: bool = True) -> tuple[Agent, ...]:
        """Return the agents with their capabilities, the one that runs any command first."""
        await self._add_installed()
        return await self._repository.list(active_only=active_only)

    async def add(self, agent: Agent) -> Agent:
        """Put an agent into the registry and return it; one of the same slug that is there stays and is returned."""
        await self._repository.add_missing([agent], at=self._clock.now())
        return await self.by_slug(agent.slug)

    async def by_slug(self, slug: str) -> Agent:
        """Return the agent that people call by this slug.

        Raises:
            NotFoundError: There is none; the hint names those that are there.
        """
        await self._add_installed()
        agent = await self._repository.find_by_slug(slug)
        if agent is None:
            known = ", ".join(agent.slug for agent in await self._repository.list(active_only=True))
            raise NotFoundError(f"there is no agent {slug}", hint=f"agents are: {known}")
        return agent

    async def get(self, agent_id: AgentId) -> Agent:
        """Return the agent of this id.

        Raises:
            NotFoundError: There is none any more.
        """
        agent = await self._repository.find(agent_id)
        if agent is None:
            raise NotFoundError("the program of this task is no longer registered", hint="choose another one")
        return agent

    async def release(self, slug: str, *, actor: Actor) -> Agent:
        """Let a parked agent start again at once, with its failures forgotten.

        Raises:
            NotFoundError: There is no such agent.
            ConflictError: It is not parked.
        """
        agent = await self.by_slug(slug)
        await self._parking.release(agent.id, actor=actor, at=self._clock.now())
        wake_worker(self._paths.worker_socket)
        return await self.get(agent.id)

    async def limit(self, slug: str, max_concurrent: int, *, actor: Actor) -> Agent:
        """Set how many executions of an agent may run at one time; 0 means no limit of its own.

        Raises:
            NotFoundError: There is no such agent.
            UsageError: The number is negative.
        """
        if max_concurrent < 0:
            raise UsageError(f"{max_concurrent} is no limit", hint="0 means no limit, 1 one at a time")
        agent = await self.by_slug(slug)
        await self._repository.set_max_concurrent(agent.id, max_concurrent, actor=actor, at=self._clock.now())
        wake_worker(self._paths.worker_socket)
        return await self.get(agent.id)

    async def set_tools(self, slug: str, tools: Mapping[str, bool | None], *, actor: Actor) -> Agent:
        """Allow (True) or take away (False) some of an AI agent's own tools; None leaves a tool as the agent has it.

        It takes effect with the next start.

        Raises:
            NotFoundError: There is no such agent.
            UsageError: The agent takes no list of tools, or a name cannot be one.
        """
        agent = await self.by_slug(slug)
        flags = {} if agent.session_config is None else agent.session_config.flags
        if "allow_tool" not in flags or "deny_tool" not in flags:
            raise UsageError(
                f"{slug} cannot be told which of its tools it may use",
                hint="rules can answer its requests instead: `agentmon rules --help`",
            )
        for name in tools:
            if not name.strip() or name.startswith("-") or not name.isprintable():
                raise UsageError(f"{name!r} is not the name of a tool", hint="such as Bash, WebFetch or 'Bash(git:*)'")
        await self._repository.set_tools(agent.id, tools, actor=actor, at=self._clock.now())
        return await self.get(agent.id)

    async def _add_installed(self) -> None:
        async with self._scan:
            if self._is_scanned:
                return
            known = {agent.slug: agent for agent in await self._repository.list(active_only=False)}
            installed = await asyncio.to_thread(find_installed, dict(os.environ))
            fresh = [preset for preset in installed if preset.slug not in known]
            if fresh:
                await self._repository.add_missing(agents_of(fresh), at=self._clock.now())
            found = [known[preset.slug].id for preset in installed if _came_with_history(known.get(preset.slug))]
            if found:
                await self._repository.activate(found, at=self._clock.now())
            self._is_scanned = True


def _came_with_history(agent: Agent | None) -> bool:
    """Return whether only files of the agent were here when it entered the registry."""
    return agent is not None and not agent.is_active and agent.discovery_method is DiscoveryMethod.PRESET
