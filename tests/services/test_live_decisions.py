from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.approvals import ApprovalStatus, RuleDecision
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.operations import OperationStatus
from agentmon.domain.summaries import Activity, SummaryPeriod
from agentmon.domain.tasks import InputContext, TaskDraft
from agentmon.services.actors import USER_ACTOR
from agentmon.services.demo_agent import make_demo_agent
from tests.live_home import run_to_end
from tests.waiting import until

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.approvals import ApprovalListing
    from agentmon.domain.ids import TaskId
    from agentmon.domain.tasks import Task, Workspace
    from tests.live_home import LiveHome


async def add_conversation(services: Services, workspace: Workspace) -> Task:
    """Add a task of the demo agent, which wants to change a file and then to run its test."""
    root = Path(workspace.root_path)
    for folder in ("shop", "tests"):
        (root / folder).mkdir()
        (root / folder / "__init__.py").touch()
    (root / "shop" / "cart.py").write_text(
        "def discounted(price, percent):\n    return price * (100 - percent) // 100\n"
    )
    (root / "tests" / "test_discount.py").write_text("")
    agent = await services.agents.add(make_demo_agent(pace_s=0.0))
    draft = TaskDraft(title="Round half a cent up", assignee_agent_id=agent.id, input_context=InputContext())
    return await services.tasks.add(workspace, draft, actor=USER_ACTOR)


async def waiting(services: Services, task_id: TaskId) -> ApprovalListing:
    await until(lambda: _is_asked(services, task_id), "the agent to ask")
    (listing,) = await services.approvals.of_task(task_id)
    return listing


async def _is_asked(services: Services, task_id: TaskId) -> bool:
    return bool(await services.approvals.of_task(task_id))


async def test_a_person_and_a_rule_decide_what_a_running_agent_asks(services: Services, workspace: Workspace) -> None:
    task = await add_conversation(services, workspace)
    execution = await services.queue.run(task.id, actor=USER_ACTOR)
    edit = (await waiting(services, task.id)).approval
    await services.approvals.add_rule(
        decision=RuleDecision.ALLOW, command_prefix="python -m unittest", actor=USER_ACTOR
    )
    await services.conversations.send(task.id, "and then?", actor=USER_ACTOR)

    await services.approvals.allow(edit.id, actor=USER_ACTOR, seen_digest=edit.input_digest)
    ended = await services.queue.wait(execution.id)
    history = {one.approval.tool_name: one.approval for one in await services.approvals.history(None, limit=10)}
    assert ended.session_id is not None
    messages = [message.content for message in await services.conversations.messages(ended.session_id)]

    assert ended.status is ExecutionStatus.SUCCEEDED, ended.error
    assert "+ 50" in (Path(workspace.root_path) / "shop" / "cart.py").read_text()
    assert history["Edit"].decided_by == USER_ACTOR
    assert history["Bash"].status is ApprovalStatus.ALLOWED
    assert history["Bash"].rule_id == (await services.approvals.rules())[0].id
    assert "and then?" in messages


@pytest.mark.proof
async def test_what_is_denied_is_not_done_and_the_conversation_goes_on_later(
    services: Services, workspace: Workspace
) -> None:
    task = await add_conversation(services, workspace)
    execution = await services.queue.run(task.id, actor=USER_ACTOR)
    edit = (await waiting(services, task.id)).approval

    await services.approvals.deny(edit.id, actor=USER_ACTOR, seen_digest=edit.input_digest, reason="not that file")
    first = await services.queue.wait(execution.id)
    sent = await services.conversations.send(task.id, "what do you say now?", actor=USER_ACTOR)
    second = await services.queue.wait(sent.execution.id)
    (session,) = await services.sessions.of_task(task.id)
    messages = [message.content for message in await services.conversations.messages(session.id)]

    assert first.status is ExecutionStatus.SUCCEEDED, first.error
    assert "+ 50" not in (Path(workspace.root_path) / "shop" / "cart.py").read_text()
    assert sent.is_new_execution
    assert second.status is ExecutionStatus.SUCCEEDED, second.error
    assert (first.session_id, second.session_id) == (session.id, session.id)
    assert "what do you say now?" in messages


async def test_what_an_agent_did_is_in_the_summary_of_its_repository(services: Services, live_home: LiveHome) -> None:
    repository = live_home.project.resolve()
    (repository / ".git").mkdir()
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (repository / "part").mkdir()
    task = await add_conversation(services, await services.workspaces.open(repository / "part"))
    execution = await services.queue.run(task.id, actor=USER_ACTOR)
    edit = (await waiting(services, task.id)).approval
    await services.approvals.deny(edit.id, actor=USER_ACTOR, seen_digest=edit.input_digest, reason="not that file")
    ended = await services.queue.wait(execution.id)
    calls = await services.conversations.operations(execution_id=ended.id)

    daily = await services.summaries.daily(SummaryPeriod.DAY)
    projects = await services.summaries.projects(SummaryPeriod.MONTH, folder=str(repository / "part"))

    activity = Activity.of_all(one.activity for one in daily.summaries)
    assert (activity.session_count, activity.operation_count) == (1, len(calls))
    assert activity.blocked_operations == len([one for one in calls if one.status is OperationStatus.BLOCKED]) > 0
    (project,) = projects.summaries
    assert (project.workspace, project.active_users) == (str(repository), 1)
    assert sum(kind.count for kind in project.top_operations) == len(calls)


async def test_what_nobody_decides_in_time_is_denied_by_the_worker(services: Services, workspace: Workspace) -> None:
    await services.settings.set("approvals.timeout_s", "0.2", actor=services.actor)
    task = await add_conversation(services, workspace)

    ended = await run_to_end(services, task)
    (asked,) = await services.approvals.history(None, limit=10)

    assert ended.status is ExecutionStatus.SUCCEEDED, ended.error
    assert asked.approval.status is ApprovalStatus.EXPIRED
    assert "+ 50" not in (Path(workspace.root_path) / "shop" / "cart.py").read_text()
