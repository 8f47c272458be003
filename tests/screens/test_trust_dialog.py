"""A workspace's own agents are shown with all that they run before a person trusts them, and only that is trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.screens.agents.trust_dialog import TrustDialog
from tests.screen_stage import Stage, screen_text, until
from tests.screens.boards import make_place, open_board
from tests.services.test_agent_files import write_file

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_file_is_trusted_as_it_was_shown_and_the_trust_is_taken_back(tmp_path: Path) -> None:
    stage = Stage()
    async with make_place(tmp_path).services() as (services, workspace), stage.run_test(size=(80, 24)) as pilot:

        async def opened(words: str) -> TrustDialog:
            dialog = TrustDialog(services, workspace)
            stage.show(dialog)  # type: ignore[arg-type] # a screen ends with its own type
            await until(pilot, lambda: stage.screen is dialog and words in screen_text(stage))
            return dialog

        await opened("there is no such file")
        await pilot.press("y", "u", "escape")
        await until(pilot, lambda: stage.ended == [None])
        path = write_file(workspace)
        shown = await opened("not trusted: nothing of it runs")
        await until(
            pilot, lambda: all(words in screen_text(stage) for words in ("Greeter", "Say hello", "{{args.whom}}"))
        )

        path.write_text(path.read_text().replace('"Greeter"', '"Other [/]"'))
        await pilot.press("y")
        await until(pilot, lambda: "Other [/]" in screen_text(stage))
        assert stage.screen is shown
        assert "greet" not in [agent.slug for agent in await services.agents.list(workspace_id=workspace.id)]
        await pilot.press("y")
        await until(pilot, lambda: stage.ended == [None, True])
        assert "greet" in [agent.slug for agent in await services.agents.list(workspace_id=workspace.id)]

        path.write_text(path.read_text() + "\n[[agent]]\nslug = 3\n")
        await opened("✗ it cannot be used")
        await pilot.press("y", "escape")
        path.write_text(path.read_text().replace("\n[[agent]]\nslug = 3\n", "# more\n"))
        await opened("not the file that you trusted")
        await pilot.press("u")
        await until(pilot, lambda: stage.ended == [None, True, None, False])
        assert "greet" not in [agent.slug for agent in await services.agents.list(workspace_id=workspace.id)]
        assert stage.failures == []


async def test_a_workspace_that_brings_agents_along_says_so_at_the_start_and_runs_nothing(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    async with place.services() as (_services, workspace):
        write_file(workspace)

    async with open_board(place) as board:
        await board.told("4, then T, shows what they run")
        services = await board.app.services()

        assert "greet" not in [agent.slug for agent in await services.agents.list()]
