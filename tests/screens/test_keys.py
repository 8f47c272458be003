"""Every key that a screen offers does something there, whatever comes before and after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input

from agentmon.screens.bindings import APP, BOARD, EXECUTIONS, TASK_PAGE
from agentmon.screens.board import BoardScreen
from agentmon.screens.executions import ExecutionsScreen
from agentmon.screens.task_page import TaskPage
from tests.screens.scenes import scene

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.binding import Binding

    from tests.screens.boards import Board

LEAVING = {"q", "ctrl+c"}
"""Tested by themselves: nothing can follow them."""
STARTING = {"r", "ctrl+r", "x", "y"}
"""Would start a worker; tested over a live home."""


def keys_of(*tables: Sequence[Binding]) -> list[str]:
    keys = [key.strip() for table in tables for binding in table for key in binding.key.split(",")]
    return [key for key in keys if key not in LEAVING | STARTING]


async def back(board: Board, kind: type[object], opening: Sequence[str]) -> None:
    """Leave whatever a key opened, and go where the keys are tested."""
    for _ in range(6):
        if isinstance(board.app.screen, kind) and not isinstance(board.app.focused, Input):
            return
        if isinstance(board.app.screen, BoardScreen | ExecutionsScreen) and not isinstance(board.app.focused, Input):
            await board.press(*opening)
        else:
            await board.press("escape")
        await board.pilot.pause()
        await board.settled()
    assert isinstance(board.app.screen, kind)


@pytest.mark.parametrize(
    ("kind", "tables", "opening"),
    [
        (BoardScreen, (BOARD, APP), ("1",)),
        (ExecutionsScreen, (EXECUTIONS, APP), ("2",)),
        (TaskPage, (TASK_PAGE, APP), ("1", "enter")),
    ],
    ids=["board", "executions", "task"],
)
async def test_every_key_is_answered_and_none_breaks_the_screen(
    kind: type[object],
    tables: Sequence[Sequence[Binding]],
    opening: Sequence[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What enters a terminal or a dialog goes through the services; their answers are tested elsewhere.
    async with scene(tmp_path, monkeypatch, size=(120, 40)) as board:
        await board.press("l", *opening)
        for key in keys_of(*tables):
            await back(board, kind, opening)
            await board.press(key)
            await board.pilot.pause()
            await board.settled()

        await back(board, kind, opening)
        assert isinstance(board.app.screen, kind)
