"""Agents and capabilities as rows, and agents read with all that belongs to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from agentmon.domain.ids import LOCAL_USER_ID
from agentmon.store import tables
from agentmon.store.mapping import agent_of, capability_of

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.agents import Agent, Capability


async def read_agents(
    connection: AsyncConnection, condition: ColumnElement[bool] | None, *, with_removed_capabilities: bool = False
) -> tuple[Agent, ...]:
    """Return the agents that fulfil the condition (None: all), with their capabilities, oldest first."""
    agents, capabilities = tables.agents, tables.agent_capabilities
    chosen = select(agents).order_by(agents.c.id).limit(1000)
    parts = select(capabilities).join(agents, agents.c.id == capabilities.c.agent_id).order_by(capabilities.c.id)
    if condition is not None:
        chosen, parts = chosen.where(condition), parts.where(condition)
    if not with_removed_capabilities:
        parts = parts.where(capabilities.c.removed_at.is_(None))
    by_agent: dict[str, list[Capability]] = {}
    for row in (await connection.execute(parts)).mappings():
        by_agent.setdefault(row["agent_id"], []).append(capability_of(row))
    rows = (await connection.execute(chosen)).mappings().all()
    tools = await _read_tools(connection)
    return tuple(agent_of(row, tuple(by_agent.get(row["id"], ())), tools.get(row["id"], {})) for row in rows)


async def _read_tools(connection: AsyncConnection) -> dict[str, dict[str, bool]]:
    by_agent: dict[str, dict[str, bool]] = {}
    for row in (await connection.execute(select(tables.agent_tools))).mappings():
        by_agent.setdefault(row["agent_id"], {})[row["tool_name"]] = row["enabled"]
    return by_agent


def agent_row(agent: Agent) -> dict[str, object]:
    """Return the row of ``agents``, without what the queue writes there and the times of the row."""
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
        "session_config": None if agent.session_config is None else agent.session_config.parts(),
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
            **({} if agent.isolation is None else {"isolation": agent.isolation.value}),
            **({} if agent.sandbox is None else {"sandbox": agent.sandbox.value}),
            **({} if agent.verify is None else {"verify": agent.verify}),
        },
        "edited_fields": sorted(agent.edited_fields),
        "removed_at": agent.removed_at,
    }


def capability_row(capability: Capability) -> dict[str, object]:
    """Return the row of ``agent_capabilities``, without the times of the row."""
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
        "removed_at": capability.removed_at,
    }
