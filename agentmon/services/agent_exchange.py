"""Agents as a file: exported to be shared, and imported as what a person chose."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.agent_changes import AgentChanges, CapabilityChanges
from agentmon.domain.agent_files import ExportedAgents, ImportedAgent, ImportVerdict
from agentmon.domain.agents import AgentKind, CapabilitySource, DiscoveryMethod
from agentmon.domain.any_command import ANY_COMMAND_SLUG
from agentmon.domain.argument_order import ORDER_KEY
from agentmon.domain.errors import UsageError
from agentmon.paths import expanded
from agentmon.runners.agent_files import read_agents_text, write_agents_text
from agentmon.runners.presets import agents_of, load_library
from agentmon.services.agent_checks import check_agent, check_capability, check_tools
from agentmon.store.agent_edits import AgentTaking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.agents import Agent, Capability
    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.paths import Paths
    from agentmon.services.agents import AgentService
    from agentmon.store.agent_edits import AgentEditRepository
    from agentmon.store.agent_files import AgentFileRepository

_AGENT_FIELDS: Final = frozenset(field.name for field in fields(AgentChanges)) - {"permission_modes"}
_SHIPPED: Final = frozenset({CapabilitySource.PRESET, CapabilitySource.BUILTIN})
_CAPABILITY_FIELDS: Final = frozenset(field.name for field in fields(CapabilityChanges))


class AgentExchange:
    """Writes agents as TOML and takes them in."""

    def __init__(
        self,
        *,
        agents: AgentService,
        edits: AgentEditRepository,
        files: AgentFileRepository,
        paths: Paths,
        clock: Clock,
    ) -> None:
        self._agents = agents
        self._edits = edits
        self._files = files
        self._paths = paths
        self._clock = clock

    async def export(self, slugs: Sequence[str] = ()) -> ExportedAgents:
        """Return agents as TOML; without slugs those that a person made or changed.

        What looks like a secret is left out. "Any command" is in no file, since it is always there.

        Raises:
            NotFoundError: There is no agent of one of the slugs.
            UsageError: There is nothing to export.
        """
        if slugs:
            chosen = [await self._agents.by_slug(slug) for slug in dict.fromkeys(slugs)]
        else:
            chosen = [agent for agent in await self._agents.registered() if _is_of_person(agent)]
        chosen = [agent for agent in chosen if agent.slug != ANY_COMMAND_SLUG]
        if not chosen:
            raise UsageError("no agent was made or changed here", hint="name some: `agentmon agents export claude git`")
        text, left_out = await asyncio.to_thread(write_agents_text, chosen)
        return ExportedAgents(text=text, slugs=tuple(agent.slug for agent in chosen), left_out=left_out)

    async def import_text(
        self, text: str, *, place: str = "the file", replaces: bool = False, is_dry: bool = False, actor: Actor
    ) -> tuple[ImportedAgent, ...]:
        """Take in the agents of a text; all of it is looked at before anything is written.

        Args:
            text: As ``export`` writes it.
            place: What errors call it.
            replaces: Whether agents of the same name become what the text says; otherwise they stay.
            is_dry: Whether only to tell what would be done.
            actor: Who imports it; what it brings is that person's.

        Raises:
            UsageError: The text cannot be used; nothing is changed then.
            ConflictError: The actor is an agent.
        """
        told = await asyncio.to_thread(read_agents_text, text, place=place)
        plans = [await self._plan(agent, place, replaces=replaces) for agent in told]
        if not is_dry:
            takings = [taking for taking, _ in plans if taking is not None]
            await self._edits.take_in(takings, actor=actor, at=self._clock.now())
        return tuple(imported for _, imported in plans)

    async def _plan(self, told: Agent, place: str, *, replaces: bool) -> tuple[AgentTaking | None, ImportedAgent]:
        """Return what is to be written, None for nothing, and what is told of it."""
        if told.slug == ANY_COMMAND_SLUG:
            raise UsageError(f"{place}: {ANY_COMMAND_SLUG} is always there", hint="call it otherwise")
        agent, notes = await asyncio.to_thread(_fit_here, told)
        checked(agent, place)
        known = await self._find(agent.slug)
        if known is None:
            agent = await asyncio.to_thread(_as_preset, agent, self._paths.presets_dir)
            return AgentTaking(agent), ImportedAgent(slug=agent.slug, verdict=ImportVerdict.ADDED, notes=notes)
        if known.workspace_id is not None:
            raise UsageError(f"{place}: {agent.slug} belongs to a workspace's own file", hint="call it otherwise")
        is_same = known.removed_at is None and not _differing(known, agent) and not _other_parts(known, agent)
        if dict(known.tools) != dict(agent.tools):
            check_tools(known, agent.tools)
        verdict = ImportVerdict.CHANGED if replaces or known.removed_at is not None else ImportVerdict.KEPT
        if is_same:
            verdict = ImportVerdict.SAME
        taking = _taking(agent, known) if verdict is ImportVerdict.CHANGED else None
        return taking, ImportedAgent(slug=agent.slug, verdict=verdict, notes=notes)

    async def _find(self, slug: str) -> Agent | None:
        everything = await self._agents.list(active_only=False)
        return next((agent for agent in everything if agent.slug == slug), None)


def checked(agent: Agent, place: str) -> Agent:
    """Return an agent of a file when every part of it can be used.

    Raises:
        UsageError: One cannot; the message names the place.
    """
    names = {field.name for field in fields(agent)}
    try:
        check_agent(agent, names - {"permission_modes"})
        for capability in agent.capabilities:
            check_capability(agent, capability, {field.name for field in fields(capability)})
    except UsageError as error:
        raise UsageError(f"{place}, agent {agent.slug}: {error}", hint=error.hint) from error
    return agent


def _taking(agent: Agent, known: Agent) -> AgentTaking:
    """Return what is to be written so that the known one becomes what it is told to be."""
    parts = {part.key: part for part in known.capabilities}
    edits = {part.key: _differing_part(parts[part.key], part) for part in agent.capabilities if part.key in parts}
    return AgentTaking(
        agent,
        known,
        changes=_differing(known, agent) or AgentChanges(),
        added=[replace(part, agent_id=known.id) for part in agent.capabilities if part.key not in parts],
        edited={key: changes for key, changes in edits.items() if changes is not None},
        tools={} if dict(known.tools) == dict(agent.tools) else {**dict.fromkeys(known.tools), **agent.tools},
    )


def _is_of_person(agent: Agent) -> bool:
    return agent.workspace_id is None and (
        agent.kind is AgentKind.CUSTOM
        or bool(agent.edited_fields)
        or bool(agent.tools)
        or any(part.edited_fields or part.source not in _SHIPPED for part in agent.capabilities)
    )


def _fit_here(agent: Agent) -> tuple[Agent, tuple[str, ...]]:
    """Return the agent with ``~`` filled in, and without a folder that is not here; notes tell what was left out."""
    notes = []
    binary, folder = agent.binary_path, agent.working_dir
    if "/" in binary:
        binary = str(expanded(binary))
        if not Path(binary).is_file():
            notes.append(f"there is no program {binary} here")
    if folder is not None:
        folder = str(expanded(folder))
        if not Path(folder).is_dir():
            notes.append(f"the folder {folder} is not here and was left out")
            folder = None
    return replace(agent, binary_path=binary, working_dir=folder), tuple(notes)


def _as_preset(agent: Agent, presets_dir: Path) -> Agent:
    """Return an agent that a preset knows as one of that preset, with what differs from it as the person's."""
    presets = load_library(presets_dir, of_programs={agent.slug, Path(agent.binary_path).name}).presets
    preset = next((one for one in presets if one.slug == agent.slug), None)
    if preset is None or preset.binary != agent.binary_path:
        return agent
    (plain,) = agents_of([preset])
    changes = _differing(plain, agent)
    parts = {part.key: part for part in plain.capabilities}
    return replace(
        agent,
        kind=AgentKind.BUILTIN,
        discovery_method=DiscoveryMethod.PATH_SCAN,
        edited_fields=tuple(sorted(changes.named() if changes else ())),
        capabilities=tuple(_edited_part(parts.get(part.key), part) for part in agent.capabilities),
    )


def _edited_part(plain: Capability | None, part: Capability) -> Capability:
    changes = None if plain is None else _differing_part(plain, part)
    return replace(part, edited_fields=tuple(sorted(changes.named() if changes else ())))


def _differing(known: Agent, told: Agent) -> AgentChanges | None:
    """Return what is to be changed of an agent so that it becomes what it is told to be; None for nothing."""
    new = {name: getattr(told, name) for name in _AGENT_FIELDS if getattr(told, name) != getattr(known, name)}
    return AgentChanges(**new) if new else None


def _differing_part(known: Capability, told: Capability) -> CapabilityChanges | None:
    new = {name: getattr(told, name) for name in _CAPABILITY_FIELDS if getattr(told, name) != getattr(known, name)}
    if "args_schema" in new and ORDER_KEY not in known.args_schema and _bare(known) == _bare(told):
        # What is stored knows no order, so that any is the same.
        del new["args_schema"]
    return CapabilityChanges(**new) if new else None


def _bare(capability: Capability) -> dict[str, object]:
    return {key: part for key, part in capability.args_schema.items() if key != ORDER_KEY}


def _other_parts(known: Agent, told: Agent) -> bool:
    parts = {part.key: part for part in known.capabilities}
    is_other = any(part.key not in parts or _differing_part(parts[part.key], part) for part in told.capabilities)
    return is_other or dict(known.tools) != dict(told.tools)
