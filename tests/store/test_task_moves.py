from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from agentmon.domain.board import ColumnRequest
from agentmon.domain.errors import ConflictError, WaitsForTasksError
from agentmon.domain.events import Actor, ActorType, TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import WorkerId
from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import TaskDraft, draft_of
from agentmon.services.actors import USER_ACTOR
from agentmon.store import tables
from agentmon.store.claims import ClaimRepository
from agentmon.store.executions import ExecutionRepository
from tests.stored_runs import stored

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.domain.executions import ClaimedExecution


@pytest.mark.parametrize(
    ("runs", "freed"),
    [
        ([], TaskStatus.TODO),
        ([ExecutionStatus.SUCCEEDED, ExecutionStatus.FAILED], TaskStatus.BLOCKED),
        ([ExecutionStatus.FAILED, ExecutionStatus.SUCCEEDED], TaskStatus.TODO),
        ([ExecutionStatus.TIMED_OUT, ExecutionStatus.CANCELLED], TaskStatus.TODO),
    ],
)
@pytest.mark.parametrize("way", ["the other is done", "the dependency is taken away"])
async def test_a_blocked_card_is_freed_unless_its_newest_run_failed(
    tmp_path: Path, way: str, runs: list[ExecutionStatus], freed: TaskStatus
) -> None:
    async with stored(tmp_path) as place:
        tasks = place.services.tasks
        other, waiting = await place.add_task("the other"), await place.add_task("the one that waits")
        for age, status in zip((timedelta(hours=2), timedelta(hours=1)), runs, strict=False):
            await place.add_run(waiting.id, status, age=age)
        await tasks.add_dependency(waiting.id, other.number, actor=USER_ACTOR)
        before = (await tasks.get(waiting.id)).status

        match way:
            case "the other is done":
                await tasks.move(other.id, TaskStatus.DONE, actor=USER_ACTOR)
            case _:
                await tasks.remove_dependency(waiting.id, other.number, actor=USER_ACTOR)

        assert before is TaskStatus.BLOCKED
        assert (await tasks.get(waiting.id)).status is freed


@pytest.mark.parametrize("way", ["cancelled", "deleted", "archived"])
async def test_what_a_card_waits_for_lets_it_start_only_when_it_is_done(tmp_path: Path, way: str) -> None:
    async with stored(tmp_path) as place:
        services, tasks, claims = place.services, place.services.tasks, ClaimRepository(place.services.database)
        other, waiting = await place.add_task("the other"), await place.add_task("the one that waits")
        await tasks.add_dependency(waiting.id, other.number, actor=USER_ACTOR)
        match way:
            case "cancelled":
                await tasks.move(other.id, TaskStatus.CANCELLED, actor=USER_ACTOR)
            case "deleted":
                await tasks.delete(other.id, actor=USER_ACTOR)
            case _:
                await services.archive.archive(other.id, actor=USER_ACTOR)
        held = await tasks.get(waiting.id)
        page = await services.board.page(place.workspace, [ColumnRequest(status=TaskStatus.BLOCKED)])
        graph = await tasks.graph(waiting.id)
        with pytest.raises(WaitsForTasksError) as caught:
            await place.add_run(waiting.id)
        await place.add_run(waiting.id, ExecutionStatus.QUEUED, may_wait=True)
        claimed_while_held = await _claim(claims)
        if way == "deleted":
            await tasks.restore(other.id, actor=USER_ACTOR)
        elif way == "archived":
            await services.archive.unarchive(other.id, actor=USER_ACTOR)
        await tasks.move(other.id, TaskStatus.TODO, actor=USER_ACTOR)
        await tasks.move(other.id, TaskStatus.DONE, actor=USER_ACTOR)
        await tasks.delete(other.id, actor=USER_ACTOR)
        freed, claimed = await tasks.get(waiting.id), await _claim(claims)

    assert (held.status, freed.status) == (TaskStatus.BLOCKED, TaskStatus.TODO)
    assert page.columns[TaskStatus.BLOCKED].cards[0].waits_for == (other.number,)
    assert graph.needs == {waiting.id: [other.id]}
    assert page.columns[TaskStatus.BLOCKED].cards[0].awaited_text == f"#{other.number} ({way})"
    assert f"#{other.number} ({way})" in str(caught.value)
    assert f"run {waiting.number} --anyway" in (caught.value.hint or "")
    assert claimed_while_held == ()
    assert [one.task.id for one in claimed] == [waiting.id]


async def _claim(claims: ClaimRepository) -> tuple[ClaimedExecution, ...]:
    return await claims.claim(worker_id=WorkerId("w"), max_running=9, park_after=0, limit=9, at=datetime.now(UTC))


async def test_a_queued_run_asks_once_when_what_it_waits_for_will_not_be_done(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        services, tasks = place.services, place.services.tasks
        other, third, waiting = [await place.add_task(title) for title in ("other", "third", "waits")]
        await tasks.change_dependencies(waiting.id, added=[other.number, third.number], actor=USER_ACTOR)
        run = await place.add_run(waiting.id, ExecutionStatus.QUEUED, may_wait=True)
        seen = []

        async def look() -> None:
            listed = [one.execution.activity_note for one in await services.executions.without_request(place.workspace)]
            (page,) = (await services.board.page(place.workspace, [ColumnRequest(TaskStatus.BLOCKED)])).columns.values()
            (card,) = [card for card in page.cards if card.task_id == waiting.id]
            newest = await services.executions.get(run.id)
            line = (await services.board.page(place.workspace, ())).status_line
            assert card.state is newest.live_state
            assert (card.state is LiveState.NEEDS_YOU) == bool(listed) == bool(line.needs_you)
            seen.append(listed[0] if listed else None)

        await look()
        for change in (
            tasks.move(other.id, TaskStatus.CANCELLED, actor=USER_ACTOR),
            tasks.delete(third.id, actor=USER_ACTOR),
            tasks.move(other.id, TaskStatus.TODO, actor=USER_ACTOR),
            tasks.restore(third.id, actor=USER_ACTOR),
            services.archive.archive(other.id, actor=USER_ACTOR),
            services.archive.unarchive(other.id, actor=USER_ACTOR),
            tasks.move(third.id, TaskStatus.DONE, actor=USER_ACTOR),
        ):
            await change
            await look()
        trail = [event.event_type for event in await services.audit.of_task(waiting.id)]

    assert seen == [
        None,
        "waits for #1 (cancelled)",
        "waits for #1 (cancelled), #2 (deleted)",
        "waits for #2 (deleted)",
        None,
        "waits for #1 (archived)",
        None,
        None,
    ]
    assert trail.count(TaskEventType.EXECUTION_HELD) == 2


@pytest.mark.parametrize(
    ("columns", "note"),
    [
        ({"status": "failed", "end_reason": "exited"}, "failed"),
        ({"status": "failed", "end_reason": "lost"}, "lost"),
        ({"status": "timed_out", "end_reason": "timed_out"}, "timed out"),
        ({"status": "cancelled", "end_reason": "stopped"}, "stopped"),
        ({"status": "succeeded", "end_reason": "exited"}, None),
        ({"status": "queued", "wait_reason": "usage_limit", "not_before": datetime(2096, 1, 1, tzinfo=UTC)}, None),
        ({"status": "queued", "is_held": 1}, None),
        ({"status": "running"}, None),
        ({"status": "running", "activity": "waiting"}, None),
        ({"status": "running", "paused_at": datetime(2026, 1, 1, tzinfo=UTC)}, None),
        ({"status": "running", "error": "could not stop pid 7"}, None),
        ({"status": "cancelling"}, None),
        ({"status": "finalizing"}, None),
    ],
    ids=lambda part: None if isinstance(part, dict) else part,
)
async def test_only_a_task_that_is_done_and_does_not_run_lets_others_start(
    tmp_path: Path, columns: dict[str, object], note: str | None
) -> None:
    async with stored(tmp_path) as place:
        services, claims = place.services, ClaimRepository(place.services.database)
        other, waiting = await place.add_task("the other"), await place.add_task("the one that waits")
        await services.tasks.add_dependency(waiting.id, other.number, actor=USER_ACTOR)
        run = await place.add_run(waiting.id, ExecutionStatus.QUEUED, may_wait=True)
        first = await place.add_run(other.id, ExecutionStatus.QUEUED)
        over = {"ended_at": datetime.now(UTC)} if ExecutionStatus(str(columns["status"])).is_open is False else {}
        place.set_columns(first.id, **columns, **over)
        await claims.ask_about_waiting(at=datetime.now(UTC))
        held = await services.executions.get(run.id)
        claimed = [one.task.id for one in await _claim(claims)]
        place.set_columns(first.id, status="running", is_held=0, ended_at=None)
        await services.tasks.move(other.id, TaskStatus.DONE, actor=USER_ACTOR)
        awaited = [one.awaited_name for one in await services.tasks.dependencies(waiting.id)]
        while_it_runs = [one.task.id for one in await _claim(claims)]
        place.set_columns(first.id, status="succeeded", ended_at=datetime.now(UTC))
        freed = [one.task.id for one in await _claim(claims)]

    assert held.activity_note == (note and f"waits for #{other.number} ({note})")
    assert (held.live_state is LiveState.NEEDS_YOU) == (note is not None)
    assert waiting.id not in claimed
    assert awaited == [f"#{other.number} (still running)"]
    assert (while_it_runs, freed) == ([], [waiting.id])


async def test_a_card_that_runs_takes_no_new_dependency_that_would_hold_it(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        tasks = place.services.tasks
        runs, is_open, is_done = [await place.add_task(title) for title in ("runs", "open", "done")]
        await tasks.move(is_done.id, TaskStatus.DONE, actor=USER_ACTOR)
        run = await place.add_run(runs.id, ExecutionStatus.RUNNING)

        with pytest.raises(ConflictError, match=f"#{runs.number} is running") as caught:
            await tasks.change_dependencies(runs.id, added=[is_done.number, is_open.number], actor=USER_ACTOR)
        refused = await tasks.dependencies(runs.id)
        await tasks.add_dependency(runs.id, is_done.number, actor=USER_ACTOR)
        place.set_status(run.id, ExecutionStatus.FAILED)
        await tasks.add_dependency(runs.id, is_open.number, actor=USER_ACTOR)
        known = [one.number for one in await tasks.dependencies(runs.id)]

    assert f"stop {runs.number}" in caught.value.hint
    assert refused == ()
    assert known == [is_open.number, is_done.number]


async def test_only_a_run_or_a_person_says_that_a_task_is_done(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        tasks, task = place.services.tasks, await place.add_task("it")
        run = await place.add_run(task.id, ExecutionStatus.RUNNING)
        agent = Actor(type=ActorType.AGENT, id=run.id)
        other = await place.add_task("no run")
        waiting = await tasks.add(place.workspace, TaskDraft(title="waits"), actor=agent)

        made = await tasks.add(place.workspace, TaskDraft(title="made"), actor=agent)
        await tasks.add_dependency(waiting.id, made.number, actor=agent)
        for one in (task, made):
            with pytest.raises(ConflictError, match=f"an agent cannot move #{one.number} to Done"):
                await tasks.move(one.id, TaskStatus.DONE, actor=agent)
        for done_or_not in (TaskStatus.DONE, TaskStatus.CANCELLED):
            with pytest.raises(ConflictError, match="an agent may not"):
                await tasks.move(other.id, done_or_not, actor=agent)
        await tasks.move(made.id, TaskStatus.CANCELLED, actor=agent)

        assert (await tasks.get(waiting.id)).status is TaskStatus.BLOCKED


@pytest.mark.parametrize("is_queued", [False, True])
async def test_an_agent_takes_away_no_dependency_that_still_holds(tmp_path: Path, is_queued: bool) -> None:
    async with stored(tmp_path) as place:
        services, tasks = place.services, place.services.tasks
        is_done, holds = [await place.add_task(title) for title in ("done", "holds")]
        agent = Actor(type=ActorType.AGENT, id=(await place.add_run((await place.add_task()).id)).id)
        waiting = await tasks.add(place.workspace, draft_of(holds), actor=agent)
        await tasks.change_dependencies(waiting.id, added=[is_done.number, holds.number], actor=USER_ACTOR)
        await tasks.move(is_done.id, TaskStatus.DONE, actor=USER_ACTOR)
        if is_queued:
            await place.add_run(waiting.id, ExecutionStatus.QUEUED, may_wait=True)
        present = await tasks.get(waiting.id)
        both = [is_done.number, holds.number]

        for way in (
            tasks.change_dependencies(waiting.id, removed=both, actor=agent),
            tasks.edit(waiting.id, draft_of(present), expected_version=present.version, removed=both, actor=agent),
            services.queue.run(waiting.id, anyway=True, actor=agent),
        ):
            with pytest.raises(ConflictError, match=f"before #{holds.number} is done") as caught:
                await way
            assert "agentmon inbox" in caught.value.hint
        known = [one.number for one in await tasks.dependencies(waiting.id)]
        await tasks.remove_dependency(waiting.id, is_done.number, actor=agent)
        left = [one.number for one in await tasks.dependencies(waiting.id)]
        newest = await services.executions.newest(waiting.id)

    assert (known, left) == (both, [holds.number])
    assert (newest is not None) == is_queued


async def test_a_start_anyway_drops_however_many_dependencies(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        services, waiting = place.services, await place.add_task("waits")
        other = await place.add_task("other")
        await services.tasks.add_dependency(waiting.id, other.number, actor=USER_ACTOR)
        place.copy_dependencies(1000)
        assert len(await services.tasks.dependencies(waiting.id)) == 1000, "a list of them has an end"
        run = await place.add_run(waiting.id, ExecutionStatus.QUEUED, may_wait=True)
        executions = ExecutionRepository(services.database)

        await executions.start_anyway(waiting.id, actor=USER_ACTOR, at=datetime.now(UTC))

        assert await services.tasks.dependencies(waiting.id) == ()
        assert [one.execution.id for one in await _claim(ClaimRepository(services.database))] == [run.id]


@pytest.mark.parametrize(
    ("other_state", "column", "label"),
    [
        (None, TaskStatus.TODO, "queued · after #1 (not queued)"),
        ("succeeded", TaskStatus.TODO, "queued · after #1 (not queued)"),
        ("queued", TaskStatus.TODO, "queued · after #1"),
        ("running", TaskStatus.IN_PROGRESS, "queued · after #1"),
        ("running", TaskStatus.DONE, "queued · after #1 (still running)"),
        ("queued", TaskStatus.DONE, "queued · after #1"),
        ("budget", TaskStatus.BLOCKED, "needs you"),
        ("by hand", TaskStatus.TODO, "queued · after #1"),
    ],
)
async def test_a_queued_run_says_whether_what_it_waits_for_is_queued(
    tmp_path: Path, other_state: str | None, column: TaskStatus, label: str
) -> None:
    async with stored(tmp_path) as place:
        services, tasks = place.services, place.services.tasks
        other = (
            await tasks.add(place.workspace, TaskDraft(title="by hand"), actor=USER_ACTOR)
            if other_state == "by hand"
            else await place.add_task("the other")
        )
        waiting, planned = await place.add_task("waits"), await place.add_task("is planned")
        for one in (waiting, planned):
            await tasks.add_dependency(one.id, other.number, actor=USER_ACTOR)
        if other_state == "budget":
            budget = await place.add_run(other.id, ExecutionStatus.CANCELLED)
            place.set_columns(budget.id, end_reason="budget")
        elif other_state not in {None, "by hand"}:
            await place.add_run(other.id, ExecutionStatus(other_state))
        async with services.database.writing() as connection:
            await connection.execute(update(tables.tasks).where(tables.tasks.c.id == other.id).values(status=column))
        run = await place.add_run(waiting.id, ExecutionStatus.QUEUED, may_wait=True)

        page = await services.board.page(place.workspace, [ColumnRequest(TaskStatus.BLOCKED)])
        cards = {card.task_id: card for card in page.columns[TaskStatus.BLOCKED].cards}
        shown = cards[waiting.id].state_label(datetime.now(UTC))
        explanation = await services.explaining.explain(waiting.id)
        listed = await services.executions.without_request(place.workspace)

    assert shown is not None
    assert shown[1] == explanation.state == label
    assert "not queued" not in cards[planned.id].awaited_text
    assert [one.execution.id for one in listed] == ([run.id] if other_state == "budget" else [])
    assert explanation.note == ("waits for #1 (budget spent)" if other_state == "budget" else f"starts {label[9:]}")
