"""The file of agents of a workspace, which is used only once a person has seen what it would run and trusts it."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.agent_files import AgentFileState, FileTrust
from agentmon.domain.any_command import ANY_COMMAND_SLUG
from agentmon.domain.errors import ConflictError, UsageError
from agentmon.paths import expanded
from agentmon.runners.agent_files import (
    AGENT_FILE,
    read_agents_text,
    read_setup,
    read_verification,
    read_workspace_file,
)
from agentmon.services.agent_exchange import AgentExchange, checked
from agentmon.worker.file_trust import require_trusted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agentmon.domain.agents import Agent
    from agentmon.domain.events import Actor
    from agentmon.domain.ids import WorkspaceId
    from agentmon.domain.tasks import Workspace

_NAME_MAX_CHARACTERS: Final = 30


class AgentFileService(AgentExchange):
    """Files of agents: those of workspaces, exports and imports.

    Only what was trusted is ever registered, so that a change of the file runs nothing; until it is trusted again,
    nothing new of that file starts.
    """

    async def state(self, workspace: Workspace) -> AgentFileState:
        """Return the workspace's file of agents as it is now, and whether it is trusted; nothing is changed."""
        path = str(Path(workspace.root_path, *AGENT_FILE))
        trusted = await self._files.find(workspace.id)
        trusted_at = None if trusted is None else trusted.trusted_at
        try:
            found = await asyncio.to_thread(read_workspace_file, workspace.root_path)
            if found is None:
                trust = FileTrust.NONE if trusted is None else FileTrust.GONE
                return AgentFileState(path=path, trust=trust, trusted_at=trusted_at)
            told = await asyncio.to_thread(read_agents_text, found.text, place="/".join(AGENT_FILE))
            setup = read_setup(found.text, place="/".join(AGENT_FILE))
            verification = read_verification(found.text, place="/".join(AGENT_FILE))
            agents = [checked(_seen_from(agent, workspace), "/".join(AGENT_FILE)) for agent in told]
            agents, notes = await self._named(agents, workspace)
        except UsageError as error:
            return AgentFileState(
                path=path, trust=FileTrust.BROKEN, problem=str(error), hint=error.hint, trusted_at=trusted_at
            )
        is_same = trusted is not None and trusted.digest == found.digest
        other = FileTrust.UNTRUSTED if trusted is None else FileTrust.CHANGED
        return AgentFileState(
            path=found.path,
            trust=FileTrust.TRUSTED if is_same else other,
            digest=found.digest,
            agents=tuple(agents),
            setup=setup,
            verification=verification,
            notes=tuple(notes),
            trusted_at=trusted_at,
        )

    async def trust(self, workspace: Workspace, digest: str, *, actor: Actor) -> AgentFileState:
        """Trust the file in the state that was shown, and offer its agents in this workspace.

        Args:
            workspace: Whose file it is.
            digest: Of the state that was shown.
            actor: Who trusts it.

        Raises:
            ConflictError: It is not in that state any more, or the actor is an agent.
            UsageError: It cannot be used.
        """
        state = await self.state(workspace)
        if state.trust is FileTrust.BROKEN:
            raise UsageError(state.problem, hint=state.hint)
        if not digest or state.digest != digest:
            raise ConflictError(
                f"{state.path} is not what was shown any more", hint="look at it again: `agentmon agents trust`"
            )
        await self._files.trust(
            workspace.id, path=state.path, digest=digest, agents=state.agents, actor=actor, at=self._clock.now()
        )
        return await self.state(workspace)

    async def untrust(self, workspace: Workspace, *, actor: Actor) -> AgentFileState:
        """Trust the file no more: its agents are not offered again, and keep what they have done.

        Raises:
            ConflictError: None is trusted, or the actor is an agent.
        """
        await self._files.untrust(workspace.id, actor=actor, at=self._clock.now())
        return await self.state(workspace)

    async def require_trusted(self, agent: Agent, workspace: Workspace) -> None:
        """Refuse an agent of a workspace's file that is not as it was trusted.

        Raises:
            UsageError: The file has changed, cannot be read or is gone; the hint says what to do.
        """
        await require_trusted(self._files, agent, workspace.root_path)

    async def _named(self, agents: Sequence[Agent], workspace: Workspace) -> tuple[list[Agent], list[str]]:
        """Return the agents under names that nobody else has, and what is called otherwise than in the file.

        Two folders with the same project have the same file; the one that came second gets its folder's name behind
        the slug, and keeps it, since no slug is given away again.

        Raises:
            UsageError: One has the name of an agent of all workspaces.
        """
        owners = {one.slug: one.workspace_id for one in await self._agents.list(active_only=False)}
        used = {agent.slug for agent in agents}
        named, notes = [], []
        for agent in agents:
            slug = agent.slug
            if slug == ANY_COMMAND_SLUG or (slug in owners and owners[slug] is None):
                raise UsageError(
                    f"{slug} is an agent of all workspaces already",
                    hint=f"call it otherwise in the file, such as {slug}-here",
                )
            if owners.get(slug, workspace.id) != workspace.id:
                slug = _further_slug(f"{slug}-{_slug_of(workspace.name)}", owners, used, workspace.id)
                used.add(slug)
                notes.append(f"{agent.slug} is called {slug} here, since another workspace has a {agent.slug}")
            named.append(replace(agent, slug=slug))
        return named, notes


def _further_slug(
    slug: str, owners: Mapping[str, WorkspaceId | None], used: Collection[str], workspace_id: WorkspaceId
) -> str:
    candidates = (slug, *(f"{slug}-{number}" for number in range(2, len(owners) + 3)))
    return next(one for one in candidates if owners.get(one, workspace_id) == workspace_id and one not in used)


def _slug_of(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_NAME_MAX_CHARACTERS].rstrip("-") or "here"


def _seen_from(agent: Agent, workspace: Workspace) -> Agent:
    """Return the agent with paths as seen from the workspace."""
    root = Path(workspace.root_path)
    binary, folder = agent.binary_path, agent.working_dir
    if "/" in binary:
        binary = str(root / expanded(binary))
    if folder is not None:
        folder = str(root / expanded(folder))
        if not Path(folder).is_dir():
            raise UsageError(f"the folder {folder} of {agent.slug} is not there", hint="make it, or name another")
    return replace(agent, workspace_id=workspace.id, binary_path=binary, working_dir=folder)
