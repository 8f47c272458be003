"""The registry of agents and their capabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, select, update
from sqlalchemy.dialects.sqlite import insert

from agentmon.domain.agents import DiscoveryMethod
from agentmon.domain.events import TaskEventType
from agentmon.domain.ids import LOCAL_USER_ID
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.mapping import agent_of, capability_of
from agentmon.store.session_configs import session_config_row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.agents import Agent, Capability
    from agentmon.domain.events import Actor
    from agentmon.domain.ids import AgentId
    from agentmon.store.database import Database


class AgentRepository:
    """Reads agents with their capabilities, and adds presets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, *, active_only: bool) -> tuple[Agent, ...]:
        """Return the agents in the order in which they were added."""
        async with self._database.reading() as connection:
            return await read_agents(connection, tables.agents.c.is_active if active_only else None)

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
            await connection.execute(insert(tables.agents), [_agent_row(agent) | stamps for agent in added])
            capabilities = [capability for agent in added for capability in agent.capabilities]
            if capabilities:
                await connection.execute(
                    insert(tables.agent_capabilities),
                    [_capability_row(capability) | stamps for capability in capabilities],
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
        rows = tables.agent_tools
        async with self._database.writing() as connection:
            slug = (
                await connection.execute(select(tables.agents.c.slug).where(tables.agents.c.id == agent_id))
            ).scalar_one()
            for name, enabled in tools.items():
                await connection.execute(delete(rows).where(rows.c.agent_id == agent_id, rows.c.tool_name == name))
                if enabled is not None:
                    await connection.execute(
                        insert(rows).values(
                            agent_id=agent_id, tool_name=name, enabled=enabled, created_at=at, updated_at=at
                        )
                    )
            await append_task_event(
                connection,
                task_id=None,
                actor=actor,
                event_type=TaskEventType.AGENT_CHANGED,
                payload={"agent_id": agent_id, "agent": slug, "tools": dict(tools)},
                at=at,
            )

    async def set_max_concurrent(self, agent_id: AgentId, max_concurrent: int, *, actor: Actor, at: datetime) -> None:
        """Write how many executions of the agent may run at one time; 0 means no limit."""
        agents = tables.agents
        async with self._database.writing() as connection:
            row = (await connection.execute(select(agents).where(agents.c.id == agent_id))).mappings().one()
            if row["max_concurrent"] == max_concurrent:
                return
            await connection.execute(
                update(agents).where(agents.c.id == agent_id).values(max_concurrent=max_concurrent, updated_at=at)
            )
            await append_task_event(
                connection,
                task_id=None,
                actor=actor,
                event_type=TaskEventType.AGENT_CHANGED,
                payload={
                    "agent_id": agent_id,
                    "agent": row["slug"],
                    "max_concurrent": {"from": row["max_concurrent"], "to": max_concurrent},
                },
                at=at,
            )


async def read_agents(connection: AsyncConnection, condition: ColumnElement[bool] | None) -> tuple[Agent, ...]:
    """Return the agents that fulfil the condition (None: all), with their capabilities, oldest first."""
    agents, capabilities = tables.agents, tables.agent_capabilities
    chosen = select(agents).order_by(agents.c.id).limit(1000)
    parts = select(capabilities).join(agents, agents.c.id == capabilities.c.agent_id).order_by(capabilities.c.id)
    if condition is not None:
        chosen, parts = chosen.where(condition), parts.where(condition)
    by_agent: dict[str, tuple[Capability, ...]] = {}
    for row in (await connection.execute(parts)).mappings():
        by_agent[row["agent_id"]] = (*by_agent.get(row["agent_id"], ()), capability_of(row))
    rows = (await connection.execute(chosen)).mappings().all()
    tools = await _read_tools(connection)
    return tuple(agent_of(row, by_agent.get(row["id"], ()), tools.get(row["id"], {})) for row in rows)


async def _read_tools(connection: AsyncConnection) -> dict[str, dict[str, bool]]:
    by_agent: dict[str, dict[str, bool]] = {}
    for row in (await connection.execute(select(tables.agent_tools))).mappings():
        by_agent.setdefault(row["agent_id"], {})[row["tool_name"]] = row["enabled"]
    return by_agent


def _agent_row(agent: Agent) -> dict[str, object]:
    return {
        "id": agent.id,
        "owner_id": LOCAL_USER_ID,
        "workspace_id": agent.workspace_id,
        "name": agent.name,
        "slug": agent.slug,
        "kind": agent.kind,
        "tool_type": agent.tool_type,
        "binary_path": agent.binary_path,
        "base_args": list(agent.base_args),
        "working_dir": agent.working_dir,
        "env_allowlist": list(agent.env_allowlist),
        "is_active": agent.is_active,
        "max_concurrent": agent.max_concurrent,
        "discovery_method": agent.discovery_method,
        "version": agent.version,
        "package_name": agent.package_name,
        "package_section": agent.package_section,
        "last_scanned_at": agent.last_scanned_at,
        "missing_since": agent.missing_since,
        "mcp_enabled": agent.mcp_enabled,
        "session_config": None if agent.session_config is None else session_config_row(agent.session_config),
        "role": agent.role,
        "model": agent.model,
        "model_tier": agent.model_tier,
        "temperature": agent.temperature,
        "instructions": agent.instructions,
        "metadata": {
            "icon": agent.icon,
            "color": agent.color,
            "description": agent.description,
            "homepage": agent.homepage,
        },
        "edited_fields": sorted(agent.edited_fields),
    }


def _capability_row(capability: Capability) -> dict[str, object]:
    return {
        "id": capability.id,
        "agent_id": capability.agent_id,
        "key": capability.key,
        "label": capability.label,
        "description": capability.description,
        "source": capability.source,
        "interaction_mode": capability.interaction_mode,
        "command_tokens": list(capability.command_tokens),
        "prompt_template": capability.prompt_template,
        "mode": capability.mode,
        "args_schema": dict(capability.args_schema),
        "requires_approval": capability.requires_approval,
        "is_enabled": capability.is_enabled,
        "danger_level": int(capability.danger_level),
        "timeout_s": capability.timeout_s,
        "max_output_bytes": capability.max_output_bytes,
        "edited_fields": sorted(capability.edited_fields),
    }
