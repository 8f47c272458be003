"""Learning what a program can be asked to do: scans are put together, compared with what is stored, and accepted."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.capability_proposals import SCAN_SOURCES, ProposalChange, propose
from agentmon.domain.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from agentmon.domain.agents import Agent, Capability, CapabilitySource
    from agentmon.domain.capability_proposals import CapabilityProposal
    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.programs import ScanProgress
    from agentmon.paths import Paths
    from agentmon.services.agent_asking import AgentAsking
    from agentmon.services.agents import AgentService
    from agentmon.services.capability_sources import FoundCapability
    from agentmon.store.capability_scans import CapabilityScanRepository

FULL_SUFFIX: Final = "-full"
"""Ends the key of what a scan knows of a command that a preset or a person has described already."""


class CapabilityScanService:
    """Proposes capabilities for an agent from what its program, its files and others tell; stores what is accepted."""

    def __init__(
        self,
        *,
        agents: AgentService,
        scans: CapabilityScanRepository,
        asking: AgentAsking,
        paths: Paths,
        clock: Clock,
    ) -> None:
        self._agents = agents
        self._scans = scans
        self._asking = asking
        self._paths = paths
        self._clock = clock

    async def scan(
        self,
        slug: str,
        sources: Collection[CapabilitySource],
        *,
        subcommand: Sequence[str] = (),
        on_progress: Callable[[ScanProgress], None] | None = None,
        on_problem: Callable[[str], None] | None = None,
        ask: str | None = None,
        actor: Actor,
    ) -> tuple[CapabilityProposal, ...]:
        """Return what the sources know of a program, each capability once; nothing is stored.

        ``scan_help`` runs the program, ``scan_mcp`` starts it as a server, and ``llm_generated`` has an AI agent work:
        they are asked only when they are named. The others read files.

        Args:
            slug: The agent.
            sources: Of ``SCAN_SOURCES``.
            subcommand: The command to learn with its parts; empty for the program with the commands that it names.
            on_progress: Told before each source.
            on_problem: Told in sentences what went wrong, and of each source that said nothing when none said anything.
            ask: The slug of the AI agent for ``llm_generated``; None means the first that is turned on.
            actor: Who has it work.

        Returns:
            The proposals in the order in which the sources name the commands, the program itself first.

        Raises:
            NotFoundError: There is no such agent.
            UsageError: No source is named, one is none of a scan, or the agent names no program.
        """
        agent = await self._agents.by_slug(slug)
        chosen = [source for source in SCAN_SOURCES if source in sources]
        if not chosen or len(chosen) < len(set(sources)):
            raise UsageError(
                "what should be asked?" if not chosen else "a scan cannot ask one of these sources",
                hint="sources are: " + ", ".join(source.value for source in SCAN_SOURCES),
            )
        if not agent.binary_path:
            raise UsageError(f"{slug} runs any command and has no program of its own", hint="name another agent")
        from agentmon.services.capability_sources import CapabilitySources  # noqa: PLC0415 - the scanners take long

        found = await CapabilitySources(self._paths, self._asking).read(
            agent,
            chosen,
            environ=dict(os.environ),
            subcommand=tuple(subcommand),
            on_progress=on_progress or _ignore,
            on_problem=on_problem or _ignore,
            ask=ask,
            actor=actor,
        )
        return _proposals(agent, found)

    async def accept(self, slug: str, proposals: Collection[CapabilityProposal], *, actor: Actor) -> Agent:
        """Store the proposals, and return the agent as it is then; those that change nothing are passed over.

        Raises:
            NotFoundError: There is no such agent.
            ConflictError: An agent asks, or a capability has come since that one of them would overwrite; nothing is
                stored.
        """
        agent = await self._agents.by_slug(slug)
        wanted = [proposal.capability for proposal in proposals if proposal.change is not ProposalChange.SAME]
        if wanted:
            await self._scans.accept(agent.id, wanted, actor=actor, at=self._clock.now())
        return await self._agents.get(agent.id)


def _proposals(agent: Agent, found: Sequence[FoundCapability]) -> tuple[CapabilityProposal, ...]:
    stored = {capability.key: capability for capability in agent.capabilities}
    proposals: dict[str, CapabilityProposal] = {}
    for one in found:
        capability = one.capability
        known = stored.get(capability.key)
        if known is not None and known.source not in SCAN_SOURCES:
            capability = _beside(capability)
            known = stored.get(capability.key)
            if known is not None and known.source not in SCAN_SOURCES:
                continue
        if capability.key not in proposals:
            proposals[capability.key] = propose(
                capability,
                known,
                sources=one.sources,
                argument_sources=one.argument_sources,
                danger_reasons=one.danger_reasons,
            )
    return tuple(proposals.values())


def _beside(capability: Capability) -> Capability:
    return replace(capability, key=capability.key + FULL_SUFFIX, label=f"{capability.label} (all options)")


def _ignore(_: object) -> None:
    """Nobody wants to be told."""
