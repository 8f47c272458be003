"""What presets say, brought into the registry without touching what a person changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlalchemy import insert, update

from agentmon.domain.agent_changes import judged_anew
from agentmon.domain.agents import AgentKind
from agentmon.domain.events import TaskEventType
from agentmon.store import tables
from agentmon.store.agent_rows import agent_row, capability_row, read_agents
from agentmon.store.audit import append_task_event
from agentmon.store.task_moves import SYSTEM_ACTOR

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.agents import Agent, Capability

_OF_AGENT: Final = (
    *("name", "tool_type", "binary_path", "base_args", "env_allowlist", "max_concurrent", "session_config", "role"),
    *("icon", "color", "description", "homepage"),
)
_OF_CAPABILITY: Final = (
    *("label", "description", "interaction_mode", "command_tokens", "prompt_template", "mode"),
    *("args_schema", "requires_approval", "danger_level", "timeout_s", "max_output_bytes"),
)


async def refresh_agents(connection: AsyncConnection, agents: Sequence[Agent], *, at: datetime) -> tuple[str, ...]:
    """Write into the agents of the same slugs what these say; return the slugs of those that changed.

    Args:
        connection: Of the caller's transaction.
        agents: As their presets say; ids count for new capabilities only.
        at: The time now.
    """
    by_slug = {agent.slug: agent for agent in agents}
    stored = await read_agents(connection, tables.agents.c.slug.in_(by_slug), with_removed_capabilities=True)
    changed = []
    for before in stored:
        if before.removed_at is not None or before.kind is AgentKind.CUSTOM:
            continue
        told = by_slug[before.slug]
        is_changed = await _refresh_agent(connection, before, refreshed(before, told), at=at)
        for capability in told.capabilities:
            is_changed |= await _refresh_capability(connection, before, capability, at=at)
        if is_changed:
            changed.append(before.slug)
            await append_task_event(
                connection,
                task_id=None,
                actor=SYSTEM_ACTOR,
                event_type=TaskEventType.AGENT_CHANGED,
                payload={"agent_id": before.id, "agent": before.slug, "change": "refreshed"},
                at=at,
            )
    return tuple(sorted(changed))


def refreshed(before: Agent, told: Agent) -> Agent:
    """Return the agent as it is told, but for what a person changed."""
    new = {name: getattr(told, name) for name in _OF_AGENT if name not in before.edited_fields}
    return with_own_modes(before, replace(before, **new))


def with_own_modes(before: Agent, after: Agent) -> Agent:
    """Return the agent with its permission modes in the order that a person gave them, new ones behind."""
    if "permission_modes" not in before.edited_fields or before.session_config is None or after.session_config is None:
        return after
    known = after.session_config.permission_modes
    kept = [mode for mode in before.session_config.permission_modes if mode in known]
    modes = (*kept, *(mode for mode in known if mode not in kept))
    return replace(after, session_config=replace(after.session_config, permission_modes=modes))


def is_behind(known: Agent, told: Agent) -> bool:
    """Return whether a preset says something of a registered agent that a refresh would write; cheap."""
    if known.removed_at is not None or known.kind is AgentKind.CUSTOM:
        return False
    parts = {part.key: part for part in known.capabilities}
    return agent_row(refreshed(known, told)) != agent_row(known) or any(
        part.key not in parts
        or capability_row(_refreshed_part(parts[part.key], part)) != capability_row(parts[part.key])
        for part in told.capabilities
    )


async def _refresh_agent(connection: AsyncConnection, before: Agent, after: Agent, *, at: datetime) -> bool:
    old, new = agent_row(before), agent_row(after)
    differing = {name: value for name, value in new.items() if value != old[name]}
    if differing:
        agents = tables.agents
        await connection.execute(update(agents).where(agents.c.id == before.id).values(**differing, updated_at=at))
    return bool(differing)


async def _refresh_capability(connection: AsyncConnection, agent: Agent, told: Capability, *, at: datetime) -> bool:
    rows = tables.agent_capabilities
    before = next((one for one in agent.capabilities if one.key == told.key), None)
    if before is None:
        new = capability_row(replace(told, agent_id=agent.id))
        await connection.execute(insert(rows).values(**new, created_at=at, updated_at=at))
        return True
    old, new = capability_row(before), capability_row(_refreshed_part(before, told))
    differing = {name: value for name, value in new.items() if value != old[name]}
    if differing:
        await connection.execute(update(rows).where(rows.c.id == before.id).values(**differing, updated_at=at))
    return bool(differing)


def _refreshed_part(before: Capability, told: Capability) -> Capability:
    """Return the capability as it is told, but for what a person changed; one of another source stays as it is."""
    if before.removed_at is not None or before.source is not told.source:
        return before
    new = {name: getattr(told, name) for name in _OF_CAPABILITY if name not in before.edited_fields}
    return judged_anew(before, replace(before, **new), told=told.danger_level)
