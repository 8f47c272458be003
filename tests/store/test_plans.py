"""The statements that run all day never read a whole table."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event

from agentmon.domain.board import ColumnRequest
from agentmon.domain.clock import SystemClock
from agentmon.domain.ids import TaskId, WorkerId, WorkspaceId, new_id
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import Workspace
from agentmon.store.board_pages import BoardRepository
from agentmon.store.claims import ClaimRepository
from agentmon.store.database import open_database
from agentmon.store.executions import ExecutionRepository
from agentmon.store.live_executions import LiveExecutionRepository

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agentmon.store.database import Database

WORKSPACE = Workspace(id=WorkspaceId(new_id()), owner_id=new_id(), name="w", root_path="/w")  # type: ignore[arg-type]


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path / "a.db", backups_dir=tmp_path / "backups", release="1", clock=SystemClock())
    yield opened.database
    await opened.database.close()


def _plans(path: Path, statements: list[str]) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [
            f"{row[3]} in {statement}"
            for statement in statements
            if statement.lstrip().upper().startswith(("SELECT", "UPDATE"))
            for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", [None] * statement.count("?"))
        ]


async def test_no_statement_of_the_worker_or_a_list_scans_the_executions(
    database: Database,
) -> None:
    statements = _recorded(database)
    claims = ClaimRepository(database)
    worker_id = WorkerId(new_id())
    await claims.claim(worker_id=worker_id, max_running=4, park_after=5, limit=4, at=SystemClock().now())
    await claims.count_waiting()
    live = LiveExecutionRepository(database)
    await live.owners()
    await live.undelivered_commands(worker_id)
    await ExecutionRepository(database).list(None, limit=50, offset=0)
    board = BoardRepository(database)
    await board.page(WORKSPACE, [ColumnRequest(status=status) for status in TaskStatus], running_limit=4)
    await board.locate(TaskId(new_id()), "")

    plans = _plans(database.path, statements)

    assert len(plans) > 10
    assert [plan for plan in plans if plan.startswith("SCAN") and " USING " not in plan.split(" in ")[0]] == []


def _recorded(database: Database) -> list[str]:
    statements: list[str] = []
    for engine in (database._writer, database._readers):

        @event.listens_for(engine.sync_engine, "before_cursor_execute")
        def remember(*arguments: object) -> None:
            statements.append(str(arguments[2]))

    return statements
