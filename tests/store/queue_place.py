"""A database with agents and workspaces and the repositories over it, apart from services and folders of runs."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import Agent, Capability, ToolType
from agentmon.domain.clock import FakeClock
from agentmon.domain.executions import ExecutionRequest
from agentmon.domain.ids import AgentId, CapabilityId, ExecutionId, new_id
from agentmon.domain.tasks import TaskDraft
from agentmon.services.actors import USER_ACTOR
from agentmon.store.agents import AgentRepository
from agentmon.store.approvals import ApprovalRepository
from agentmon.store.claims import ClaimRepository
from agentmon.store.database import Database, open_database
from agentmon.store.dependencies import DependencyRepository
from agentmon.store.executions import ExecutionRepository
from agentmon.store.parking import ParkingRepository
from agentmon.store.queue_pause import QueuePauseRepository
from agentmon.store.task_archive import ArchiveRepository
from agentmon.store.tasks import TaskRepository
from agentmon.store.workspaces import WorkspaceRepository
from tests.shared_folders import let_agents_share_folders

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from agentmon.domain.conversation import AskNews
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import TaskId, WorkspaceId
    from agentmon.domain.task_status import Priority
    from agentmon.domain.tasks import Task

NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class QueuePlace:
    """An open database with the names of what is in it."""

    database: Database
    agents: Mapping[str, Agent]
    workspaces: Mapping[str, WorkspaceId]

    @property
    def tasks(self) -> TaskRepository:
        return TaskRepository(self.database)

    @property
    def dependencies(self) -> DependencyRepository:
        return DependencyRepository(self.database)

    @property
    def executions(self) -> ExecutionRepository:
        return ExecutionRepository(self.database)

    @property
    def claims(self) -> ClaimRepository:
        return ClaimRepository(self.database)

    @property
    def archive(self) -> ArchiveRepository:
        return ArchiveRepository(self.database)

    @property
    def pauses(self) -> QueuePauseRepository:
        return QueuePauseRepository(self.database)

    @property
    def approvals(self) -> ApprovalRepository:
        return ApprovalRepository(self.database)

    @property
    def parking(self) -> ParkingRepository:
        return ParkingRepository(self.database)

    async def add_task(
        self,
        workspace: str,
        *,
        priority: Priority | None = None,
        after: Sequence[int] = (),
        at: datetime = NOON,
    ) -> Task:
        draft = TaskDraft(title="a task") if priority is None else TaskDraft(title="a task", priority=priority)
        return await self.tasks.add(
            self.workspaces[workspace], draft, after=after, next_run_at=None, actor=USER_ACTOR, at=at
        )

    async def enqueue(
        self,
        task_id: TaskId,
        agent: str,
        *,
        max_retries: int = 0,
        not_before: datetime | None = None,
        may_wait: bool = False,
        args: Mapping[str, object] | None = None,
        start_approval: AskNews | None = None,
        at: datetime = NOON,
    ) -> Execution:
        chosen = self.agents[agent]
        request = ExecutionRequest(
            task_id=task_id,
            agent_id=chosen.id,
            capability_id=chosen.capabilities[0].id,
            args=args or {},
            max_retries=max_retries,
            not_before=not_before,
            may_wait=may_wait,
            start_approval=start_approval,
        )
        execution_id = ExecutionId(new_id())
        return await self.executions.enqueue(
            request, execution_id=execution_id, log_file_path="/log", actor=USER_ACTOR, at=at
        )


def an_agent(slug: str, *, max_concurrent: int, tool_type: ToolType = ToolType.CLI_TOOL) -> Agent:
    agent_id = AgentId(new_id())
    capability = Capability(
        id=CapabilityId(new_id()), agent_id=agent_id, key="run", label="Run", command_tokens=("true",)
    )
    return Agent(
        id=agent_id,
        slug=slug,
        name=slug,
        tool_type=tool_type,
        max_concurrent=max_concurrent,
        capabilities=(capability,),
    )


@asynccontextmanager
async def opened_queue(
    path: Path, agents: Sequence[Agent], workspace_limits: Mapping[str, int], *, shares_folders: bool = True
) -> AsyncIterator[QueuePlace]:
    """Make a database of these agents and workspaces (0: no limit of its own), open until the end of the block."""
    opened = await open_database(path, backups_dir=path.parent / "backups", release="1", clock=FakeClock())
    try:
        rows = WorkspaceRepository(opened.database)
        workspaces = {}
        for name, limit in workspace_limits.items():
            workspace = await rows.register(root_path=f"/{name}", name=name, at=NOON)
            await rows.set(workspace.id, "max_running", limit, actor=USER_ACTOR, at=NOON)
            if shares_folders:
                await let_agents_share_folders(opened.database, workspace.id)
            workspaces[name] = workspace.id
        await AgentRepository(opened.database).add_missing(agents, at=NOON)
        yield QueuePlace(
            database=opened.database, agents={agent.slug: agent for agent in agents}, workspaces=workspaces
        )
    finally:
        await opened.database.close()


@asynccontextmanager
async def opened_again(path: Path) -> AsyncIterator[Database]:
    """Open a database that is there, until the end of the block."""
    database = Database(path)
    try:
        yield database
    finally:
        await database.close()


def make_queue_file(
    path: Path, agents: Sequence[Agent], workspace_limits: Mapping[str, int]
) -> Mapping[str, WorkspaceId]:
    """Make such a database as a file that can be copied."""

    async def make() -> Mapping[str, WorkspaceId]:
        async with opened_queue(path, agents, workspace_limits) as place:
            return place.workspaces

    return asyncio.run(make())


def read_rows(path: Path, query: str, *parameters: object) -> list[sqlite3.Row]:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute(query, parameters).fetchall()
