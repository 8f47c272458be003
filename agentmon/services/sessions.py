"""Sessions: conversations with agents, found again, gone on with, copied and begun anew."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import ConflictError, NotFoundError, UsageError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.executions import ConversationStart
from agentmon.domain.handover import history_text
from agentmon.domain.live_state import seen_state
from agentmon.domain.sightings import NO_SIGHTING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import SessionId, TaskId, WorkspaceId
    from agentmon.domain.sessions import Message, Session, SessionListing
    from agentmon.services.agents import AgentService
    from agentmon.services.queue import QueueService
    from agentmon.services.sightings import SightingService
    from agentmon.store.conversations import ConversationRepository
    from agentmon.store.sessions import SessionRepository

_PAGE: Final = 500


class SessionService:
    """Reads sessions and begins executions from them."""

    def __init__(
        self,
        *,
        sessions: SessionRepository,
        sightings: SightingService,
        conversations: ConversationRepository,
        agents: AgentService,
        queue: QueueService,
        clock: Clock,
    ) -> None:
        self._sessions = sessions
        self._sightings = sightings
        self._conversations = conversations
        self._agents = agents
        self._queue = queue
        self._clock = clock

    async def list(
        self,
        workspace_id: WorkspaceId | None,
        *,
        search: str = "",
        live_only: bool = False,
        with_history: bool = False,
        limit: int = 200,
        offset: int = 0,
    ) -> tuple[SessionListing, ...]:
        """Return sessions, newest first; see ``SessionRepository.list``."""
        return await self._seen(
            await self._sessions.list(
                workspace_id, search=search, live_only=live_only, with_history=with_history, limit=limit, offset=offset
            )
        )

    async def get_listing(self, session_id: SessionId) -> SessionListing:
        """Return one session with what a list shows beside it.

        Raises:
            NotFoundError: There is none of this id.
        """
        return (await self._seen([await self._sessions.get_listing(session_id)]))[0]

    async def get(self, session_id: SessionId) -> Session:
        """Return one session.

        Raises:
            NotFoundError: There is none of this id.
        """
        return await self._sessions.get(session_id)

    async def find(self, text: str) -> Session:
        """Return the session that a person means by the start of its id, or of the agent's own id.

        Raises:
            NotFoundError: There is none.
            UsageError: There are several; the hint names them.
        """
        found = await self._sessions.find_by_prefix(text.strip())
        if not found:
            raise NotFoundError(f"there is no session {text!r}", hint="`agentmon sessions` lists them")
        if len(found) > 1:
            named = ", ".join(session.id for session in found[:5])
            raise UsageError(f"several sessions begin with {text!r}", hint=f"write more of the id: {named}")
        return found[0]

    async def of_task(self, task_id: TaskId) -> tuple[Session, ...]:
        """Return the sessions of a task, newest first."""
        return await self._sessions.of_task(task_id)

    async def executions(self, session_id: SessionId) -> tuple[Execution, ...]:
        """Return the executions of a session, oldest first."""
        return await self._sightings.add_to(await self._sessions.executions(session_id))

    async def rename(self, session_id: SessionId, title: str) -> None:
        """Give a session another title.

        Raises:
            NotFoundError: There is none of this id.
            UsageError: The title is empty.
        """
        if not title.strip():
            raise UsageError("the title is empty")
        await self._sessions.set_title(session_id, title.strip(), at=self._clock.now())

    async def resume(self, session_id: SessionId, text: str, *, actor: Actor) -> Execution:
        """Queue an execution that goes on with the conversation, beginning with this message.

        Raises:
            NotFoundError: There is none of this id.
            UsageError: The message is empty, or the session belongs to no task.
            ConflictError: The conversation goes on already, or its agent cannot go on with it.
            AgentmonError: The execution cannot be queued; see ``QueueService.run``.
        """
        return await self._go_on(session_id, text, ConversationStart.RESUME, actor=actor)

    async def fork(self, session_id: SessionId, text: str, *, actor: Actor) -> Execution:
        """Queue an execution that goes on with a copy of the conversation; errors as of ``resume``."""
        return await self._go_on(session_id, text, ConversationStart.FORK, actor=actor)

    async def restart(
        self, session_id: SessionId, text: str = "", *, comment_ids: Sequence[str] = (), actor: Actor
    ) -> Execution:
        """Queue an execution with the same agent and arguments in a fresh conversation.

        Args:
            session_id: The conversation that ends here.
            text: What the agent is told, behind the history of that conversation; empty for the same first prompt
                without any history.
            comment_ids: The comments on changes that the text consists of, which are noted as sent.
            actor: Who asks.

        Raises:
            NotFoundError: There is none of this id, or its agent is gone.
            UsageError: The session belongs to no task.
            ConflictError: The task is queued or runs.
            AgentmonError: The execution cannot be queued; see ``QueueService.run``.
        """
        session, newest = await self._newest(session_id)
        agent = await self._agents.get(session.agent_id)
        key = next((one.key for one in agent.capabilities if one.id == newest.capability_id), None)
        return await self._queue.run(
            newest.task_id,
            actor=actor,
            agent_slug=agent.slug,
            capability_key=key,
            args=newest.args,
            message=text.strip() or session.initial_prompt or None,
            comment_ids=comment_ids,
            history=await self._history(session_id) if text.strip() else "",
            own_screen=newest.mode is ExecutionMode.TMUX,
            sandbox=newest.sandbox,
        )

    async def _seen(self, listings: Sequence[SessionListing]) -> tuple[SessionListing, ...]:
        """Return the listings with what is known of their runs that nobody looks after."""
        known = await self._sightings.look() if any(listing.is_live for listing in listings) else {}
        if not known:
            return tuple(listings)
        seen_at = (known.get(listing.newest_execution_id, NO_SIGHTING).last_seen_at for listing in listings)
        return tuple(
            replace(listing, state=seen_state(listing.state, at)) for listing, at in zip(listings, seen_at, strict=True)
        )

    async def _go_on(self, session_id: SessionId, text: str, start: ConversationStart, *, actor: Actor) -> Execution:
        if not text.strip():
            raise UsageError("the message is empty", hint="say what the agent is to do next")
        _, newest = await self._newest(session_id)
        if newest.status.is_open:
            raise ConflictError(
                "the conversation goes on already", hint="send it a message: `agentmon message NUMBER TEXT`"
            )
        return await self._queue.run(
            newest.task_id, actor=actor, message=text, start=start, parent_execution_id=newest.id
        )

    async def _history(self, session_id: SessionId) -> str:
        """Return what was said and done in the conversation, as another one is handed it."""
        messages: list[Message] = []
        while page := await self._conversations.messages(
            session_id, after=messages[-1].id if messages else None, limit=_PAGE
        ):
            messages += page
        return history_text(messages, await self._conversations.operations(session_id=session_id, limit=_PAGE))

    async def _newest(self, session_id: SessionId) -> tuple[Session, Execution]:
        session = await self._sessions.get(session_id)
        executions = await self._sessions.executions(session_id)
        if not executions:
            named = f"; it knows it as {session.session_ref}" if session.session_ref else ""
            raise UsageError(
                "this session belongs to no task of agentmon",
                hint=f"its agent can go on with it outside of agentmon{named}",
            )
        return session, executions[-1]
