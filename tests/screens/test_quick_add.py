from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agentmon.app import AgentmonApp
from agentmon.domain.ids import AgentId
from agentmon.domain.task_status import Priority, TaskStatus
from agentmon.screens.board.quick_add import QuickAddDialog
from agentmon.widgets.form import LineInput
from tests.idle_worker import idle_worker
from tests.screen_stage import agent, capability, screen_text
from tests.screens.boards import Board, Place, make_place, open_board

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = make_place(tmp_path)
    with idle_worker(place.paths):
        yield place


def line(board: Board) -> LineInput:
    return board.app.screen.query_one("#line", LineInput)


async def wait_shown(board: Board, words: str) -> None:
    await board.until(lambda: words in screen_text(board.app), words)


@pytest.mark.proof
async def test_a_line_makes_a_task_and_says_while_it_is_typed_what_it_means(place: Place) -> None:
    await place.fill("Mend the gate")
    (place.root / "src").mkdir()
    async with place.services() as (services, _):
        await services.agents.add(agent("painter", replace(capability("paint"), agent_id=AgentId("agent-painter"))))

    async with open_board(place, size=(80, 24)) as board:
        # What is typed at once is for the line that is about to be shown.
        await board.press("plus", *"fix", "space", "exclamation_mark", *"1", "space", *"@pain")
        await wait_shown(board, "✗ there is no program @pain")
        await wait_shown(board, "tab @painter")
        await board.press("tab", *"after:gat")
        await wait_shown(board, "tab #1 Mend the gate")
        await wait_shown(board, "✗ after:gat: this is not the number of a task")
        line(board).value = "x @nope after:77 in:nowhere"
        await wait_shown(board, "✗ in:nowhere")
        told = [words for row in screen_text(board.app).splitlines() if (words := row.strip())]
        at = told.index("✗ there is no program @nope")
        assert told[at + 1].startswith("there are @"), "what helps stands below what is wrong"
        assert "✗ there is no task #77 here" in told[at + 2 :]
        line(board).value = "fix !1 @painter after:gat"
        await wait_shown(board, "tab #1 Mend the gate")
        await board.press("enter")
        assert isinstance(board.app.screen, QuickAddDialog)
        await board.press("tab", "space", *"in:s")
        await wait_shown(board, "tab src/")
        await board.press("tab", "space", *"[/] #12")
        await wait_shown(board, "fix [/] #12 · P1 · @painter · after #1 Mend the gate · in ")
        assert "✗" not in screen_text(board.app)

        await board.press("enter")
        await board.until(lambda: board.selected == "fix [/] #12", "the new task is selected")

        async with place.services() as (services, workspace):
            task = await services.tasks.by_number(workspace, 2)
        assert (task.priority, task.status) == (Priority.URGENT, TaskStatus.BLOCKED)
        assert task.input_context.working_dir == f"{place.root}/src"


async def test_a_wrong_line_stays_and_escape_leaves_without_a_task(place: Place) -> None:
    async with open_board(place, size=(40, 10)) as board:
        await board.press("plus", *"x", "ctrl+r")
        await wait_shown(board, "a task without a program cannot")
        line(board).value = "x !9"
        await board.press("enter")
        await wait_shown(board, "✗ !9: priorities are !1 to !5")
        line(board).value = ""
        await wait_shown(board, "!1 @agent #label")
        await board.press("enter", "tab", "escape")
        await board.until(lambda: not isinstance(board.app.screen, QuickAddDialog), "the board again")
        assert await place.titles(TaskStatus.TODO) == []


async def test_tab_completes_what_was_typed_last_however_fast(place: Place) -> None:
    async with place.services() as (services, _):
        await services.agents.add(agent("painter", replace(capability("paint"), agent_id=AgentId("agent-painter"))))
    async with open_board(place, size=(80, 24)) as board:
        await board.press("plus", *"x", "space", *"@pain")
        await wait_shown(board, "tab @painter")
        dialog = board.app.screen
        assert isinstance(dialog, QuickAddDialog)
        line(board).value = "x @pain twice"
        await dialog.action_complete()
        assert line(board).value == "x @pain twice"
        line(board).value = "x @pai"
        await dialog.action_complete()
        assert line(board).value == "x @painter "


@pytest.mark.proof
async def test_toasts_leave_the_lines_at_the_bottom_readable(place: Place) -> None:
    app = AgentmonApp(place.paths, place.root)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        board = Board(app, pilot)
        await board.until(lambda: app._is_opened, "services are open")
        app.notify("the toast " + "is a long one " * 4)
        await wait_shown(board, "the toast")
        await board.press("slash", *"is:nonsense")
        await wait_shown(board, "is:nonsense means nothing; states are is:needs-you")
        assert "the toast" in screen_text(app)
        await board.press("escape", "plus", *"x !9 @y #z")
        await wait_shown(board, "x · #z")
        for words in (
            "✗ there is no program @y",
            "the toast",
            "x !9 @y #z",
            "✗ !9: priorities are !1 to !5",
            "there are @",
        ):
            await wait_shown(board, words)
