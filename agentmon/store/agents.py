"""The registry of agents and their capabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, or_, select, update
from sqlalchemy.dialects.sqlite import insert

from agentmon.domain.agents import DiscoveryMethod
from agentmon.domain.events import TaskEventType
from agentmon.domain.ids import LOCAL_USER_ID
from agentmon.store import tables
from agentmon.store.agent_refresh import refresh_agents
from agentmon.store.agent_rows import agent_row, capability_row, read_agents
from agentmon.store.audit import append_task_event

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.agents import Agent
    from agentmon.domain.events import Actor
    from agentmon.domain.ids import AgentId, WorkspaceId
    from agentmon.store.database import Database


class AgentRepository:
    """Reads agents with their capabilities, and writes what presets and scans say of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, *, active_only: bool, workspace_id: WorkspaceId | None = None) -> tuple[Agent, ...]:
        """Return agents in the order in which they were added.

        Args:
            active_only: Those that can be given work; otherwise all that there ever were, also removed ones.
            workspace_id: With ``active_only`` also the agents of this workspace's own file.
        """
        agents = tables.agents
        condition = agents.c.is_active & agents.c.removed_at.is_(None) & _reaches(workspace_id)
        async with self._database.reading() as connection:
            return await read_agents(connection, condition if active_only else None)

    async def ever(self) -> tuple[Agent, ...]:
        """Return all agents that there ever were, with removed capabilities: what a preset may add to, or may not."""
        async with self._database.reading() as connection:
            return await read_agents(connection, None, with_removed_capabilities=True)

    async def registered(self, *, workspace_id: WorkspaceId | None = None) -> tuple[Agent, ...]:
        """Return the agents that are not removed, on and off: those of all workspaces, and those of this one."""
        condition = tables.agents.c.removed_at.is_(None) & _reaches(workspace_id)
        async with self._database.reading() as connection:
            return await read_agents(connection, condition)

    async def find(self, agent_id: AgentId) -> Agent | None:
        """Return the agent of this id."""
        async with self._database.reading() as connection:
            found = await read_agents(connection, tables.agents.c.id == agent_id)
        return found[0] if found else None

    async def find_by_slug(self, slug: str) -> Agent | None:
        """Return the agent that people call by this slug."""
        async with self._database.reading() as connection:
            found = await read_agents(connection, tables.agents.c.slug == slug)
        return found[0] if found else None

    async def add_missing(self, agents: Sequence[Agent], *, at: datetime) -> None:
        """Add the agents whose slug is not there yet, with their capabilities; others stay as they are."""
        stamps = {"created_at": at, "updated_at": at}
        async with self._database.writing() as connection:
            await connection.execute(
                insert(tables.users).values(id=LOCAL_USER_ID, name="local", **stamps).on_conflict_do_nothing()
            )
            known = set((await connection.execute(select(tables.agents.c.slug))).scalars())
            added = [agent for agent in agents if agent.slug not in known]
            if not added:
                return
            await connection.execute(insert(tables.agents), [agent_row(agent) | stamps for agent in added])
            capabilities = [capability for agent in added for capability in agent.capabilities]
            if capabilities:
                await connection.execute(
                    insert(tables.agent_capabilities),
                    [capability_row(capability) | stamps for capability in capabilities],
                )

    async def refresh(self, agents: Sequence[Agent], *, at: datetime) -> tuple[str, ...]:
        """Bring what presets say into the agents of the same slugs, but for what a person changed.

        Agents that a person made or removed stay as they are, and so do removed capabilities. New capabilities come
        in behind the others; those that a preset no longer has stay.

        Returns:
            The slugs of the agents that are different now.
        """
        async with self._database.writing() as connection:
            return await refresh_agents(connection, agents, at=at)

    async def mark_missing(self, agent_ids: Sequence[AgentId], *, at: datetime) -> tuple[str, ...]:
        """Note that the programs of these agents are gone; return the slugs of those that were there until now."""
        agents = tables.agents
        async with self._database.writing() as connection:
            gone = await connection.execute(
                update(agents)
                .where(agents.c.id.in_(agent_ids), agents.c.missing_since.is_(None))
                .values(missing_since=at, updated_at=at)
                .returning(agents.c.slug)
            )
            return tuple(sorted(gone.scalars()))

    async def mark_found(self, agent_ids: Sequence[AgentId], *, at: datetime) -> tuple[str, ...]:
        """Note that the programs of these agents are there; return the slugs of those that were gone until now."""
        agents = tables.agents
        async with self._database.writing() as connection:
            back = await connection.execute(
                update(agents)
                .where(agents.c.id.in_(agent_ids), agents.c.missing_since.is_not(None))
                .values(missing_since=None, updated_at=at)
                .returning(agents.c.slug)
            )
            return tuple(sorted(back.scalars()))

    async def write_facts(
        self,
        agent_id: AgentId,
        *,
        version: str | None,
        package_name: str | None,
        package_section: str | None,
        at: datetime,
    ) -> None:
        """Write what a scan learned of an agent's program, and that it was looked at now."""
        agents = tables.agents
        facts = {"version": version, "package_name": package_name, "package_section": package_section}
        async with self._database.writing() as connection:
            await connection.execute(
                update(agents).where(agents.c.id == agent_id).values(**facts, last_scanned_at=at, updated_at=at)
            )

    async def activate(self, agent_ids: Sequence[AgentId], *, at: datetime) -> None:
        """Let agents be used whose program was found on the PATH."""
        agents = tables.agents
        async with self._database.writing() as connection:
            await connection.execute(
                update(agents)
                .where(agents.c.id.in_(agent_ids))
                .values(is_active=True, discovery_method=DiscoveryMethod.PATH_SCAN, updated_at=at)
            )

    async def set_tools(
        self, agent_id: AgentId, tools: Mapping[str, bool | None], *, actor: Actor, at: datetime
    ) -> None:
        """Allow (True) or take away (False) some of the agent's own tools; None leaves a tool as the agent has it."""
        async with self._database.writing() as connection:
            await set_tools(connection, agent_id, tools, actor=actor, at=at)


async def set_tools(
    connection: AsyncConnection, agent_id: AgentId, tools: Mapping[str, bool | None], *, actor: Actor, at: datetime
) -> None:
    """Allow or take away tools inside the caller's transaction; see ``AgentRepository.set_tools``."""
    rows = tables.agent_tools
    slug = (await connection.execute(select(tables.agents.c.slug).where(tables.agents.c.id == agent_id))).scalar_one()
    for name, enabled in tools.items():
        await connection.execute(delete(rows).where(rows.c.agent_id == agent_id, rows.c.tool_name == name))
        if enabled is not None:
            await connection.execute(
                insert(rows).values(agent_id=agent_id, tool_name=name, enabled=enabled, created_at=at, updated_at=at)
            )
    await append_task_event(
        connection,
        task_id=None,
        actor=actor,
        event_type=TaskEventType.AGENT_CHANGED,
        payload={"agent_id": agent_id, "agent": slug, "tools": dict(tools)},
        at=at,
    )


def _reaches(workspace_id: WorkspaceId | None) -> ColumnElement[bool]:
    of_all = tables.agents.c.workspace_id.is_(None)
    return of_all if workspace_id is None else or_(of_all, tables.agents.c.workspace_id == workspace_id)
