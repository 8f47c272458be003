from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events

from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import TaskStatus
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.widgets.board_column import BoardColumn
from agentmon.widgets.log_view import LogView
from agentmon.widgets.status_line import StatusBar
from tests.live_home import add_command
from tests.screens.boards import Board, Place, open_board

if TYPE_CHECKING:
    from agentmon.domain.board import Card
    from tests.live_home import LiveHome

TODO, IN_PROGRESS, BLOCKED, REVIEW, DONE, CANCELLED = TaskStatus


async def fill(home: LiveHome, *commands: tuple[str, ...]) -> Place:
    place = Place(paths=home.paths, root=home.project)
    async with place.services() as (services, workspace):
        for argv in commands:
            await add_command(services, workspace, *argv, title=" ".join(argv))
    return place


def selected_card(board: Board) -> Card | None:
    focused = board.app.focused
    return focused.selected if isinstance(focused, BoardColumn) else None


def is_in(board: Board, state: LiveState) -> bool:
    card = selected_card(board)
    return card is not None and card.state is state


async def test_a_run_takes_its_card_and_the_selection_along_and_shows_its_log(live_home: LiveHome) -> None:
    place = await fill(live_home, ("sh", "-c", "echo [/] hello; sleep 600"))

    async with open_board(place) as board:
        await board.press("r")
        await board.until(lambda: is_in(board, LiveState.RUNNING), "it runs")
        log = board.screen.query_one(LogView)
        await board.until(lambda: "[/] hello" in log.shown_text, "its log shows")
        await board.until(lambda: "1/4 running" in board.screen.query_one(StatusBar).render_line(0).text)

        assert board.app.focused is board.column(IN_PROGRESS)

        await board.press("x")
        await board.until(lambda: is_in(board, LiveState.CANCELLED), "it is stopped")
        assert board.app.focused is board.column(TODO)


async def test_five_presses_of_the_run_key_make_one_run(live_home: LiveHome) -> None:
    place = await fill(live_home, ("sleep", "600"))

    async with open_board(place) as board:
        await board.press("r", "r", "r", "r", "r")
        await board.until(lambda: is_in(board, LiveState.RUNNING), "it runs")
        await board.settled()
        async with place.services() as (services, workspace):
            executions = await services.executions.list(workspace)

        assert len(executions) == 1
        await board.until(lambda: bool(board.toasts), "it is told")


async def test_another_selection_made_meanwhile_is_kept_when_the_run_moves_its_card(live_home: LiveHome) -> None:
    place = await fill(live_home, ("sleep", "600"), ("true",), ("false",))

    async with open_board(place) as board:
        # At once: a quick run would have moved its card before the second key of a pilot.
        for key in ("r", "j"):
            board.app.post_message(events.Key(key, key))
        await board.until(lambda: board.shown(IN_PROGRESS) == ["sleep 600"], "it runs")
        await board.settled()

        assert board.app.focused is board.column(TODO)
        assert board.selected == "true"


async def test_killing_asks_first_and_names_the_card(live_home: LiveHome) -> None:
    place = await fill(live_home, ("sleep", "600"))

    async with open_board(place) as board:
        await board.press("r")
        await board.until(lambda: is_in(board, LiveState.RUNNING), "it runs")
        await board.press("X")
        await board.until(lambda: isinstance(board.app.screen, ConfirmDialog), "the question")
        question = str(board.app.screen.query_one("#question").render())
        await board.press("enter")
        await board.pilot.pause()
        still_runs = is_in(board, LiveState.RUNNING)
        await board.press("X")
        await board.until(lambda: isinstance(board.app.screen, ConfirmDialog), "the question again")
        await board.press("y")
        await board.until(lambda: is_in(board, LiveState.CANCELLED), "it is killed")

        assert question == "Kill #1 sleep 600?"
        assert still_runs


async def test_a_failed_run_blocks_its_card_and_says_why(live_home: LiveHome) -> None:
    place = await fill(live_home, ("sh", "-c", "echo about to fail; exit 3"))

    async with open_board(place) as board:
        await board.press("r")
        await board.until(lambda: is_in(board, LiveState.FAILED), "it failed")
        column = board.column(BLOCKED)
        lines = [column.render_line(y).text for y in (2, 3)]

        assert board.app.focused is column
        assert "✗ failed (exit 3)" in lines[0]
        assert "about to fail" in lines[1]


async def test_leaving_says_how_many_runs_go_on(live_home: LiveHome) -> None:
    place = await fill(live_home, ("sleep", "600"))

    async with open_board(place) as board:
        await board.press("r")
        await board.until(lambda: is_in(board, LiveState.RUNNING), "it runs")
        await board.press("q")
        await board.until(lambda: board.app._exit, "it leaves")

        assert [str(text) for text in board.app._exit_renderables] == [
            "1 run goes on in the background; start agentmon again to see."
        ]
