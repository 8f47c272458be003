"""Several agents do one thing: started from the run form, compared, one taken, and the others let go."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input, Static

from agentmon.domain.agent_changes import AgentChanges
from agentmon.domain.agents import ToolType
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import TaskDraft
from agentmon.screens.changes.merge_dialog import MergeDialog
from agentmon.screens.changes.pane import ChangesPane
from agentmon.screens.changes.screen import ChangesScreen
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.screens.tasks.run_dialog import RunDialog
from agentmon.screens.tasks.task_page import TaskPage
from agentmon.services.actors import USER_ACTOR
from agentmon.widgets.diff_view import DiffView
from tests.screen_stage import screen_text
from tests.screens.boards import Place, open_board
from tests.waiting import DEADLINE_S
from tests.workspaces.worktree_place import a_repository, git

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Task, Workspace
    from tests.live_home import LiveHome
    from tests.screens.boards import Board

_SLUGS = ("anna", "bert")


@pytest.fixture
async def place(live_home: LiveHome) -> Place:
    """A repository with a card that two agents could do, each in its own way."""
    a_repository(live_home.project)
    for key, text in (("user.name", "Ann"), ("user.email", "ann@example.org")):
        git(live_home.project, "config", key, text)
    place = Place(paths=live_home.paths, root=live_home.project)
    async with place.services() as (services, workspace):
        for slug in _SLUGS:
            program = live_home.folder / slug
            program.write_text(f"#!/bin/sh\necho {slug} > made\n")
            program.chmod(0o755)
            await services.agents.add_program(str(program), actor=USER_ACTOR)
            await services.agents.edit(slug, AgentChanges(tool_type=ToolType.AI_AGENT), actor=USER_ACTOR)
        draft = TaskDraft(title="Mend it", assignee_agent_id=(await services.agents.by_slug("anna")).id)
        await services.tasks.add(workspace, draft, actor=USER_ACTOR)
    return place


async def _done_by_both(services: Services, workspace: Workspace) -> list[Task]:
    """Let both agents do the card, and return it and its alternative."""
    (task,) = await services.tasks.list(workspace)
    first = await services.queue.run(task.id, actor=USER_ACTOR, also=["bert"])
    async with asyncio.timeout(DEADLINE_S):
        for run in await services.queue.queued_with(first):
            await services.queue.wait(run.id)
    return sorted(await services.tasks.list(workspace), key=lambda one: one.number)


async def _select(board: Board, number: int) -> None:
    """Select a card in Review, whichever of them ended last."""
    column = board.column(TaskStatus.REVIEW)
    column.focus()
    await board.until(lambda: column.selected is not None, "the cards")
    await board.press("g")
    if column.selected is not None and column.selected.number != number:
        await board.press("j")
    assert column.selected is not None
    assert column.selected.number == number


async def _until_said(board: Board, words: str) -> None:
    await board.until(lambda: words in screen_text(board.app), words)


@pytest.mark.proof
async def test_the_run_form_lets_several_agents_do_it(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("R")
        await board.until(lambda: isinstance(board.app.screen, RunDialog), "the form")
        dialog = board.app.screen
        assert isinstance(dialog, RunDialog)
        alone = str(dialog.query_one("#scope", Static).render())
        also = dialog.query_one("#also", Input)
        for wrong in ("nobody", "git"):
            also.value = f"bert {wrong}"
            await board.until(lambda: str(dialog.query_one("#scope", Static).render()) != alone, "what it means")
            await board.press("ctrl+r")
            await _until_said(board, f"no AI agent {wrong}")
        also.value = "bert, @bert"
        await board.press("ctrl+r")
        await board.until(lambda: len(board.shown(TaskStatus.REVIEW)) == 3, "what they did")

    async with place.services() as (services, workspace):
        (task,) = [one for one in await services.tasks.list(workspace) if one.number == 1]
        cards = await services.board.alternatives(task.id)
    assert [card.agent_slug for card in cards] == ["anna", "bert", "bert"]


@pytest.mark.proof
async def test_they_are_compared_one_is_merged_and_the_other_let_go_when_asked_again(place: Place) -> None:
    async with place.services() as (services, workspace):
        await _done_by_both(services, workspace)
    async with open_board(place) as board:
        await _select(board, 1)
        await board.press("d")
        await board.until(lambda: isinstance(board.app.screen, ChangesScreen), "its changes")
        view = board.app.screen.query_one(DiffView)
        await board.until(lambda: len(view.diff.files) == 1, "its file")
        await board.press("equals_sign")
        await board.until_menu()
        await _until_said(board, "#2  bert")
        await board.press("enter")
        pane = board.app.screen.query_one(ChangesPane)
        await board.until(lambda: board.app.screen.is_current and pane.has_something_open, "the comparison")
        await board.until(lambda: view.diff.added == view.diff.removed == 1, "what differs")
        await _until_said(board, "against #2 bert")
        await board.press("escape")
        await board.until(lambda: not pane.has_something_open, "the run alone")
        await board.press("M")
        await board.until(lambda: isinstance(board.app.screen, MergeDialog), "the form")
        dialog = board.app.screen
        await board.until(lambda: dialog.check_action("save", ()) is True, "what would come of it")
        await board.press("ctrl+s")
        await board.until(lambda: isinstance(board.app.screen, ConfirmDialog), "the question")
        await board.press("n")
        await board.until(lambda: isinstance(board.app.screen, ChangesScreen), "the changes again")
        await board.press("escape")
        await board.until(lambda: len(board.shown(TaskStatus.REVIEW)) == 1, "the one that is left")
        await board.settled()
        assert board.shown(TaskStatus.DONE) == ["Mend it"]
        await _select(board, 2)
        await _until_said(board, "#1 was taken instead")
        await board.press("y")
        await board.until(lambda: isinstance(board.app.screen, ConfirmDialog), "the question again")
        await board.press("y")
        await board.until(lambda: board.column(TaskStatus.CANCELLED).total == 1, "it was let go")

    assert (place.root / "made").read_text() == "anna\n"
    async with place.services() as (services, workspace):
        (left,) = [one for one in await services.tasks.list(workspace) if one.number == 2]
        tree = await services.worktrees.of_task(left.id)
    assert tree is not None, "nothing is deleted unasked"


async def test_moving_one_to_done_takes_it_and_asks_at_once(place: Place) -> None:
    async with place.services() as (services, workspace):
        await _done_by_both(services, workspace)
    async with open_board(place) as board:
        await _select(board, 1)
        await board.press("L")
        await board.until(lambda: isinstance(board.app.screen, ConfirmDialog), "the question")
        await board.press("y")
        await board.until(lambda: board.column(TaskStatus.CANCELLED).total == 1, "the other is let go")
        assert board.column(TaskStatus.DONE).total == 1
        await board.settled()
        await board.press("ctrl+z")
        await board.until(lambda: len(board.shown(TaskStatus.REVIEW)) == 1, "it is back where it was")


async def test_the_page_of_a_task_lists_its_alternatives_and_lets_go_of_what_is_left(place: Place) -> None:
    async with place.services() as (services, workspace):
        first, second = await _done_by_both(services, workspace)
        await services.tasks.move(first.id, TaskStatus.DONE, actor=USER_ACTOR)
    async with open_board(place) as board:
        board.screen._open_task(second.id)
        await board.until(lambda: isinstance(board.app.screen, TaskPage), "the page")
        await _until_said(board, "#1 was taken instead")
        await _until_said(board, "anna")
        await board.press("y")
        await board.until(lambda: isinstance(board.app.screen, ConfirmDialog), "the question")
        await board.press("y")
        await board.told("Let #2 go")

    async with place.services() as (services, _):
        assert (await services.tasks.get(second.id)).status is TaskStatus.CANCELLED
