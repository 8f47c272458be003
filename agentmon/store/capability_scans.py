"""What a person took over from a scan: capabilities come or change in one transaction, with a line of the trail."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import insert, update

from agentmon.domain.agents import CapabilitySource
from agentmon.domain.capability_proposals import SCAN_SOURCES, merge_into
from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.events import TaskEventType
from agentmon.store import tables
from agentmon.store.agent_rows import capability_row, read_agents
from agentmon.store.audit import append_task_event

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.agents import Capability
    from agentmon.domain.events import Actor
    from agentmon.domain.ids import AgentId
    from agentmon.store.database import Database


class CapabilityScanRepository:
    """Writes capabilities that a scan proposed and a person accepted."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def accept(
        self, agent_id: AgentId, capabilities: Sequence[Capability], *, actor: Actor, at: datetime
    ) -> tuple[str, ...]:
        """Add or change the capabilities, and return the keys of those that are not as they were.

        What a person has edited stays, also when that was after the scan. One that was taken away comes back.

        Raises:
            NotFoundError: The agent is gone.
            ConflictError: A capability of one of the keys has come since that no scan made; nothing is written.
        """
        written: list[str] = []
        async with self._database.writing() as connection:
            found = await read_agents(connection, tables.agents.c.id == agent_id, with_removed_capabilities=True)
            if not found:
                raise NotFoundError("this agent is no longer registered")
            agent = found[0]
            known = {capability.key: capability for capability in agent.capabilities}
            for capability in capabilities:
                stored = known.get(capability.key)
                if stored is not None and stored.removed_at is None and stored.source not in SCAN_SOURCES:
                    raise ConflictError(
                        f"{agent.slug} has a capability {capability.key} already that no scan made",
                        hint="scan again, and look at what is proposed then",
                    )
                if await _write(connection, capability, stored, at=at):
                    written.append(capability.key)
            if not written:
                return ()
            is_server = any(capability.source is CapabilitySource.SCAN_MCP for capability in capabilities)
            if is_server and not agent.mcp_enabled:
                await connection.execute(
                    update(tables.agents).where(tables.agents.c.id == agent_id).values(mcp_enabled=True, updated_at=at)
                )
            await append_task_event(
                connection,
                task_id=None,
                actor=actor,
                event_type=TaskEventType.AGENT_CHANGED,
                payload={"agent_id": agent.id, "agent": agent.slug, "change": "learned", "capabilities": written},
                at=at,
            )
        return tuple(written)


async def _write(
    connection: AsyncConnection, capability: Capability, stored: Capability | None, *, at: datetime
) -> bool:
    """Write one capability, and return whether anything of it was not there."""
    rows = tables.agent_capabilities
    if stored is None:
        row = capability_row(capability) | {"created_at": at, "updated_at": at}
        await connection.execute(insert(rows).values(**row))
        return True
    if stored.removed_at is None:
        wanted = merge_into(stored, capability)
    else:
        wanted = replace(capability, id=stored.id, removed_at=None)
    if wanted == stored:
        return False
    row = {name: value for name, value in capability_row(wanted).items() if name not in {"id", "agent_id"}}
    await connection.execute(update(rows).where(rows.c.id == stored.id).values(**row, updated_at=at))
    return True
