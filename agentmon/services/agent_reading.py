"""The registry as it is read; the presets whose programs are on the PATH enter it at the first look."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from agentmon.domain.errors import NotFoundError
from agentmon.runners.presets import agents_of, find_installed
from agentmon.store.agent_refresh import is_behind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.agents import Agent
    from agentmon.domain.clock import Clock
    from agentmon.domain.ids import AgentId, WorkspaceId
    from agentmon.paths import Paths
    from agentmon.runners.presets import PresetAgent
    from agentmon.services.discovery import DiscoveryService
    from agentmon.store.agent_edits import AgentEditRepository
    from agentmon.store.agents import AgentRepository
    from agentmon.store.parking import ParkingRepository


class AgentReading:
    """Finds agents by their names and ids."""

    def __init__(
        self,
        repository: AgentRepository,
        edits: AgentEditRepository,
        parking: ParkingRepository,
        discovery: DiscoveryService,
        paths: Paths,
        clock: Clock,
    ) -> None:
        self._repository = repository
        self._edits = edits
        self._parking = parking
        self._discovery = discovery
        self._paths = paths
        self._clock = clock
        self._is_scanned = False
        self._scan = asyncio.Lock()

    async def list(self, *, active_only: bool = True, workspace_id: WorkspaceId | None = None) -> tuple[Agent, ...]:
        """Return agents with their capabilities, the one that runs any command first.

        Args:
            active_only: Those that can be given work; otherwise all that there ever were, also removed ones, for the
                names of what they have done.
            workspace_id: With ``active_only`` also the agents of this workspace's own file.
        """
        await self._add_installed()
        return await self._repository.list(active_only=active_only, workspace_id=workspace_id)

    async def registered(self, *, workspace_id: WorkspaceId | None = None) -> tuple[Agent, ...]:
        """Return the agents that are not removed, those that are switched off too; see ``list``."""
        await self._add_installed()
        return await self._repository.registered(workspace_id=workspace_id)

    async def by_slug(self, slug: str, *, removed_too: bool = False) -> Agent:
        """Return the agent that people call by this slug.

        Raises:
            NotFoundError: There is none, or it was removed; the hint names those that are there.
        """
        await self._add_installed()
        agent = await self._repository.find_by_slug(slug)
        if agent is None:
            known = ", ".join(agent.slug for agent in await self._repository.list(active_only=True))
            raise NotFoundError(f"there is no agent {slug}", hint=f"agents are: {known}")
        if agent.removed_at is not None and not removed_too:
            hint = (
                "it came from a workspace's file, which is not trusted now: `agentmon agents trust`"
                if agent.workspace_id is not None
                else f"`agentmon agents restore {slug}` brings it back"
            )
            raise NotFoundError(f"the agent {slug} was removed", hint=hint)
        return agent

    async def get(self, agent_id: AgentId) -> Agent:
        """Return the agent of this id, also one that is removed.

        Raises:
            NotFoundError: There is none any more.
        """
        agent = await self._repository.find(agent_id)
        if agent is None:
            raise NotFoundError("the program of this task is no longer registered", hint="choose another one")
        return agent

    async def _add_installed(self) -> None:
        async with self._scan:
            if self._is_scanned:
                return
            known = {agent.slug: agent for agent in await self._repository.ever()}
            installed = await asyncio.to_thread(find_installed, dict(os.environ), own_folder=self._paths.presets_dir)
            fresh = [preset for preset in installed if preset.slug not in known]
            if fresh:
                await self._repository.add_missing(agents_of(fresh), at=self._clock.now())
            found = [known[preset.slug] for preset in installed if preset.slug in known]
            came = [agent.id for agent in found if agent.is_history_alone]
            if came:
                await self._repository.activate(came, at=self._clock.now())
            await self._refresh(installed, known)
            self._is_scanned = True

    async def _refresh(self, installed: Sequence[PresetAgent], known: Mapping[str, Agent]) -> None:
        """Bring what presets of this release say into the registry; nothing is written where all is as they say."""
        told = [agent for agent in agents_of(installed) if agent.slug in known]
        # Where the program lies is for the scan to say, which looks at more than the PATH of this process.
        told = [replace(agent, binary_path=known[agent.slug].binary_path) for agent in told]
        behind = [agent for agent in told if is_behind(known[agent.slug], agent)]
        if behind:
            await self._repository.refresh(behind, at=self._clock.now())
