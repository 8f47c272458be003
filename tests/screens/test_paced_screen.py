from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.screens import paced_screen
from agentmon.screens.frame import StoreChanged
from agentmon.screens.paced_screen import PacedScreen
from tests.screen_stage import Stage, until

if TYPE_CHECKING:
    import pytest

    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Workspace


class Counted(PacedScreen[None]):
    def __init__(self) -> None:
        super().__init__(nothing, nowhere)
        self.readings = 0

    async def refresh_snapshot(self) -> None:
        self.readings += 1


async def nothing() -> Services:
    raise AssertionError


async def nowhere() -> Workspace:
    raise AssertionError


async def test_changes_of_others_wait_for_the_pause_and_what_a_person_asks_for_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paced_screen, "_LEAST_PAUSE_S", 60.0)
    stage = Stage()
    async with stage.run_test() as pilot:
        screen = Counted()
        stage.show(screen)  # type: ignore[arg-type] # a screen ends with its own type
        await until(pilot, lambda: screen.readings >= 1 and not screen._is_refresh_wanted)
        before = screen.readings

        for _ in range(20):
            screen.post_message(StoreChanged())
        await pilot.pause()
        assert screen.readings == before
        assert screen._is_reading_planned
        screen.request_refresh(at_once=True)
        await until(pilot, lambda: screen.readings == before + 1)

        screen._rests_until = 0.0
        screen.post_message(StoreChanged())
        await until(pilot, lambda: screen.readings == before + 2)
