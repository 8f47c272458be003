"""The board of another workspace, and of all together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.widgets import OptionList

from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import TaskDraft
from agentmon.screens.dialogs.menu_dialog import MenuDialog
from agentmon.screens.tasks.task_editor import EditedTask, TaskEditor
from agentmon.services.actors import USER_ACTOR
from agentmon.widgets.status_line import StatusBar
from tests.idle_worker import idle_worker
from tests.screen_stage import screen_text
from tests.screens.boards import Place, make_place, open_board

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.screens.boards import Board

TODO, IN_PROGRESS, *_ = TaskStatus


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = make_place(tmp_path)
    with idle_worker(place.paths):
        yield place


async def _fill(place: Place) -> None:
    """Put three tasks into the project, and two into another one."""
    (place.root.parent / "web").mkdir()
    await place.fill("a", "b", "c")
    async with place.services() as (services, _):
        web = await services.workspaces.open(place.root.parent / "web")
        for title in ("x", "y"):
            await services.tasks.add(web, TaskDraft(title=title), actor=USER_ACTOR)


async def _choose(board: Board, name: str) -> None:
    await board.press("W")
    await board.until_menu()
    dialog = board.app.screen
    assert isinstance(dialog, MenuDialog)
    at = next(at for at, entry in enumerate(dialog._entries) if entry.word.startswith(name))
    entries = dialog.query_one(OptionList)
    assert entries.highlighted is not None
    assert dialog._entries[entries.highlighted].is_present, "the menu begins at the board that is shown"
    entries.highlighted = at
    await board.press("enter")
    await board.until(lambda: not isinstance(board.app.screen, MenuDialog), "the board again")
    await board.settled()


@pytest.mark.proof
async def test_another_workspace_is_chosen_and_each_remembers_its_place(place: Place) -> None:
    await _fill(place)

    async with open_board(place) as board:
        await board.press("j", "j")
        assert board.selected == "c"
        await _choose(board, "web")
        assert board.shown(TODO) == ["x", "y"]
        assert "web" in board.screen.query_one(StatusBar).render_line(0).text
        assert board.selected == "x"
        await board.press("j", "L")
        await board.until(lambda: board.shown(IN_PROGRESS) == ["y"], "moved")
        await board.settled()

        await _choose(board, "project")
        assert (board.shown(TODO), board.selected) == (["a", "b", "c"], "c")
        await board.press("ctrl+z")
        await board.told("Undid the move of #2, in web")
        await board.settled()
        assert board.selected == "c"
        await _choose(board, "web")
        assert (board.shown(TODO), board.shown(IN_PROGRESS)) == (["x", "y"], [])
        await board.press("W")
        await board.until_menu()
        board.app.screen.query_one("#free").focus()
        await board.press(*str(place.root), "enter")
        await board.until(lambda: board.shown(TODO) == ["a", "b", "c"], "by its path")


@pytest.mark.proof
async def test_on_the_board_of_all_every_action_is_in_the_cards_own_workspace(place: Place) -> None:
    await _fill(place)

    async with open_board(place) as board:
        await _choose(board, "All")
        assert board.shown(TODO) == ["a", "b", "c", "x", "y"]
        assert "All workspaces" in board.screen.query_one(StatusBar).render_line(0).text
        assert "web#1 P3 x" in screen_text(board.app)
        await board.press("G", "D")
        await board.told("Deleted web#2 · ctrl+z brings it back")
        await board.settled()
        await board.press("ctrl+z")
        await board.until(lambda: board.shown(TODO) == ["a", "b", "c", "x", "y"], "back")
        await board.settled()
        assert board.selected == "y"
        await board.press("K")
        await board.until(lambda: board.shown(TODO) == ["a", "b", "c", "y", "x"], "moved among its own")
        await board.settled()
        await board.press("e")
        await board.until(lambda: isinstance(board.app.screen, TaskEditor), "the editor")
        assert "web" in board.app.screen._workspace_root  # type: ignore[attr-defined] # the editor's
        await board.press("escape")
        await board.until(lambda: not isinstance(board.app.screen, TaskEditor), "left")
        await board.press("n")
        await board.until(lambda: isinstance(board.app.screen, TaskEditor), "the editor")
        board.app.screen.dismiss(EditedTask(draft=TaskDraft(title="z"), should_run=False))
        await board.until(lambda: board.selected == "z", "made and selected")
        await board.told("#3 is in web")
        await _choose(board, "web")
        assert board.shown(TODO) == ["y", "x", "z"]


async def test_a_card_is_dropped_among_those_of_its_own_workspace(place: Place) -> None:
    await _fill(place)
    await place.fill("d", "e", status=IN_PROGRESS)

    async with open_board(place, size=(160, 40)) as board:
        await _choose(board, "All")
        todo, progress = board.column(TODO), board.column(IN_PROGRESS)
        await board.pilot.mouse_down(todo, offset=(4, 1))
        await board.pilot.hover(progress, offset=(4, 4))
        await board.until(lambda: progress.drop_index == 1, "the place is shown")
        await board.pilot.mouse_up(progress, offset=(4, 4))
        await board.settled()
        assert board.shown(IN_PROGRESS) == ["d", "a", "e"]
        await board.press("ctrl+z")
        await board.settled()
        assert board.shown(TODO) == ["a", "b", "c", "x", "y"]


async def test_the_board_of_all_goes_on_when_the_selected_card_is_deleted_elsewhere(place: Place) -> None:
    await _fill(place)

    async with open_board(place) as board:
        await _choose(board, "All")
        await board.press("G")
        assert board.selected == "y"
        async with place.services() as (services, _):
            web = await services.workspaces.open(place.root.parent / "web")
            await services.tasks.delete((await services.tasks.by_number(web, 2)).id, actor=USER_ACTOR)
        await board.until(lambda: board.shown(TODO) == ["a", "b", "c", "x"], "the card is gone")
        await board.settled()
        assert board.toasts == []
