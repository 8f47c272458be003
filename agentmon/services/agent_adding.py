"""Making an agent of a program: by its preset where there is one, otherwise with free words."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import Agent, AgentKind, Capability, CapabilitySource, DangerLevel, DiscoveryMethod
from agentmon.domain.errors import AgentNotInstalledError, ConflictError, UsageError
from agentmon.domain.ids import AgentId, CapabilityId, new_id
from agentmon.paths import expanded
from agentmon.runners.discovery.path_scan import describe_program
from agentmon.runners.discovery.places import find_places
from agentmon.runners.discovery.shell_aliases import find_aliases
from agentmon.runners.discovery.tool_types import guess_tool_type
from agentmon.runners.presets import agents_of, load_library
from agentmon.services.agent_checks import check_slug
from agentmon.services.agent_editing import AgentEditing, startable
from agentmon.worker.wake import wake_worker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.events import Actor

FREE_WORDS_KEY: Final = "run"
FREE_WORDS_ARGUMENT: Final = "words"
_ALIAS: Final = "alias:"
_FREE_WORDS_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {
        FREE_WORDS_ARGUMENT: {
            "type": "array",
            "title": "Words",
            "description": "What stands behind the program's name, one word each",
            "items": {"type": "string"},
        }
    },
    "required": [],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A program that is to become an agent."""

    name: str
    binary: str
    """What the agent keeps: a name where the PATH finds this very program, else the whole path."""


class AgentAdding(AgentEditing):
    """Adds agents."""

    async def add(self, agent: Agent) -> Agent:
        """Put an agent into the registry and return it; one of the same slug that is there stays and is returned."""
        await self._repository.add_missing([agent], at=self._clock.now())
        return await self.by_slug(agent.slug)

    async def add_program(self, path_or_name: str, *, slug: str | None = None, actor: Actor) -> Agent:
        """Make an agent of a program and return it.

        A preset that knows the program fills it; otherwise it gets one capability, ``run``, that takes any words. An
        agent of the preset's own name that is switched off or removed is the one that comes back. The program is not
        started.

        Args:
            path_or_name: A name that is looked up on the PATH and in the places of version managers, or a path.
            slug: How people call it; None takes the preset's name or that of the program.
            actor: Who adds it.

        Raises:
            AgentNotInstalledError: There is no such program.
            FieldError: It cannot be started, or the slug cannot be one.
            ConflictError: There is such an agent, or the actor is an agent.
        """
        await self._add_installed()
        found = await asyncio.to_thread(_find, path_or_name.strip(), dict(os.environ))
        agent = await asyncio.to_thread(_agent_of, found, self._paths.presets_dir)
        if slug is None:
            known = await self._repository.find_by_slug(agent.slug)
            if known is not None and known.kind is agent.kind and known.workspace_id is None:
                return await self._bring_back(known, found, actor=actor)
        else:
            agent = replace(agent, slug=check_slug(slug), kind=AgentKind.CUSTOM)
        await self._edits.add(agent, change="added", actor=actor, at=self._clock.now())
        return await self.by_slug(agent.slug)

    async def _bring_back(self, known: Agent, found: _Found, *, actor: Actor) -> Agent:
        if known.removed_at is None and known.is_active:
            raise ConflictError(
                f"{known.slug} is an agent already",
                hint=f"`agentmon agents show {known.slug}`; --as NAME adds {found.name} once more under another name",
            )
        await self._edits.bring_back(known.id, actor=actor, at=self._clock.now())
        wake_worker(self._paths.worker_socket)
        return await self.get(known.id)


def _find(text: str, environ: Mapping[str, str]) -> _Found:
    if text.startswith(_ALIAS):
        name = text.removeprefix(_ALIAS)
        program = next((alias.real_path for alias in find_aliases(environ) if alias.name == name), "")
        raise UsageError(
            f"{name} is an alias of your shell, which nothing else can start",
            hint=f"add the program that it starts: agentmon agents add {program or 'PROGRAM'}",
        )
    if os.sep in text or text.startswith("~"):
        path = startable(str(expanded(text).absolute()))
        name = Path(path).name
        return _Found(name=name, binary=name if _on_path(name, environ) == path else path)
    if text and _on_path(text, environ) is not None:
        return _Found(name=text, binary=text)
    elsewhere = shutil.which(text, path=os.pathsep.join(map(str, find_places(environ)))) if text else None
    if elsewhere is None:
        if any(alias.name == text for alias in find_aliases(environ)):
            return _find(f"{_ALIAS}{text}", environ)
        raise AgentNotInstalledError(
            f"the program {text} is not on the PATH" if text else "which program?",
            hint="install it, or give its whole path",
        )
    return _Found(name=text, binary=elsewhere)


def _on_path(name: str, environ: Mapping[str, str]) -> str | None:
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which(name, path=os.pathsep.join(folder for folder in folders if Path(folder).is_absolute()))


def _agent_of(found: _Found, presets_dir: Path) -> Agent:
    for preset in load_library(presets_dir, of_programs={found.name}).presets:
        if found.name in {preset.binary, *preset.also_known_as}:
            (agent,) = agents_of([preset])
            return replace(agent, binary_path=found.binary)
    agent = free_agent(found.name, found.binary)
    path = found.binary if os.sep in found.binary else _on_path(found.binary, os.environ)
    program = None if path is None else describe_program(path)
    if program is None:
        return agent
    package = None if program.package_name is None else f"{program.package_manager}:{program.package_name}"
    return replace(
        agent,
        tool_type=guess_tool_type(program),
        package_name=package,
        package_section=program.package_section,
    )


def free_agent(name: str, binary: str) -> Agent:
    """Return a new agent for a program that nothing is known of: it takes any words."""
    agent_id = AgentId(new_id())
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not slug[:1].isalpha():
        slug = f"run-{slug}".strip("-")
    return Agent(
        id=agent_id,
        slug=check_slug(slug[:60].rstrip("-")),
        name=name,
        kind=AgentKind.CUSTOM,
        binary_path=binary,
        max_concurrent=0,
        discovery_method=DiscoveryMethod.MANUAL,
        capabilities=(
            Capability(
                id=CapabilityId(new_id()),
                agent_id=agent_id,
                key=FREE_WORDS_KEY,
                label=f"Run {name}",
                description="Starts it with exactly these words",
                source=CapabilitySource.BUILTIN,
                command_tokens=(f"{{{{args.{FREE_WORDS_ARGUMENT}}}}}",),
                args_schema=_FREE_WORDS_SCHEMA,
                danger_level=DangerLevel.CAUTION,
            ),
        ),
    )
