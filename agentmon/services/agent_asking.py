"""One question to an AI agent of the registry: a run like any other, recorded and billed."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import InteractionMode, ToolType
from agentmon.domain.errors import AgentmonError, RunnerError, UsageError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.operations import MessageRole
from agentmon.domain.tasks import TaskDraft

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.domain.agents import Agent
    from agentmon.domain.events import Actor
    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Task, Workspace
    from agentmon.paths import Paths
    from agentmon.services.agents import AgentService
    from agentmon.services.conversations import ConversationService
    from agentmon.services.queue import QueueService
    from agentmon.services.tasks import TaskService
    from agentmon.services.workspaces import WorkspaceService

_LONGEST_S: Final = 15 * 60
_CAREFUL_MODES: Final = ("dontAsk", "read-only", "plan", "ask")
"""Permission modes in which an agent that is only asked does nothing else, the strictest first."""
_MOST_MESSAGES: Final = 500


class AgentAsking:
    """Asks agents, in a workspace of its own whose folder is empty."""

    def __init__(
        self,
        *,
        agents: AgentService,
        workspaces: WorkspaceService,
        tasks: TaskService,
        queue: QueueService,
        conversations: ConversationService,
        paths: Paths,
    ) -> None:
        self._agents = agents
        self._workspaces = workspaces
        self._tasks = tasks
        self._queue = queue
        self._conversations = conversations
        self._paths = paths

    async def choose(self, slug: str | None) -> Agent:
        """Return the AI agent of this slug; without one the first that is turned on and takes a prompt.

        Raises:
            NotFoundError: There is no such agent.
            UsageError: It is no AI agent, or there is none.
        """
        if slug is not None:
            agent = await self._agents.by_slug(slug)
            if not _takes_questions(agent):
                raise UsageError(f"{slug} is no AI agent that can be asked", hint="name one, such as claude or codex")
            return agent
        for agent in await self._agents.list():
            if _takes_questions(agent):
                return agent
        raise UsageError(
            "there is no AI agent to ask", hint="install one, such as Claude Code or Codex, then `agentmon agents scan`"
        )

    async def ask(
        self, agent: Agent, title: str, question: str, *, actor: Actor, on_start: Callable[[str], None] | None = None
    ) -> str:
        """Return what the agent answers; the run stays on the board of the workspace ``questions``.

        The run is stopped when nobody waits for it any more, and after 15 minutes.

        Args:
            agent: As ``choose`` gives it.
            title: Of the task.
            question: All that the agent is told.
            actor: Who asks.
            on_start: Told which run it is, in a few words, when it has been queued.

        Raises:
            RunnerError: It failed, was stopped, takes too long or said nothing.
            AgentmonError: It cannot be started; see ``QueueService.run``.
        """
        workspace = await self._open_workspace()
        draft = TaskDraft(title=title, assignee_agent_id=agent.id, labels=("question",))
        task = await self._tasks.add(workspace, draft, actor=actor)
        capability = next(one for one in agent.capabilities if _takes_prompt(one.interaction_mode) and one.is_enabled)
        modes = agent.session_config.permission_modes if agent.session_config is not None else ()
        begun = await self._queue.run(
            task.id,
            actor=actor,
            agent_slug=agent.slug,
            capability_key=capability.key,
            message=question,
            permission_mode=next((mode for mode in _CAREFUL_MODES if mode in modes), None),
        )
        if on_start is not None:
            on_start(f"{agent.name} answers in #{task.number} of the workspace {workspace.name}")
        try:
            async with asyncio.timeout(_LONGEST_S):
                ended = await self._queue.wait(begun.id)
        except TimeoutError as error:
            raise RunnerError(
                f"{agent.name} has not answered within {_LONGEST_S // 60} minutes; its run is stopped",
                hint=f"#{task.number} of the workspace {workspace.name} shows what it did, the inbox what it asked for",
            ) from error
        finally:
            await asyncio.shield(self._stop(task, actor))
        return await self._said(agent, task, workspace, ended)

    async def _open_workspace(self) -> Workspace:
        folder = self._paths.questions_dir
        try:
            await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise RunnerError(f"the folder {folder} cannot be made: {error.strerror or error}") from error
        return await self._workspaces.open(folder)

    async def _stop(self, task: Task, actor: Actor) -> None:
        # What is over cannot be stopped, and what cannot be reached stays on the board for the person.
        with contextlib.suppress(AgentmonError):
            await self._queue.stop(task.id, actor=actor)

    async def _said(self, agent: Agent, task: Task, workspace: Workspace, ended: Execution) -> str:
        where = f"#{task.number} of the workspace {workspace.name} shows what it did"
        if ended.status is not ExecutionStatus.SUCCEEDED:
            told = f": {ended.error}" if ended.error else ""
            raise RunnerError(f"{agent.name} did not answer, its run: {ended.live_state.value}{told}", hint=where)
        said = ""
        if ended.session_id is not None:
            messages = await self._conversations.messages(ended.session_id, limit=_MOST_MESSAGES)
            said = "\n".join(
                message.content
                for message in messages
                if message.role is MessageRole.ASSISTANT and not message.is_thinking and message.parent_ref is None
            )
        if not said.strip():
            raise RunnerError(f"{agent.name} ended without a word", hint=where)
        return said


def _takes_questions(agent: Agent) -> bool:
    return (
        agent.tool_type is ToolType.AI_AGENT
        and agent.session_config is not None
        and any(one.is_enabled and _takes_prompt(one.interaction_mode) for one in agent.capabilities)
    )


def _takes_prompt(mode: InteractionMode) -> bool:
    return mode is InteractionMode.PROMPT
