"""Who starts a second agent where another works is asked once where it works, and the answer holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.widgets import Select, Static

from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import InputContext, TaskDraft
from agentmon.domain.worktrees import Isolation
from agentmon.screens.dialogs.choice import ChoiceDialog
from agentmon.screens.tasks.run_dialog import RunDialog
from agentmon.services.actors import USER_ACTOR
from agentmon.services.demo_agent import make_demo_agent
from tests.live_home import until_started
from tests.screen_stage import screen_text
from tests.screens.boards import Place, open_board
from tests.workspaces.worktree_place import a_repository

if TYPE_CHECKING:
    from agentmon.domain.live_state import LiveState
    from agentmon.domain.tasks import Task
    from tests.live_home import LiveHome


async def filled(live_home: LiveHome, *titles: str) -> tuple[Place, list[Task]]:
    """Return a repository with tasks of an AI agent, of which the first is at work."""
    a_repository(live_home.project)
    place = Place(paths=live_home.paths, root=live_home.project)
    async with place.services() as (services, workspace):
        await services.agents.add(make_demo_agent(pace_s=600))
        agent = await services.agents.by_slug("demo-agent")
        drafts = [
            TaskDraft(title=title, description="edit", assignee_agent_id=agent.id, input_context=InputContext())
            for title in titles
        ]
        tasks = [await services.tasks.add(workspace, draft, actor=USER_ACTOR) for draft in drafts]
        await until_started(services, await services.queue.run(tasks[0].id, actor=USER_ACTOR))
    return place, tasks


@pytest.mark.proof
@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        ((), {"isolation": "auto"}),
        (("l",), {"isolation": "folder", "max_per_folder": 1}),
        (("l", "l"), {"isolation": "folder", "max_per_folder": 0}),
    ],
)
async def test_it_is_asked_once_and_remembered_for_the_workspace(
    live_home: LiveHome, keys: tuple[str, ...], chosen: dict[str, int | str]
) -> None:
    place, (first, second, third) = await filled(live_home, "One", "Two", "Three")
    async with open_board(place) as board:
        column = board.column(TaskStatus.TODO)
        column.focus()
        await board.until(lambda: board.selected == "Two", "the card")
        await board.press("r")
        await board.until(lambda: isinstance(board.app.screen, ChoiceDialog), "the question")
        assert f"#{first.number} works in this repository" in screen_text(board.app)
        await board.press("escape")
        await board.until(lambda: board.app.screen is board.screen, "the board")
        await board.press("r")
        await board.until(lambda: isinstance(board.app.screen, ChoiceDialog), "the question again")
        await board.press(*keys, "enter")
        services = await board.app.services()

        async def newest(task: Task) -> LiveState | None:
            execution = await services.executions.newest(task.id)
            return None if execution is None else execution.live_state

        async with place.services() as (other, workspace):
            while await newest(second) is None:
                await board.pilot.pause()
            column.focus()
            await board.press("G")
            await board.until(lambda: board.selected == "Three", "the next card")
            await board.press("r")
            while await newest(third) is None:
                assert not isinstance(board.app.screen, ChoiceDialog)
                await board.pilot.pause()
            assert await other.workspaces.own_settings(workspace.id) == chosen
            for task in (first, second, third):
                await other.queue.stop(task.id, actor=USER_ACTOR, kill=True)


async def test_the_run_form_warns_of_a_folder_in_which_another_works(live_home: LiveHome) -> None:
    place, (first, second) = await filled(live_home, "One", "Two")
    async with open_board(place) as board:
        board.column(TaskStatus.TODO).focus()
        await board.until(lambda: board.selected == "Two", "the card")
        await board.press("R")
        await board.until(lambda: isinstance(board.app.screen, RunDialog), "the form")
        dialog = board.app.screen
        dialog.query_one("#isolation", Select).value = Isolation.FOLDER.value
        warned = f"#{first.number} works there too"
        await board.until(lambda: any(warned in str(one.render()) for one in dialog.query(Static)), "the warning")
        dialog.query_one("#isolation", Select).value = Isolation.WORKTREE.value
        await board.until(lambda: not any(warned in str(one.render()) for one in dialog.query(Static)), "no warning")
        await board.press("ctrl+r")
        async with place.services() as (services, _):

            async def run_of_second() -> bool:
                newest = await services.executions.newest(second.id)
                return newest is not None and newest.worktree_id is not None

            while not await run_of_second():
                await board.pilot.pause()
            for task in (first, second):
                await services.queue.stop(task.id, actor=USER_ACTOR, kill=True)
