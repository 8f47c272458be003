"""What a person changes of the capabilities of agents."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

from agentmon.domain.ids import CapabilityId, new_id
from agentmon.services.agent_checks import check_capability
from agentmon.services.agent_reading import AgentReading

if TYPE_CHECKING:
    from agentmon.domain.agent_changes import CapabilityChanges
    from agentmon.domain.agents import Agent, Capability
    from agentmon.domain.events import Actor


class CapabilityEditing(AgentReading):
    """Changes capabilities; it takes effect with the next run that is queued, and danger with the next start."""

    async def edit_capability(self, slug: str, key: str, changes: CapabilityChanges, *, actor: Actor) -> Agent:
        """Change fields of a capability, which are the person's from then on: no preset and no scan writes them again.

        Raises:
            NotFoundError: There is no such agent or capability.
            FieldError: A value cannot be used; the error names its field.
            ConflictError: The actor is an agent.
        """
        agent = await self.by_slug(slug)
        before = agent.get_capability(key)
        check_capability(agent, changes.applied(before), changes.named())
        await self._edits.edit_capability(agent.id, key, changes, actor=actor, at=self._clock.now())
        return await self.get(agent.id)

    async def add_capability(self, slug: str, capability: Capability, *, actor: Actor) -> Agent:
        """Add a capability to an agent; its ids do not count.

        Raises:
            NotFoundError: There is no such agent.
            FieldError: A value cannot be used; the error names its field.
            ConflictError: The agent has one of this key, or the actor is an agent.
        """
        agent = await self.by_slug(slug)
        added = replace(capability, id=CapabilityId(new_id()), agent_id=agent.id, removed_at=None)
        check_capability(agent, added, {field.name for field in fields(added)})
        await self._edits.add_capability(added, actor=actor, at=self._clock.now())
        return await self.get(agent.id)

    async def remove_capability(self, slug: str, key: str, *, actor: Actor) -> Agent:
        """Take a capability away; what ran with it stays readable, and ``restore_capability`` brings it back.

        Raises:
            NotFoundError: There is no such agent or capability.
            ConflictError: The actor is an agent.
        """
        return await self._set_removed(slug, key, is_removed=True, actor=actor)

    async def restore_capability(self, slug: str, key: str, *, actor: Actor) -> Agent:
        """Bring back a capability that was taken away.

        Raises:
            NotFoundError: There is no such agent, or nothing to bring back.
            ConflictError: The actor is an agent.
        """
        return await self._set_removed(slug, key, is_removed=False, actor=actor)

    async def _set_removed(self, slug: str, key: str, *, is_removed: bool, actor: Actor) -> Agent:
        agent = await self.by_slug(slug)
        await self._edits.set_capability_removed(
            agent.id, key, is_removed=is_removed, actor=actor, at=self._clock.now()
        )
        return await self.get(agent.id)
