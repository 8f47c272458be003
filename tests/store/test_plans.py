"""The statements that run all day never read a whole table."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event

from agentmon.domain.board import ColumnRequest
from agentmon.domain.clock import SystemClock
from agentmon.domain.events import EventType
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.ids import ExecutionId, SessionId, TaskId, WorkerId, WorkspaceId, new_id
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import Workspace
from agentmon.store import tables
from agentmon.store.approvals import ApprovalRepository
from agentmon.store.board_pages import BoardRepository
from agentmon.store.budget_enforcing import BudgetEnforcement
from agentmon.store.claims import ClaimRepository
from agentmon.store.conversations import ConversationRepository
from agentmon.store.database import open_database
from agentmon.store.events import EventRepository
from agentmon.store.execution_commands import CommandRepository
from agentmon.store.executions import ExecutionRepository
from agentmon.store.live_executions import LiveExecutionRepository
from agentmon.store.parking import count_ending
from agentmon.store.sessions import SessionRepository
from agentmon.store.status_counts import NEEDING_YOU
from tests.stored_runs import stored

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


_OPEN_ONES = ("uq_executions_open_task_id", "ix_executions_queued")


def _scans_what_grows(plan: str) -> bool:
    """Whether it reads a table from end to end; of agents there are few, and of a subquery what it has chosen."""
    step = plan.split(" in ", maxsplit=1)[0]
    is_chosen = step.startswith(("SCAN (subquery", "SCAN anon_"))
    return step.startswith("SCAN") and " USING " not in step and step != "SCAN agents" and not is_chosen


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
    columns = [ColumnRequest(status=status) for status in TaskStatus]
    for workspace in (WORKSPACE, None):
        await board.page(workspace, columns, running_limit=4, money_words={}, board_words={})
        await board.locate(workspace, TaskId(new_id()), "", sort=None, board_words={})

    plans = _plans(database.path, statements)

    assert len(plans) > 10
    assert [plan for plan in plans if _scans_what_grows(plan)] == []


async def test_commands_that_hosts_have_got_are_passed_over(database: Database) -> None:
    statements = _recorded(database)
    await LiveExecutionRepository(database).undelivered_commands(WorkerId("w"))

    plans = _plans(database.path, statements)

    assert [plan for plan in plans if " USING INDEX ix_execution_commands_undelivered" in plan]


async def test_what_runs_and_what_asks_is_found_among_what_is_open(database: Database) -> None:
    statements = _recorded(database)
    claims = ClaimRepository(database)
    await LiveExecutionRepository(database).live()
    await claims.ask_about_waiting(at=SystemClock().now())
    await claims.find_full(ExecutionId(new_id()), max_running=4, park_after=5, at=SystemClock().now())

    looks = [f"SELECT * FROM ({statement})" for statement in statements if not statement.startswith("BEGIN")]
    steps = [plan.split(" in ", maxsplit=1)[0] for plan in _plans(database.path, looks)]
    scanned = [step for step in steps if step.startswith("SCAN ") and not step.endswith((*_OPEN_ONES, "(subquery-1)"))]

    # Agents, workspaces, and the folders (h) that agents work in: of all of them there are few.
    assert set(scanned) <= {"SCAN a", "SCAN a USING COVERING INDEX sqlite_autoindex_agents_1", "SCAN w", "SCAN h"}
    # What has no room for one run is counted agent by agent.
    assert len([step for step in steps if step.startswith("SCAN") and step.endswith(_OPEN_ONES)]) == len(looks) - 1


async def test_requests_that_are_decided_are_passed_over(database: Database) -> None:
    statements = _recorded(database)
    await ApprovalRepository(database).pending(None)
    await ApprovalRepository(database).undecided([ExecutionId(new_id())])

    plans = _plans(database.path, statements)

    assert len([plan for plan in plans if " USING INDEX ix_approvals_pending" in plan]) == 2


async def test_the_failures_of_a_command_are_found_by_its_newest_runs(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        run = await place.add_run((await place.add_task()).id, ExecutionStatus.FAILED)
        database = place.services.database
        chosen = tables.executions.select().where(tables.executions.c.id == run.id)
        async with database.reading() as connection:
            row = (await connection.execute(chosen)).mappings().one()
        statements = _recorded(database)
        async with database.writing() as connection:
            await count_ending(
                connection, row, ExecutionStatus.FAILED, EndReason.EXITED, park_after=5, at=SystemClock().now()
            )

        plans = _plans(database.path, statements)

    assert [plan for plan in plans if " USING INDEX ix_executions_agent_id_created_at_id" in plan]


async def test_no_look_of_a_budget_reads_the_queue_for_what_runs(database: Database) -> None:
    statements = _recorded(database)
    enforcement = BudgetEnforcement(database)
    await enforcement.hold_up((), at=SystemClock().now())
    await enforcement.is_interrupting()

    plans = _plans(database.path, statements)

    assert [plan for plan in plans if plan.startswith("SEARCH q") and "ix_executions_agent_id_status" not in plan] == []
    assert [plan for plan in plans if plan.startswith("SCAN") and " q" in plan.split(" in ")[0]] == []


async def test_no_statement_about_conversations_or_approvals_scans_what_grows(database: Database) -> None:
    statements = _recorded(database)
    execution_id, session_id = ExecutionId(new_id()), SessionId(new_id())
    sessions = SessionRepository(database)
    await sessions.list(None, limit=50)
    await sessions.list(None, live_only=True, limit=50)
    await sessions.find_by_prefix("01")
    await sessions.of_task(TaskId(new_id()))
    await sessions.executions(session_id)
    conversations = ConversationRepository(database)
    await conversations.messages(session_id)
    await conversations.operations(session_id=session_id)
    await conversations.operations(execution_id=execution_id)
    await conversations.plan(execution_id)
    events = EventRepository(database)
    await events.list(execution_id=execution_id, types=[EventType.MESSAGE])
    await events.list(session_id=session_id)
    await events.last(execution_id=execution_id, types=[EventType.LOG], limit=5)
    approvals = ApprovalRepository(database)
    await approvals.pending(None)
    await approvals.undecided([execution_id])
    await approvals.expire(SystemClock().now(), at=SystemClock().now())
    await approvals.history(None, limit=50)
    await approvals.of_execution(execution_id)
    await approvals.find_by_prefix("01")
    await CommandRepository(database).of_execution(execution_id)

    plans = [*_plans(database.path, statements), *_plans(database.path, [NEEDING_YOU])]

    assert len(plans) > 30
    assert [plan for plan in plans if _scans_what_grows(plan)] == []


def _recorded(database: Database) -> list[str]:
    statements: list[str] = []
    for engine in (database._writer, database._readers):

        @event.listens_for(engine.sync_engine, "before_cursor_execute")
        def remember(*arguments: object) -> None:
            statements.append(str(arguments[2]))

    return statements
