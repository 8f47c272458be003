from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import insert, select, update

from agentmon.domain.activity import Activity
from agentmon.domain.changes import ChangeType
from agentmon.domain.conversation import (
    ActivityNews,
    AskClosedNews,
    AskOutcome,
    DiffNews,
    MessageNews,
    PlanNews,
    PlanStatus,
    PlanStep,
    ToolFinishedNews,
    ToolStartedNews,
    UsageNews,
)
from agentmon.domain.costs import CostFilter, CostGroup
from agentmon.domain.events import Actor, ActorType, TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import WorkerId, new_id
from agentmon.domain.operations import MessageRole, OperationStatus, OperationType
from agentmon.domain.storage import ThinningRule
from agentmon.domain.tasks import TaskDraft
from agentmon.services.actors import USER_ACTOR
from agentmon.store import tables
from agentmon.store.task_authors import TaskAuthorRepository
from agentmon.store.task_moves import SYSTEM_ACTOR
from agentmon.store.thinning import ThinningRepository
from tests.conversing import a_wish, conversing
from tests.stored_runs import stored

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.domain.ids import ExecutionId, TaskId
    from agentmon.store.database import Database
    from tests.conversing import Conversing

NOW = datetime.now(UTC)
LATER = NOW + timedelta(days=400)
EVERYTHING = dict.fromkeys(ThinningRule, LATER)


async def _thin(database: Database, *rules: ThinningRule, before: datetime = LATER) -> dict[ThinningRule, int]:
    bounds = dict.fromkeys(rules, before)
    thinning = ThinningRepository(database)
    expected = await thinning.count(bounds)
    removed = await thinning.thin(bounds, actor=SYSTEM_ACTOR, at=LATER)
    assert removed == expected
    return dict(removed)


async def _converse(place: Conversing, title: str) -> tuple[TaskId, ExecutionId]:
    task = await place.add_task(title)
    run = await place.begin(task.id)
    await place.tell(
        run.id,
        MessageNews(message_ref="m1", role=MessageRole.ASSISTANT, text="The discount is wrong."),
        ToolStartedNews(
            tool_ref="t1", tool_name="Edit", type=OperationType.WRITE, target="a.py", input_summary="a.py: 1 line"
        ),
        DiffNews(
            path="a.py", change_type=ChangeType.MODIFY, diff="-a\n+b", added_lines=1, removed_lines=1, tool_ref="t1"
        ),
        ToolFinishedNews(tool_ref="t1", status=OperationStatus.SUCCESS, output_summary="done", duration_ms=3),
        UsageNews(key=f"k{title}", model="opus", provider="anthropic", prompt_tokens=1000, response_tokens=7),
        PlanNews(
            steps=(
                PlanStep(text="first", status=PlanStatus.COMPLETED),
                PlanStep(text="then", status=PlanStatus.PENDING),
            )
        ),
        ActivityNews(activity=Activity.WORKING, note="editing"),
    )
    await place.ask(run.id, a_wish("make test"))
    await place.services.conversations.send(task.id, "and a test", actor=USER_ACTOR)
    await place.tell(run.id, AskClosedNews(request_id="r1", outcome=AskOutcome.WITHDRAWN))
    async with place.services.database.writing() as connection:
        await connection.execute(update(tables.execution_commands).values(delivered_at=NOW))
    return task.id, run.id


async def _shown(place: Conversing, task_id: TaskId, run_id: ExecutionId) -> list[object]:
    """What screens, costs, search and ``explain`` show of the run."""
    services = place.services
    (session,) = await services.sessions.of_task(task_id)
    return [
        await services.conversations.messages(session.id),
        await services.conversations.operations(session_id=session.id),
        await services.conversations.plan(run_id),
        [one for one in await services.conversations.events(session_id=session.id) if one.type.value == "diff"],
        await services.explaining.explain(task_id),
        await services.approvals.of_task(task_id),
        await services.sessions.list(None),
        await services.sessions.get_listing(session.id),
        await services.executions.list(place.workspace),
        await services.executions.get(run_id),
        await services.costs.report(CostGroup.MODEL, CostFilter()),
        [found.hits for found in await services.search.search("discount", workspace=None) or ()],
        await services.board.page(place.workspace, ()),
    ]


async def test_what_screens_costs_search_and_explain_show_stays_as_it_was(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        task_id, run_id = await _converse(place, "old")
        await place.end(run_id)
        before = await _shown(place, task_id, run_id)
        trail = await place.services.audit.of_task(task_id)
        stream = await place.services.executions.events(run_id)

        removed = await _thin(
            place.services.database, *(rule for rule in ThinningRule if rule is not ThinningRule.AUDIT)
        )

        assert removed[ThinningRule.EVENTS] == 4
        assert removed[ThinningRule.COMMANDS] == 1
        assert await _shown(place, task_id, run_id) == before
        assert await place.services.audit.of_task(task_id) == trail
        assert len(await place.services.executions.events(run_id)) == len(stream) - 4


async def test_the_stream_and_the_commands_of_what_runs_or_ended_lately_stay(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        _, running = await _converse(place, "runs")
        _, ended = await _converse(place, "ended")
        await place.end(ended)
        rows = tables.events
        async with place.services.database.writing() as connection:
            await connection.execute(update(rows).values(timestamp_ms=1))
            await connection.execute(update(tables.execution_commands).values(created_at=NOW - timedelta(days=900)))

        rules = (ThinningRule.EVENTS, ThinningRule.COMMANDS)
        lately = await _thin(place.services.database, *rules, before=NOW - timedelta(days=1))
        later = await _thin(place.services.database, *rules)

        assert set(lately.values()) == {0}
        assert later == {ThinningRule.EVENTS: 4, ThinningRule.COMMANDS: 1}
        assert len(await place.commands(running)) == 1


async def test_more_than_one_piece_goes_in_one_call_or_as_much_as_was_asked_for(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        database = place.services.database
        old = {"actor_id": "a", "action": "run", "digest": "d", "result_id": "r", "created_at": NOW}
        async with database.writing() as connection:
            keys = [old | {"key": str(number)} for number in range(1_700)]
            await connection.execute(insert(tables.idempotency_keys), keys)
            await connection.execute(insert(tables.idempotency_keys), [old | {"key": "new", "created_at": LATER}])
        thinning = ThinningRepository(database)

        some = await thinning.thin({ThinningRule.REQUEST_KEYS: LATER}, actor=SYSTEM_ACTOR, at=LATER, at_most=600)
        rest = await thinning.thin({ThinningRule.REQUEST_KEYS: LATER}, actor=SYSTEM_ACTOR, at=LATER)

        assert (some, rest) == ({ThinningRule.REQUEST_KEYS: 600}, {ThinningRule.REQUEST_KEYS: 1_100})
        async with database.reading() as connection:
            assert (await connection.execute(select(tables.idempotency_keys.c.key))).scalars().all() == ["new"]


async def test_the_heartbeat_of_a_worker_that_has_runs_stays(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        database = place.services.database
        run = await place.add_run((await place.add_task()).id, ExecutionStatus.RUNNING)
        beats, runs = tables.worker_heartbeats, tables.executions
        async with database.writing() as connection:
            await connection.execute(update(runs).where(runs.c.id == run.id).values(worker_id=WorkerId("busy")))
            for name, seen in (("busy", NOW), ("gone", NOW), ("lives", LATER)):
                await connection.execute(insert(beats).values(worker_id=name, last_seen_at=seen, created_at=NOW))

        assert await _thin(database, ThinningRule.HEARTBEATS) == {ThinningRule.HEARTBEATS: 1}

        async with database.reading() as connection:
            left = (await connection.execute(select(beats.c.worker_id))).scalars().all()
        assert set(left) == {"busy", "lives"}


async def test_old_lines_of_the_audit_trail_go_and_the_trail_says_so(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        for number in range(3):
            await place.add_task(f"task {number}")
        lines = len(await place.services.audit.all(None))

        removed = await _thin(place.services.database, ThinningRule.AUDIT)
        (told,) = await place.services.audit.all(None)
        again = await _thin(place.services.database, ThinningRule.AUDIT)

        assert removed == {ThinningRule.AUDIT: lines}
        assert told.event.event_type is TaskEventType.AUDIT_THINNED
        assert told.event.payload["before"] == LATER.isoformat()
        assert again == {ThinningRule.AUDIT: 0}
        assert len(await place.services.audit.all(None)) == 1


async def test_it_stays_known_which_tasks_an_agent_wrote(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        run = await place.begin((await place.add_task()).id)
        agent = Actor(type=ActorType.AGENT, id=run.id)
        task = await place.services.tasks.add(place.workspace, TaskDraft(title="by an agent"), actor=agent)

        await _thin(place.services.database, ThinningRule.AUDIT)

        assert await TaskAuthorRepository(place.services.database).has_agent(task.id)


@pytest.mark.parametrize("mark", [None, '"2020-01-01T00:00:00.000Z"'])
async def test_nothing_else_removes_a_line_of_the_audit_trail(tmp_path: Path, mark: str | None) -> None:
    async with stored(tmp_path) as place:
        await place.add_task()
        await _thin(place.services.database, ThinningRule.AUDIT, before=NOW - timedelta(days=9))
        with closing(sqlite3.connect(place.services.database.path)) as connection:
            assert not connection.execute("SELECT 1 FROM settings WHERE key = ?", (tables.AUDIT_MARK,)).fetchall()
            if mark is not None:
                stamps = (tables.AUDIT_MARK, mark, "2020-01-01T00:00:00.000Z", "2020-01-01T00:00:00.000Z")
                connection.execute(
                    "INSERT INTO settings (key, value, created_at, updated_at) VALUES (?, ?, ?, ?)", stamps
                )
            for statement in ("DELETE FROM task_events", "UPDATE task_events SET payload = '{}'"):
                with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                    connection.execute(statement)


async def test_a_row_that_is_another_one_by_now_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stored(tmp_path) as place:
        database = place.services.database
        old = {"actor_id": "a", "action": "run", "digest": "d", "result_id": "r", "created_at": NOW}
        async with database.writing() as connection:
            await connection.execute(insert(tables.idempotency_keys), [old | {"key": new_id()}])
        find = ThinningRepository._find

        async def find_then_renew(self: ThinningRepository, *arguments: object) -> list[int]:
            found = await find(self, *arguments)  # type: ignore[arg-type] # handed on as they came
            async with database.writing() as connection:
                await connection.execute(update(tables.idempotency_keys).values(created_at=LATER))
            return found

        monkeypatch.setattr(ThinningRepository, "_find", find_then_renew)
        removed = await ThinningRepository(database).thin(
            {ThinningRule.REQUEST_KEYS: LATER}, actor=SYSTEM_ACTOR, at=LATER
        )

        assert removed == {ThinningRule.REQUEST_KEYS: 0}
