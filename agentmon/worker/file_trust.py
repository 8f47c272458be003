"""Whether the file of agents that an agent came from is still the one that a person trusted."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.domain.errors import UsageError
from agentmon.runners.agent_files import AGENT_FILE, read_setup, read_verification, read_workspace_file
from agentmon.threads import in_daemon_thread

if TYPE_CHECKING:
    from typing import Protocol

    from agentmon.domain.agents import Agent
    from agentmon.domain.ids import WorkspaceId
    from agentmon.store.agent_files import AgentFileRepository

    class _Reading(Protocol):
        def __call__(self, text: str, *, place: str) -> str: ...


async def read_trusted_setup(files: AgentFileRepository, workspace_id: WorkspaceId, workspace_root: str) -> str:
    """Return what the workspace's file of agents says to run in each new worktree; empty when it says nothing.

    Raises:
        UsageError: It says something, and is not as it was trusted, or it cannot be read; the hint says what to do.
    """
    return await _read_trusted(files, workspace_id, workspace_root, read_setup, "the set-up of worktrees")


async def read_trusted_verification(files: AgentFileRepository, workspace_id: WorkspaceId, workspace_root: str) -> str:
    """Return what the workspace's file of agents says that the work of AI agents has to pass; empty for nothing.

    Raises:
        UsageError: As for ``read_trusted_setup``.
    """
    return await _read_trusted(files, workspace_id, workspace_root, read_verification, "the verification")


async def _read_trusted(
    files: AgentFileRepository, workspace_id: WorkspaceId, workspace_root: str, read: _Reading, name: str
) -> str:
    found = await in_daemon_thread(partial(read_workspace_file, workspace_root), name="file of agents")
    command = "" if found is None else read(found.text, place="/".join(AGENT_FILE))
    if not command or found is None:
        return ""
    trusted = await files.find(workspace_id)
    if trusted is None or trusted.digest != found.digest:
        why = "is not trusted" if trusted is None else "has changed since you trusted it"
        raise UsageError(
            f"{name} comes from {found.path}, which {why}", hint="`agentmon agents trust` shows it and asks"
        )
    return command


async def require_trusted(files: AgentFileRepository, agent: Agent, workspace_root: str) -> None:
    """Refuse an agent whose file is not as it was trusted; one of all workspaces came from no file.

    Raises:
        UsageError: The file has changed, is gone, cannot be read or is not trusted; the hint says what to do.
    """
    if agent.workspace_id is None:
        return
    trusted = await files.find(agent.workspace_id)
    try:
        found = await in_daemon_thread(partial(read_workspace_file, workspace_root), name="file of agents")
    except UsageError as error:
        why = f"cannot be used: {error}"
    else:
        if trusted is not None and found is not None and trusted.digest == found.digest:
            return
        why = "is gone" if found is None else "has changed since you trusted it"
    place = Path(workspace_root, *AGENT_FILE)
    raise UsageError(
        f"{agent.slug} comes from {place}, which {why if trusted is not None else 'is not trusted'}",
        hint="`agentmon agents trust` shows it and asks",
    )
