"""What a person changes of agents: fields, switches, limits, copies, removals; nothing of what they did is lost."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.domain.agent_changes import UNCHANGED, AgentChanges
from agentmon.domain.agents import AgentKind, DiscoveryMethod
from agentmon.domain.any_command import ANY_COMMAND_SLUG
from agentmon.domain.errors import ConflictError, FieldError, UsageError
from agentmon.domain.ids import AgentId, CapabilityId, new_id
from agentmon.paths import expanded
from agentmon.services.agent_checks import check_agent, check_slug, check_tools
from agentmon.services.agent_reading import AgentReading
from agentmon.services.folders import existing_folder
from agentmon.worker.wake import wake_worker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.agents import Agent
    from agentmon.domain.events import Actor


class AgentEditing(AgentReading):
    """Changes agents; a worker that runs sees each change with its next claim."""

    async def edit(self, slug: str, changes: AgentChanges, *, actor: Actor) -> Agent:
        """Change fields of an agent, which are the person's from then on: no preset and no scan writes them again.

        Args:
            slug: The agent.
            changes: The new values; folders and programs may begin with ``~``.
            actor: Who changes it.

        Raises:
            NotFoundError: There is no such agent.
            FieldError: A value cannot be used; the error names its field.
            ConflictError: The actor is an agent.
        """
        before = await self.by_slug(slug)
        changes = await _with_whole_paths(changes)
        after = changes.applied(before)
        check_agent(after, changes.named())
        _require_same_modes(before, after)
        await self._edits.edit(before.id, changes, actor=actor, at=self._clock.now())
        wake_worker(self._paths.worker_socket)
        return await self.get(before.id)

    async def enable(self, slug: str, *, actor: Actor) -> Agent:
        """Let an agent be given work.

        Raises:
            NotFoundError: There is no such agent.
            ConflictError: The actor is an agent.
        """
        return await self.edit(slug, AgentChanges(is_active=True), actor=actor)

    async def disable(self, slug: str, *, actor: Actor) -> Agent:
        """Let nothing of an agent start any more; what runs may finish, what is queued waits.

        Raises:
            NotFoundError: There is no such agent.
            FieldError: It is the one that runs any command.
            ConflictError: The actor is an agent.
        """
        return await self.edit(slug, AgentChanges(is_active=False), actor=actor)

    async def duplicate(self, slug: str, new_slug: str, *, actor: Actor) -> Agent:
        """Add a copy of an agent, with its capabilities and tools, which belongs to the person and to all workspaces.

        Raises:
            NotFoundError: There is no such agent.
            FieldError: The new name cannot be one.
            ConflictError: The new name is taken, or the actor is an agent.
        """
        agent = await self.by_slug(slug)
        if agent.slug == ANY_COMMAND_SLUG:
            raise UsageError("any command needs no copy", hint="`agentmon agents add PROGRAM` makes an agent of one")
        copy_id = AgentId(new_id())
        copy = replace(
            agent,
            id=copy_id,
            slug=check_slug(new_slug),
            name=f"{agent.name} ({new_slug})",
            workspace_id=None,
            kind=AgentKind.CUSTOM,
            discovery_method=DiscoveryMethod.MANUAL,
            edited_fields=(),
            capabilities=tuple(
                replace(capability, id=CapabilityId(new_id()), agent_id=copy_id) for capability in agent.capabilities
            ),
        )
        await self._edits.add(copy, change="copied", actor=actor, at=self._clock.now())
        return await self.by_slug(new_slug)

    async def remove(self, slug: str, *, actor: Actor) -> Agent:
        """Take an agent out of the registry; its row stays, with all that it has done, and ``restore`` brings it back.

        Raises:
            NotFoundError: There is no such agent.
            UsageError: It is the one that runs any command, which is always there.
            ConflictError: Something of it waits or runs, or the actor is an agent.
        """
        agent = await self.by_slug(slug)
        if agent.slug == ANY_COMMAND_SLUG:
            raise UsageError("any command is always there: it runs the commands that you type yourself")
        if agent.workspace_id is not None:
            raise ConflictError(
                f"{slug} comes from its workspace's file", hint="switch it off, or `agentmon agents untrust`"
            )
        await self._edits.set_removed(agent.id, is_removed=True, actor=actor, at=self._clock.now())
        return await self.get(agent.id)

    async def restore(self, slug: str, *, actor: Actor) -> Agent:
        """Bring a removed agent back as it was.

        Raises:
            NotFoundError: There never was one.
            ConflictError: It is there, came from the file of a workspace, or the actor is an agent.
        """
        agent = await self.by_slug(slug, removed_too=True)
        if agent.removed_at is None:
            raise ConflictError(f"{slug} is there already", hint=f"`agentmon agents show {slug}`")
        if agent.workspace_id is not None:
            raise ConflictError(f"{slug} came from a workspace's file", hint="`agentmon agents trust` brings it back")
        await self._edits.set_removed(agent.id, is_removed=False, actor=actor, at=self._clock.now())
        return await self.get(agent.id)

    async def release(self, slug: str, *, actor: Actor) -> Agent:
        """Let a parked agent start again at once, with its failures forgotten.

        Raises:
            NotFoundError: There is no such agent.
            ConflictError: It is not parked.
        """
        agent = await self.by_slug(slug)
        await self._parking.release(agent.id, actor=actor, at=self._clock.now())
        wake_worker(self._paths.worker_socket)
        return await self.get(agent.id)

    async def limit(self, slug: str, max_concurrent: int, *, actor: Actor) -> Agent:
        """Set how many executions of an agent may run at one time; 0 means no limit of its own.

        Raises:
            NotFoundError: There is no such agent.
            FieldError: It is no such number.
            ConflictError: The actor is an agent.
        """
        return await self.edit(slug, AgentChanges(max_concurrent=max_concurrent), actor=actor)

    async def set_tools(self, slug: str, tools: Mapping[str, bool | None], *, actor: Actor) -> Agent:
        """Allow (True) or take away (False) some of an AI agent's own tools; None leaves a tool as the agent has it.

        It takes effect with the next start.

        Raises:
            NotFoundError: There is no such agent.
            UsageError: The agent takes no list of tools, or a name cannot be one.
            ConflictError: The actor is an agent.
        """
        agent = await self.by_slug(slug)
        check_tools(agent, tools)
        await self._repository.set_tools(agent.id, tools, actor=actor, at=self._clock.now())
        return await self.get(agent.id)


async def _with_whole_paths(changes: AgentChanges) -> AgentChanges:
    """Return the changes with the folder and the program as whole paths.

    Raises:
        FieldError: The folder is not there, or the program at a path cannot be started.
    """
    folder, binary = changes.working_dir, changes.binary_path
    if folder is not UNCHANGED and folder:
        try:
            changes = replace(changes, working_dir=await existing_folder(folder, str(Path.home())))
        except UsageError as error:
            raise FieldError("working_dir", str(error), hint="make it, or name another") from error
    elif folder is not UNCHANGED:
        changes = replace(changes, working_dir=None)
    if binary is not UNCHANGED and ("/" in binary or binary.startswith("~")):
        changes = replace(changes, binary_path=await asyncio.to_thread(startable, binary))
    return changes


def startable(text: str) -> str:
    """Return the whole path of a program; links are not followed.

    Raises:
        FieldError: There is none, or it cannot be executed.
    """
    path = expanded(text)
    if not path.is_absolute():
        raise FieldError("binary_path", f"{text} is neither a name nor a whole path", hint="such as /opt/tools/lint")
    if not path.is_file():
        raise FieldError("binary_path", f"there is no program {path}", hint="its name, or its whole path")
    if not os.access(path, os.X_OK):
        raise FieldError("binary_path", f"{path} cannot be executed", hint=f"`chmod +x {path}` makes it a program")
    return str(path)


def _require_same_modes(before: Agent, after: Agent) -> None:
    known = () if before.session_config is None else before.session_config.permission_modes
    chosen = () if after.session_config is None else after.session_config.permission_modes
    if sorted(known) != sorted(chosen):
        raise FieldError(
            "permission_modes",
            f"{before.slug} has the modes {', '.join(known)}",
            hint="name them all, the default first",
        )
