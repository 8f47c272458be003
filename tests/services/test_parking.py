from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.agents import Agent, Capability, ToolType
from agentmon.domain.errors import ConflictError
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import EndReason, ExecutionStatus, WaitReason
from agentmon.domain.ids import AgentId, CapabilityId, new_id
from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import InputContext, TaskDraft
from agentmon.services.actors import USER_ACTOR
from agentmon.store.agents import AgentRepository
from tests.live_home import add_command, run_to_end
from tests.waiting import until

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Task, Workspace


async def until_waiting(services: Services, task: Task) -> Execution:
    """Return the run of the task once it has been tried and put back."""

    async def is_back() -> bool:
        newest = await services.executions.newest(task.id)
        return newest is not None and newest.status is ExecutionStatus.QUEUED and newest.attempt > 0

    await until(is_back)
    newest = await services.executions.newest(task.id)
    assert newest is not None
    return newest


async def test_a_used_up_quota_parks_the_run_until_the_reset_that_was_told(
    services: Services, workspace: Workspace
) -> None:
    reset = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=3)
    line = f"Claude AI usage limit reached|{int(reset.timestamp())}"
    task = await add_command(services, workspace, "sh", "-c", f"echo '{line}'; exit 1")

    await services.queue.run(task.id, actor=USER_ACTOR)
    parked = await until_waiting(services, task)

    assert parked.live_state is LiveState.PARKED
    assert parked.wait_reason is WaitReason.USAGE_LIMIT
    assert parked.not_before is not None
    assert timedelta(0) <= parked.not_before - reset < timedelta(minutes=1)
    assert "usage limit reached" in (parked.error or "")
    assert parked.retry_count == 0
    assert (await services.agents.by_slug("command")).failure_streak == 0
    types = [event.event_type for event in await services.audit.of_task(task.id)]
    assert TaskEventType.EXECUTION_PARKED in types


async def test_a_parked_run_that_a_person_runs_again_starts_at_once(services: Services, workspace: Workspace) -> None:
    script = "test -e lifted && exit 0; touch lifted; echo 'Claude AI usage limit reached|4102444800'; exit 1"
    task = await add_command(services, workspace, "sh", "-c", script.replace("4102444800", str(_in_a_day())))
    first = await services.queue.run(task.id, actor=USER_ACTOR)
    await until_waiting(services, task)

    again = await services.queue.run(task.id, actor=USER_ACTOR)
    ended = await services.queue.wait(again.id)

    assert again.id == first.id
    assert (ended.status, ended.attempt, ended.retry_count) == (ExecutionStatus.SUCCEEDED, 1, 0)


@pytest.mark.proof
async def test_too_many_requests_are_waited_for_a_short_while(services: Services, workspace: Workspace) -> None:
    script = "test -e again && exit 0; touch again; echo 'Error: 429 Too Many Requests, Retry-After: 1'; exit 1"
    task = await add_command(services, workspace, "sh", "-c", script)

    ended = await run_to_end(services, task)

    assert (ended.status, ended.attempt, ended.retry_count) == (ExecutionStatus.SUCCEEDED, 1, 0)
    assert ended.wait_reason is None


async def test_a_bad_login_fails_at_once_and_says_what_to_do(services: Services, workspace: Workspace) -> None:
    script = "echo 'Not logged in · Please run /login'; exit 1"
    task = await add_command(services, workspace, "sh", "-c", script, max_retries=3)

    ended = await run_to_end(services, task)

    assert (ended.status, ended.retry_count, ended.attempt) == (ExecutionStatus.FAILED, 0, 0)
    assert "Not logged in" in (ended.error or "")
    assert (await services.tasks.get(task.id)).status is TaskStatus.BLOCKED


@pytest.mark.proof
async def test_a_command_that_fails_five_times_in_a_row_is_parked_and_others_are_not(
    services: Services, workspace: Workspace
) -> None:
    await services.settings.set("worker.max_running", "1", actor=services.actor)
    tasks = [await add_command(services, workspace, "sh", "-c", "echo >> tried; exit 1") for _ in range(7)]
    runs = [await services.queue.run(task.id, actor=USER_ACTOR) for task in tasks]
    other = await add_command(services, workspace, "true")

    for run in runs[:5]:
        await services.queue.wait(run.id)

    async def are_parked() -> bool:
        return {(await services.executions.get(run.id)).live_state for run in runs[5:]} == {LiveState.PARKED}

    await until(are_parked, "the others rest")
    parked = [await services.executions.get(run.id) for run in runs[5:]]
    ended = await run_to_end(services, other)

    assert [run.error for run in parked] == ["its last 5 runs failed"] * 2
    assert all(run.not_before is not None and run.not_before > datetime.now(UTC) for run in parked)
    assert ended.status is ExecutionStatus.SUCCEEDED
    last = (await services.audit.of_task(tasks[6].id))[-1]
    assert (last.event_type, last.payload["reason"]) == (TaskEventType.EXECUTION_PARKED, "failures")

    await services.agents.release("command", actor=USER_ACTOR)
    assert (await services.queue.wait(runs[5].id)).status is ExecutionStatus.FAILED


async def test_a_command_that_is_tried_again_and_again_rests_as_well(services: Services, workspace: Workspace) -> None:
    task = await add_command(services, workspace, "sh", "-c", "exit 1", max_retries=100)
    await services.queue.run(task.id, actor=USER_ACTOR)
    with closing(sqlite3.connect(services.paths.database_path)) as connection, connection:
        connection.execute("UPDATE executions SET retry_count = 4")

    parked = await until_waiting(services, task)

    assert (parked.live_state, parked.retry_count) == (LiveState.PARKED, 5)
    assert parked.not_before is not None
    assert parked.not_before - datetime.now(UTC) > timedelta(seconds=40)


@pytest.mark.proof
async def test_an_ai_agent_that_fails_five_times_in_a_row_is_parked_and_says_so(
    services: Services, workspace: Workspace
) -> None:
    tasks = [await add_failing_agent_task(services, workspace, number) for number in range(7)]
    runs = [await services.queue.run(task.id, actor=USER_ACTOR) for task in tasks]

    for run in runs[:5]:
        await services.queue.wait(run.id)
    agent = await services.agents.by_slug("robot")

    assert agent.failure_streak == 5
    assert agent.parked_until is not None
    assert agent.parked_until > datetime.now(UTC)
    assert agent.park_note == "its last 5 runs failed"
    assert [(await services.executions.get(run.id)).status for run in runs[5:]] == [ExecutionStatus.QUEUED] * 2
    trail = await services.audit.all(workspace)
    assert [line.event.payload["agent"] for line in trail if line.event.event_type is TaskEventType.AGENT_PARKED] == [
        "robot"
    ]

    await services.agents.release("robot", actor=USER_ACTOR)
    await services.queue.wait(runs[6].id)

    assert (await services.agents.by_slug("robot")).failure_streak == 2
    with pytest.raises(ConflictError, match="not parked"):
        await services.agents.release("robot", actor=USER_ACTOR)


@pytest.mark.proof
async def test_after_its_rest_an_ai_agent_gets_one_try_and_a_longer_rest_when_that_fails(
    services: Services, workspace: Workspace
) -> None:
    tasks = [await add_failing_agent_task(services, workspace, number) for number in range(7)]
    for task in tasks[:5]:
        await run_to_end(services, task)
    runs = [await services.queue.run(task.id, actor=USER_ACTOR) for task in tasks[5:]]
    with closing(sqlite3.connect(services.paths.database_path)) as connection, connection:
        connection.execute("UPDATE agents SET parked_until = '2020-01-01T00:00:00.000Z' WHERE slug = 'robot'")

    ended = await services.queue.wait(runs[0].id)
    agent = await services.agents.by_slug("robot")

    assert ended.end_reason is EndReason.EXITED
    assert agent.failure_streak == 6
    assert agent.parked_until is not None
    assert agent.parked_until - datetime.now(UTC) > timedelta(seconds=90)
    assert (await services.executions.get(runs[1].id)).status is ExecutionStatus.QUEUED


async def add_failing_agent_task(services: Services, workspace: Workspace, number: int) -> Task:
    """Return a task of an AI agent that fails; the agent is made with the first one."""
    agent_id = AgentId(new_id())
    schema = {"type": "object", "properties": {"code": {"type": "integer"}}, "required": ["code"]}
    capability = Capability(
        id=CapabilityId(new_id()),
        agent_id=agent_id,
        key="fail",
        label="Fail",
        command_tokens=("-c", 'exit "$1"', "robot", "{{args.code}}"),
        args_schema=schema,
    )
    robot = Agent(
        id=agent_id,
        slug="robot",
        name="Robot",
        tool_type=ToolType.AI_AGENT,
        binary_path="sh",
        capabilities=(capability,),
    )
    await AgentRepository(services.database).add_missing([robot], at=datetime.now(UTC))
    registered = await services.agents.by_slug("robot")
    draft = TaskDraft(
        title=f"fails with {number}",
        assignee_agent_id=registered.id,
        input_context=InputContext(args={"code": number + 1}),
    )
    return await services.tasks.add(workspace, draft, actor=USER_ACTOR)


def _in_a_day() -> int:
    return int((datetime.now(UTC) + timedelta(days=1)).timestamp())
