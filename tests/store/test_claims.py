from __future__ import annotations

import asyncio
import multiprocessing
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.agents import ToolType
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import ExecutionEnding
from agentmon.domain.ids import WorkerId
from agentmon.domain.task_status import Priority
from agentmon.services.actors import USER_ACTOR
from agentmon.store.claims import ClaimRepository
from agentmon.store.workspaces import WorkspaceRepository
from tests.endings import end_without_journal
from tests.store.queue_place import NOON, an_agent, opened_again, opened_queue, read_rows

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from agentmon.domain.ids import ExecutionId
    from tests.store.queue_place import QueuePlace

_LIMITS = {"narrow": 2, "wide": 0}


def _opened(folder: Path) -> AbstractAsyncContextManager[QueuePlace]:
    agents = [an_agent("one", max_concurrent=1), an_agent("two", max_concurrent=2), an_agent("any", max_concurrent=0)]
    return opened_queue(folder / "a.db", agents, _LIMITS)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[QueuePlace]:
    async with _opened(tmp_path) as opened:
        yield opened


async def _queue(
    place: QueuePlace,
    agent: str,
    workspace: str = "wide",
    *,
    priority: Priority = Priority.NORMAL,
    age: timedelta = timedelta(),
) -> ExecutionId:
    task = await place.add_task(workspace, priority=priority)
    return (await place.enqueue(task.id, agent, at=NOON - age)).id


async def _claim(place: QueuePlace, *, max_running: int = 1000, limit: int = 100) -> list[ExecutionId]:
    claimed = await place.claims.claim(
        worker_id=WorkerId("w"), max_running=max_running, park_after=5, limit=limit, at=NOON
    )
    return [one.execution.id for one in claimed]


async def test_one_batch_keeps_within_the_limit_of_each_agent(place: QueuePlace) -> None:
    queued = [(agent, await _queue(place, agent)) for agent in ("one", "two", "any") for _ in range(4)]

    claimed = await _claim(place)

    agent_of = {execution_id: agent for agent, execution_id in queued}
    assert Counter(agent_of[one] for one in claimed) == {"one": 1, "two": 2, "any": 4}
    assert await _claim(place) == []


async def test_one_batch_keeps_within_the_limit_of_each_workspace(place: QueuePlace) -> None:
    narrow = [await _queue(place, "any", "narrow") for _ in range(4)]
    wide = [await _queue(place, "any", "wide") for _ in range(4)]

    assert await _claim(place) == [*narrow[:2], *wide]
    assert await _claim(place) == []


async def test_one_batch_keeps_within_the_limit_over_all(place: QueuePlace) -> None:
    queued = [await _queue(place, "any") for _ in range(8)]

    assert await _claim(place, max_running=3) == queued[:3]
    assert await _claim(place, max_running=3) == []
    assert await _claim(place, max_running=5) == queued[3:5]


async def test_a_batch_takes_no_more_than_it_was_asked_for(place: QueuePlace) -> None:
    queued = [await _queue(place, "any") for _ in range(5)]

    assert await _claim(place, limit=2) == queued[:2]
    assert await _claim(place, limit=2) == queued[2:4]


async def test_where_two_limits_meet_a_batch_takes_too_few_rather_than_too_many_and_the_next_one_the_rest(
    place: QueuePlace,
) -> None:
    # The second of the agent finds its workspace full, and stands before the third, for which there is a place.
    full = [await _queue(place, "any", "narrow") for _ in range(2)]
    kept_out = await _queue(place, "two", "narrow")
    welcome = [await _queue(place, "two", "wide") for _ in range(3)]

    batches = [await _claim(place) for _ in range(4)]

    taken = [one for batch in batches for one in batch]
    assert set(taken) == {*full, *welcome[:2]}
    assert kept_out not in taken
    assert len(taken) == len(set(taken))
    assert batches[-1] == []


@pytest.mark.proof
async def test_many_of_one_full_agent_hide_nobody_behind_them(place: QueuePlace) -> None:
    first, *_ = [await _queue(place, "one") for _ in range(120)]
    behind = await _queue(place, "any")

    batches = [await _claim(place, limit=1) for _ in range(3)]

    assert batches == [[first], [behind], []]


async def test_urgent_work_comes_first_then_the_oldest(place: QueuePlace) -> None:
    young = await _queue(place, "any")
    old = await _queue(place, "any", age=timedelta(hours=1))
    low = await _queue(place, "any", priority=Priority.LOW, age=timedelta(hours=2))
    urgent = await _queue(place, "any", priority=Priority.URGENT)

    assert await _claim(place) == [urgent, old, young, low]


async def test_of_agents_in_one_folder_no_more_start_than_the_workspace_allows(tmp_path: Path) -> None:
    robots = [an_agent("robot", max_concurrent=0, tool_type=ToolType.AI_AGENT), an_agent("tool", max_concurrent=0)]
    async with opened_queue(tmp_path / "a.db", robots, {"wide": 0}) as place:
        await WorkspaceRepository(place.database).set(
            place.workspaces["wide"], "max_per_folder", 1, actor=USER_ACTOR, at=NOON
        )
        first, second = [await _queue(place, "robot") for _ in range(2)]
        tool = await _queue(place, "tool")
        elsewhere = await _queue(place, "robot")
        folders = "UPDATE tasks SET input_context = json_set(input_context, '$.working_dir', '/other') WHERE number = 4"
        async with place.database.writing() as connection:
            await connection.exec_driver_sql(folders)

        assert await _claim(place) == [first, tool, elsewhere]
        assert await _claim(place) == []
        assert [(await place.executions.get(one)).working_dir for one in (elsewhere, second)] == ["/other", None]
        success = ExecutionEnding(status=ExecutionStatus.SUCCEEDED, ended_at=NOON, reason=EndReason.EXITED)
        await end_without_journal(place.database, first, success, at=NOON)
        assert await _claim(place) == [second]


async def test_a_folder_counts_with_those_below_and_above_it(tmp_path: Path) -> None:
    robot = an_agent("robot", max_concurrent=0, tool_type=ToolType.AI_AGENT)
    async with opened_queue(tmp_path / "a.db", [robot], {"wide": 0}) as place:
        await WorkspaceRepository(place.database).set(
            place.workspaces["wide"], "max_per_folder", 1, actor=USER_ACTOR, at=NOON
        )
        inner, outer, beside, again = [await _queue(place, "robot") for _ in range(4)]
        async with place.database.writing() as connection:
            for number, folder in enumerate(("/a/b", "/a", "/ab", "/a/b/"), 1):
                await connection.exec_driver_sql(
                    "UPDATE tasks SET input_context = json_set(input_context, '$.working_dir', ?) WHERE number = ?",
                    (folder, number),
                )

        assert await _claim(place) == [inner, beside]
        assert await _claim(place) == []
        success = ExecutionEnding(status=ExecutionStatus.SUCCEEDED, ended_at=NOON, reason=EndReason.EXITED)
        await end_without_journal(place.database, inner, success, at=NOON)
        assert await _claim(place) == [outer]
        await end_without_journal(place.database, outer, success, at=NOON)
        assert await _claim(place) == [again]


def _work_until_empty(path: Path, name: str, max_running: int) -> tuple[list[str], list[int]]:
    """Claim and end runs until none waits; return what was claimed, and how many ran after each claim."""

    async def work() -> tuple[list[str], list[int]]:
        success = ExecutionEnding(status=ExecutionStatus.SUCCEEDED, ended_at=NOON, reason=EndReason.EXITED, exit_code=0)
        taken: list[str] = []
        live: list[int] = []
        async with opened_again(path) as database:
            claims = ClaimRepository(database)
            while await claims.count_waiting():
                batch = await claims.claim(
                    worker_id=WorkerId(name), max_running=max_running, park_after=5, limit=7, at=NOON
                )
                live += [row["live"] for row in read_rows(path, _COUNT_LIVE)]
                for one in batch:
                    taken.append(one.execution.id)
                    await end_without_journal(database, one.execution.id, success, park_after=5, at=NOON)
        return taken, live

    return asyncio.run(work())


_COUNT_LIVE = "SELECT count(*) AS live FROM executions WHERE status = 'running'"


def _work_at_once(path: Path, *, processes: int, max_running: int) -> tuple[list[str], list[int]]:
    """Return what several processes claimed, and how many they saw running after each batch."""
    # Each process is a fork of one that has imported everything, and shares nothing with this one.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with context.Pool(processes) as pool:
        arguments = [(path, f"w{number}", max_running) for number in range(processes)]
        outcomes: Sequence[tuple[list[str], list[int]]] = pool.starmap(_work_until_empty, arguments, chunksize=1)
    return [one for taken, _ in outcomes for one in taken], [count for _, seen in outcomes for count in seen]


async def _fill(folder: Path, count: int) -> Path:
    async with _opened(folder) as place:
        for _ in range(count):
            await _queue(place, "any")
    return folder / "a.db"


@pytest.mark.proof
def test_four_processes_claim_each_row_exactly_once(tmp_path: Path) -> None:
    path = asyncio.run(_fill(tmp_path, 200))

    taken, _ = _work_at_once(path, processes=4, max_running=1000)

    assert len(taken) == len(set(taken)) == 200
    owners = read_rows(path, "SELECT DISTINCT worker_id FROM executions")
    assert all(row["worker_id"] for row in owners)
    started = read_rows(path, "SELECT count(*) AS started FROM task_events WHERE event_type = 'execution_started'")
    assert started[0]["started"] == 200


@pytest.mark.proof
def test_no_process_ever_sees_more_running_than_the_limit(tmp_path: Path) -> None:
    path = asyncio.run(_fill(tmp_path, 20))

    taken, seen = _work_at_once(path, processes=4, max_running=2)

    assert len(taken) == len(set(taken)) == 20
    assert len(seen) >= 10
    assert max(seen) <= 2
