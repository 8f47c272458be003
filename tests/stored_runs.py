"""A real database with tasks and executions in any state, without a worker."""

from __future__ import annotations

import sqlite3
from contextlib import asynccontextmanager, closing, nullcontext
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from agentmon.bootstrap import open_services
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import ExecutionRequest
from agentmon.domain.ids import ExecutionId, new_id
from agentmon.domain.tasks import InputContext, TaskDraft
from agentmon.paths import find_paths
from agentmon.services.actors import USER_ACTOR
from agentmon.store.executions import ExecutionRepository
from agentmon.store.moments import moment_text
from tests.idle_worker import idle_worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from agentmon.bootstrap import Services
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import TaskId
    from agentmon.domain.tasks import Task, Workspace

_EXIT_CODES = {ExecutionStatus.SUCCEEDED: 0, ExecutionStatus.FAILED: 1, ExecutionStatus.TIMED_OUT: 143}


class Stored:
    """Services over a database of the test, and one workspace in it."""

    def __init__(self, services: Services, workspace: Workspace) -> None:
        self.services = services
        self.workspace = workspace

    async def get_services(self) -> Services:
        return self.services

    async def get_workspace(self) -> Workspace:
        return self.workspace

    async def add_task(self, title: str = "a task", *argv: str, **context: object) -> Task:
        agent = await self.services.agents.by_slug("command")
        draft = TaskDraft(
            title=title,
            assignee_agent_id=agent.id,
            input_context=InputContext(args={"argv": list(argv) or ["true"]}, **context),  # type: ignore[arg-type] # named by tests
        )
        return await self.services.tasks.add(self.workspace, draft, actor=USER_ACTOR)

    async def add_run(
        self,
        task_id: TaskId,
        status: ExecutionStatus = ExecutionStatus.SUCCEEDED,
        *,
        output: bytes = b"",
        age: timedelta = timedelta(minutes=1),
        max_retries: int = 0,
        may_wait: bool = False,
    ) -> Execution:
        """Store an execution of the task that was asked for so long ago."""
        agent = await self.services.agents.by_slug("command")
        execution_id = ExecutionId(new_id())
        folder = self.services.paths.execution_dir(execution_id)
        folder.mkdir(parents=True)
        log_path = folder / "output.log"
        log_path.write_bytes(output)
        asked_at = datetime.now(UTC) - age
        request = ExecutionRequest(
            task_id=task_id,
            agent_id=agent.id,
            capability_id=agent.capabilities[0].id,
            max_retries=max_retries,
            may_wait=may_wait,
        )
        await ExecutionRepository(self.services.database).enqueue(
            request, execution_id=execution_id, log_file_path=str(log_path), actor=USER_ACTOR, at=asked_at
        )
        self.set_status(execution_id, status, started_at=asked_at)
        return await self.services.executions.get(execution_id)

    def set_status(
        self, execution_id: ExecutionId, status: ExecutionStatus, *, started_at: datetime | None = None
    ) -> None:
        """Write a status as a worker would, with the times, the exit code and the size of the log that belong to it."""
        started_at = started_at or datetime.now(UTC)
        log_path = self.services.paths.execution_dir(execution_id) / "output.log"
        with closing(sqlite3.connect(self.services.paths.database_path)) as connection, connection:
            connection.execute(
                "UPDATE executions SET status = ?, started_at = ?, ended_at = ?, exit_code = ?, log_byte_size = ?"
                " WHERE id = ?",
                (
                    status.value,
                    None if status is ExecutionStatus.QUEUED else moment_text(started_at),
                    None if status.is_open else moment_text(started_at + timedelta(seconds=5)),
                    _EXIT_CODES.get(status),
                    log_path.stat().st_size if log_path.exists() else 0,
                    execution_id,
                ),
            )

    def set_columns(self, execution_id: ExecutionId, **columns: object) -> None:
        """Write columns of an execution as a worker would."""
        stored = {name: moment_text(one) if isinstance(one, datetime) else one for name, one in columns.items()}
        assignments = ", ".join(f"{name} = :{name}" for name in stored)
        with closing(sqlite3.connect(self.services.paths.database_path)) as connection, connection:
            connection.execute(f"UPDATE executions SET {assignments} WHERE id = :id", stored | {"id": execution_id})

    def copy_runs(self, count: int) -> None:
        """Store copies of the execution that ended last."""
        with closing(sqlite3.connect(self.services.paths.database_path)) as connection, connection:
            connection.row_factory = sqlite3.Row
            row = dict(connection.execute("SELECT * FROM executions WHERE ended_at IS NOT NULL").fetchone())
            _insert(connection, "executions", [row | {"id": _like(row["id"], number)} for number in range(count)])

    def copy_dependencies(self, count: int) -> None:
        """Store copies of the one task that another waits for; it waits for all of them."""
        with closing(sqlite3.connect(self.services.paths.database_path)) as connection, connection:
            connection.row_factory = sqlite3.Row
            waits = dict(connection.execute("SELECT * FROM task_dependencies").fetchone())
            other_id = waits["depends_on_task_id"]
            row = dict(connection.execute("SELECT * FROM tasks WHERE id = ?", (other_id,)).fetchone())
            copies = [row | {"id": _like(row["id"], number), "number": 1000 + number} for number in range(count)]
            _insert(connection, "tasks", copies)
            _insert(connection, "task_dependencies", [waits | {"depends_on_task_id": one["id"]} for one in copies])


def _like(one_id: str, number: int) -> str:
    return f"{number:08d}{one_id[8:]}"


def _insert(connection: sqlite3.Connection, table: str, rows: Sequence[Mapping[str, object]]) -> None:
    marks = ", ".join(f":{name}" for name in rows[0])
    connection.executemany(f"INSERT INTO {table} ({', '.join(rows[0])}) VALUES ({marks})", rows)


@asynccontextmanager
async def stored(folder: Path, *, has_worker: bool = True) -> AsyncIterator[Stored]:
    """Open services over a new database below the folder; a worker, if any, is there and does nothing."""
    project = folder / "project"
    project.mkdir(exist_ok=True)
    paths = find_paths({"AGENTMON_HOME": str(folder / "agentmon")})
    async with open_services(paths) as services:
        with idle_worker(paths) if has_worker else nullcontext():
            yield Stored(services, await services.workspaces.open(project))
