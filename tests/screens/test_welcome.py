from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.app import AgentmonApp
from agentmon.domain.errors import StoreError
from agentmon.domain.tasks import TaskDraft
from agentmon.screens import welcome
from agentmon.screens.board.screen import BoardScreen
from agentmon.screens.costs.screen import CostsScreen
from agentmon.screens.help import HelpScreen
from agentmon.screens.tasks.task_editor import TaskEditor
from agentmon.screens.welcome import WelcomeScreen, find_here
from agentmon.services.actors import USER_ACTOR
from agentmon.store.look_setting import Look
from tests.screen_stage import screen_text, until
from tests.stored_runs import stored

if TYPE_CHECKING:
    from pathlib import Path

    from textual.screen import Screen

LOOK = Look(welcome=True)


async def test_the_first_start_says_what_was_found_and_what_to_try_and_no_other_does(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        first = AgentmonApp(place.services.paths, tmp_path, look=LOOK)
        async with first.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: isinstance(first.screen, WelcomeScreen))
            text = screen_text(first)
            assert "Welcome to agentmon" in text
            assert "Three things to try" in text
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(first.screen, BoardScreen))
        second = AgentmonApp(place.services.paths, tmp_path, look=LOOK)
        async with second.run_test(size=(120, 40)) as pilot:
            await second.services()
            await pilot.pause()
            assert isinstance(second.screen, BoardScreen)


async def test_who_has_used_it_before_or_does_not_want_it_is_not_welcomed(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        unwanted = AgentmonApp(place.services.paths, tmp_path, look=Look())
        async with unwanted.run_test(size=(120, 40)) as pilot:
            await unwanted.services()
            await pilot.pause()
            assert isinstance(unwanted.screen, BoardScreen)
        await place.services.tasks.add(place.workspace, TaskDraft(title="a task"), actor=USER_ACTOR)
        used = AgentmonApp(place.services.paths, tmp_path, look=LOOK)
        async with used.run_test(size=(120, 40)) as pilot:
            await used.services()
            await pilot.pause()
            assert isinstance(used.screen, BoardScreen)


async def test_a_welcome_that_fails_is_told_and_the_app_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_services: object) -> list[tuple[str, str]]:
        raise StoreError("the disk is gone")

    monkeypatch.setattr(welcome, "find_here", fail)
    async with stored(tmp_path) as place:
        app = AgentmonApp(place.services.paths, tmp_path, look=LOOK)
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: any("the disk is gone" in toast.message for toast in app._notifications))
            services = await app.services()
            assert await services.audit.newest_id() == 0
            assert isinstance(app.screen, BoardScreen)


async def test_what_was_found_names_agents_and_tools(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        found = dict(await find_here(place.services))

    assert "Agents" in found
    assert "command" in found["Tools"]


async def test_it_fits_into_a_small_terminal(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        app = AgentmonApp(place.services.paths, tmp_path, look=LOOK)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
            assert "ctrl+p finds any action" in screen_text(app)


@pytest.mark.parametrize(("key", "shows"), [("n", TaskEditor), ("3", CostsScreen), ("question_mark", HelpScreen)])
async def test_a_key_that_the_welcome_names_does_what_it_says(
    tmp_path: Path, key: str, shows: type[Screen[object]]
) -> None:
    async with stored(tmp_path) as place:
        app = AgentmonApp(place.services.paths, tmp_path, look=LOOK)
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
            await pilot.press(key)
            await until(pilot, lambda: isinstance(app.screen, shows))
