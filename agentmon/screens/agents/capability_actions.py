"""What can be done with the capabilities of an agent from its page; each change leaves what takes it back."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING

from agentmon.domain.agent_changes import CapabilityChanges
from agentmon.screens.agents.agent_actions import AgentChange

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.agents import Agent, Capability
    from agentmon.screens.agents.agent_actions import AgentUndo
    from agentmon.screens.frame import ServiceScreen


async def change(
    screen: ServiceScreen[None], agent: Agent, capability: Capability | None, undo: AgentUndo
) -> str | None:
    """Show all that can be changed of a capability, or make one; return the key of a new one. Must run in a worker."""
    from agentmon.screens.agents.capability_editor import CapabilityEditor  # noqa: PLC0415 - not needed before

    after = await screen.ask(CapabilityEditor(await screen.services(), agent, capability))
    if after is None:
        return None
    screen.request_refresh(at_once=True)
    if capability is not None:
        undo.push(
            AgentChange(
                words=f"the edit of {agent.slug}.{capability.key}",
                inverses=[partial(_edit_back, slug=agent.slug, before=capability, after=after)],
                slug=agent.slug,
            )
        )
        return None
    known = {one.key for one in agent.capabilities}
    made = next((one.key for one in after.capabilities if one.key not in known), None)
    if made is not None:
        undo.push(
            AgentChange(f"the new {agent.slug}.{made}", [partial(_remove, slug=agent.slug, key=made)], agent.slug)
        )
    return made


async def turn_capability(screen: ServiceScreen[None], agent: Agent, capability: Capability, undo: AgentUndo) -> None:
    """Turn a capability on or off. Must run in a worker."""
    services = await screen.services()
    is_on = not capability.is_enabled
    async with undo.order:
        await _set_enabled(services, slug=agent.slug, key=capability.key, is_enabled=is_on)
    word = "on" if is_on else "off"
    undo.push(
        AgentChange(
            words=f"the turning {word} of {agent.slug}.{capability.key}",
            inverses=[partial(_set_enabled, slug=agent.slug, key=capability.key, is_enabled=not is_on)],
            slug=agent.slug,
        )
    )
    screen.request_refresh(at_once=True)


async def remove_capability(screen: ServiceScreen[None], agent: Agent, capability: Capability, undo: AgentUndo) -> None:
    """Take a capability away; what ran with it stays. Must run in a worker."""
    services = await screen.services()
    async with undo.order:
        await _remove(services, slug=agent.slug, key=capability.key)
    undo.push(
        AgentChange(
            words=f"the removal of {agent.slug}.{capability.key}",
            inverses=[partial(_restore, slug=agent.slug, key=capability.key)],
            slug=agent.slug,
        )
    )
    screen.notify(f"{agent.slug}.{capability.key} removed; ctrl+z brings it back")
    screen.request_refresh(at_once=True)


async def _edit_back(services: Services, *, slug: str, before: Capability, after: Agent) -> None:
    now = next((one for one in after.capabilities if one.id == before.id), before)
    old = {
        field.name: getattr(before, field.name)
        for field in fields(CapabilityChanges)
        if getattr(before, field.name) != getattr(now, field.name)
    }
    if old:
        await services.agents.edit_capability(slug, now.key, CapabilityChanges(**old), actor=services.actor)


async def _set_enabled(services: Services, *, slug: str, key: str, is_enabled: bool) -> None:
    await services.agents.edit_capability(slug, key, CapabilityChanges(is_enabled=is_enabled), actor=services.actor)


async def _remove(services: Services, *, slug: str, key: str) -> None:
    await services.agents.remove_capability(slug, key, actor=services.actor)


async def _restore(services: Services, *, slug: str, key: str) -> None:
    await services.agents.restore_capability(slug, key, actor=services.actor)
