from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.domain.task_status import Priority, TaskStatus
from agentmon.screens.dialogs.menu_dialog import MenuDialog
from agentmon.screens.tasks.task_editor import TaskEditor
from agentmon.screens.tasks.template_menu import TemplateMenu
from agentmon.widgets.form import LineInput
from tests.idle_worker import idle_worker
from tests.screen_stage import screen_text
from tests.screens.boards import Place, make_place, open_board

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.screens.boards import Board


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = make_place(tmp_path)
    with idle_worker(place.paths):
        yield place


async def wait_screen(board: Board, kind: type[object]) -> None:
    await board.until(lambda: isinstance(board.app.screen, kind), kind.__name__)
    await board.pilot.pause()


@pytest.mark.proof
async def test_a_task_is_made_from_a_template_and_saved_as_one(place: Place) -> None:
    shared = place.root / ".agentmon" / "templates"
    shared.mkdir(parents=True)
    (shared / "bug.toml").write_text(
        'title = "Bug: {{title}}"\ndescription = "About {{title}} [/]"\npriority = 2\nenvironment = ["X=1"]\n'
    )
    (shared / "broken.toml").write_text('title = "x"\npriority = "high"\n')
    (shared / "chore [x].toml").write_text('title = "Chore"\n')
    (shared / "chore.toml").write_text('title = "Chore [/]"\n')

    async with open_board(place, size=(80, 24)) as board:
        await board.press("N")
        await wait_screen(board, TemplateMenu)
        shown = screen_text(board.app)
        assert "chore  Chore [/]  of the project" in shown
        assert "broken.toml" in shown
        assert "line 2: priority has to be a number" in shown
        await board.press("down", "down", "up", *"bg")
        assert "chore" not in screen_text(board.app).split("broken")[0]
        await board.press("enter")
        await wait_screen(board, TaskEditor)
        await board.press(*"login")
        assert "Bug: login" in screen_text(board.app)
        await board.told("environment")
        await board.press("ctrl+n")
        await wait_screen(board, MenuDialog)
        await board.press(*"mine", "enter")
        await wait_screen(board, TaskEditor)
        await board.until((place.paths.templates_dir / "mine.toml").exists, "the template")
        await board.press("ctrl+n")
        await wait_screen(board, MenuDialog)
        await board.press(*"mine", "enter")
        await board.told("Not saved: there is a template 'mine' already")
        await board.press("ctrl+n")
        await wait_screen(board, MenuDialog)
        await board.press("tab", "enter")
        await board.until(lambda: "Saved as" in board.toasts[-1], "replaced")
        await board.press("ctrl+s")
        await board.until(lambda: board.shown(TaskStatus.TODO) == ["Bug: login"], "the card")

        async with place.services() as (services, workspace):
            task = await services.tasks.by_number(workspace, 1)
            saved = await services.templates.get(workspace, "mine")
        assert (task.description, task.priority) == ("About Bug: login [/]", Priority.HIGH)
        assert (saved.title, saved.description) == ("Bug: login", "About {{title}} [/]")


async def test_without_templates_the_menu_says_how_to_make_one_and_escape_leaves(place: Place) -> None:
    async with open_board(place, size=(40, 10)) as board:
        await board.press("N")
        await wait_screen(board, TemplateMenu)
        assert "No templates yet" in screen_text(board.app)
        await board.press("x", "enter", "escape")
        await board.until(lambda: not isinstance(board.app.screen, TemplateMenu), "the board")
        # An untouched editor is left without a question, a title that a template filled in is no change.
        await board.press("n")
        await wait_screen(board, TaskEditor)
        await board.press("ctrl+n")
        await board.until(lambda: "a task needs a" in screen_text(board.app), "the title is missing")
        assert isinstance(board.app.screen.query_one("#title"), LineInput)
        await board.press("escape")
        await board.until(lambda: not isinstance(board.app.screen, TaskEditor), "the board")
