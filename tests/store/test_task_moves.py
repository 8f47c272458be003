from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.board import ColumnRequest
from agentmon.domain.errors import WaitsForTasksError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import WorkerId
from agentmon.domain.task_status import TaskStatus
from agentmon.services.actors import USER_ACTOR
from agentmon.store.claims import ClaimRepository
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
