from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.audit import event_sentence
from agentmon.domain.board import BoardSort, ColumnRequest
from agentmon.domain.clock import FakeClock, SystemClock
from agentmon.domain.errors import ConflictError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import ExecutionId, new_id
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import Schedule, TaskDraft
from agentmon.services.actors import USER_ACTOR
from agentmon.store.schedules import ScheduleRepository
from agentmon.store.task_archive import ArchiveRepository
from agentmon.worker.archiving import archive_old_cards
from tests.stored_runs import Stored, stored

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agentmon.domain.board import Card
    from agentmon.domain.tasks import Task

TODO, IN_PROGRESS, BLOCKED, REVIEW, DONE, CANCELLED = TaskStatus


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Stored]:
    async with stored(tmp_path) as opened:
        yield opened


async def _cards(place: Stored, status: TaskStatus, text: str = "", sort: BoardSort | None = None) -> list[Card]:
    page = await place.services.board.page(place.workspace, [ColumnRequest(status=status, text_filter=text, sort=sort)])
    for index, card in enumerate(page.columns[status].cards):
        assert await place.services.board.locate(place.workspace, card.task_id, text, sort=sort) == (status, index)
    return list(page.columns[status].cards)


async def _told(place: Stored, task: Task) -> list[str]:
    return [event_sentence(event) for event in (await place.services.audit.of_task(task.id))]


async def test_an_archived_card_leaves_the_board_keeps_all_and_comes_back_to_its_place(place: Stored) -> None:
    archive, tasks = place.services.archive, place.services.tasks
    first, second, third = [await place.add_task(title) for title in ("one", "two", "three")]
    run = await place.add_run(second.id, output=b"kept\n")

    archived = await archive.archive(second.id, actor=USER_ACTOR)

    assert archived.archived_at is not None
    assert [card.number for card in await _cards(place, TODO)] == [first.number, third.number]
    for sort in BoardSort:
        assert [card.title for card in await _cards(place, TODO, "is:archived", sort)] == ["two"]
    assert [task.number for task in await tasks.list(place.workspace, is_archived=True)] == [second.number]
    assert await place.services.board.locate(place.workspace, second.id) is None
    assert (await tasks.by_number(place.workspace, second.number)).id == second.id
    assert [one.id for one in await place.services.executions.of_task(second.id)] == [run.id]
    with pytest.raises(ConflictError, match="#2 is archived"):
        await place.services.queue.run(second.id, actor=USER_ACTOR)
    again = await archive.archive(second.id, actor=USER_ACTOR)
    assert again.version == archived.version

    back = await archive.unarchive(second.id, actor=USER_ACTOR)

    assert back.archived_at is None
    assert [card.title for card in await _cards(place, TODO)] == ["one", "two", "three"]
    assert (await _told(place, second))[-2:] == ["archived the task", "brought the task back from the archive"]


@pytest.mark.parametrize(
    ("status", "words"), [(ExecutionStatus.QUEUED, "waits in the queue"), (ExecutionStatus.RUNNING, "still runs")]
)
async def test_a_card_that_waits_or_runs_is_not_archived(place: Stored, status: ExecutionStatus, words: str) -> None:
    task = await place.add_task()
    await place.add_run(task.id, status)

    with pytest.raises(ConflictError, match=f"#1 {words}, and cannot be archived") as refused:
        await place.services.archive.archive(task.id, actor=USER_ACTOR)

    assert "agentmon stop 1" in refused.value.hint
    assert (await place.services.tasks.get(task.id)).archived_at is None


async def test_a_closed_card_counts_as_closed_in_the_archive_and_an_open_one_as_open(place: Stored) -> None:
    tasks, archive = place.services.tasks, place.services.archive
    closed, opened = await place.add_task("closed"), await place.add_task("opened")
    await tasks.move(closed.id, DONE, actor=USER_ACTOR)
    for task in (closed, opened):
        await archive.archive(task.id, actor=USER_ACTOR)

    free = await tasks.add(place.workspace, TaskDraft(title="free"), actor=USER_ACTOR, after=[closed.number])
    held = await tasks.add(place.workspace, TaskDraft(title="held"), actor=USER_ACTOR, after=[opened.number])

    assert (free.status, held.status) == (TODO, BLOCKED)
    await tasks.move(opened.id, DONE, actor=USER_ACTOR)
    assert (await tasks.get(held.id)).status is TODO


async def test_an_archived_card_has_no_place_between_others(place: Stored) -> None:
    one, _other = [await place.add_task(title) for title in ("one", "two")]
    await place.services.archive.archive(one.id, actor=USER_ACTOR)

    with pytest.raises(ConflictError, match="is archived, and stays where it is") as refused:
        await place.services.tasks.shift(one.id, 1, actor=USER_ACTOR)

    assert "agentmon task unarchive 1" in refused.value.hint


async def test_a_scheduled_card_does_not_run_from_the_archive_nor_make_up_for_it(place: Stored) -> None:
    agent = await place.services.agents.by_slug("command")
    draft = TaskDraft(title="nightly", assignee_agent_id=agent.id, schedule=Schedule(cron="0 3 * * *", zone="UTC"))
    task = await place.services.tasks.add(place.workspace, draft, actor=USER_ACTOR)
    schedules = ScheduleRepository(place.services.database)
    later = SystemClock().now() + timedelta(days=2)
    assert [one.id for one in await schedules.due(at=later)] == [task.id]

    await place.services.archive.archive(task.id, actor=USER_ACTOR)

    assert await schedules.due(at=later) == ()
    assert await schedules.next_time() is None
    queued = await schedules.queue_due(
        task,
        None,
        execution_id=ExecutionId(new_id()),
        log_file_path="",
        next_run_at=None,
        cannot_run="",
        at=later,
    )
    assert queued is None
    back = await place.services.archive.unarchive(task.id, actor=USER_ACTOR)
    assert back.next_run_at is not None
    assert back.next_run_at > SystemClock().now()


async def test_the_worker_archives_closed_cards_after_the_days_that_are_set_and_says_why(place: Stored) -> None:
    tasks = place.services.tasks
    made = {title: await place.add_task(title) for title in ("open", "done", "cancelled", "goes on")}
    for title, status in (("done", DONE), ("cancelled", CANCELLED), ("goes on", DONE)):
        await tasks.move(made[title].id, status, actor=USER_ACTOR)
    await place.add_run(made["goes on"].id, ExecutionStatus.RUNNING)
    archive = ArchiveRepository(place.services.database)

    async def archived_after(days: float, setting: int) -> int:
        return await archive_old_cards(archive, setting, FakeClock(SystemClock().now() + timedelta(days=days)))

    assert await archived_after(1000, 0) == 0
    assert await archived_after(29.9, 30) == 0
    assert await archived_after(30.1, 30) == 2

    assert [task.title for task in await tasks.list(place.workspace, is_archived=True)] == ["done", "cancelled"]
    assert (await _told(place, made["done"]))[-1] == "archived the task (closed and unchanged for 30 days)"
    assert await archived_after(30.2, 30) == 0
    assert (await place.services.settings.get("board.archive_after_days")).value == 0
