from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest
from textual._styles_cache import StylesCache
from textual.widget import Widget

from agentmon.screens.help import HelpScreen
from agentmon.screens.tasks.task_page import TaskPage
from tests.idle_worker import idle_worker
from tests.screens.boards import Board, make_place, open_board

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.proof

ROUNDS = 4


async def go_round(board: Board) -> None:
    await board.press("6", "1")
    for key in ("question_mark", "B"):
        await board.press(key)
        await board.until(lambda: board.app.screen is not board.screen, "a dialog")
        await board.press("escape")
        await board.until(lambda: board.app.screen is board.screen, "the board")
    await board.press("enter")
    await board.until(lambda: isinstance(board.app.screen, TaskPage), "the task")
    await board.press("right_square_bracket", "escape")
    await board.until(lambda: board.app.screen is board.screen, "the board")


def counts() -> tuple[int, int]:
    gc.collect()
    living = gc.get_objects()
    return sum(isinstance(one, Widget) for one in living), sum(isinstance(one, StylesCache) for one in living)


async def test_screens_and_dialogs_that_were_closed_are_gone_from_memory(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    await place.fill("a", "b")
    with idle_worker(place.paths):
        async with open_board(place) as board:
            for _ in range(2):
                await go_round(board)
            widgets, caches = counts()
            for _ in range(ROUNDS):
                await go_round(board)
            widgets_later, caches_later = counts()
            helps = [one for one in gc.get_objects() if isinstance(one, HelpScreen)]

    # Each round makes some thirty; the last dialog may still be held by what is being drawn.
    assert widgets_later < widgets + 2 * ROUNDS
    assert caches_later < caches + 2 * ROUNDS
    assert len(helps) <= 1
