"""A capability that can do harm waits for a person's leave, and runs or not as that person says."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.conversation import AskKind
from agentmon.domain.errors import ConflictError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.services.actors import USER_ACTOR
from tests.live_home import add_command

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.bootstrap import Services
    from agentmon.domain.approvals import ApprovalListing
    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Workspace
    from tests.live_home import LiveHome


def make_dangerous(services: Services, column: str) -> None:
    connection = sqlite3.connect(services.paths.database_path)
    with connection:
        connection.execute(f"UPDATE agent_capabilities SET {column} WHERE key = 'run'")
    connection.close()


async def held_run(services: Services, workspace: Workspace, folder: Path) -> tuple[Execution, ApprovalListing]:
    task = await add_command(services, workspace, "touch", str(folder / "done"))
    execution = await services.queue.run(task.id, actor=USER_ACTOR)
    (asked,) = await services.approvals.inbox(workspace.id)
    return execution, asked


@pytest.mark.parametrize("column", ["danger_level = 2", "requires_approval = 1"])
async def test_it_waits_in_the_inbox_with_its_whole_command_and_runs_when_allowed(
    services: Services, workspace: Workspace, live_home: LiveHome, column: str
) -> None:
    await services.agents.list()
    make_dangerous(services, column)

    execution, asked = await held_run(services, workspace, live_home.folder)

    assert (execution.status, execution.live_state.value) == (ExecutionStatus.QUEUED, "needs you")
    assert asked.approval.ask_kind is AskKind.START
    assert asked.approval.detail == f"touch {live_home.folder / 'done'}"
    with pytest.raises(ConflictError, match="waits for your leave"):
        await services.queue.run(execution.task_id, actor=USER_ACTOR)

    await services.approvals.allow(asked.approval.id, actor=USER_ACTOR, seen_digest=asked.approval.input_digest)

    assert (await services.queue.wait(execution.id)).status is ExecutionStatus.SUCCEEDED
    assert (live_home.folder / "done").exists()


async def test_it_never_runs_when_it_is_denied(services: Services, workspace: Workspace, live_home: LiveHome) -> None:
    await services.agents.list()
    make_dangerous(services, "danger_level = 3")
    execution, asked = await held_run(services, workspace, live_home.folder)

    await services.approvals.deny(
        asked.approval.id, actor=USER_ACTOR, seen_digest=asked.approval.input_digest, reason="not today"
    )

    assert (await services.executions.get(execution.id)).status is ExecutionStatus.CANCELLED
    assert not (live_home.folder / "done").exists()
    assert await services.approvals.inbox(workspace.id) == ()
