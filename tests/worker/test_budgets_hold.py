from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.budget_requests import CONTINUE
from agentmon.domain.budgets import BudgetAction, BudgetLevel, BudgetPeriod, BudgetScope
from agentmon.domain.conversation import AskKind
from agentmon.domain.errors import ConflictError
from agentmon.domain.events import ActorType, TaskEventType
from agentmon.domain.execution_status import ExecutionStatus, WaitReason
from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import TaskDraft
from agentmon.services.actors import USER_ACTOR
from agentmon.services.demo_agent import make_demo_agent
from agentmon.usage.prices.own_prices import write_own_price
from agentmon.usage.prices.rates import Kind
from tests.live_home import add_command, run_to_end
from tests.shared_folders import let_agents_share_folders
from tests.waiting import DEADLINE_S, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agentmon.bootstrap import Services
    from agentmon.domain.agents import Agent
    from agentmon.domain.approvals import Approval
    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Task, Workspace
    from tests.live_home import LiveHome

DOLLAR = 1_000_000_000


@pytest.fixture
async def services(live_home: LiveHome) -> AsyncIterator[Services]:
    """Services of a home in which each answer of the demo agent costs between five and six dollars."""
    live_home.paths.prices_file.parent.mkdir(parents=True, exist_ok=True)
    rates = {Kind.INPUT: Decimal(1000), Kind.OUTPUT: Decimal(1000)}
    write_own_price(live_home.paths.prices_file, model="demo-model", rates=rates)
    async with open_services(live_home.paths) as services:
        yield services


@pytest.fixture
async def workspace(services: Services, live_home: LiveHome) -> Workspace:
    (live_home.project / "shop").mkdir()
    (live_home.project / "shop" / "cart.py").write_text("    return price * (100 - percent) // 100\n")
    opened = await services.workspaces.open(live_home.project)
    await let_agents_share_folders(services.database, opened.id)
    return opened


@pytest.fixture
async def agent(services: Services) -> Agent:
    return await services.agents.add(make_demo_agent(pace_s=0.05))


async def add_work(services: Services, workspace: Workspace, agent: Agent, title: str = "mend") -> Task:
    return await services.tasks.add(workspace, TaskDraft(title=title, assignee_agent_id=agent.id), actor=USER_ACTOR)


async def until_ended(services: Services, execution: Execution) -> Execution:
    async def has_ended() -> bool:
        return not (await services.executions.get(execution.id)).status.is_open

    await until(has_ended, "the run to end", deadline_s=DEADLINE_S)
    return await services.executions.get(execution.id)


async def until_held_back(services: Services, execution: Execution) -> Execution:
    async def is_held_back() -> bool:
        return (await services.executions.get(execution.id)).wait_reason is WaitReason.BUDGET

    await until(is_held_back, "the run to wait for a budget")
    return await services.executions.get(execution.id)


async def until_asked(services: Services) -> Approval:
    """Return the request of the budget."""

    async def asked() -> list[Approval]:
        found = [one.approval for one in await services.approvals.inbox(None)]
        return [one for one in found if one.ask_kind is AskKind.BUDGET]

    async def is_asked() -> bool:
        return bool(await asked())

    await until(is_asked, "the request of the budget", deadline_s=DEADLINE_S)
    (approval,) = await asked()
    return approval


async def test_a_conversation_waits_for_its_budget_through_the_end_of_the_worker_and_goes_on_when_that_is_raised(
    services: Services, workspace: Workspace, agent: Agent, live_home: LiveHome
) -> None:
    task = await add_work(services, workspace, agent)
    await services.budgets.set(
        scope=BudgetScope.TASK, scope_id=task.id, period=BudgetPeriod.TOTAL, limit=1 * DOLLAR, actor=USER_ACTOR
    )

    begun = await services.queue.run(task.id, actor=USER_ACTOR)
    approval = await until_asked(services)
    live_home.kill_worker()
    await services.workers.ensure_running()
    waiting = await services.executions.get(begun.id)
    trail = await services.audit.of_task(task.id)

    (state,) = await services.budgets.states()
    assert (waiting.status, waiting.live_state) == (ExecutionStatus.RUNNING, LiveState.NEEDS_YOU)
    assert (await services.tasks.get(task.id)).status is TaskStatus.IN_PROGRESS
    assert state.level is BudgetLevel.SPENT
    # One that is slow to obey is asked again.
    asked = [one for one in trail if one.event_type is TaskEventType.AGENT_COMMANDED]
    assert {(one.actor.type, one.payload["type"]) for one in asked} == {(ActorType.SYSTEM, "interrupt")}
    assert any(one.event_type is TaskEventType.BUDGET_REACHED for one in trail)
    assert (await services.board.page(workspace, ())).status_line.needs_you == 1

    await services.budgets.set(
        scope=BudgetScope.TASK, scope_id=task.id, period=BudgetPeriod.TOTAL, limit=1000 * DOLLAR, actor=USER_ACTOR
    )

    async def has_gone_on() -> bool:
        told = await services.conversations.messages(begun.session_id) if begun.session_id else ()
        return any(one.content == CONTINUE for one in told)

    await until(has_gone_on, "the agent to be told to continue")
    assert (await services.approvals.get(approval.id)).approval.status is ApprovalStatus.WITHDRAWN


async def test_a_run_that_waits_for_its_budget_ends_when_a_person_finishes_it(
    services: Services, workspace: Workspace, agent: Agent
) -> None:
    task = await add_work(services, workspace, agent)
    await services.budgets.set(
        scope=BudgetScope.TASK, scope_id=task.id, period=BudgetPeriod.TOTAL, limit=1 * DOLLAR, actor=USER_ACTOR
    )
    begun = await services.queue.run(task.id, actor=USER_ACTOR)
    approval = await until_asked(services)

    await services.conversations.finish(task.id, actor=USER_ACTOR)
    ended = await until_ended(services, begun)

    assert not ended.status.is_open
    assert (await services.approvals.get(approval.id)).approval.status is ApprovalStatus.WITHDRAWN
    assert await services.approvals.inbox(None) == ()


@pytest.mark.proof
async def test_a_spent_budget_of_all_holds_back_agents_and_no_tools_and_leaves_alone_what_runs(
    services: Services, workspace: Workspace, agent: Agent
) -> None:
    await let_agents_share_folders(services.database, workspace.id)
    running, later = [await add_work(services, workspace, agent, title) for title in ("mend", "mend more")]
    begun = await services.queue.run(running.id, actor=USER_ACTOR)

    async def has_spent() -> bool:
        return (await services.budgets.states())[0].use.spent > 0

    budget = (
        await services.budgets.set(
            scope=BudgetScope.ALL,
            period=BudgetPeriod.DAY,
            limit=1 * DOLLAR,
            action=BudgetAction.BLOCK,
            actor=USER_ACTOR,
        )
    ).budget
    await until(has_spent, "the first answer to be priced")
    waiting = await until_held_back(services, await services.queue.run(later.id, actor=USER_ACTOR))
    tool = await run_to_end(services, await add_command(services, workspace, "true"))
    program = Path(workspace.root_path) / agent.slug
    program.symlink_to("/bin/true")
    command = await add_command(services, workspace, str(program), "-p", "mend")
    hidden_agent = await until_held_back(services, await services.queue.run(command.id, actor=USER_ACTOR))
    left_alone = await services.executions.get(begun.id)
    with pytest.raises(ConflictError, match="is spent"):
        await services.queue.run(later.id, actor=USER_ACTOR)
    await services.budgets.remove(budget.id, actor=USER_ACTOR)

    async def has_started() -> bool:
        return (await services.executions.get(waiting.id)).pid is not None

    await until(has_started)
    assert tool.status is ExecutionStatus.SUCCEEDED
    assert left_alone.status is ExecutionStatus.RUNNING
    assert waiting.error == hidden_agent.error == "the budget of everything, $1.00 a day, is spent"
    assert waiting.not_before is not None
    assert waiting.not_before.strftime("%H:%M") == "00:00"
    changes = [line.event for line in await services.audit.all(workspace)]
    assert [one.payload["change"] for one in changes if one.event_type is TaskEventType.BUDGET_CHANGED] == [
        "set",
        "removed",
    ]
