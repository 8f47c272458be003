"""Whose changes are shown unless a run is chosen."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import Execution, run_to_review
from agentmon.domain.ids import AgentId, CapabilityId, ExecutionId, TaskId


def a_run(status: ExecutionStatus, changed_files: int | None) -> Execution:
    return Execution(
        id=ExecutionId("run"),
        task_id=TaskId("task"),
        agent_id=AgentId("agent"),
        capability_id=CapabilityId("capability"),
        status=status,
        created_at=datetime(2026, 3, 1, tzinfo=UTC),
        changed_files=changed_files,
    )


def test_it_is_the_newest_that_works_or_changed_something() -> None:
    queued = a_run(ExecutionStatus.QUEUED, None)
    working = a_run(ExecutionStatus.RUNNING, None)
    answered = a_run(ExecutionStatus.SUCCEEDED, 0)
    changed = a_run(ExecutionStatus.FAILED, 2)

    unknown = replace(a_run(ExecutionStatus.SUCCEEDED, None), snapshot_note="its changes are not known")
    not_looked_at = a_run(ExecutionStatus.SUCCEEDED, None)

    assert run_to_review([]) is None
    assert run_to_review([not_looked_at, unknown, changed]) is unknown
    assert run_to_review([queued, answered]) is queued
    assert run_to_review([queued, answered, changed, working]) is changed
    assert run_to_review([queued, working, changed]) is working
