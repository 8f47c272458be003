"""What keeps runs from starting: the pause, open tasks, parked programs, times; and what became of lost ones."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import ExecutionRequest
from agentmon.domain.ids import ExecutionId, new_id
from agentmon.domain.task_status import TaskStatus
from agentmon.screens.dialogs.choice import ChoiceDialog
from agentmon.services.actors import USER_ACTOR
from agentmon.store.executions import ExecutionRepository
from agentmon.store.moments import moment_text
from agentmon.widgets.status_line import StatusBar
from tests.idle_worker import idle_worker
from tests.live_home import add_command
from tests.screen_stage import screen_text
from tests.screens.boards import Board, Place, make_place, open_board
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agentmon.domain.executions import Execution

TODO, IN_PROGRESS, BLOCKED, REVIEW, DONE, CANCELLED = TaskStatus
RUNNING = "UPDATE executions SET status = 'running', started_at = ? WHERE id = ?"
LATER = datetime.now(UTC) + timedelta(hours=5)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = make_place(tmp_path)
    with idle_worker(place.paths):
        yield place


async def add(place: Place, title: str, *, after: int | None = None) -> None:
    async with place.services() as (services, workspace):
        task = await add_command(services, workspace, "true", title=title)
        if after is not None:
            await services.tasks.add_dependency(task.id, after, actor=USER_ACTOR)


async def queue(place: Place, number: int, *, waits_for_tasks: bool = False) -> ExecutionId:
    async with place.services() as (services, workspace):
        task = await services.tasks.by_number(workspace, number)
        agent = await services.agents.by_slug("command")
        execution_id = ExecutionId(new_id())
        await ExecutionRepository(services.database).enqueue(
            ExecutionRequest(
                task_id=task.id,
                agent_id=agent.id,
                capability_id=agent.capabilities[0].id,
                args=task.input_context.args,
                may_wait=waits_for_tasks,
            ),
            execution_id=execution_id,
            log_file_path=str(place.paths.execution_dir(execution_id) / "output.log"),
            actor=USER_ACTOR,
            at=datetime.now(UTC),
        )
        return execution_id


def write(place: Place, statement: str, *values: object) -> None:
    stored = [moment_text(one) if isinstance(one, datetime) else one for one in values]
    with closing(sqlite3.connect(place.paths.database_path)) as connection, connection:
        connection.execute(statement, stored)


async def newest(place: Place, number: int) -> Execution | None:
    async with place.services() as (services, workspace):
        task = await services.tasks.by_number(workspace, number)
        return await services.executions.newest(task.id)


def column_text(board: Board, status: TaskStatus) -> str:
    column = board.column(status)
    return "\n".join(column.render_line(y).text for y in range(column.size.height))


def status_text(board: Board) -> str:
    return board.screen.query_one(StatusBar).render_line(0).text


async def question(board: Board) -> str:
    await board.until(lambda: isinstance(board.app.screen, ChoiceDialog), "the question")
    await board.pilot.pause()
    dialog = board.app.screen
    return "\n".join(str(dialog.query_one(part).render()) for part in ("#question", "#detail"))


async def test_p_pauses_the_queue_and_again_lets_it_go_on(place: Place) -> None:
    await add(place, "a")

    async with open_board(place) as board:
        await board.press("P")
        await board.until(lambda: "‖ paused since" in status_text(board), "it is paused")
        shown = status_text(board)
        await board.press("r")
        await board.told("the queue is paused")
        await board.press("P")
        await board.until(lambda: "paused" not in status_text(board), "it goes on")

        assert "P goes on" in shown
        await board.told("The queue goes on")


async def test_a_click_on_the_words_of_the_pause_lets_the_queue_go_on(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("P")
        await board.until(lambda: "‖ paused since" in status_text(board), "it is paused")

        await board.pilot.click(StatusBar, offset=(status_text(board).index("‖") + 2, 0))

        await board.until(lambda: "paused" not in status_text(board), "it goes on")


@pytest.mark.parametrize(
    ("keys", "pause"), [(("enter",), False), (("right", "enter"), True), (("escape",), None)], ids=str
)
async def test_pausing_asks_what_becomes_of_what_runs(place: Place, keys: tuple[str, ...], pause: bool | None) -> None:
    await add(place, "a")
    execution_id = await queue(place, 1)
    write(
        place, "UPDATE executions SET status = 'running', started_at = ? WHERE id = ?", datetime.now(UTC), execution_id
    )

    async with open_board(place) as board:
        await board.press("P")
        asked = await question(board)
        await board.press(*keys)
        await board.until(lambda: not isinstance(board.app.screen, ChoiceDialog), "answered")
        if pause is not None:
            await board.until(lambda: "‖ paused since" in status_text(board), "it is paused")
        async with place.services() as (services, _workspace):
            found = await services.queue.find_pause()

        assert "1 run goes on now" in asked
        assert (None if found is None else found.halts_running) is pause


async def test_running_a_card_that_waits_for_tasks_offers_to_start_it_after_them(place: Place) -> None:
    await add(place, "first")
    await add(place, "second", after=1)

    async with open_board(place) as board:
        await board.press("l", "l", "r")
        asked = await question(board)
        await board.press("enter")
        await board.until(lambda: "◌ after #1" in column_text(board, BLOCKED), "it is queued")
        await board.until(lambda: "#1 (not queued)" in column_text(board, BLOCKED), "so far for nothing")

        assert asked.startswith("#2 waits for #1 (not queued).\nStart it by itself when it is done?")
        await board.told("#2 is queued: it starts after #1")


async def test_leaving_that_question_queues_nothing(place: Place) -> None:
    await add(place, "first")
    await add(place, "second", after=1)

    async with open_board(place) as board:
        await board.press("l", "l", "r")
        await question(board)
        await board.press("escape")
        await board.settled()

    assert await newest(place, 2) is None


async def test_running_a_parked_card_starts_it_now(place: Place) -> None:
    await add(place, "limited")
    execution_id = await queue(place, 1)
    write(
        place,
        "UPDATE executions SET wait_reason = 'usage_limit', not_before = ?, error = 'limit reached' WHERE id = ?",
        LATER,
        execution_id,
    )

    async with open_board(place) as board:
        before = column_text(board, TODO)
        await board.press("r")
        await board.told("#1 starts now")
        await board.settled()

        assert "⏸" in before
        assert "until" in before
        assert "limit reached" in before
        assert "◌ queued" in column_text(board, TODO)


async def test_a_parked_program_is_named_and_released(place: Place) -> None:
    await add(place, "a")
    write(
        place,
        "UPDATE agents SET parked_until = ?, park_reason = 'failures', park_note = 'its last 5 runs failed' "
        "WHERE slug = 'command'",
        LATER,
    )

    async with open_board(place) as board:
        await board.press("r")
        await board.told("command is parked until")
        # In the evening the time is one of tomorrow, and leaves no room for the word.
        await board.until(lambda: "⏸" in (shown := column_text(board, TODO)) and "until" in shown, "the card too")
        words = board.screen.action_words("release_agent")
        await board.press("U")
        await board.until(lambda: "⏸" not in column_text(board, TODO), "it is released")

        assert words == "Let command start again"
        await board.told("its last 5 runs failed")


@pytest.mark.proof
async def test_the_words_of_a_time_go_when_it_is_over_though_nothing_changes(place: Place) -> None:
    await add(place, "a")
    execution_id = await queue(place, 1)

    async with open_board(place) as board:
        write(
            place,
            "UPDATE executions SET wait_reason = 'scheduled', not_before = ? WHERE id = ?",
            datetime.now(UTC) + timedelta(seconds=3),
            execution_id,
        )
        await board.until(lambda: "◌ queued · at " in column_text(board, TODO), "the time is shown")
        await board.until(lambda: "queued · at " not in column_text(board, TODO), "the time is over")

        assert "◌ queued" in column_text(board, TODO)


async def test_closing_a_queued_card_says_that_its_run_was_cancelled_and_undo_brings_the_card_back(
    place: Place,
) -> None:
    await add(place, "a")
    await queue(place, 1)

    async with open_board(place) as board:
        for _ in range(4):
            await board.press("L")
            await board.settled()
        await board.told("#1: its queued run was cancelled")
        await board.press("ctrl+z")
        await board.until(lambda: board.shown(REVIEW) == ["a"], "it is back")

        await board.told("the queued run stays cancelled")


async def test_cancelling_a_running_card_says_that_it_moves_later(place: Place) -> None:
    await add(place, "a")
    execution_id = await queue(place, 1)
    write(
        place, "UPDATE executions SET status = 'running', started_at = ? WHERE id = ?", datetime.now(UTC), execution_id
    )
    async with place.services() as (services, workspace):
        task = await services.tasks.by_number(workspace, 1)
        await services.tasks.move(task.id, BLOCKED, actor=USER_ACTOR)

    async with open_board(place) as board:
        card = board.column(BLOCKED).selected
        assert card is not None
        board.screen._move([([card], board.column(CANCELLED), None)])
        told = "#1 is being stopped; it moves to Cancelled when nothing of it is alive"
        await board.until(lambda: told in board.toasts, "it says so")
        await board.settled()
        await board.press("ctrl+z")
        await board.told("still being stopped")
        write(place, "UPDATE executions SET status = 'cancelled', ended_at = ? WHERE id = ?", LATER, execution_id)
        write(place, "UPDATE tasks SET status = 'cancelled'")
        await board.press("ctrl+z")

        await board.until(lambda: board.shown(TODO) == ["a"], "it is to do again")


async def test_lost_runs_are_told_at_the_start_and_run_again_together(place: Place) -> None:
    for number, title in enumerate(("a", "b"), 1):
        await add(place, title)
        execution_id = await queue(place, number)
        write(
            place,
            "UPDATE executions SET status = 'failed', end_reason = 'lost', started_at = ?, ended_at = ? WHERE id = ?",
            datetime.now(UTC) - timedelta(minutes=9),
            datetime.now(UTC) - timedelta(minutes=8),
            execution_id,
        )
    write(place, "UPDATE tasks SET status = 'blocked'")

    async with open_board(place) as board:
        await board.told("2 runs were lost: #1 a, #2 b")
        shown = column_text(board, BLOCKED)
        await board.press("ctrl+l")
        asked = await question(board)
        await board.press("enter")
        await board.until(lambda: "✗ lost" not in column_text(board, BLOCKED), "they are queued")

        assert shown.count("✗ lost") == 2
        assert asked.startswith("Run 2 lost tasks again?\n#1 a\n#2 b")
    first, second = await newest(place, 1), await newest(place, 2)
    assert first is not None
    assert second is not None
    assert {first.status, second.status} == {ExecutionStatus.QUEUED}


@pytest.mark.proof
@pytest.mark.parametrize(
    ("way", "status", "waits_for"),
    [
        ("anyway", ExecutionStatus.QUEUED, []),
        ("drop", ExecutionStatus.QUEUED, [2]),
        ("stop", ExecutionStatus.CANCELLED, [1, 2]),
        ("cancel", ExecutionStatus.QUEUED, [1, 2]),
    ],
)
@pytest.mark.parametrize("place_of_question", ["board", "inbox"])
async def test_a_run_behind_a_cancelled_card_is_decided_about_from_board_and_inbox(
    place: Place, way: str, status: ExecutionStatus, waits_for: list[int], place_of_question: str
) -> None:
    await add(place, "first")
    await add(place, "second")
    await add(place, "third", after=1)
    async with place.services() as (services, workspace):
        task = await services.tasks.by_number(workspace, 3)
        await services.tasks.add_dependency(task.id, 2, actor=USER_ACTOR)
        await queue(place, 3, waits_for_tasks=True)
        first = await services.tasks.by_number(workspace, 1)
        await services.tasks.move(first.id, CANCELLED, actor=USER_ACTOR)

    async with open_board(place, size=(240, 40)) as board:
        await board.until(lambda: "waits for #1 (cancelled)" in column_text(board, BLOCKED), "the card says so")
        if place_of_question == "board":
            await board.press("w")
            await board.until(lambda: board.selected == "third", "it is selected")
        else:
            await board.press("6")
            await board.until(lambda: "1 waits for you" in screen_text(board.app), "the inbox has it")
        await board.press("y")
        asked = await question(board)
        await board.pilot.click(f"#{way}" if way == "cancel" else f"#answer-{way}")
        await board.until(lambda: not isinstance(board.app.screen, ChoiceDialog), "it is answered")
        async with place.services() as (services, workspace):

            async def is_carried_out() -> bool:
                present = await newest(place, 3)
                awaited = [one.number for one in await services.tasks.dependencies(task.id)]
                return present is not None and (present.status, awaited) == (status, waits_for)

            await until(is_carried_out)

    assert "#1 (cancelled), #2" in asked


async def test_a_run_that_was_stopped_while_the_question_stood_is_not_started_anyway(place: Place) -> None:
    await add(place, "first")
    await add(place, "second", after=1)
    async with place.services() as (services, workspace):
        await queue(place, 2, waits_for_tasks=True)
        first, second = [await services.tasks.by_number(workspace, number) for number in (1, 2)]
        await services.tasks.move(first.id, CANCELLED, actor=USER_ACTOR)

        async with open_board(place) as board:
            await board.press("w")
            await board.until(lambda: board.selected == "second", "it is selected")
            await board.press("y")
            await question(board)
            await services.queue.stop(second.id, actor=USER_ACTOR)
            await board.pilot.click("#answer-anyway")
            await board.told("nothing of this task waits for others any more")
        present = await newest(place, 2)

    assert present is not None
    assert present.status is ExecutionStatus.CANCELLED
