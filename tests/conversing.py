"""Running conversations in a database of services: their rows come from what a journal would say, no host runs."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agentmon.domain.conversation import AskChoice, AskKind, AskNews, AskQuestion, SessionNews
from agentmon.domain.events import Event
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import (
    ConversationRequest,
    ExecutionEnding,
    ExecutionProgress,
    ExecutionRequest,
    TimedNews,
)
from agentmon.domain.ids import ExecutionId, WorkerId, new_id
from agentmon.domain.operations import OperationType
from agentmon.domain.tasks import TaskDraft
from agentmon.services.actors import USER_ACTOR
from agentmon.services.demo_agent import DEMO_AGENT_SLUG, make_demo_agent
from agentmon.store.approvals import ApprovalRepository
from agentmon.store.claims import ClaimRepository
from agentmon.store.execution_commands import CommandRepository
from agentmon.store.executions import ExecutionRepository
from agentmon.worker.news_cleaning import event_level_of, event_type_of, payload_of
from tests.endings import record
from tests.shared_folders import let_agents_share_folders
from tests.stored_runs import stored

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agentmon.bootstrap import Services
    from agentmon.domain.approvals import ApprovalListing
    from agentmon.domain.conversation import ConversationNews
    from agentmon.domain.executions import ClaimedExecution, Execution, ExecutionCommand
    from agentmon.domain.ids import TaskId
    from agentmon.domain.tasks import Task, Workspace


@dataclass(kw_only=True)
class Conversing:
    """Services, a workspace and the demo agent, whose executions are claimed and told about by the test."""

    services: Services
    workspace: Workspace
    claimed: dict[ExecutionId, ClaimedExecution] = field(default_factory=dict)
    offsets: dict[ExecutionId, int] = field(default_factory=dict)

    async def add_task(self, title: str = "mend the login") -> Task:
        agent = await self.services.agents.by_slug(DEMO_AGENT_SLUG)
        draft = TaskDraft(title=title, assignee_agent_id=agent.id)
        return await self.services.tasks.add(self.workspace, draft, actor=USER_ACTOR)

    async def enqueue(
        self,
        task_id: TaskId,
        *,
        mode: ExecutionMode = ExecutionMode.STREAM_JSON,
        start_approval: AskNews | None = None,
        at: datetime | None = None,
    ) -> Execution:
        agent = await self.services.agents.by_slug(DEMO_AGENT_SLUG)
        execution_id = ExecutionId(new_id())
        folder = self.services.paths.execution_dir(execution_id)
        folder.mkdir(parents=True)
        conversation = ConversationRequest(prompt="Mend the login", working_dir=self.workspace.root_path)
        request = ExecutionRequest(
            task_id=task_id,
            agent_id=agent.id,
            capability_id=agent.capabilities[0].id,
            mode=mode,
            conversation=conversation if mode.is_conversation else None,
            start_approval=start_approval,
        )
        return await ExecutionRepository(self.services.database).enqueue(
            request,
            execution_id=execution_id,
            log_file_path=str(folder / "output.log"),
            actor=USER_ACTOR,
            at=at or datetime.now(UTC),
        )

    async def begin(self, task_id: TaskId, *, mode: ExecutionMode = ExecutionMode.STREAM_JSON) -> Execution:
        """Queue an execution, claim it as a worker does, and let its agent name the conversation."""
        queued = await self.enqueue(task_id, mode=mode)
        await let_agents_share_folders(self.services.database, self.workspace.id)
        (claimed,) = await ClaimRepository(self.services.database).claim(
            worker_id=WorkerId("worker"), max_running=99, park_after=0, limit=1, at=datetime.now(UTC)
        )
        assert claimed.execution.id == queued.id
        self.claimed[queued.id] = claimed
        self.offsets[queued.id] = claimed.execution.journal_offset
        if mode.is_conversation:
            await self.tell(queued.id, SessionNews(session_ref=f"ref-{queued.id}"))
        return await self.services.executions.get(queued.id)

    async def tell(
        self,
        execution_id: ExecutionId,
        *news: ConversationNews,
        ending: ExecutionEnding | None = None,
        at: datetime | None = None,
    ) -> None:
        """Let the journal of an execution say so."""
        at = at or datetime.now(UTC)
        at_ms = int(at.timestamp() * 1000)
        offset = self.offsets[execution_id]
        stretch = ExecutionProgress(
            execution_id=execution_id,
            from_offset=offset,
            to_offset=offset + 10,
            pid=1,
            news=tuple(TimedNews(at_ms=at_ms + place, news=one) for place, one in enumerate(news)),
            events=tuple(_event(execution_id, one, at_ms + place) for place, one in enumerate(news)),
            ending=ending,
        )
        self.offsets[execution_id] = offset + 10
        await record(self.services.database, [stretch], park_after=0, at=at)

    async def ask(self, execution_id: ExecutionId, ask: AskNews, *, at: datetime | None = None) -> ApprovalListing:
        """Let the agent ask, and return the request as the inbox has it."""
        await self.tell(execution_id, ask, at=at)
        waiting = await ApprovalRepository(self.services.database).undecided([execution_id])
        return next(one for one in waiting if one.approval.request_id == ask.request_id)

    async def end(self, execution_id: ExecutionId) -> None:
        ending = ExecutionEnding(
            status=ExecutionStatus.SUCCEEDED, ended_at=datetime.now(UTC), reason=EndReason.EXITED, exit_code=0
        )
        await self.tell(execution_id, ending=ending)

    async def commands(self, execution_id: ExecutionId) -> tuple[ExecutionCommand, ...]:
        return await CommandRepository(self.services.database).of_execution(execution_id)


def _event(execution_id: ExecutionId, news: ConversationNews, at_ms: int) -> Event:
    kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(news).__name__.removesuffix("News")).lower()
    return Event(
        execution_id=execution_id,
        trace_id=execution_id,
        type=event_type_of(news),
        level=event_level_of(news),
        timestamp_ms=at_ms,
        payload=payload_of(kind, news),
    )


def a_wish(command: str = "rm -rf tmp", *, request_id: str = "r1", **fields: object) -> AskNews:
    """Return what an agent asks that wants to run a command."""
    asked: dict[str, object] = {
        "request_id": request_id,
        "ask_kind": AskKind.PERMISSION,
        "tool_name": "Bash",
        "type": OperationType.EXECUTE,
        "target": command,
        "title": f"Bash: {command}",
        "detail": command,
        "tool_input": {"command": command},
        "input_digest": f"digest of {command}",
        "can_allow_for_session": True,
        "can_edit_input": True,
    }
    return AskNews(**(asked | fields))  # type: ignore[arg-type] # named by tests


def a_typed_wish(command: str = "touch it", **fields: object) -> AskNews:
    """Return what an agent asks in its own screen, with what each decision types there."""
    choices = (
        AskChoice(key="allow", label="Yes", description="types 1"),
        AskChoice(key="deny", label="No", description="types 3"),
    )
    asked: dict[str, object] = {
        "request_id": "screen:1:d",
        "title": f"permission: Bash command {command}",
        "tool_input": {},
        "can_allow_for_session": False,
        "can_edit_input": False,
        "questions": (AskQuestion(question="Typed into its terminal", choices=choices),),
    }
    return a_wish(command, **(asked | fields))  # type: ignore[arg-type] # named by tests


@asynccontextmanager
async def conversing(folder: Path) -> AsyncIterator[Conversing]:
    """Open services over a new database with the demo agent; no worker starts."""
    async with stored(folder) as place:
        await place.services.agents.add(make_demo_agent(pace_s=0.0))
        yield Conversing(services=place.services, workspace=place.workspace)
