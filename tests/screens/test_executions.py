from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input

from agentmon.domain.execution_columns import ExecutionColumn
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.screens.executions.screen import ExecutionsScreen
from agentmon.screens.frame import StoreChanged
from agentmon.screens.tasks.task_page import TaskPage
from agentmon.widgets.execution_table import ExecutionTable
from tests.screen_stage import NASTY_TITLES, Stage, screen_text, shown, until
from tests.stored_runs import Stored, stored

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot


async def opened(stage: Stage, pilot: Pilot[None], store: Stored, *, rows: int) -> ExecutionTable:
    screen = ExecutionsScreen(store.get_services, store.get_workspace)
    stage.show(screen)  # type: ignore[arg-type] # a screen ends with its own type
    await until(pilot, lambda: stage.screen is screen and screen._is_loaded)
    table = screen.query_one(ExecutionTable)
    await until(pilot, lambda: len(table.rows) == rows)
    return table


def numbers(table: ExecutionTable) -> list[int]:
    return [listing.task_number for listing in table.rows]


async def test_an_empty_place_says_what_to_do_next(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(80, 24)) as pilot:
        await opened(stage, pilot, store, rows=0)

        await until(pilot, lambda: "Nothing has run yet" in screen_text(stage))

        assert "choose a task and press r" in screen_text(stage)


async def test_open_executions_come_first_then_the_newest(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        for status, age in (
            (ExecutionStatus.SUCCEEDED, 1),
            (ExecutionStatus.FAILED, 9),
            (ExecutionStatus.RUNNING, 5),
            (ExecutionStatus.QUEUED, 7),
        ):
            task = await store.add_task(f"{status.value} task")
            await store.add_run(task.id, status, age=timedelta(minutes=age))

        table = await opened(stage, pilot, store, rows=4)

        assert set(numbers(table)[:2]) == {3, 4}
        assert numbers(table)[2:] == [1, 2]
        drawn = screen_text(stage)
        for words in ("● running", "◌ queued", "✓ done", "✗ failed", "1 running", "1 queued", "4 in all"):
            assert words in drawn


async def test_a_change_in_the_database_shows_and_keeps_the_selection(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        first = await store.add_task("first")
        second = await store.add_task("second")
        await store.add_run(first.id, age=timedelta(hours=1))
        running = await store.add_run(second.id, ExecutionStatus.RUNNING)
        table = await opened(stage, pilot, store, rows=2)
        assert table.selected is not None
        assert table.selected.execution.id == running.id

        await store.add_run(first.id, ExecutionStatus.RUNNING, age=timedelta(0))
        store.set_status(running.id, ExecutionStatus.FAILED)
        stage.screen.post_message(StoreChanged())
        await until(pilot, lambda: len(table.rows) == 3 and table.rows[0].task_number == 1)

        assert table.selected.execution.id == running.id
        await until(pilot, lambda: "✗ failed" in screen_text(stage))


async def test_any_title_is_drawn_letter_for_letter(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        for title in NASTY_TITLES:
            await store.add_run((await store.add_task(title)).id)

        await opened(stage, pilot, store, rows=len(NASTY_TITLES))
        await until(pilot, lambda: all(shown(title) in screen_text(stage) for title in NASTY_TITLES))

        assert "\x1b" not in screen_text(stage)
        assert stage.failures == []


async def test_the_filter_narrows_as_one_types_and_escape_clears_it(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        for title in ("alpha", "beta", "alphabet"):
            await store.add_run((await store.add_task(title)).id)
        table = await opened(stage, pilot, store, rows=3)

        await pilot.press("slash", "b", "e", "t")
        await until(pilot, lambda: len(table.rows) == 2)
        await pilot.press("a")
        await until(pilot, lambda: len(table.rows) == 1)
        assert "1 shown" in screen_text(stage)
        await pilot.press("enter")
        assert stage.focused is table

        await pilot.press("escape")
        await until(pilot, lambda: len(table.rows) == 3)
        assert stage.screen.query_one("#filter", Input).value == ""


async def test_s_goes_through_the_columns_and_capital_s_turns_the_order_round(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        for title in ("one", "two", "three"):
            await store.add_run((await store.add_task(title)).id)
        table = await opened(stage, pilot, store, rows=3)

        await pilot.press("s", "s")
        assert table.sorting is not None
        assert table.sorting.column is ExecutionColumn.TASK
        assert numbers(table) == [1, 2, 3]
        await pilot.press("S")
        assert numbers(table) == [3, 2, 1]
        assert "by task, falling" in screen_text(stage)
        await pilot.press("escape")

        assert table.sorting is None


async def test_keys_move_the_cursor(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(80, 24)) as pilot:
        for number in range(30):
            await store.add_run((await store.add_task(f"task {number}")).id)
        table = await opened(stage, pilot, store, rows=30)

        places = []
        for key in ("j", "down", "k", "up", "G", "g", "end", "home", "ctrl+d", "ctrl+u"):
            await pilot.press(key)
            places.append(table.cursor_row)

        assert places[:8] == [1, 2, 1, 0, 29, 0, 29, 0]
        assert places[8] > 5
        assert places[9] == 0


async def test_enter_opens_the_page_of_the_task_at_that_execution(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task("look at me")
        await store.add_run(task.id, output=b"newest\n", age=timedelta(minutes=1))
        await store.add_run(task.id, output=b"the older one\n", age=timedelta(minutes=9))
        await opened(stage, pilot, store, rows=2)

        await pilot.press("j", "enter")

        await until(pilot, lambda: isinstance(stage.screen, TaskPage) and "the older one" in screen_text(stage))
        await pilot.press("escape")
        assert isinstance(stage.screen, ExecutionsScreen)


async def test_attach_asks_the_application_for_what_runs_only(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        running = await store.add_run((await store.add_task("runs")).id, ExecutionStatus.RUNNING)
        await store.add_run((await store.add_task("ran")).id)
        await opened(stage, pilot, store, rows=2)

        await pilot.press("j", "a", "k", "a")
        await until(pilot, lambda: bool(stage.attach_requests))

        assert [request.execution_id for request in stage.attach_requests] == [running.id]


async def test_x_takes_a_queued_execution_out_of_the_queue(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        queued = await store.add_run((await store.add_task("waits")).id, ExecutionStatus.QUEUED)
        table = await opened(stage, pilot, store, rows=1)

        await pilot.press("x")
        await until(pilot, lambda: table.rows[0].execution.status is ExecutionStatus.CANCELLED)

        assert (await store.services.executions.get(queued.id)).status is ExecutionStatus.CANCELLED
        assert stage.failures == []


async def test_stopping_an_agent_whose_row_nobody_chose_asks_first(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        for title in ("older", "newer"):
            await store.add_run((await store.add_task(title)).id, ExecutionStatus.RUNNING)
        with closing(sqlite3.connect(store.services.paths.database_path)) as connection, connection:
            connection.execute("UPDATE executions SET mode = ?", (ExecutionMode.STREAM_JSON.value,))
        table = await opened(stage, pilot, store, rows=2)
        first, second = (listing.execution.id for listing in table.rows)
        asked: list[str] = []

        async def x_asks_no() -> None:
            await pilot.press("x")
            await until(pilot, lambda: isinstance(stage.screen, ConfirmDialog))
            asked.append(screen_text(stage))
            await pilot.press("n")
            await until(pilot, lambda: isinstance(stage.screen, ExecutionsScreen))

        await x_asks_no()
        await pilot.press("slash", *"running", "enter", "j")
        store.set_status(second, ExecutionStatus.FAILED)
        stage.screen.post_message(StoreChanged())
        await until(pilot, lambda: len(table.rows) == 1)
        await x_asks_no()

        assert len(asked) == 2
        assert (await store.services.executions.get(first)).status is ExecutionStatus.RUNNING
        await pilot.press("x")
        await until(pilot, lambda: table.rows == () or table.rows[0].execution.status is ExecutionStatus.CANCELLING)
        assert (await store.services.executions.get(first)).status is ExecutionStatus.CANCELLING


@pytest.mark.parametrize(
    ("mode", "can_interrupt", "can_change"),
    [
        (ExecutionMode.STREAM_JSON, True, True),
        (ExecutionMode.TMUX, True, None),
        (ExecutionMode.TEMPLATE, None, None),
    ],
)
async def test_any_agent_that_runs_can_be_interrupted(
    tmp_path: Path, mode: ExecutionMode, can_interrupt: bool | None, can_change: bool | None
) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        await store.add_run((await store.add_task("runs")).id, ExecutionStatus.RUNNING)
        with closing(sqlite3.connect(store.services.paths.database_path)) as connection, connection:
            connection.execute("UPDATE executions SET mode = ?", (mode.value,))
        await opened(stage, pilot, store, rows=1)

        assert stage.screen.check_action("interrupt", ()) is can_interrupt
        assert stage.screen.check_action("change_agent", ()) is can_change


async def test_kill_asks_first_and_no_is_the_default(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        queued = await store.add_run((await store.add_task("fix [/] bug")).id, ExecutionStatus.QUEUED)
        await opened(stage, pilot, store, rows=1)

        await pilot.press("X")
        await until(pilot, lambda: isinstance(stage.screen, ConfirmDialog))
        assert "fix [/] bug" in screen_text(stage)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(stage.screen, ExecutionsScreen))

        assert (await store.services.executions.get(queued.id)).status is ExecutionStatus.QUEUED


async def test_thousands_of_rows_are_all_there_and_an_old_one_that_ends_is_seen(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        oldest = await store.add_run(
            (await store.add_task("oldest")).id, ExecutionStatus.RUNNING, age=timedelta(days=9)
        )
        await store.add_run((await store.add_task("copied")).id)
        store.copy_runs(2_000)
        table = await opened(stage, pilot, store, rows=2_002)
        assert table.rows[0].execution.id == oldest.id

        store.set_columns(oldest.id, last_line="still at it")
        stage.screen.post_message(StoreChanged())
        await until(pilot, lambda: table.rows[0].execution.last_line == "still at it")
        assert len(table.rows) == 2_002

        store.set_status(oldest.id, ExecutionStatus.FAILED)
        stage.screen.post_message(StoreChanged())

        await until(pilot, lambda: table.rows[-1].execution.status is ExecutionStatus.FAILED)
        assert table.rows[-1].execution.id == oldest.id
        assert len(table.rows) == 2_002


@pytest.mark.proof
async def test_any_size_is_survived(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(80, 24)) as pilot:
        await store.add_run((await store.add_task("small")).id)
        await opened(stage, pilot, store, rows=1)

        for size in ((80, 24), (40, 10), (20, 5), (1, 1), (300, 80)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            await pilot.press("j", "slash", "escape", "s")
            await pilot.resize_terminal(80, 24)
            await until(pilot, lambda: "small" in screen_text(stage))

            assert stage.failures == [], size
