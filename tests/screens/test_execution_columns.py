from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import UsageError
from agentmon.domain.execution_columns import DEFAULT_COLUMNS, ExecutionColumn, parse_columns
from agentmon.screens.executions.columns_dialog import ColumnsDialog
from agentmon.screens.executions.screen import ExecutionsScreen
from agentmon.services.settings import EXECUTION_COLUMNS_KEY
from agentmon.widgets.execution_table import ExecutionTable, SortOrder
from tests.screen_stage import Stage, screen_text, until
from tests.stored_runs import stored

if TYPE_CHECKING:
    from pathlib import Path


async def test_columns_are_chosen_put_in_order_kept_and_reset(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(160, 40)) as pilot:
        await store.add_run((await store.add_task("first")).id)
        screen = ExecutionsScreen(store.get_services, store.get_workspace)
        stage.show(screen)  # type: ignore[arg-type] # a screen ends with its own type
        await until(pilot, lambda: stage.screen is screen and screen._is_loaded)
        table = screen.query_one(ExecutionTable)
        assert list(table.columns) == list(DEFAULT_COLUMNS)
        screen._sort(SortOrder(column=ExecutionColumn.AGENT))

        await pilot.press("c")
        await until(pilot, lambda: isinstance(stage.screen, ColumnsDialog))
        await pilot.press("j", "j", "space", "k", "J", "enter")
        chosen = (ExecutionColumn.STATE, ExecutionColumn.TASK, ExecutionColumn.MODEL)
        await until(pilot, lambda: stage.screen is screen and table.columns[:3] == chosen)

        assert ExecutionColumn.AGENT not in table.columns
        assert table.sorting is None
        assert "Program" not in screen_text(stage)
        services = await store.get_services()
        await until(pilot, lambda: not screen.workers or all(one.is_finished for one in screen.workers))
        assert (await services.settings.execution_columns()) == table.columns
        assert str((await services.settings.get(EXECUTION_COLUMNS_KEY)).value).startswith("state task model")

        await pilot.press("c")
        await until(pilot, lambda: isinstance(stage.screen, ColumnsDialog))
        await pilot.press("d", "enter")
        await until(pilot, lambda: table.columns == DEFAULT_COLUMNS)


async def test_the_last_column_cannot_be_hidden_and_escape_changes_nothing(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(80, 24)) as pilot:
        services = await store.get_services()
        await services.settings.keep_execution_columns((ExecutionColumn.STATE,), actor=services.actor)
        screen = ExecutionsScreen(store.get_services, store.get_workspace)
        stage.show(screen)  # type: ignore[arg-type] # a screen ends with its own type
        await until(pilot, lambda: stage.screen is screen and screen._is_loaded)
        table = screen.query_one(ExecutionTable)
        await until(pilot, lambda: table.columns == (ExecutionColumn.STATE,))

        await pilot.press("c")
        await until(pilot, lambda: isinstance(stage.screen, ColumnsDialog))
        await pilot.press("space")
        await until(pilot, lambda: any("at least one" in one.message for one in stage._notifications))
        assert "no room" not in screen_text(stage)
        await pilot.press("d")
        await until(pilot, lambda: "✓ Model  no room in this window" in screen_text(stage))
        assert screen_text(stage).count("no room") == len(DEFAULT_COLUMNS) - len(table.fitting(DEFAULT_COLUMNS))
        await pilot.press("j", "space", "escape")
        await until(pilot, lambda: stage.screen is screen)

        assert table.columns == (ExecutionColumn.STATE,)


async def test_a_setting_with_an_unknown_column_is_refused_with_all_names(tmp_path: Path) -> None:
    async with stored(tmp_path) as store:
        services = await store.get_services()

        with pytest.raises(UsageError, match="there is no column colour; columns are state, task, program"):
            await services.settings.set(EXECUTION_COLUMNS_KEY, "state colour", actor=services.actor)

        kept = await services.settings.set(EXECUTION_COLUMNS_KEY, "Task,  state,task", actor=services.actor)
        assert kept.value == "task state"


def test_no_columns_are_the_usual_ones() -> None:
    assert parse_columns(" , ") == DEFAULT_COLUMNS
