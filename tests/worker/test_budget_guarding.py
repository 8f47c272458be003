from __future__ import annotations

import sqlite3
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlalchemy import update

from agentmon.domain.budgets import BudgetAction, BudgetPeriod, BudgetScope, BudgetUnit
from agentmon.domain.clock import FakeClock
from agentmon.domain.conversation import UsageNews
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import ExecutionStatus, WaitReason
from agentmon.domain.executions import CommandType
from agentmon.domain.ids import WorkerId
from agentmon.services.actors import USER_ACTOR
from agentmon.store import tables
from agentmon.store.claims import ClaimRepository
from agentmon.store.usage_days import UsageDayRepository
from agentmon.usage.prices.own_prices import write_own_price
from agentmon.usage.prices.rates import Kind
from agentmon.worker.budget_guarding import BudgetGuard
from agentmon.worker.repositories import Repositories
from tests.conversing import Conversing, conversing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import pytest

    from agentmon.domain.budgets import BudgetState
    from agentmon.domain.ids import ExecutionId

DOLLAR = 1_000_000_000
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
"""A Monday."""


@dataclass(kw_only=True)
class Guarded:
    """Conversations of a database, and the worker's guard over it, which looks when the test says so."""

    place: Conversing
    clock: FakeClock
    guard: BudgetGuard
    looks: list[int] = field(default_factory=lambda: [0])

    async def look(self) -> bool:
        self.looks[0] += 1
        return await self.guard.look(self.looks[0])

    async def spend(self, execution_id: ExecutionId, dollars: int, *, model: str = "priced", cached: int = 0) -> None:
        """Let an answer of so many dollars be told, a thousand tokens each."""
        news = UsageNews(
            key=f"msg-{self.looks[0]}-{self.clock.now().timestamp()}-{dollars}-{model}-{cached}",
            model=model,
            provider="anthropic",
            prompt_tokens=dollars * 1000,
            cache_read_tokens=cached,
        )
        await self.place.tell(execution_id, news, at=self.clock.now())

    async def set(self, limit: int, **fields: object) -> BudgetState:
        asked: dict[str, object] = {"scope": BudgetScope.ALL, "period": BudgetPeriod.DAY, "actor": USER_ACTOR}
        return await self.place.services.budgets.set(limit=limit, **(asked | fields))  # type: ignore[arg-type] # named by tests

    async def claim(self) -> list[ExecutionId]:
        claimed = await ClaimRepository(self.place.services.database).claim(
            worker_id=WorkerId("worker"), max_running=99, park_after=0, limit=9, at=self.clock.now()
        )
        return [one.execution.id for one in claimed]

    async def told(self) -> list[object]:
        lines = await self.place.services.audit.all(None)
        return [
            line.event.payload["percent"] for line in lines if line.event.event_type is TaskEventType.BUDGET_REACHED
        ]


@asynccontextmanager
async def guarded(folder: Path) -> AsyncIterator[Guarded]:
    async with conversing(folder) as place:
        paths, clock = place.services.paths, FakeClock(present=NOON)
        paths.prices_file.parent.mkdir(parents=True, exist_ok=True)
        write_own_price(
            paths.prices_file,
            model="priced",
            rates={Kind.INPUT: Decimal(1000), Kind.OUTPUT: Decimal(0), Kind.CACHE_READ: Decimal(0)},
        )
        repositories = Repositories.over(place.services.database)
        guard = BudgetGuard(
            budgets=repositories.budgets,
            enforcement=repositories.budget_enforcement,
            days=repositories.usage_days,
            prices=repositories.usage_prices,
            paths=paths,
            clock=clock,
        )
        yield Guarded(place=place, clock=clock, guard=guard)


async def test_each_share_is_told_once_in_a_period_in_the_trail_and_beside_what_runs(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution = await home.place.begin((await home.place.add_task()).id)
        await home.set(10 * DOLLAR, action=BudgetAction.WARN)
        told = []
        for dollars in (4, 2, 1, 2, 1, 5):
            await home.spend(execution.id, dollars)
            await home.look()
            await home.look()
            told.append(list(await home.told()))
        home.clock.move(timedelta(days=1))
        await home.spend(execution.id, 6)
        await home.look()

        events = await home.place.services.executions.events(execution.id)
        notes = [event.payload["percent"] for event in events if event.payload.get("entry") == "budget_reached"]
        assert told == [[], [50], [50], [50, 80], [50, 80, 100], [50, 80, 100]]
        assert await home.told() == notes == [50, 80, 100, 50]
        assert (await home.place.services.executions.get(execution.id)).status is ExecutionStatus.RUNNING
        assert await home.place.commands(execution.id) == ()


async def test_what_waits_for_a_budget_goes_on_by_itself_when_the_day_turns(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution = await home.place.begin((await home.place.add_task()).id)
        await home.spend(execution.id, 3)
        await home.set(2 * DOLLAR, action=BudgetAction.BLOCK)
        await home.look()
        queued = await home.place.enqueue((await home.place.add_task("another")).id, at=home.clock.now())

        before_the_look = await home.claim()
        await home.look()
        waiting = await home.place.services.executions.get(queued.id)
        home.clock.move(timedelta(hours=11, minutes=59))
        await home.look()
        at_night = await home.claim()
        home.clock.move(timedelta(minutes=1))
        next_day = await home.claim()

        assert before_the_look == at_night == []
        assert (waiting.wait_reason, waiting.not_before) == (WaitReason.BUDGET, datetime(2026, 5, 5, tzinfo=UTC))
        assert next_day == [queued.id]
        started = await home.place.services.executions.get(queued.id)
        assert (started.wait_reason, started.error) == (None, None)


async def test_weeks_and_months_end_where_the_calendar_says(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution = await home.place.begin((await home.place.add_task()).id)
        await home.spend(execution.id, 3)
        for period in (BudgetPeriod.WEEK, BudgetPeriod.MONTH, BudgetPeriod.TOTAL):
            await home.set(2 * DOLLAR, period=period, action=BudgetAction.BLOCK)
        await home.look()

        ends = [state.budget.spent_until for state in await home.place.services.budgets.states()]

        assert [end and end.year for end in ends] == [2026, 2026, 9999]
        assert ends[:2] == [datetime(2026, 5, 11, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)]


async def test_an_answer_without_a_price_is_unknown_and_counts_as_no_cost(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution = await home.place.begin((await home.place.add_task()).id)
        await home.spend(execution.id, 9, model="nobody-knows-its-price")
        await home.spend(execution.id, 1)
        await home.set(10 * DOLLAR, period=BudgetPeriod.TOTAL)
        await home.look()

        (state,) = await home.place.services.budgets.states()

        assert (state.use.spent, state.use.unpriced_answers) == (1 * DOLLAR, 1)
        assert state.words == "$1.00 of $10.00 (10 %), 1 answer without a known price not counted"


async def test_tokens_are_counted_with_those_from_a_cache_or_without(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        task = await home.place.add_task()
        execution = await home.place.begin(task.id)
        await home.spend(execution.id, 1, cached=5000)
        agent_id, workspace_id = execution.agent_id, home.place.workspace.id
        scopes = {
            BudgetScope.ALL: "",
            BudgetScope.AGENT: agent_id,
            BudgetScope.WORKSPACE: workspace_id,
            BudgetScope.TASK: task.id,
            BudgetScope.EXECUTION: execution.id,
        }
        for scope, scope_id in scopes.items():
            await home.set(100_000, scope=scope, scope_id=scope_id, unit=BudgetUnit.TOKENS, period=BudgetPeriod.TOTAL)

        states = await home.place.services.budgets.states()
        fewer = await home.set(100_000, unit=BudgetUnit.TOKENS, period=BudgetPeriod.TOTAL, counts_cached=False)

        assert [state.use.spent for state in states] == [6000] * 5
        assert (fewer.use.spent, len(await home.place.services.budgets.states())) == (1000, 5)
        assert [state.budget.about for state in states[:5]] == [
            "everything", "demo-agent", home.place.workspace.name, "task #1", "a run of #1",
        ]  # fmt: skip


async def test_a_conversation_that_is_interrupted_in_vain_is_stopped_after_the_grace(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution = await home.place.begin((await home.place.add_task()).id)
        await home.spend(execution.id, 3)
        await home.set(2 * DOLLAR)

        has_commands = [await home.look(), await home.look()]
        gentle = [command.type for command in await home.place.commands(execution.id)]
        home.clock.move(timedelta(seconds=9))
        has_commands.append(await home.look())
        home.clock.move(timedelta(seconds=1))
        has_commands += [await home.look(), await home.look()]
        types = [command.type for command in await home.place.commands(execution.id)]

        assert has_commands == [True, False, False, True, False]
        assert gentle == [CommandType.INTERRUPT]
        assert types == [*gentle, CommandType.STOP]
        assert (await home.place.services.executions.get(execution.id)).status is ExecutionStatus.CANCELLING


async def test_a_program_without_a_conversation_is_asked_to_end_at_once(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution = await home.place.begin((await home.place.add_task()).id, mode=ExecutionMode.TEMPLATE)
        other = await home.place.begin((await home.place.add_task("talks")).id)
        await home.spend(other.id, 3)
        await home.set(2 * DOLLAR, scope=BudgetScope.AGENT, scope_id=execution.agent_id)

        await home.look()

        (command,) = await home.place.commands(execution.id)
        assert command.type is CommandType.STOP
        assert command.payload["reason"] == "the budget of demo-agent, $2.00 a day, is spent"


async def test_a_raised_budget_lets_go_on_what_waited_and_other_waits_stay(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution = await home.place.begin((await home.place.add_task()).id)
        await home.spend(execution.id, 3)
        await home.set(2 * DOLLAR, action=BudgetAction.BLOCK)
        queued = await home.place.enqueue((await home.place.add_task("waits")).id, at=home.clock.now())
        later = await home.place.enqueue((await home.place.add_task("is late")).id, at=home.clock.now())
        with closing(sqlite3.connect(home.place.services.paths.database_path)) as connection, connection:
            connection.execute(
                "UPDATE executions SET not_before = '2026-05-04T18:00:00.000Z', wait_reason = 'scheduled' WHERE id = ?",
                (later.id,),
            )
        await home.look()
        held = await home.claim()
        raised = await home.set(20 * DOLLAR, action=BudgetAction.BLOCK)
        await home.look()

        assert held == []
        assert raised.budget.limit == 20 * DOLLAR
        assert await home.claim() == [queued.id]
        assert (await home.place.services.executions.get(later.id)).wait_reason is WaitReason.SCHEDULED
        assert len(await home.place.services.budgets.states()) == 1


async def test_of_two_spent_budgets_that_counts_which_is_spent_for_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentmon.store.budget_enforcing._LOOKED_AT_ONCE", 2)
    async with guarded(tmp_path) as home:
        execution = await home.place.begin((await home.place.add_task()).id)
        await home.spend(execution.id, 3)
        month = await home.set(2 * DOLLAR, period=BudgetPeriod.MONTH, action=BudgetAction.BLOCK)
        await home.set(1 * DOLLAR, action=BudgetAction.BLOCK)
        titles = ("one", "two", "three", "four", "five")
        queued = [
            await home.place.enqueue((await home.place.add_task(title)).id, at=home.clock.now()) for title in titles
        ]
        await home.look()
        waiting = [await home.place.services.executions.get(one.id) for one in queued]
        told = len(await home.place.services.audit.all(None))
        await home.look()
        told_again = len(await home.place.services.audit.all(None))
        await home.place.services.budgets.remove(month.budget.id, actor=USER_ACTOR)
        await home.look()
        later = [await home.place.services.executions.get(one.id) for one in queued]

        assert {(one.error, one.not_before) for one in waiting} == {
            ("the budget of everything, $2.00 a month, is spent", datetime(2026, 6, 1, tzinfo=UTC))
        }
        assert told == told_again
        assert {(one.error, one.not_before) for one in later} == {
            ("the budget of everything, $1.00 a day, is spent", datetime(2026, 5, 5, tzinfo=UTC))
        }


async def test_what_comes_into_the_queue_or_is_due_later_waits_for_a_budget_that_was_spent_before(
    tmp_path: Path,
) -> None:
    async with guarded(tmp_path) as home:
        executions = home.place.services.executions
        begun = await home.place.begin((await home.place.add_task()).id)
        await home.set(2 * DOLLAR, action=BudgetAction.BLOCK)
        await home.spend(begun.id, 3)
        await home.look()
        home.clock.move(timedelta(minutes=5))
        now = home.clock.now()
        due = await home.place.enqueue((await home.place.add_task("due")).id, at=now)
        rows, later = tables.executions, now + timedelta(minutes=2)
        waits = {"not_before": later, "queued_at": later, "wait_reason": WaitReason.SCHEDULED}
        async with home.place.services.database.writing() as connection:
            await connection.execute(update(rows).where(rows.c.id == due.id).values(**waits))
        new = await home.place.enqueue((await home.place.add_task("new")).id, at=now - timedelta(seconds=15))
        await home.look()
        first = [(await executions.get(one.id)).wait_reason for one in (new, due)]
        home.clock.move(timedelta(minutes=3))
        await home.look()

        assert first == [WaitReason.BUDGET, WaitReason.SCHEDULED]
        assert [(await executions.get(one.id)).wait_reason for one in (new, due)] == [WaitReason.BUDGET] * 2


async def test_a_budget_that_is_set_again_as_it_was_holds_back_what_it_held_back(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        begun = await home.place.begin((await home.place.add_task()).id)
        await home.set(2 * DOLLAR, action=BudgetAction.BLOCK)
        await home.spend(begun.id, 3)
        queued = await home.place.enqueue((await home.place.add_task("waits")).id, at=home.clock.now())
        await home.look()
        home.clock.move(timedelta(minutes=2))

        await home.set(2 * DOLLAR, action=BudgetAction.BLOCK)
        await home.look()

        assert (await home.place.services.executions.get(queued.id)).wait_reason is WaitReason.BUDGET


async def test_a_look_at_an_unchanged_queue_passes_over_its_rows(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        database = home.place.services.database
        begun = await home.place.begin((await home.place.add_task()).id)
        await home.set(2 * DOLLAR, action=BudgetAction.BLOCK)
        await home.spend(begun.id, 3)
        queued = await home.place.enqueue((await home.place.add_task("waits")).id, at=home.clock.now())
        await home.look()
        home.clock.move(timedelta(minutes=1))
        await home.look()
        home.clock.move(timedelta(minutes=1))
        async with database.writing() as connection:
            await connection.exec_driver_sql("UPDATE executions SET error = 'seen' WHERE wait_reason = 'budget'")

        await home.look()
        unlooked = (await home.place.services.executions.get(queued.id)).error
        home.clock.move(timedelta(minutes=9))
        await home.look()

        assert unlooked == "seen"
        assert (await home.place.services.executions.get(queued.id)).error != "seen"


async def test_a_clock_that_is_set_back_ends_what_a_later_day_has_spent(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        execution = await home.place.begin((await home.place.add_task()).id)
        await home.spend(execution.id, 3)
        await home.set(2 * DOLLAR, action=BudgetAction.BLOCK)
        queued = await home.place.enqueue((await home.place.add_task("waits")).id, at=home.clock.now())
        await home.guard.look(7)
        held = await home.claim()
        home.clock.move(timedelta(days=-2))

        await home.guard.look(7)

        assert held == []
        assert await home.claim() == [queued.id]


async def test_a_day_is_as_long_as_it_is_where_the_clocks_change(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        await UsageDayRepository(home.place.services.database).move_to("Europe/Berlin", at=NOON)
        execution = await home.place.begin((await home.place.add_task()).id)
        await home.set(2 * DOLLAR, action=BudgetAction.BLOCK)
        ends = []
        for noon in (datetime(2026, 3, 29, 12, tzinfo=UTC), datetime(2026, 10, 25, 12, tzinfo=UTC)):
            home.clock.move(noon - home.clock.now())
            await home.spend(execution.id, 3)
            await home.look()
            (state,) = await home.place.services.budgets.states()
            ends.append(state.budget.spent_until)

        assert ends == [datetime(2026, 3, 29, 22, tzinfo=UTC), datetime(2026, 10, 25, 23, tzinfo=UTC)]


async def test_a_look_at_data_that_were_seen_already_reads_nothing(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        await home.set(2 * DOLLAR)
        await home.guard.look(7)
        await home.place.services.database.close()

        assert await home.guard.look(7) is False
