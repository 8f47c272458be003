"""Conversations with an agent in a real database, for tests of screens; nothing runs and no worker is needed."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from agentmon.domain.agents import Agent, Capability, SessionConfig, ToolType
from agentmon.domain.changes import ChangeType
from agentmon.domain.conversation import (
    AskChoice,
    AskKind,
    AskNews,
    AskQuestion,
    DiffNews,
    MessageNews,
    PlanNews,
    PlanStatus,
    PlanStep,
    SessionNews,
    ToolFinishedNews,
    ToolStartedNews,
)
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
from agentmon.domain.ids import AgentId, CapabilityId, ExecutionId, WorkerId, new_id
from agentmon.domain.operations import MessageRole, OperationStatus, OperationType
from agentmon.domain.tasks import TaskDraft
from agentmon.services.actors import USER_ACTOR
from agentmon.store.agents import AgentRepository
from agentmon.store.claims import ClaimRepository
from agentmon.store.executions import ExecutionRepository
from agentmon.worker.news_cleaning import event_level_of, event_type_of, payload_of
from tests.endings import record
from tests.screen_stage import Stage
from tests.screens.scenes import NOW
from tests.shared_folders import let_agents_share_folders
from tests.stored_runs import stored

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agentmon.bootstrap import Services
    from agentmon.domain.approvals import ApprovalListing
    from agentmon.domain.conversation import ConversationNews
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import TaskId
    from agentmon.domain.tasks import Workspace

DIFF = "@@ -1,3 +1,3 @@\n def login(user):\n-    return check(user, now())\n+    return check(user, clock.now())\n"


@dataclass(kw_only=True)
class Talks:
    """The conversations of one workspace with the agent ``claude``."""

    services: Services
    workspace: Workspace
    agent: Agent
    offsets: dict[str, int] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)

    async def begin(self, title: str = "Fix the flaky login", *, prompt: str = "Mend the login") -> Execution:
        """Make a task and a run of it that has begun."""
        task = await self.services.tasks.add(
            self.workspace, TaskDraft(title=title, assignee_agent_id=self.agent.id), actor=USER_ACTOR
        )
        return await self.run(task.id, prompt=prompt)

    async def run(self, task_id: TaskId, *, prompt: str = "Mend the login") -> Execution:
        """Make a run of the task that has begun."""
        executions = ExecutionRepository(self.services.database)
        execution_id = ExecutionId(new_id())
        folder = self.services.paths.execution_dir(execution_id)
        folder.mkdir(parents=True)
        (folder / "output.log").write_bytes(b"")
        at = NOW - timedelta(minutes=5)
        await executions.enqueue(
            ExecutionRequest(
                task_id=task_id,
                agent_id=self.agent.id,
                capability_id=self.agent.capabilities[0].id,
                mode=ExecutionMode.STREAM_JSON,
                conversation=ConversationRequest(prompt=prompt, working_dir=self.workspace.root_path),
            ),
            execution_id=execution_id,
            log_file_path=str(folder / "output.log"),
            actor=USER_ACTOR,
            at=at,
        )
        await let_agents_share_folders(self.services.database, self.workspace.id)
        claims = ClaimRepository(self.services.database)
        (claimed,) = await claims.claim(worker_id=WorkerId("w"), max_running=99, park_after=0, limit=1, at=at)
        self.offsets[claimed.execution.id] = claimed.execution.journal_offset
        return claimed.execution

    async def tell(self, execution: Execution, *news: ConversationNews, ending: ExecutionStatus | None = None) -> None:
        """Let the agent say so, each piece a second after the other."""
        offset = self.offsets[execution.id]
        said = self.told.get(execution.id, 0)
        begun_ms = int((NOW - timedelta(minutes=4)).timestamp() * 1000)
        self.offsets[execution.id] += 10
        self.told[execution.id] = said + len(news)
        timed = [TimedNews(at_ms=begun_ms + 1000 * (said + at), news=one) for at, one in enumerate(news)]
        stretch = ExecutionProgress(
            execution_id=execution.id,
            from_offset=offset,
            to_offset=offset + 10,
            pid=1,
            news=tuple(timed),
            events=tuple(
                Event(
                    execution_id=execution.id,
                    trace_id=execution.id,
                    type=event_type_of(one.news),
                    level=event_level_of(one.news),
                    timestamp_ms=one.at_ms,
                    payload=payload_of("", one.news),
                )
                for one in timed
            ),
            ending=None
            if ending is None
            else ExecutionEnding(status=ending, ended_at=NOW, reason=EndReason.EXITED, exit_code=0),
        )
        await record(self.services.database, [stretch], park_after=0, at=NOW)

    async def ask(self, title: str = "Fix the flaky login", *, ask: AskNews | None = None) -> Execution:
        """Make a run whose agent asks for something."""
        execution = await self.begin(title)
        await self.tell(execution, SessionNews(session_ref=new_id()), ask or wants_command())
        return execution

    async def waiting(self) -> tuple[ApprovalListing, ...]:
        return await self.services.approvals.inbox(self.workspace.id)

    async def decided(self) -> ApprovalListing:
        """Return the newest request, whatever became of it."""
        return (await self.services.approvals.history(self.workspace.id, limit=1))[0]

    async def get_services(self) -> Services:
        return self.services

    async def get_workspace(self) -> Workspace:
        return self.workspace


def ai_agent() -> Agent:
    agent_id = AgentId(new_id())
    capability = Capability(id=CapabilityId(new_id()), agent_id=agent_id, key="prompt", label="Prompt")
    return Agent(
        id=agent_id,
        slug="claude",
        name="Claude Code",
        tool_type=ToolType.AI_AGENT,
        max_concurrent=0,
        session_config=SessionConfig(
            bidirectional_protocol=ExecutionMode.STREAM_JSON,
            models=("opus", "sonnet"),
            permission_modes=("default", "plan"),
        ),
        capabilities=(capability,),
    )


def wants_command(
    command: str = "rm -r build", *, request_id: str = "r1", digest: str = "d1", for_session: bool = True
) -> AskNews:
    return AskNews(
        request_id=request_id,
        ask_kind=AskKind.PERMISSION,
        tool_name="Bash",
        type=OperationType.EXECUTE,
        target=command,
        title=f"Run {command}",
        detail=command,
        reason="The old build is in the way of the new one.",
        tool_input={"command": command},
        input_digest=digest,
        can_allow_for_session=for_session,
        can_edit_input=True,
    )


def wants_edit() -> AskNews:
    return AskNews(
        request_id="r2",
        ask_kind=AskKind.PERMISSION,
        tool_name="Edit",
        type=OperationType.WRITE,
        target="src/login.py",
        title="Edit src/login.py",
        detail=f"--- src/login.py\n+++ src/login.py\n{DIFF}",
        input_digest="d2",
        can_allow_for_session=True,
    )


def asks_questions() -> AskNews:
    return AskNews(
        request_id="r3",
        ask_kind=AskKind.QUESTION,
        title="Which clock, and which tests?",
        input_digest="d3",
        questions=(
            AskQuestion(
                question="Which clock should the session use?",
                header="Clock",
                choices=(
                    AskChoice(key="Monotonic", label="Monotonic", description="Never goes back."),
                    AskChoice(key="Wall", label="Wall", description="The time of day, as people read it."),
                ),
            ),
            AskQuestion(
                question="Which tests should run?",
                header="Tests",
                choices=(AskChoice(key="Unit", label="Unit"), AskChoice(key="End to end", label="End to end")),
                is_multiple=True,
            ),
        ),
    )


def a_talk() -> list[ConversationNews]:
    """Return a conversation with everything that can be in one."""
    return [
        SessionNews(session_ref="ref-1", title="Mend the login", model="opus", permission_mode="default"),
        MessageNews(message_ref="m1", role=MessageRole.USER, text="Mend the login. It fails once in thirty runs."),
        PlanNews(
            steps=(
                PlanStep(text="Find the cause", status=PlanStatus.COMPLETED),
                PlanStep(text="Freeze the clock of the session", status=PlanStatus.IN_PROGRESS),
                PlanStep(text="Run the tests thirty times", status=PlanStatus.PENDING),
            )
        ),
        MessageNews(
            message_ref="m2", role=MessageRole.ASSISTANT, text="The session may use the wall clock.", is_thinking=True
        ),
        MessageNews(message_ref="m3", role=MessageRole.ASSISTANT, text="I look at how the session reads its clock."),
        ToolStartedNews(
            tool_ref="t1",
            tool_name="Read",
            type=OperationType.READ,
            target="src/login.py",
            input_summary='{"file_path": "src/login.py"}',
        ),
        ToolFinishedNews(
            tool_ref="t1", status=OperationStatus.SUCCESS, output_summary="def login(user): …", duration_ms=340
        ),
        ToolStartedNews(tool_ref="t2", tool_name="Edit", type=OperationType.WRITE, target="src/login.py"),
        DiffNews(
            path="src/login.py",
            change_type=ChangeType.MODIFY,
            diff=DIFF,
            added_lines=1,
            removed_lines=1,
            tool_ref="t2",
        ),
        ToolFinishedNews(tool_ref="t2", status=OperationStatus.SUCCESS, duration_ms=12),
        MessageNews(message_ref="m4", role=MessageRole.ASSISTANT, text="The clock is frozen now; I run the tests."),
    ]


@asynccontextmanager
async def talks(folder: Path) -> AsyncIterator[tuple[Talks, Stage]]:
    """Open services over a new database with one AI agent, and a stage to show screens on."""
    async with stored(folder) as store:
        yield await make_talks(store.services, store.workspace), Stage()


async def make_talks(services: Services, workspace: Workspace) -> Talks:
    agent = ai_agent()
    await AgentRepository(services.database).add_missing([agent], at=NOW)
    return Talks(services=services, workspace=workspace, agent=await services.agents.by_slug("claude"))
