"""The worktrees of a workspace: opened, restored, removed by name and pruned by keys."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input, OptionList

from agentmon.app import AgentmonApp
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.worktrees import Isolation
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.screens.dialogs.name_dialog import NameDialog
from agentmon.screens.tasks.task_page import TaskPage
from agentmon.screens.worktrees.dialog import WorktreesDialog
from agentmon.services.actors import USER_ACTOR
from tests.live_home import add_command, run_to_end
from tests.screen_stage import screen_text
from tests.screens.boards import Board, Place, open_board
from tests.screens.test_external_editor import lent_terminal
from tests.workspaces.worktree_place import a_repository

if TYPE_CHECKING:
    from agentmon.domain.worktrees import Worktree
    from tests.live_home import LiveHome


@pytest.fixture(autouse=True)
def terminal(live_home: LiveHome, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lend the terminal to programs that write down where they are."""
    told = live_home.folder / "told"
    program = live_home.folder / "program"
    program.write_text(f'#!/bin/sh\necho "$1:$PWD" >> {told}\n')
    program.chmod(0o700)
    monkeypatch.setenv("SHELL", str(program))
    monkeypatch.setenv("VISUAL", str(program))
    monkeypatch.setattr(AgentmonApp, "suspend", lent_terminal)
    return told


async def filled(live_home: LiveHome, *commands: str) -> tuple[Place, list[Worktree]]:
    """Return a place in which each command has run in a worktree of its own."""
    a_repository(live_home.project)
    place = Place(paths=live_home.paths, root=live_home.project)
    trees = []
    async with place.services() as (services, workspace):
        for command in commands:
            task = await add_command(services, workspace, "sh", "-c", command, isolation=Isolation.WORKTREE)
            await run_to_end(services, task)
            tree = await services.worktrees.of_task(task.id)
            assert tree is not None
            trees.append(tree)
    return place, trees


async def opened(board: Board, words: str) -> None:
    await board.until(lambda: isinstance(board.app.screen, WorktreesDialog), "the dialog")
    await board.until(lambda: words in screen_text(board.app), words)


def lit(board: Board) -> int | None:
    return board.app.screen.query_one(OptionList).highlighted


@pytest.mark.proof
async def test_a_worktree_is_opened_restored_and_removed_by_the_name_of_its_branch(
    live_home: LiveHome, terminal: Path
) -> None:
    place, (first, second) = await filled(live_home, "echo 1 > one", "echo 2 > two")
    async with place.services() as (services, _):
        await services.tasks.move(first.task_id, TaskStatus.TODO, actor=USER_ACTOR)
    async with open_board(place) as board:
        await board.press("h", "h", "h", "h", "T")
        await opened(board, "1 untracked")
        await board.until(lambda: lit(board) == 0 and "one" in screen_text(board.app), "the card's own")
        await board.press("enter", "e")
        await board.until(lambda: terminal.exists() and len(terminal.read_text().splitlines()) == 2, "both programs")
        await board.press("j")
        await board.until(lambda: lit(board) == 1)
        await board.press("k")
        await board.until(lambda: lit(board) == 0)
        await board.press("u")
        shutil.rmtree(first.path)
        await board.press("escape", "T")
        await opened(board, "folder gone")
        await board.press("u")
        await board.told("back")
        await opened(board, "1 untracked")
        assert Path(first.path, "one").read_text() == "1\n"

        await board.press("j")
        await board.until(lambda: lit(board) == 1)
        await board.press("x")
        await board.until(lambda: isinstance(board.app.screen, NameDialog), "the question")
        assert "two" in screen_text(board.app)
        await board.press("x", "enter", "escape")
        assert Path(second.path, "two").exists()
        await board.press("x")
        await board.until(lambda: isinstance(board.app.screen, NameDialog), "the question")
        board.app.screen.query_one(Input).value = second.branch
        await board.press("enter")
        await board.until(lambda: not Path(second.path).exists(), "it is removed")

    assert terminal.read_text().splitlines() == [f":{first.path}", f".:{first.path}"]


@pytest.mark.proof
async def test_those_that_lose_nothing_are_removed_and_pruned(live_home: LiveHome) -> None:
    place, (first, second) = await filled(live_home, "true", "true")
    async with open_board(place) as board:
        board.column(TaskStatus.DONE).focus()
        await board.until(lambda: board.selected == "a task", "a card")
        await board.press("enter")
        await board.until(lambda: isinstance(board.app.screen, TaskPage), "the page")
        await board.press("T")
        await opened(board, "clean")
        await board.press("x")
        await board.until(lambda: isinstance(board.app.screen, ConfirmDialog), "the question")
        await board.press("y")
        await board.until(lambda: not (Path(first.path).exists() and Path(second.path).exists()), "one is gone")
        await board.press("p")
        await board.told("Removed")
        await opened(board, "No worktrees")
        await board.press("p")
        await board.told("Nothing to remove")
        await board.press("escape")
        await board.until(lambda: isinstance(board.app.screen, TaskPage), "the page again")

    assert not Path(first.path).exists()
    assert not Path(second.path).exists()
