"""A running execution of an agent with a conversation, and the rows that its news make."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import ToolType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import (
    ConversationRequest,
    ConversationStart,
    ExecutionEnding,
    ExecutionProgress,
    ExecutionRequest,
    TimedNews,
)
from agentmon.domain.ids import ExecutionId, SessionId, WorkerId, new_id
from agentmon.services.actors import USER_ACTOR
from agentmon.store.approval_rules import ApprovalRuleRepository
from agentmon.store.approvals import ApprovalRepository
from agentmon.store.conversations import ConversationRepository
from agentmon.store.events import EventRepository
from agentmon.store.execution_commands import CommandRepository
from agentmon.store.sessions import SessionRepository
from tests.endings import record
from tests.store.queue_place import NOON, QueuePlace, an_agent, opened_again, opened_queue, read_rows

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from agentmon.domain.conversation import AskNews, ConversationNews
    from agentmon.domain.events import Event
    from agentmon.domain.executions import ClaimedExecution, Execution
    from agentmon.domain.ids import TaskId
    from agentmon.store.database import Database

NOON_MS: Final = int(NOON.timestamp() * 1000)
WORKER: Final = WorkerId("worker")


@dataclass(kw_only=True)
class ConversationPlace:
    """The repositories over one open database with one AI agent, ``claude``."""

    queue: QueuePlace
    offsets: dict[str, int] = field(default_factory=dict)

    @property
    def database(self) -> Database:
        return self.queue.database

    @property
    def sessions(self) -> SessionRepository:
        return SessionRepository(self.database)

    @property
    def conversations(self) -> ConversationRepository:
        return ConversationRepository(self.database)

    @property
    def approvals(self) -> ApprovalRepository:
        return ApprovalRepository(self.database)

    @property
    def rules(self) -> ApprovalRuleRepository:
        return ApprovalRuleRepository(self.database)

    @property
    def events(self) -> EventRepository:
        return EventRepository(self.database)

    @property
    def commands(self) -> CommandRepository:
        return CommandRepository(self.database)

    def rows(self, query: str, *parameters: object) -> list[dict[str, object]]:
        return [dict(row) for row in read_rows(self.database.path, query, *parameters)]

    async def enqueue(
        self,
        task_id: TaskId | None = None,
        *,
        prompt: str | None = "Mend the login",
        max_retries: int = 0,
        parent: ExecutionId | None = None,
        start_approval: AskNews | None = None,
        mode: ExecutionMode = ExecutionMode.STREAM_JSON,
        at: datetime = NOON,
    ) -> Execution:
        """Queue an execution with a conversation, or without one when there is no prompt."""
        if task_id is None:
            task_id = (await self.queue.add_task("w", at=at)).id
        agent = self.queue.agents["claude"]
        conversation = (
            None
            if prompt is None
            else ConversationRequest(
                prompt=prompt,
                working_dir="/w",
                start=ConversationStart.FRESH if parent is None else ConversationStart.RESUME,
                parent_execution_id=parent,
            )
        )
        request = ExecutionRequest(
            task_id=task_id,
            agent_id=agent.id,
            capability_id=agent.capabilities[0].id,
            mode=mode,
            conversation=conversation,
            start_approval=start_approval,
            max_retries=max_retries,
        )
        return await self.queue.executions.enqueue(
            request, execution_id=ExecutionId(new_id()), log_file_path="/log", actor=USER_ACTOR, at=at
        )

    async def claim(self, at: datetime = NOON) -> ClaimedExecution:
        (claimed,) = await self.queue.claims.claim(worker_id=WORKER, max_running=9999, park_after=0, limit=1, at=at)
        self.offsets[claimed.execution.id] = claimed.execution.journal_offset
        return claimed

    async def begin(
        self,
        *,
        prompt: str | None = "Mend the login",
        max_retries: int = 0,
        mode: ExecutionMode = ExecutionMode.STREAM_JSON,
    ) -> Execution:
        """Queue an execution and claim it as a worker does."""
        await self.enqueue(prompt=prompt, max_retries=max_retries, mode=mode)
        return (await self.claim()).execution

    async def tell(
        self,
        execution_id: ExecutionId,
        *news: ConversationNews,
        events: Sequence[Event] = (),
        ending: ExecutionEnding | None = None,
        is_paused: bool | None = None,
        at_ms: int = NOON_MS,
    ) -> None:
        """Let the journal of an execution say so, each piece one second after the other."""
        await self.tell_at(
            execution_id,
            [TimedNews(at_ms=at_ms + 1000 * place, news=one) for place, one in enumerate(news)],
            events=events,
            ending=ending,
            is_paused=is_paused,
        )

    async def tell_at(
        self,
        execution_id: ExecutionId,
        news: Sequence[TimedNews],
        *,
        events: Sequence[Event] = (),
        ending: ExecutionEnding | None = None,
        is_paused: bool | None = None,
    ) -> None:
        offset = self.offsets[execution_id]
        stretch = ExecutionProgress(
            execution_id=execution_id,
            from_offset=offset,
            to_offset=offset + 10,
            pid=1,
            events=tuple(events),
            news=tuple(news),
            ending=ending,
            is_paused=is_paused,
        )
        self.offsets[execution_id] += 10
        await record(self.queue.database, [stretch], park_after=0, at=NOON)

    async def session_id(self, execution_id: ExecutionId) -> SessionId:
        found = (await self.queue.executions.get(execution_id)).session_id
        assert found is not None
        return found


def an_ending(status: ExecutionStatus = ExecutionStatus.SUCCEEDED, *, may_retry: bool = True) -> ExecutionEnding:
    return ExecutionEnding(status=status, ended_at=NOON, reason=EndReason.EXITED, exit_code=0, may_retry=may_retry)


@asynccontextmanager
async def opened_place(folder: Path) -> AsyncIterator[ConversationPlace]:
    agent = an_agent("claude", max_concurrent=0, tool_type=ToolType.AI_AGENT)
    async with opened_queue(folder / "a.db", [agent], {"w": 0, "v": 0}) as queue:
        yield ConversationPlace(queue=queue)


@asynccontextmanager
async def opened_copy(path: Path) -> AsyncIterator[ConversationPlace]:
    """Open a database that is there; nothing more can be queued in it."""
    async with opened_again(path) as database:
        yield ConversationPlace(queue=QueuePlace(database=database, agents={}, workspaces={}))
