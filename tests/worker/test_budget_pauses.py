"""A run whose budget is spent waits for a person, and goes on when the budget or the person lets it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from agentmon.cli.budget_text import budget_form
from agentmon.cli.request_text import waiting_lines
from agentmon.domain.activity import Activity
from agentmon.domain.agents import ToolType
from agentmon.domain.approvals import ApprovalScope, ApprovalStatus
from agentmon.domain.budget_requests import CONTINUE, QUESTION
from agentmon.domain.budgets import BudgetPeriod, BudgetScope, BudgetUnit
from agentmon.domain.conversation import ActivityNews, AskKind, CommandNews
from agentmon.domain.errors import ConflictError, UsageError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import EndReason, ExecutionStatus, WaitReason
from agentmon.domain.executions import CommandType, ExecutionEnding
from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import TaskStatus
from agentmon.screens.costs.budget_line import budget_content
from agentmon.services.actors import USER_ACTOR
from agentmon.services.budgets import BudgetService
from agentmon.store import tables
from agentmon.store.activity import ActivityRepository
from agentmon.store.approvals import ApprovalRepository
from agentmon.store.execution_commands import CommandRepository
from agentmon.store.executions import ExecutionRepository
from agentmon.store.usage_days import UsageDayRepository
from agentmon.worker.budget_guarding import BudgetGuard
from agentmon.worker.repositories import Repositories
from tests.conversing import a_wish
from tests.worker.test_budget_guarding import DOLLAR, Guarded, guarded

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from sqlalchemy import Executable

    from agentmon.domain.approvals import ApprovalListing
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import ExecutionId

INTERRUPT = ("interrupt", "budget")
MESSAGE = ("message", "budget")


async def held_up(home: Guarded, *, spent: int = 3, limit: int = 2) -> tuple[Execution, ApprovalListing]:
    """Return a run that waits for its budget, and its request."""
    begun = await home.place.begin((await home.place.add_task()).id)
    await home.spend(begun.id, spent)
    await home.set(limit * DOLLAR)
    await home.look()
    await obey(home, begun.id)
    return await home.place.services.executions.get(begun.id), await the_request(home)


async def obey(home: Guarded, execution_id: ExecutionId) -> None:
    """Let the agent obey all that it was told."""
    commands = await home.place.commands(execution_id)
    told = [CommandNews(command_id=one.id, was_obeyed=True) for one in commands]
    await home.place.tell(execution_id, *told, at=home.clock.now())


async def write(home: Guarded, statement: Executable) -> None:
    async with home.place.services.database.writing() as connection:
        await connection.execute(statement)


async def pause(home: Guarded, at: datetime | None) -> None:
    """Let the host of all that runs say that it is paused, or not any more."""
    await write(home, update(tables.executions).values(paused_at=at))


async def the_request(home: Guarded) -> ApprovalListing:
    (listing,) = await home.place.services.approvals.inbox(None)
    return listing


async def answer(home: Guarded, said: str) -> None:
    approval = (await the_request(home)).approval
    await home.place.services.approvals.answer(
        approval.id, actor=USER_ACTOR, seen_digest=approval.input_digest, answers={QUESTION: said}
    )


def told(home: Guarded, execution_id: ExecutionId) -> list[tuple[str, str]]:
    """Return type and cause of all commands, oldest first."""
    query = "SELECT type, cause FROM execution_commands WHERE execution_id = ? ORDER BY id"
    with closing(sqlite3.connect(home.place.services.paths.database_path)) as connection:
        return connection.execute(query, (execution_id,)).fetchall()


async def state(home: Guarded, execution_id: ExecutionId) -> LiveState:
    return (await home.place.services.executions.get(execution_id)).live_state


async def test_a_run_that_has_spent_its_budget_is_interrupted_once_and_asks(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution, listing = await held_up(home)
        await home.look()
        later = BudgetGuard(
            budgets=Repositories.over(home.place.services.database).budgets,
            enforcement=Repositories.over(home.place.services.database).budget_enforcement,
            days=Repositories.over(home.place.services.database).usage_days,
            prices=Repositories.over(home.place.services.database).usage_prices,
            paths=home.place.services.paths,
            clock=home.clock,
        )
        home.clock.move(timedelta(hours=1))
        await later.look(1)

        assert (execution.status, execution.live_state) == (ExecutionStatus.RUNNING, LiveState.NEEDS_YOU)
        assert execution.activity_note == listing.approval.title == "Budget spent: everything, $3.00 of $2.00 a day"
        assert listing.approval.ask_kind is AskKind.BUDGET
        assert [choice.key for choice in listing.approval.questions[0].choices] == ["raise", "once", "stop"]
        assert (await the_request(home)).approval == listing.approval
        assert told(home, execution.id) == [INTERRUPT]
        assert await home.place.services.executions.without_request(home.place.workspace) == ()
        with pytest.raises(ConflictError, match="waits for its budget"):
            await home.place.services.conversations.send(execution.task_id, "go on", actor=USER_ACTOR)


async def test_what_its_agent_waits_for_as_well_does_not_hide_that_the_budget_decides(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution, listing = await held_up(home)
        idle = ActivityNews(activity=Activity.WAITING, note="done", source="session_state_changed")
        await home.place.tell(execution.id, idle, at=home.clock.now())

        shown = await home.place.services.executions.get(execution.id)
        assert (shown.activity_note, shown.activity_source) == (listing.approval.title, "approval")


async def test_one_that_was_taken_for_idle_and_asks_for_something_is_interrupted_after_all(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        task = await home.place.add_task()
        execution = await home.place.begin(task.id)
        await home.place.tell(execution.id, ActivityNews(activity=Activity.WAITING), at=home.clock.now())
        await home.set(2 * DOLLAR)
        await home.spend(execution.id, 3)
        await home.look()
        at_rest = told(home, execution.id)
        await home.place.ask(execution.id, a_wish(), at=home.clock.now())
        await home.look()
        await home.look()
        asking = told(home, execution.id)
        await obey(home, execution.id)
        listing = next(
            one for one in await home.place.services.approvals.inbox(None) if one.approval.ask_kind is AskKind.BUDGET
        )
        await home.place.services.approvals.allow(
            listing.approval.id, actor=USER_ACTOR, seen_digest=listing.approval.input_digest
        )
        await home.look()

        assert (at_rest, asking) == ([], [INTERRUPT])
        assert told(home, execution.id)[-1] == MESSAGE


@pytest.mark.parametrize(("said", "limit"), [("raise", 6), ("7.50", 7.5), ("$ 9", 9)])
async def test_a_raised_budget_lets_it_go_on(tmp_path: Path, said: str, limit: float) -> None:
    async with guarded(tmp_path) as home:
        execution, listing = await held_up(home)

        await answer(home, said)
        at_once = await state(home, execution.id)
        await home.look()
        await home.look()

        (budget,) = await home.place.services.budgets.states()
        assert budget.budget.limit == round(limit * DOLLAR)
        assert at_once is await state(home, execution.id) is LiveState.RUNNING
        assert told(home, execution.id) == [INTERRUPT, MESSAGE]
        assert (await home.place.commands(execution.id))[-1].payload == {"text": CONTINUE}
        decided = (await home.place.services.approvals.get(listing.approval.id)).approval
        assert (decided.status, decided.decided_by) == (ApprovalStatus.ANSWERED, USER_ACTOR)
        assert await home.place.services.approvals.inbox(None) == ()


@pytest.mark.parametrize("said", ["2", "3", "a lot", "-1", ""])
async def test_a_limit_that_is_spent_already_or_none_is_refused(tmp_path: Path, said: str) -> None:
    async with guarded(tmp_path) as home:
        execution, listing = await held_up(home)

        with pytest.raises(UsageError):
            await answer(home, said)
        await home.look()

        assert told(home, execution.id) == [INTERRUPT]
        assert (await the_request(home)).approval == listing.approval


async def test_going_on_once_is_for_the_amount_of_the_budget_and_this_run_alone(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution, _ = await held_up(home)
        other = await home.place.enqueue((await home.place.add_task("waits")).id, at=home.clock.now())

        await answer(home, "once")
        await home.look()
        await home.spend(execution.id, 1)
        await home.look()
        within = told(home, execution.id)
        await home.spend(execution.id, 1)
        await home.look()

        (budget,) = await home.place.services.budgets.states()
        assert budget.budget.limit == 2 * DOLLAR
        assert within == [INTERRUPT, MESSAGE]
        assert told(home, execution.id) == [INTERRUPT, MESSAGE, INTERRUPT]
        assert (await the_request(home)).approval.title == "Budget spent: everything, $5.00 of $2.00 a day"
        assert (await home.place.services.executions.get(other.id)).wait_reason is WaitReason.BUDGET
        asked = await home.place.services.approvals.history(None, limit=9)
        assert [(one.approval.status, one.approval.scope) for one in asked] == [
            (ApprovalStatus.PENDING, None),
            (ApprovalStatus.ALLOWED, ApprovalScope.ONCE),
        ]


async def test_what_went_on_once_asks_again_in_the_next_period(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution, _ = await held_up(home)
        await answer(home, "once")
        await home.look()
        home.clock.move(timedelta(days=1))
        await home.spend(execution.id, 3)
        await home.look()

        assert told(home, execution.id) == [INTERRUPT, MESSAGE, INTERRUPT]


async def test_a_person_stops_it_as_any_other_run(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution, _ = await held_up(home)

        await answer(home, "stop")
        await home.look()
        ending = ExecutionEnding(
            status=ExecutionStatus.FAILED, ended_at=home.clock.now(), reason=EndReason.STOPPED, exit_code=143
        )
        await home.place.tell(execution.id, ending=ending, at=home.clock.now())

        ended = await home.place.services.executions.get(execution.id)
        assert (ended.status, ended.end_reason, ended.live_state) == (
            ExecutionStatus.CANCELLED,
            EndReason.STOPPED,
            LiveState.CANCELLED,
        )
        assert told(home, execution.id) == [INTERRUPT, ("stop", "person")]


async def test_a_budget_that_is_raised_removed_or_begins_anew_lets_it_go_on_by_itself(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution, _ = await held_up(home)
        await home.set(9 * DOLLAR)
        await home.look()
        raised = told(home, execution.id)
        await home.spend(execution.id, 6)
        await home.look()
        await obey(home, execution.id)
        home.clock.move(timedelta(days=1))
        await home.look()
        next_day = told(home, execution.id)
        await home.spend(execution.id, 9)
        await home.look()
        await obey(home, execution.id)
        (budget,) = await home.place.services.budgets.states()
        await home.place.services.budgets.remove(budget.budget.id, actor=USER_ACTOR)
        await home.look()

        assert raised == [INTERRUPT, MESSAGE]
        assert next_day == raised * 2
        assert told(home, execution.id) == raised * 3
        assert await home.place.services.approvals.inbox(None) == ()
        asked = await home.place.services.approvals.history(None, limit=9)
        assert {one.approval.status for one in asked} == {ApprovalStatus.WITHDRAWN}


async def test_a_limit_that_is_changed_and_still_spent_is_asked_about_as_it_is_now(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution, listing = await held_up(home)
        await home.set(DOLLAR * 5 // 2)
        await home.look()

        asked = (await the_request(home)).approval
        assert asked.id != listing.approval.id
        assert asked.title == "Budget spent: everything, $3.00 of $2.50 a day"
        assert told(home, execution.id) == [INTERRUPT]


async def test_of_two_spent_budgets_each_is_asked_about_and_nothing_runs_in_between(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        begun = await home.place.begin((await home.place.add_task()).id)
        await home.spend(begun.id, 3)
        await home.set(2 * DOLLAR)
        task = {"scope": BudgetScope.TASK, "scope_id": begun.task_id, "period": BudgetPeriod.TOTAL}
        await home.set(2500, unit=BudgetUnit.TOKENS, **task)
        await home.look()
        await obey(home, begun.id)
        await answer(home, "raise")
        await home.look()
        between = (told(home, begun.id), await state(home, begun.id), (await the_request(home)).approval.title)
        await answer(home, "10k")
        await home.look()

        assert between == (
            [INTERRUPT],
            LiveState.NEEDS_YOU,
            "Budget spent: task #1, 3.0 K tokens of 2.5 K tokens in all",
        )
        assert told(home, begun.id) == [INTERRUPT, MESSAGE]
        assert [one.budget.limit for one in await home.place.services.budgets.states()] == [6 * DOLLAR, 10_000]


async def test_an_agent_that_waits_for_a_message_anyway_is_neither_interrupted_nor_told_to_continue(
    tmp_path: Path,
) -> None:
    async with guarded(tmp_path) as home:
        begun = await home.place.begin((await home.place.add_task()).id)
        waits = ActivityNews(activity=Activity.WAITING, note="SQLite or Postgres?", source="its last message")
        await home.place.tell(begun.id, waits, at=home.clock.now())
        await home.spend(begun.id, 3)
        await home.set(2 * DOLLAR)
        await home.look()
        held = await home.place.services.executions.get(begun.id)
        await home.set(9 * DOLLAR)
        await home.look()

        freed = await home.place.services.executions.get(begun.id)
        assert held.activity_note == "Budget spent: everything, $3.00 of $2.00 a day"
        assert told(home, begun.id) == []
        assert (freed.live_state, freed.activity_note, freed.activity_source) == (
            LiveState.NEEDS_YOU,
            "SQLite or Postgres?",
            "its last message",
        )


async def test_what_spends_on_although_it_waits_is_interrupted_again(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution, _ = await held_up(home)
        home.clock.move(timedelta(seconds=5))
        await home.spend(execution.id, 1)
        await home.look()
        cut_off = told(home, execution.id)
        await home.spend(execution.id, 2)
        await home.look()

        assert cut_off == [INTERRUPT]
        assert told(home, execution.id) == [INTERRUPT, INTERRUPT]


async def test_what_obeys_each_interrupt_and_spends_on_is_asked_to_end(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution, _ = await held_up(home)
        for _ in range(5):
            home.clock.move(timedelta(seconds=5))
            for _ in range(2):
                await home.spend(execution.id, 1)
            await home.look()
            await obey(home, execution.id)

        assert told(home, execution.id) == [INTERRUPT, INTERRUPT, ("stop", "budget")]


async def test_a_pause_gives_the_time_to_obey_an_interrupt_anew(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution = await home.place.begin((await home.place.add_task()).id)
        await home.spend(execution.id, 3)
        commands = CommandRepository(home.place.services.database)
        await pause(home, home.clock.now())
        await home.set(2 * DOLLAR)
        await home.look()
        home.clock.move(timedelta(minutes=5))
        await home.look()
        await commands.add(execution.id, (CommandType.RESUME, {}), actor=USER_ACTOR, at=home.clock.now())
        await pause(home, None)
        home.clock.move(timedelta(seconds=9))
        await home.look()
        within = told(home, execution.id)
        home.clock.move(timedelta(seconds=2))
        await home.look()

        assert within == [INTERRUPT, ("resume", "person")]
        assert told(home, execution.id) == [*within, ("stop", "budget")]


async def test_a_budget_that_somebody_raised_further_meanwhile_is_not_lowered_by_an_answer(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution, _ = await held_up(home)
        await home.set(100 * DOLLAR)
        await answer(home, "raise")
        await home.look()

        (budget,) = await home.place.services.budgets.states()
        assert budget.budget.limit == 100 * DOLLAR
        assert told(home, execution.id) == [INTERRUPT, MESSAGE]


async def test_what_others_spend_while_somebody_reads_refuses_no_answer(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution, listing = await held_up(home)
        await home.spend(execution.id, 1)
        await home.look()
        shown = (await the_request(home)).approval
        await home.place.services.approvals.allow(
            listing.approval.id, actor=USER_ACTOR, seen_digest=listing.approval.input_digest
        )

        assert shown.title == "Budget spent: everything, $4.00 of $2.00 a day"


async def test_a_command_whose_model_failed_is_no_agent_with_a_bill(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        other = await home.place.begin((await home.place.add_task("talks")).id)
        tool = await home.place.begin((await home.place.add_task()).id, mode=ExecutionMode.TEMPLATE)
        await home.spend(other.id, 3)
        await home.spend(tool.id, 0)
        await write(home, update(tables.agents).values(tool_type=ToolType.CLI_TOOL))
        calls = tables.llm_interactions
        await write(home, update(calls).where(calls.c.execution_id == tool.id).values(success=False))
        await home.set(2 * DOLLAR)
        await home.look()

        assert told(home, tool.id) == []
        assert told(home, other.id) == [INTERRUPT]


async def test_the_request_says_what_is_spent_by_now_and_an_answer_to_an_older_one_is_refused(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution, listing = await held_up(home)
        await home.spend(execution.id, 6)
        await home.look()

        asked = (await the_request(home)).approval
        shown = await home.place.services.executions.get(execution.id)
        assert asked.id == listing.approval.id
        assert asked.title == shown.activity_note == "Budget spent: everything, $9.00 of $2.00 a day"
        with pytest.raises(ConflictError, match="something else"):
            await home.place.services.approvals.allow(
                asked.id, actor=USER_ACTOR, seen_digest=listing.approval.input_digest
            )
        await answer(home, "raise")
        await home.look()
        (state,) = await home.place.services.budgets.states()
        assert (state.budget.limit, told(home, execution.id)) == (12 * DOLLAR, [INTERRUPT, MESSAGE])


async def test_no_time_limit_of_requests_denies_it(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        _, listing = await held_up(home)
        home.clock.move(timedelta(days=400))

        late = await ApprovalRepository(home.place.services.database).expire(home.clock.now(), at=home.clock.now())

        assert late == ()
        assert (await the_request(home)).approval.id == listing.approval.id


async def test_its_own_screen_says_what_it_waits_for_while_the_request_does(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        begun = await home.place.begin((await home.place.add_task()).id, mode=ExecutionMode.TMUX)
        await home.spend(begun.id, 3)
        await home.set(2 * DOLLAR)
        await home.look()
        seen = ActivityNews(activity=Activity.WORKING, note="", source="its screen")
        activity = ActivityRepository(home.place.services.database)
        await activity.record(begun.id, seen, evidence={}, at=home.clock.now())

        shown = await home.place.services.executions.get(begun.id)
        assert (shown.live_state, shown.activity_note) == (
            LiveState.NEEDS_YOU,
            "Budget spent: everything, $3.00 of $2.00 a day",
        )


async def test_the_end_of_a_run_takes_its_request_back(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution, listing = await held_up(home)
        await home.place.end(execution.id)
        await home.look()

        assert (
            await home.place.services.approvals.get(listing.approval.id)
        ).approval.status is ApprovalStatus.WITHDRAWN
        assert await home.place.services.approvals.inbox(None) == ()


async def test_a_permission_that_waits_is_asked_beside_it(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        begun = await home.place.begin((await home.place.add_task()).id)
        await home.place.ask(begun.id, a_wish(), at=home.clock.now())
        await home.spend(begun.id, 3)
        await home.set(2 * DOLLAR)
        await home.look()

        kinds = [one.approval.ask_kind for one in await home.place.services.approvals.inbox(None)]
        assert sorted(kinds) == [AskKind.BUDGET, AskKind.PERMISSION]
        assert told(home, begun.id) == [INTERRUPT]


async def test_a_program_that_cannot_wait_ends_with_its_budget_spent(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution = await home.place.begin((await home.place.add_task()).id, mode=ExecutionMode.TEMPLATE)
        other = await home.place.begin((await home.place.add_task("talks")).id)
        await home.spend(other.id, 3)
        await home.set(2 * DOLLAR, scope=BudgetScope.AGENT, scope_id=execution.agent_id)
        await home.look()
        ending = ExecutionEnding(
            status=ExecutionStatus.FAILED, ended_at=home.clock.now(), reason=EndReason.STOPPED, exit_code=143
        )
        await home.place.tell(execution.id, ending=ending, at=home.clock.now())

        ended = await home.place.services.executions.get(execution.id)
        assert (ended.status, ended.end_reason, ended.live_state) == (
            ExecutionStatus.CANCELLED,
            EndReason.BUDGET,
            LiveState.BUDGET_SPENT,
        )


async def test_a_budget_is_the_same_wherever_it_is_shown_when_it_is_spent_raised_and_begins_anew(
    tmp_path: Path,
) -> None:
    async with guarded(tmp_path) as home:
        services = home.place.services
        begun = await home.place.begin((await home.place.add_task()).id)
        budgets = BudgetService(
            budgets=Repositories.over(services.database).budgets,
            days=UsageDayRepository(services.database),
            executions=ExecutionRepository(services.database),
            queue=services.queue,
            clock=home.clock,
        )

        async def shown() -> tuple[object, object, str, str]:
            await home.look()
            (state,) = await budgets.states()
            document = budget_form(state)
            inbox = await services.approvals.inbox(None)
            card = inbox[0].approval.title if inbox else ""
            return document["spent_nano"], document["limit_nano"], budget_content([state]).plain, card

        await home.set(2 * DOLLAR)
        await home.spend(begun.id, 3)
        spent = await shown()
        await obey(home, begun.id)
        await answer(home, "raise")
        raised = await shown()
        home.clock.move(timedelta(days=1))
        turned = await shown()

        assert spent[:2] == (3 * DOLLAR, 2 * DOLLAR)
        assert "$3.00 of $2.00 (150 %)" in spent[2]
        assert spent[3] == "Budget spent: everything, $3.00 of $2.00 a day"
        assert (raised[:2], raised[3]) == ((3 * DOLLAR, 6 * DOLLAR), "")
        assert "$3.00 of $6.00 (50 %)" in raised[2]
        assert (turned[:2], turned[3]) == ((0, 6 * DOLLAR), "")
        assert "$0.00 of $6.00 (0 %)" in turned[2]


async def test_the_inbox_lists_what_a_budget_ended_until_somebody_decides(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        services = home.place.services
        task = await home.place.add_task()
        execution = await home.place.begin(task.id, mode=ExecutionMode.TEMPLATE)
        other = await home.place.begin((await home.place.add_task("talks")).id)
        await home.spend(other.id, 3)
        await home.set(2 * DOLLAR, scope=BudgetScope.AGENT, scope_id=execution.agent_id)
        await home.look()
        ending = ExecutionEnding(status=ExecutionStatus.FAILED, ended_at=home.clock.now(), reason=EndReason.STOPPED)
        await home.place.tell(execution.id, ending=ending, at=home.clock.now())
        listed = await services.executions.ended_by_budgets(home.place.workspace)
        blocked = await services.tasks.get(task.id)
        await services.tasks.move(task.id, TaskStatus.TODO, actor=USER_ACTOR)

        assert [one.execution.id for one in listed] == [execution.id]
        assert blocked.status is TaskStatus.BLOCKED
        shown = waiting_lines(listed[0], home.clock.now())
        assert "the budget of" in shown[1]
        # An amount alone would set the budget of everything.
        assert "budget set" not in shown[2]
        assert await services.executions.ended_by_budgets(home.place.workspace) == ()
