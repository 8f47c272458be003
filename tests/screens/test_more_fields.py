"""What the task editor folds: retries, budget, schedule, environment, additions to the prompt."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Select

from agentmon.domain.amounts import NANO, MoneyFormat
from agentmon.domain.budgets import BudgetAction, BudgetPeriod, BudgetScope
from agentmon.domain.ids import TaskId, WorkspaceId
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import InputContext, Schedule, Task
from agentmon.domain.worktrees import Isolation
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.screens.tasks.task_editor import EditedTask, TaskEditor
from agentmon.services.actors import USER_ACTOR
from agentmon.widgets.fold_line import FoldLine
from agentmon.widgets.form import LineInput, TextBox
from tests import waiting
from tests.idle_worker import idle_worker
from tests.screen_stage import Stage, any_command, screen_text, until
from tests.screens.boards import make_place, open_board

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from tests.screens.boards import Board, Place

STOP = BudgetAction.STOP
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
EURO = MoneyFormat(currency="EUR", exchange_rate="0.5")


def a_task() -> Task:
    return Task(
        id=TaskId("task"),
        number=12,
        workspace_id=WorkspaceId("workspace"),
        title="Fix it",
        input_context=InputContext(env_passed=("API_KEY",), env_overrides={"GREETING": "two\nlines"}, max_retries=2),
        schedule=Schedule(cron="@daily", zone="UTC"),
        created_at=NOW,
        updated_at=NOW,
    )


async def opened(stage: Stage, pilot: Pilot[None], task: Task | None, budget_nano: int | None) -> TaskEditor:
    editor = TaskEditor(agents=(any_command(),), task=task, workspace_root="/", budget_nano=budget_nano, money=EURO)
    stage.show(editor)  # type: ignore[arg-type] # a screen ends with its own type
    await until(pilot, lambda: stage.screen is editor and editor.focused is not None)
    await pilot.pause()
    return editor


def ended(stage: Stage) -> EditedTask:
    ending = stage.ended[-1]
    assert isinstance(ending, EditedTask)
    return ending


async def test_what_is_folded_is_told_and_kept_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("API_KEY", raising=False)
    task = a_task()
    stage = Stage()
    async with stage.run_test(size=(120, 50)) as pilot:
        editor = await opened(stage, pilot, task, 10 * NANO + 1)
        assert "▸ More           retries 2 · budget €5.00 · schedule @daily · API_KEY GREETING=" in screen_text(stage)
        assert not editor.is_changed

        await pilot.click(FoldLine)
        await until(pilot, lambda: "never stored" in screen_text(stage))
        assert not editor.is_changed
        await pilot.press("ctrl+s")

        assert ended(stage).draft.input_context == task.input_context
        assert ended(stage).draft.schedule == task.schedule
        assert ended(stage).budget_nano == 10 * NANO + 1


async def test_what_is_wrong_below_the_fold_unfolds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET_HERE", "1")
    stage = Stage()
    async with stage.run_test(size=(80, 24)) as pilot:
        editor = await opened(stage, pilot, replace(a_task(), schedule=None), None)
        await pilot.press("ctrl+g")
        environment, budget = (editor.query_one(f"#{name}", LineInput) for name in ("environment", "budget"))
        environment.value = f"SET_HERE A=sk-ant-{'x' * 30}"
        budget.value = "lots"
        await pilot.press("ctrl+g")
        assert "▸ More" in screen_text(stage)

        await pilot.press("ctrl+s")
        await until(pilot, lambda: editor.focused is budget)
        assert "✗ 'lots' is" in screen_text(stage)
        budget.value = "€2.50"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: editor.focused is environment)
        environment.value = "MY_TOKEN=x"
        await until(pilot, lambda: "looks like a secret" in screen_text(stage))
        environment.value = "SET_HERE B='a b' C="
        editor.query_one("#prompt", TextBox).text = "Be short."
        await pilot.press("ctrl+s")

        context = ended(stage).draft.input_context
        assert (context.env_passed, context.env_overrides) == (("SET_HERE",), {"B": "a b", "C": ""})
        assert context.prompt_additions == "Be short."
        assert ended(stage).budget_nano == 5 * NANO
        assert stage.failures == []


async def test_a_worktree_and_what_it_is_made_from_are_chosen_and_kept() -> None:
    stage = Stage()
    task = replace(a_task(), schedule=None, input_context=InputContext(isolation=Isolation.FOLDER, base="v1"))
    async with stage.run_test(size=(120, 50)) as pilot:
        editor = await opened(stage, pilot, task, None)
        assert "worktree never, in the folder · base v1" in screen_text(stage)
        await pilot.press("ctrl+g")
        chosen, base = editor.query_one("#isolation", Select), editor.query_one("#base", LineInput)
        assert not editor.is_changed
        chosen.value = Isolation.WORKTREE.value
        base.value = "--help"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: editor.focused is base)
        base.value = "main"
        await pilot.press("ctrl+s")

        context = ended(stage).draft.input_context
        assert (context.isolation, context.base) == (Isolation.WORKTREE, "main")
        assert stage.failures == []


async def test_a_change_below_the_fold_is_asked_about() -> None:
    stage = Stage()
    async with stage.run_test(size=(80, 24)) as pilot:
        await opened(stage, pilot, None, None)
        await pilot.press("ctrl+g", "9", "ctrl+g", "escape")
        await until(pilot, lambda: isinstance(stage.screen, ConfirmDialog))


async def until_limits(place: Place, limits: list[tuple[int, BudgetAction]]) -> None:
    async def are_stored() -> bool:
        async with place.services() as (services, _):
            return [(one.budget.limit, one.budget.action) for one in await services.budgets.states()] == limits

    await waiting.until(are_stored, f"the budgets are {limits}")


async def save_with_budget(board: Board, key: str, budget: str) -> None:
    await board.press(key)
    await board.until(lambda: isinstance(board.app.screen, TaskEditor), "the editor")
    await board.press("ctrl+g")
    await board.until(lambda: bool(board.app.screen.query("#budget")), "unfolded")
    board.app.screen.query_one("#title", LineInput).value = "Spend"
    board.app.screen.query_one("#budget", LineInput).value = budget
    await board.press("ctrl+s")
    await board.until(lambda: not isinstance(board.app.screen, TaskEditor), "saved")
    await board.settled()


@pytest.mark.proof
async def test_the_budget_of_a_task_is_set_changed_taken_away_and_brought_back(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    with idle_worker(place.paths):
        async with open_board(place, size=(80, 24)) as board:
            await save_with_budget(board, "n", "3")
            await board.until(lambda: board.shown(TaskStatus.TODO) == ["Spend"], "the card")
            await until_limits(place, [(3 * NANO, STOP)])
            await save_with_budget(board, "e", "$1,000.50")
            await until_limits(place, [(1000 * NANO + NANO // 2, STOP)])
            await save_with_budget(board, "e", "")
            await until_limits(place, [])

            await board.press("ctrl+z")
            await board.until(lambda: len(board.toasts) == 1, "undone")
            await board.settled()
            await until_limits(place, [(1000 * NANO + NANO // 2, STOP)])
            await board.press("ctrl+z")
            await board.until(lambda: len(board.toasts) == 2, "undone")
            await board.settled()
            await until_limits(place, [(3 * NANO, STOP)])


@pytest.mark.proof
async def test_what_a_budget_does_comes_back_with_it_and_a_newer_one_stays(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    [task] = await place.fill("Spend")

    async def set_budget(limit: int, action: BudgetAction) -> None:
        async with place.services() as (services, _):
            await services.budgets.set(
                scope=BudgetScope.TASK,
                scope_id=task.id,
                period=BudgetPeriod.TOTAL,
                limit=limit,
                action=action,
                actor=USER_ACTOR,
            )

    await set_budget(3 * NANO, BudgetAction.WARN)
    with idle_worker(place.paths):
        async with open_board(place, size=(80, 24)) as board:
            await save_with_budget(board, "e", "")
            await until_limits(place, [])
            await board.press("ctrl+z")
            await board.until(lambda: len(board.toasts) == 1, "undone")
            await board.settled()
            await until_limits(place, [(3 * NANO, BudgetAction.WARN)])

            await save_with_budget(board, "e", "7")
            await until_limits(place, [(7 * NANO, BudgetAction.WARN)])
            await set_budget(9 * NANO, BudgetAction.WARN)
            await board.press("ctrl+z")
            await board.until(lambda: len(board.toasts) == 2, "refused")
            await board.told("#1 was changed again meanwhile (budget), and stays as it is")
            await until_limits(place, [(9 * NANO, BudgetAction.WARN)])

            await save_with_budget(board, "e", "7")
            await until_limits(place, [(7 * NANO, BudgetAction.WARN)])
            await set_budget(7 * NANO, BudgetAction.BLOCK)
            await board.press("ctrl+z")
            await board.until(lambda: len(board.toasts) == 3, "undone")
            await board.settled()
            await until_limits(place, [(9 * NANO, BudgetAction.BLOCK)])
