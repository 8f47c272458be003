"""What a person changes of agents and capabilities: the rows, what is theirs from then on, and the audit trail."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from sqlalchemy import insert, select, update

from agentmon.domain.agent_changes import AgentChanges, CapabilityChanges
from agentmon.domain.agents import Agent, Capability
from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.redaction import redact
from agentmon.store import tables
from agentmon.store.agent_rows import agent_row, capability_row, read_agents
from agentmon.store.agents import set_tools
from agentmon.store.audit import append_task_event

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor
    from agentmon.domain.ids import AgentId
    from agentmon.store.database import Database

_Edited = TypeVar("_Edited", Agent, Capability)

_TOLD_MAX_CHARACTERS: Final = 2000
"""Of a text in the audit trail; a prompt or instructions may be longer."""
_MOST_NAMED: Final = 5
_OPEN: Final = [status.value for status in ExecutionStatus if status.is_open]
_IN_METADATA: Final = frozenset({"icon", "color", "description", "homepage", "isolation", "sandbox", "verify"})


class AgentTaking(NamedTuple):
    """An agent that comes from elsewhere, with what that means for the one that is here."""

    agent: Agent
    known: Agent | None = None
    """Who is here under its name; None when it is new, and nothing else counts."""
    changes: AgentChanges = AgentChanges()
    added: Sequence[Capability] = ()
    edited: Mapping[str, CapabilityChanges] = MappingProxyType({})
    """By the key of the capability."""
    tools: Mapping[str, bool | None] = MappingProxyType({})


class AgentEditRepository:
    """Writes what a person changes; each change is one transaction with one line in the audit trail."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def edit(self, agent_id: AgentId, changes: AgentChanges, *, actor: Actor, at: datetime) -> None:
        """Write the fields that are named, and note that they are the person's, also with the values that they had.

        Nothing is written when all of them are as they were, and the person's already.
        """
        async with self._database.writing() as connection:
            await _edit(connection, agent_id, changes, actor=actor, at=at)

    async def edit_capability(
        self, agent_id: AgentId, key: str, changes: CapabilityChanges, *, actor: Actor, at: datetime
    ) -> None:
        """Write the fields of a capability that are named, and note that they are the person's; see ``edit``.

        Raises:
            NotFoundError: The agent has no capability of this key any more.
        """
        async with self._database.writing() as connection:
            await _edit_capability(connection, agent_id, key, changes, actor=actor, at=at)

    async def add_capability(self, capability: Capability, *, actor: Actor, at: datetime) -> None:
        """Add a capability; one of the same key that was taken away becomes this one.

        Raises:
            ConflictError: The agent has one of this key.
        """
        async with self._database.writing() as connection:
            await _add_capability(connection, capability, actor=actor, at=at)

    async def set_capability_removed(
        self, agent_id: AgentId, key: str, *, is_removed: bool, actor: Actor, at: datetime
    ) -> None:
        """Take a capability away, or bring it back; its row stays for what ran with it.

        Raises:
            NotFoundError: The agent has, or had, none of this key.
        """
        async with self._database.writing() as connection:
            agent = await _read_agent(connection, agent_id)
            known = next((one for one in agent.capabilities if one.key == key), None)
            if known is None or (known.removed_at is None) is not is_removed:
                raise NotFoundError(f"{agent.slug} has no capability {key}" + ("" if is_removed else " to bring back"))
            await _write_capability(connection, replace(known, removed_at=at if is_removed else None), at=at)
            told = {"capability": key, "change": "removed" if is_removed else "restored"}
            await _tell(connection, agent, told, actor=actor, at=at)

    async def set_removed(self, agent_id: AgentId, *, is_removed: bool, actor: Actor, at: datetime) -> None:
        """Take an agent out of the registry, or bring it back; its row and its history stay.

        Raises:
            ConflictError: Executions of it wait or run.
        """
        async with self._database.writing() as connection:
            await _set_removed(connection, agent_id, is_removed=is_removed, actor=actor, at=at)

    async def add(self, agent: Agent, *, change: str, actor: Actor, at: datetime) -> None:
        """Add an agent with its capabilities and tools.

        Args:
            agent: With new ids.
            change: How it came, for the audit trail, such as ``added``.
            actor: Who adds it.
            at: When.

        Raises:
            ConflictError: There is one of its slug, if only a removed one.
        """
        async with self._database.writing() as connection:
            await _add(connection, agent, change=change, actor=actor, at=at)

    async def bring_back(self, agent_id: AgentId, *, actor: Actor, at: datetime) -> None:
        """Restore an agent that was removed, and let it be given work."""
        async with self._database.writing() as connection:
            if (await _read_agent(connection, agent_id)).removed_at is not None:
                await _set_removed(connection, agent_id, is_removed=False, actor=actor, at=at)
            await _edit(connection, agent_id, AgentChanges(is_active=True), actor=actor, at=at)

    async def take_in(self, takings: Sequence[AgentTaking], *, actor: Actor, at: datetime) -> None:
        """Write what comes from elsewhere: all of it, or nothing.

        Raises:
            ConflictError: An agent or a capability that is new has come meanwhile.
        """
        async with self._database.writing() as connection:
            for taking in takings:
                await _take_in(connection, taking, actor=actor, at=at)


async def _edit(
    connection: AsyncConnection, agent_id: AgentId, changes: AgentChanges, *, actor: Actor, at: datetime
) -> None:
    before = await _read_agent(connection, agent_id)
    told = _differences(before, changes.named(), changes.applied(before))
    if not told:
        return
    after = replace(changes.applied(before), edited_fields=_edited(before, told))
    await _write_agent(connection, after, at=at)
    await _tell(connection, before, told, actor=actor, at=at)


async def _edit_capability(
    connection: AsyncConnection, agent_id: AgentId, key: str, changes: CapabilityChanges, *, actor: Actor, at: datetime
) -> None:
    agent = await _read_agent(connection, agent_id)
    before = _capability(agent, key)
    told = _differences(before, changes.named(), changes.applied(before))
    if not told:
        return
    after = replace(changes.applied(before), edited_fields=_edited(before, told))
    await _write_capability(connection, after, at=at)
    await _tell(connection, agent, {"capability": key, **told}, actor=actor, at=at)


async def _add_capability(connection: AsyncConnection, capability: Capability, *, actor: Actor, at: datetime) -> None:
    agent = await _read_agent(connection, capability.agent_id)
    known = next((one for one in agent.capabilities if one.key == capability.key), None)
    if known is not None and known.removed_at is None:
        raise ConflictError(
            f"{agent.slug} has a capability {capability.key} already", hint="edit it, or choose another key"
        )
    if known is None:
        row = capability_row(capability) | {"created_at": at, "updated_at": at}
        await connection.execute(insert(tables.agent_capabilities).values(**row))
    else:
        await _write_capability(connection, replace(capability, id=known.id), at=at)
    told = {"capability": capability.key, "change": "added"}
    await _tell(connection, agent, told, actor=actor, at=at)


async def _set_removed(
    connection: AsyncConnection, agent_id: AgentId, *, is_removed: bool, actor: Actor, at: datetime
) -> None:
    agent = await _read_agent(connection, agent_id)
    if is_removed:
        await _require_idle(connection, agent)
    await _write_agent(connection, replace(agent, removed_at=at if is_removed else None), at=at)
    told = {"change": "removed" if is_removed else "restored"}
    await _tell(connection, agent, told, actor=actor, at=at)


async def _add(connection: AsyncConnection, agent: Agent, *, change: str, actor: Actor, at: datetime) -> None:
    stamps = {"created_at": at, "updated_at": at}
    agents = tables.agents
    same = select(agents.c.removed_at).where(agents.c.slug == agent.slug)
    known = (await connection.execute(same)).mappings().first()
    if known is not None:
        raise _taken(agent.slug, is_removed=known["removed_at"] is not None)
    await connection.execute(insert(agents).values(**agent_row(agent), **stamps))
    rows = [capability_row(capability) | stamps for capability in agent.capabilities]
    if rows:
        await connection.execute(insert(tables.agent_capabilities), rows)
    tools = [{"agent_id": agent.id, "tool_name": name, "enabled": on} for name, on in agent.tools.items()]
    if tools:
        await connection.execute(insert(tables.agent_tools), [tool | stamps for tool in tools])
    await _tell(connection, agent, {"change": change}, actor=actor, at=at)


async def _take_in(connection: AsyncConnection, taking: AgentTaking, *, actor: Actor, at: datetime) -> None:
    known = taking.known
    if known is None:
        await _add(connection, taking.agent, change="imported", actor=actor, at=at)
        return
    if known.removed_at is not None:
        await _set_removed(connection, known.id, is_removed=False, actor=actor, at=at)
    await _edit(connection, known.id, taking.changes, actor=actor, at=at)
    for capability in taking.added:
        await _add_capability(connection, capability, actor=actor, at=at)
    for key, changes in taking.edited.items():
        await _edit_capability(connection, known.id, key, changes, actor=actor, at=at)
    if taking.tools:
        await set_tools(connection, known.id, taking.tools, actor=actor, at=at)


def _taken(slug: str, *, is_removed: bool) -> ConflictError:
    if is_removed:
        return ConflictError(
            f"an agent {slug} was removed, and its name stays with what it has done",
            hint=f"`agentmon agents restore {slug}` brings it back; or choose another name",
        )
    return ConflictError(f"there is an agent {slug} already", hint="choose another name: lower-case, such as my-agent")


async def _require_idle(connection: AsyncConnection, agent: Agent) -> None:
    executions, tasks = tables.executions, tables.tasks
    waiting = (
        select(tasks.c.number)
        .join(executions, executions.c.task_id == tasks.c.id)
        .where(executions.c.agent_id == agent.id, executions.c.status.in_(_OPEN))
        .order_by(tasks.c.number)
        .limit(_MOST_NAMED)
    )
    numbers = (await connection.execute(waiting)).scalars().all()
    if numbers:
        named = ", ".join(f"#{number}" for number in numbers)
        raise ConflictError(f"{agent.slug} has runs that wait or go on: {named}", hint="stop them first, or disable it")


async def _read_agent(connection: AsyncConnection, agent_id: AgentId) -> Agent:
    found = await read_agents(connection, tables.agents.c.id == agent_id, with_removed_capabilities=True)
    if not found:
        raise NotFoundError("this agent is no longer registered")
    return found[0]


def _capability(agent: Agent, key: str) -> Capability:
    for capability in agent.capabilities:
        if capability.key == key and capability.removed_at is None:
            return capability
    known = ", ".join(one.key for one in agent.capabilities if one.removed_at is None)
    raise NotFoundError(f"{agent.slug} has no capability {key}", hint=f"it has: {known}" if known else "it has none")


async def _write_agent(connection: AsyncConnection, agent: Agent, *, at: datetime) -> None:
    row = {name: value for name, value in agent_row(agent).items() if name not in {"id", "owner_id"}}
    agents = tables.agents
    await connection.execute(update(agents).where(agents.c.id == agent.id).values(**row, updated_at=at))


async def _write_capability(connection: AsyncConnection, capability: Capability, *, at: datetime) -> None:
    row = {name: value for name, value in capability_row(capability).items() if name not in {"id", "agent_id"}}
    rows = tables.agent_capabilities
    await connection.execute(update(rows).where(rows.c.id == capability.id).values(**row, updated_at=at))


def _edited(before: _Edited, told: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted({*before.edited_fields, *told}))


def _differences(before: _Edited, names: Collection[str], after: _Edited) -> dict[str, object]:
    """Return for each named field that differs, or becomes the person's, what it was and what it is, as JSON."""
    told: dict[str, object] = {}
    for name in names:
        ends = {"from": _value(before, name), "to": _value(after, name)}
        if ends["from"] != ends["to"] or (name not in before.edited_fields and _is_written_by_others(name, after)):
            told[name] = {end: _told(value) for end, value in ends.items()}
    return told


def _is_written_by_others(name: str, after: Agent | Capability) -> bool:
    """Return whether a preset or a scan could change the value: neither switches off what is on."""
    return name != "is_enabled" and not (name == "is_active" and isinstance(after, Agent) and after.is_active)


def _value(edited: Agent | Capability, name: str) -> object:
    if isinstance(edited, Capability):
        return capability_row(edited)[name]
    if name == "permission_modes":
        return [] if edited.session_config is None else list(edited.session_config.permission_modes)
    return getattr(edited, name) if name in _IN_METADATA else agent_row(edited)[name]


def _told(value: object) -> object:
    match value:
        case str():
            return redact(value)[:_TOLD_MAX_CHARACTERS]
        case list():
            return [_told(part) for part in value]
        case _:
            return value


async def _tell(
    connection: AsyncConnection, agent: Agent, told: Mapping[str, object], *, actor: Actor, at: datetime
) -> None:
    await append_task_event(
        connection,
        task_id=None,
        actor=actor,
        event_type=TaskEventType.AGENT_CHANGED,
        payload={"agent_id": agent.id, "agent": agent.slug, **told},
        at=at,
    )
