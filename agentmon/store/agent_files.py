"""Which file of agents of a workspace is trusted, and the agents that came from it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import delete, insert, select, update

from agentmon.domain.agent_changes import judged_anew
from agentmon.domain.agent_files import TrustedFile
from agentmon.domain.agents import Agent, Capability
from agentmon.domain.errors import ConflictError
from agentmon.domain.events import TaskEventType
from agentmon.domain.ids import LOCAL_USER_ID, WorkspaceId
from agentmon.store import tables
from agentmon.store.agent_refresh import with_own_modes
from agentmon.store.agent_rows import agent_row, capability_row, read_agents
from agentmon.store.audit import append_task_event

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor
    from agentmon.store.database import Database

_Registered = TypeVar("_Registered", Agent, Capability)


class AgentFileRepository:
    """Keeps the files that a person has trusted; what they say and what is registered change in one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, workspace_id: WorkspaceId) -> TrustedFile | None:
        """Return the file of this workspace that is trusted; None when none is."""
        files = tables.trusted_agent_files
        async with self._database.reading() as connection:
            chosen = select(files).where(files.c.workspace_id == workspace_id)
            row = (await connection.execute(chosen)).mappings().first()
        if row is None:
            return None
        return TrustedFile(
            workspace_id=WorkspaceId(row["workspace_id"]),
            path=row["path"],
            digest=row["digest"],
            trusted_at=row["updated_at"],
        )

    async def trust(
        self,
        workspace_id: WorkspaceId,
        *,
        path: str,
        digest: str,
        agents: Sequence[Agent],
        actor: Actor,
        at: datetime,
    ) -> None:
        """Note that the file is trusted, and make the workspace's agents what it says, but for what a person changed.

        Those that it names no more are removed; they keep what they have done.

        Raises:
            ConflictError: The slug of one belongs to another agent.
        """
        told = [replace(agent, workspace_id=workspace_id) for agent in agents]
        async with self._database.writing() as connection:
            stored = {agent.slug: agent for agent in await _stored(connection, workspace_id, told)}
            for agent in told:
                known = stored.get(agent.slug)
                if known is not None and known.workspace_id != workspace_id:
                    raise ConflictError(f"there is another agent {agent.slug}", hint="call it otherwise in the file")
                await _write(connection, known, agent, at=at)
            for gone in stored.keys() - {agent.slug for agent in told}:
                await _set_removed(connection, stored[gone], at)
            files = tables.trusted_agent_files
            await connection.execute(delete(files).where(files.c.workspace_id == workspace_id))
            await connection.execute(
                insert(files).values(
                    workspace_id=workspace_id,
                    path=path,
                    digest=digest,
                    trusted_by=LOCAL_USER_ID,
                    created_at=at,
                    updated_at=at,
                )
            )
            payload = {"change": "trusted", "agent": _names(told), "path": path, "digest": digest}
            await _tell(connection, payload, actor=actor, at=at)

    async def untrust(self, workspace_id: WorkspaceId, *, actor: Actor, at: datetime) -> None:
        """Trust the file no more and remove its agents; they keep what they have done.

        Raises:
            ConflictError: None is trusted.
        """
        files = tables.trusted_agent_files
        async with self._database.writing() as connection:
            gone = await connection.execute(
                delete(files).where(files.c.workspace_id == workspace_id).returning(files.c.path)
            )
            path = gone.scalars().first()
            if path is None:
                raise ConflictError("no file of agents is trusted here")
            agents = await _stored(connection, workspace_id, ())
            for agent in agents:
                await _set_removed(connection, agent, at)
            payload = {"change": "untrusted", "agent": _names(agents), "path": path}
            await _tell(connection, payload, actor=actor, at=at)


async def _stored(connection: AsyncConnection, workspace_id: WorkspaceId, told: Sequence[Agent]) -> tuple[Agent, ...]:
    agents = tables.agents
    condition = (agents.c.workspace_id == workspace_id) | agents.c.slug.in_([agent.slug for agent in told])
    return await read_agents(connection, condition, with_removed_capabilities=True)


async def _write(connection: AsyncConnection, known: Agent | None, told: Agent, *, at: datetime) -> None:
    agents, rows, tools = tables.agents, tables.agent_capabilities, tables.agent_tools
    stamps = {"created_at": at, "updated_at": at}
    if known is None:
        await connection.execute(insert(agents).values(**agent_row(told), **stamps))
        after = told
    else:
        after = with_own_modes(known, _kept(known, told))
        after = replace(after, version=known.version, missing_since=known.missing_since)
        row = agent_row(after)
        await connection.execute(update(agents).where(agents.c.id == known.id).values(**row, updated_at=at))
    stored = {} if known is None else {capability.key: capability for capability in known.capabilities}
    for capability in told.capabilities:
        before = stored.pop(capability.key, None)
        kept = _kept(before, capability)
        if before is not None and known is not None:
            is_other = (known.binary_path, known.base_args) != (after.binary_path, after.base_args)
            kept = judged_anew(before, kept, told=capability.danger_level, is_other_program=is_other)
        new = capability_row(replace(kept, agent_id=after.id))
        if before is None:
            await connection.execute(insert(rows).values(**new, **stamps))
        else:
            await connection.execute(update(rows).where(rows.c.id == before.id).values(**new, updated_at=at))
    for gone in stored.values():
        await connection.execute(update(rows).where(rows.c.id == gone.id).values(removed_at=at, updated_at=at))
    await connection.execute(delete(tools).where(tools.c.agent_id == after.id))
    for name, is_enabled in told.tools.items():
        await connection.execute(insert(tools).values(agent_id=after.id, tool_name=name, enabled=is_enabled, **stamps))


def _kept(known: _Registered | None, told: _Registered) -> _Registered:
    """Return what the file says, under the id that is there and with what a person changed."""
    if known is None:
        return told
    names = {field.name for field in fields(known)}
    kept = {name: getattr(known, name) for name in known.edited_fields if name in names}
    return replace(told, id=known.id, edited_fields=known.edited_fields, removed_at=None, **kept)


async def _set_removed(connection: AsyncConnection, agent: Agent, at: datetime) -> None:
    agents = tables.agents
    await connection.execute(update(agents).where(agents.c.id == agent.id).values(removed_at=at, updated_at=at))


def _names(agents: Sequence[Agent]) -> str:
    return ", ".join(agent.slug for agent in agents)


async def _tell(connection: AsyncConnection, payload: Mapping[str, object], *, actor: Actor, at: datetime) -> None:
    await append_task_event(
        connection, task_id=None, actor=actor, event_type=TaskEventType.AGENT_CHANGED, payload=payload, at=at
    )
