"""The verifications of runs: what they are run with, when they began and how they ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import func, insert, select, update

from agentmon.domain.agents import ToolType
from agentmon.domain.execution_status import OPEN_STATUSES
from agentmon.domain.ids import ExecutionId, WorkspaceId, new_id
from agentmon.domain.verifications import Verification, VerificationStatus, chosen_command
from agentmon.store import tables
from agentmon.store.mapping import input_context_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedVerification:
    """What task, agent and workspace say of how a run is verified, as they say it now."""

    task: str | None
    agent: str | None
    workspace: str | None
    retries: int | None
    """How often its agent is sent back; None leaves it to the settings."""
    is_of_ai_agent: bool
    agent_workspace_id: WorkspaceId | None
    """The workspace whose file the agent comes from; None for none."""
    workspace_id: WorkspaceId
    workspace_root: str
    verify_retry: int
    """How often in a row its agent was sent back before this run."""
    session_ref: str | None

    @property
    def is_from_agent(self) -> bool:
        """Whether it is the agent's word that counts."""
        return self.task is None and bool(self.agent)

    @property
    def may_be_of_file(self) -> bool:
        """Whether the workspace's own file is asked, since nobody else says anything."""
        return self.is_of_ai_agent and self.task is None and self.agent is None and not self.workspace

    def command(self, of_file: str) -> str:
        """Return the command that counts; that of a workspace is for AI agents alone. Empty for none."""
        workspace = (self.workspace or of_file) if self.is_of_ai_agent else ""
        return chosen_command(task=self.task, agent=self.agent, workspace=workspace)


class VerificationRepository:
    """Reads and writes verifications."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def wanted(self, execution_id: ExecutionId) -> WantedVerification:
        """Return how a run is to be verified."""
        executions, tasks, agents, workspaces = tables.executions, tables.tasks, tables.agents, tables.workspaces
        statement = (
            select(
                *(executions.c.verify_retry, executions.c.session_ref, tasks.c.input_context, tasks.c.workspace_id),
                *(agents.c.metadata, agents.c.tool_type, agents.c.workspace_id.label("agent_workspace_id")),
                *(workspaces.c.settings, workspaces.c.root_path),
            )
            .join(tasks, tasks.c.id == executions.c.task_id)
            .join(agents, agents.c.id == executions.c.agent_id)
            .join(workspaces, workspaces.c.id == tasks.c.workspace_id)
            .where(executions.c.id == execution_id)
        )
        async with self._database.reading() as connection:
            row = (await connection.execute(statement)).mappings().one()
        context = input_context_of(row["input_context"])
        return WantedVerification(
            task=context.verify,
            agent=text_of(row["metadata"].get("verify")),
            workspace=text_of(row["settings"].get("verify")),
            retries=context.verify_retries,
            is_of_ai_agent=row["tool_type"] is ToolType.AI_AGENT,
            agent_workspace_id=row["agent_workspace_id"],
            workspace_id=WorkspaceId(row["workspace_id"]),
            workspace_root=row["root_path"],
            verify_retry=row["verify_retry"],
            session_ref=row["session_ref"],
        )

    async def newest(self, execution_id: ExecutionId) -> Verification | None:
        """Return the newest verification of a run; None when there is none."""
        rows = tables.verifications
        statement = select(rows).where(rows.c.execution_id == execution_id).order_by(rows.c.attempt.desc()).limit(1)
        async with self._database.reading() as connection:
            row = (await connection.execute(statement)).mappings().first()
        return None if row is None else _verification_of(row)

    async def begin(
        self, execution_id: ExecutionId, command: str, *, log_path: Callable[[int], str], at: datetime
    ) -> Verification:
        """Write that a verification of a run begins, and return it; one that was cut off begins again.

        Args:
            execution_id: The run.
            command: What is run.
            log_path: Returns where its output goes, by its number.
            at: The time now.
        """
        rows = tables.verifications
        async with self._database.writing() as connection:
            of_run = rows.c.execution_id == execution_id
            again = (
                update(rows)
                .where(of_run, rows.c.status == VerificationStatus.RUNNING)
                .values(command=command, started_at=at, updated_at=at)
                .returning(rows)
            )
            row = (await connection.execute(again)).mappings().first()
            if row is None:
                known = (await connection.execute(select(func.max(rows.c.attempt)).where(of_run))).scalar()
                attempt = (known or 0) + 1
                new = insert(rows).values(
                    id=new_id(),
                    execution_id=execution_id,
                    attempt=attempt,
                    command=command,
                    status=VerificationStatus.RUNNING,
                    log_path=log_path(attempt),
                    started_at=at,
                    created_at=at,
                    updated_at=at,
                )
                row = (await connection.execute(new.returning(rows))).mappings().one()
            verification = _verification_of(row)
            await _show(connection, verification, at=at)
        return verification

    async def end(
        self, verification: Verification, status: VerificationStatus, *, exit_code: int | None, at: datetime
    ) -> Verification:
        """Write how a verification ended, and return it."""
        rows = tables.verifications
        ended = (
            update(rows)
            .where(rows.c.execution_id == verification.execution_id, rows.c.attempt == verification.attempt)
            .values(status=status, exit_code=exit_code, ended_at=at, updated_at=at)
            .returning(rows)
        )
        async with self._database.writing() as connection:
            verification = _verification_of((await connection.execute(ended)).mappings().one())
            await _show(connection, verification, at=at)
        return verification

    async def running_of_ended(self) -> tuple[Verification, ...]:
        """Return the verifications that run, or that a kill cut off, of runs that are over."""
        rows, executions = tables.verifications, tables.executions
        statement = (
            select(rows)
            .join(executions, executions.c.id == rows.c.execution_id)
            .where(rows.c.status == VerificationStatus.RUNNING, executions.c.status.not_in(sorted(OPEN_STATUSES)))
        )
        async with self._database.reading() as connection:
            return tuple(_verification_of(row) for row in (await connection.execute(statement)).mappings())


async def _show(connection: AsyncConnection, verification: Verification, *, at: datetime) -> None:
    """Let the run show its newest verification."""
    executions = tables.executions
    await connection.execute(
        update(executions)
        .where(executions.c.id == verification.execution_id)
        .values(
            verification_status=verification.status,
            verification_command=verification.command,
            verification_ms=verification.took_ms,
            updated_at=at,
        )
    )


def _verification_of(row: RowMapping) -> Verification:
    return Verification(
        execution_id=ExecutionId(row["execution_id"]),
        attempt=row["attempt"],
        command=row["command"],
        status=VerificationStatus(row["status"]),
        exit_code=row["exit_code"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        log_path=row["log_path"],
    )
