from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.domain.task_status import Priority, TaskStatus
from agentmon.domain.tasks import TaskDraft
from agentmon.screens.menu_dialog import MenuDialog
from agentmon.services.actors import USER_ACTOR
from tests.idle_worker import idle_worker
from tests.screens.boards import Place, make_place, open_board

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.screens.boards import Board

TODO = TaskStatus.TODO


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = make_place(tmp_path)
    with idle_worker(place.paths):
        yield place


async def _fill(place: Place, *drafts: TaskDraft) -> None:
    async with place.services() as (services, workspace):
        for draft in drafts:
            await services.tasks.add(workspace, draft, actor=USER_ACTOR)


async def _choose(board: Board, key: str, word: str) -> None:
    """Open a menu by its key and choose the entry."""
    await board.press(key)
    await board.until(lambda: isinstance(board.app.screen, MenuDialog), "the menu")
    dialog = board.app.screen
    assert isinstance(dialog, MenuDialog)
    at = [entry.word for entry in dialog._entries].index(word)
    await board.press(*["j"] * at, "enter")
    await board.until(lambda: not isinstance(board.app.screen, MenuDialog), "the board again")


async def test_filters_are_chosen_saved_and_chosen_again(place: Place) -> None:
    await _fill(
        place,
        TaskDraft(title="login", labels=("auth",), priority=Priority.URGENT),
        TaskDraft(title="logout", labels=("auth",)),
        TaskDraft(title="rename"),
    )

    async with open_board(place) as board:
        await _choose(board, "f", "#auth")
        await board.until(lambda: board.shown(TODO) == ["login", "logout"], "the label")
        await _choose(board, "f", "P1")
        await board.until(lambda: board.shown(TODO) == ["login"], "the label and the priority")
        await board.press("f")
        await board.until(lambda: isinstance(board.app.screen, MenuDialog), "the menu")
        board.app.screen.query_one("#free").focus()
        await board.press(*"mine", "enter")
        await board.until(lambda: any("saved as" in toast for toast in board.toasts), "saved")
        await _choose(board, "f", "no filter")
        await board.until(lambda: len(board.shown(TODO)) == 3, "all cards")
        await _choose(board, "f", "mine")
        await board.until(lambda: board.shown(TODO) == ["login"], "the saved filter")
        await _choose(board, "f", "P1")
        await board.until(lambda: board.shown(TODO) == ["login", "logout"], "without the priority")
        await board.press("escape")
        await board.until(lambda: len(board.shown(TODO)) == 3, "all cards again")
