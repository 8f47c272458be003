"""In which folder what is claimed works: chosen in the claim, for all that it takes together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import insert

from agentmon.domain.agents import ToolType
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import ExecutionEnding
from agentmon.domain.ids import LOCAL_USER_ID, WorkerId, new_id
from agentmon.domain.sessions import SessionStatus
from agentmon.domain.worktrees import WorktreePlaces, WorktreeStatus
from agentmon.services.actors import USER_ACTOR
from agentmon.store import tables
from agentmon.store.workspaces import WorkspaceRepository
from agentmon.store.worktrees import WorktreeRepository
from tests.endings import end_without_journal
from tests.store.queue_place import NOON, an_agent, opened_queue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import ExecutionId, TaskId
    from tests.store.queue_place import QueuePlace

_PLACES = WorktreePlaces(folder="/data/worktrees")
_REPOSITORY = "/src/api"


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[QueuePlace]:
    robots = [an_agent("robot", max_concurrent=0, tool_type=ToolType.AI_AGENT), an_agent("tool", max_concurrent=0)]
    async with opened_queue(tmp_path / "a.db", robots, {"wide": 0}, shares_folders=False) as opened:
        yield opened


async def _queue(
    place: QueuePlace,
    agent: str = "robot",
    *,
    folder: str = _REPOSITORY,
    repository: str | None = _REPOSITORY,
    isolation: str | None = None,
    task_id: TaskId | None = None,
) -> ExecutionId:
    if task_id is None:
        task_id = (await place.add_task("wide")).id
    queued = await place.enqueue(task_id, agent)
    async with place.database.writing() as connection:
        await connection.exec_driver_sql(
            "UPDATE tasks SET input_context = json_set(input_context, '$.working_dir', ?) WHERE id = ?",
            (folder, task_id),
        )
        await connection.exec_driver_sql(
            "UPDATE executions SET repository = ?, isolation = ? WHERE id = ?", (repository, isolation, queued.id)
        )
    return queued.id


async def _claim(place: QueuePlace, *, places: WorktreePlaces | None = _PLACES) -> list[Execution]:
    claimed = await place.claims.claim(
        worker_id=WorkerId("w"), max_running=1000, park_after=5, limit=100, worktrees=places, at=NOON
    )
    return [one.execution for one in claimed]


async def _end(place: QueuePlace, *ids: ExecutionId) -> None:
    success = ExecutionEnding(status=ExecutionStatus.SUCCEEDED, ended_at=NOON, reason=EndReason.EXITED)
    for one in ids:
        await end_without_journal(place.database, one, success, at=NOON)


def _folders(executions: Sequence[Execution]) -> list[str | None]:
    return [one.working_dir for one in executions]


async def test_of_agents_in_one_repository_the_first_works_in_the_folder_and_the_others_beside_it(
    place: QueuePlace,
) -> None:
    for _ in range(3):
        await _queue(place)
    await _queue(place, folder="/src/api/web")

    claimed = await _claim(place)

    first, second, third, inner = _folders(claimed)
    assert first == _REPOSITORY
    assert second == f"{_PLACES.path_of(_REPOSITORY, number=2, title='a task')}"
    assert third == f"{_PLACES.path_of(_REPOSITORY, number=3, title='a task')}"
    assert inner == f"{_PLACES.path_of(_REPOSITORY, number=4, title='a task')}/web"
    made = await WorktreeRepository(place.database).present()
    assert [(one.id, one.status, one.branch) for one in made] == [
        (execution.worktree_id, WorktreeStatus.MAKING, f"agentmon/{number}-a-task")
        for number, execution in enumerate(claimed[1:], 2)
    ]


async def test_an_agent_that_comes_later_works_beside_the_one_that_is_there_until_that_has_ended(
    place: QueuePlace,
) -> None:
    await _queue(place)
    (first,) = await _claim(place)
    await _queue(place, folder="/src/api/web")
    (second,) = await _claim(place)
    await _end(place, first.id)
    await _queue(place)

    (third,) = await _claim(place)

    assert second.worktree_id is not None
    # The one beside it does not hold the folder.
    assert (third.working_dir, third.worktree_id) == (_REPOSITORY, None)


async def test_a_task_keeps_its_worktree_for_later_runs_also_when_its_folder_is_free(place: QueuePlace) -> None:
    task = await place.add_task("wide")
    await _queue(place)
    kept = await _queue(place, task_id=task.id)
    first, second = await _claim(place)
    await _end(place, first.id, kept)
    again = await _queue(place, task_id=task.id)
    plain = await _queue(place, "tool", repository=None)

    claimed = {one.id: one for one in await _claim(place)}

    assert (claimed[again].worktree_id, claimed[again].working_dir) == (second.worktree_id, second.working_dir)
    assert claimed[plain].worktree_id is None


async def test_what_was_chosen_for_the_run_the_task_the_agent_and_the_workspace_counts_in_this_order(
    place: QueuePlace,
) -> None:
    workspaces = WorkspaceRepository(place.database)
    await workspaces.set(place.workspaces["wide"], "isolation", "worktree", actor=USER_ACTOR, at=NOON)
    await workspaces.set(place.workspaces["wide"], "max_per_folder", 0, actor=USER_ACTOR, at=NOON)
    of_workspace = await _queue(place, "tool", repository=None)
    async with place.database.writing() as connection:
        await connection.exec_driver_sql(
            "UPDATE agents SET metadata = json_set(metadata, '$.isolation', 'folder') WHERE slug = 'robot'"
        )
    of_agent = await _queue(place)
    of_task = await _queue(place)
    async with place.database.writing() as connection:
        await connection.exec_driver_sql(
            "UPDATE tasks SET input_context = json_set(input_context, '$.isolation', 'worktree') WHERE number = 3"
        )
    of_run = await _queue(place, isolation="folder")
    async with place.database.writing() as connection:
        await connection.exec_driver_sql(
            "UPDATE tasks SET input_context = json_set(input_context, '$.isolation', 'worktree') WHERE number = 4"
        )

    claimed = {one.id: one.worktree_id is not None for one in await _claim(place)}

    assert claimed == {of_workspace: True, of_agent: False, of_task: True, of_run: False}


async def test_agents_in_a_folder_without_a_repository_wait_for_each_other_unless_any_number_may(
    place: QueuePlace,
) -> None:
    first, second = [await _queue(place, folder="/notes", repository=None) for _ in range(2)]

    assert [one.id for one in await _claim(place)] == [first]
    assert await _claim(place) == []
    full = await place.claims.find_full(second, max_running=9, park_after=5, at=NOON)
    workspaces = WorkspaceRepository(place.database)
    await workspaces.set(place.workspaces["wide"], "max_per_folder", 0, actor=USER_ACTOR, at=NOON)

    assert full == "folder"
    assert [(one.id, one.working_dir) for one in await _claim(place)] == [(second, "/notes")]


async def test_nothing_that_needs_a_new_worktree_is_claimed_where_none_can_be_made(place: QueuePlace) -> None:
    first = await _queue(place)
    second = await _queue(place)
    third = await _queue(place, isolation="worktree")

    assert [one.id for one in await _claim(place, places=None)] == [first]
    assert {one.id for one in await _claim(place)} == {second, third}


async def test_two_worktrees_never_have_one_path_and_one_that_was_removed_gives_its_path_back(
    place: QueuePlace,
) -> None:
    task = await place.add_task("wide")
    rows = WorktreeRepository(place.database)
    paths = []
    for _ in range(2):
        run = await _queue(place, isolation="worktree", task_id=task.id)
        (claimed,) = await _claim(place)
        assert claimed.worktree_id is not None
        worktree = await rows.get(claimed.worktree_id)
        paths.append(worktree.path)
        await _end(place, run)
        await rows.remove(worktree, actor=USER_ACTOR, at=NOON)

    assert paths[0] == paths[1]
    assert await rows.of_task(task.id) == ()


async def test_a_conversation_goes_on_where_it_was_also_when_its_worktree_was_removed(place: QueuePlace) -> None:
    rows = WorktreeRepository(place.database)
    runs = {}
    for number in range(2):
        task = await place.add_task("wide")
        runs[number] = (task.id, await _queue(place, task_id=task.id))
    in_folder, beside = await _claim(place)
    await _end(place, in_folder.id, beside.id)
    assert beside.worktree_id is not None
    await rows.remove(await rows.get(beside.worktree_id), actor=USER_ACTOR, at=NOON)
    other = await place.add_task("wide")
    await _queue(place, task_id=other.id, folder="/elsewhere", repository=None)
    again = {}
    for number, (task_id, before) in runs.items():
        again[number] = await _queue(place, task_id=task_id)
        async with place.database.writing() as connection:
            session_id = new_id()
            await connection.execute(
                insert(tables.sessions).values(
                    id=session_id,
                    user_id=LOCAL_USER_ID,
                    agent_id=place.agents["robot"].id,
                    workspace=_REPOSITORY,
                    status=SessionStatus.COMPLETED,
                    started_at=NOON,
                    created_at=NOON,
                    updated_at=NOON,
                )
            )
            await connection.exec_driver_sql(
                "UPDATE executions SET session_id = ?, parent_execution_id = nullif(?, id) WHERE id IN (?, ?)",
                (session_id, before, before, again[number]),
            )

    claimed = {one.id: one for one in await _claim(place)}

    assert (claimed[again[0]].working_dir, claimed[again[0]].worktree_id) == (_REPOSITORY, None)
    assert claimed[again[1]].working_dir == beside.working_dir
    assert claimed[again[1]].worktree_id not in {None, beside.worktree_id}
