"""Every key that a screen offers does something there, whatever comes before and after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input

from agentmon.screens.bindings import APP, BOARD, COSTS, EXECUTIONS, INBOX, REQUEST, SESSIONS, SETTINGS, TASK_PAGE
from agentmon.screens.board import BoardScreen
from agentmon.screens.costs import CostsScreen
from agentmon.screens.executions import ExecutionsScreen
from agentmon.screens.inbox import InboxScreen
from agentmon.screens.sessions import SessionsScreen
from agentmon.screens.settings import SettingsScreen
from agentmon.screens.task_page import TaskPage
from tests.screens.scenes import scene

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.binding import Binding

    from tests.screens.boards import Board

PLACE_SCREENS = (BoardScreen, ExecutionsScreen, CostsScreen, SessionsScreen, InboxScreen, SettingsScreen)
LEAVING = {"q", "ctrl+c"}
"""Tested by themselves: nothing can follow them."""
STARTING = {"r", "ctrl+r", "x"}
"""Would start a worker; tested over a live home."""
PLACES = {"1", "2", "5", "6", "7"}
"""Tested by themselves: each leads away from whatever is tested here."""


def keys_of(*tables: Sequence[Binding]) -> list[str]:
    keys = [key.strip() for table in tables for binding in table for key in binding.key.split(",")]
    return [key for key in dict.fromkeys(keys) if key not in LEAVING | STARTING | PLACES]


async def back(board: Board, kind: type[object], opening: Sequence[str]) -> None:
    """Leave whatever a key opened, and go where the keys are tested."""
    for _ in range(4):
        if isinstance(board.app.screen, kind) and not isinstance(board.app.focused, Input):
            return
        if isinstance(board.app.screen, PLACE_SCREENS) and not isinstance(board.app.focused, Input):
            await board.press(*opening)
        else:
            await board.press("escape")
        await board.pilot.pause()
    assert isinstance(board.app.screen, kind)


@pytest.mark.parametrize(
    ("kind", "tables", "opening"),
    [
        (BoardScreen, (BOARD, APP), ("1",)),
        (ExecutionsScreen, (EXECUTIONS,), ("2",)),
        (TaskPage, (TASK_PAGE,), ("1", "enter")),
        (CostsScreen, (COSTS,), ("3",)),
        (SessionsScreen, (SESSIONS,), ("5",)),
        (InboxScreen, (REQUEST, INBOX), ("6",)),
        (SettingsScreen, (SETTINGS,), ("7",)),
    ],
    ids=["board", "executions", "task", "costs", "sessions", "inbox", "settings"],
)
async def test_every_key_is_answered_and_none_breaks_the_screen(
    kind: type[object],
    tables: Sequence[Sequence[Binding]],
    opening: Sequence[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What enters a terminal or a dialog goes through the services; their answers are tested elsewhere.
    async with scene(tmp_path, monkeypatch, size=(80, 24)) as board:
        await board.press("l", *opening)
        for key in keys_of(*tables):
            await back(board, kind, opening)
            await board.press(key)

        await board.settled()
        await back(board, kind, opening)
        assert isinstance(board.app.screen, kind)


async def test_number_keys_go_to_the_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(tmp_path, monkeypatch, size=(80, 24)) as board:
        for key, kind in (
            ("2", ExecutionsScreen),
            ("5", SessionsScreen),
            ("6", InboxScreen),
            ("7", SettingsScreen),
            ("1", BoardScreen),
        ):
            await board.press(key)
            await board.until(lambda: isinstance(board.app.screen, kind), kind.__name__)  # noqa: B023 - awaited here
