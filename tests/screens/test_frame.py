"""What a key began on a screen, and what becomes of it when the screen is closed."""

from __future__ import annotations

import asyncio

import pytest
from textual.css.query import NoMatches

from agentmon.domain.errors import RunnerError
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.screens.frame import ServiceScreen
from tests.screen_stage import Stage, until


class Working(ServiceScreen[None]):
    """Stores something once it is let go on, and then shows that."""

    def __init__(self) -> None:
        super().__init__(asyncio.Future, asyncio.Future)
        self.goes_on = asyncio.Event()
        self.stored: list[str] = []

    def begin(self, error: Exception | None = None) -> None:
        self.start(self._store(error), name="store")

    async def _store(self, error: Exception | None) -> None:
        await self.goes_on.wait()
        self.stored.append("it")
        if error is not None:
            raise error
        self.query_one("#none")


@pytest.mark.parametrize("error", [None, RunnerError("it is refused")])
async def test_it_comes_to_its_end_and_only_what_a_person_must_know_is_told(error: Exception | None) -> None:
    stage = Stage()
    async with stage.run_test() as pilot:
        screen = Working()
        stage.show(screen)  # type: ignore[arg-type] # a screen ends with its own type
        await until(pilot, lambda: stage.screen is screen)
        screen.begin(error)
        await stage.pop_screen()
        screen.goes_on.set()
        await until(pilot, lambda: all(worker.is_finished for worker in stage.workers))

        assert screen.stored == ["it"]
        assert stage.failures == ([] if error is None else [error])


async def test_while_its_screen_is_there_each_failure_is_told() -> None:
    stage = Stage()
    async with stage.run_test() as pilot:
        screen = Working()
        stage.show(screen)  # type: ignore[arg-type] # a screen ends with its own type
        await until(pilot, lambda: stage.screen is screen)
        screen.begin()
        screen.goes_on.set()
        await until(pilot, lambda: bool(stage.failures))

        assert isinstance(stage.failures[0], NoMatches)


async def test_a_closed_screen_asks_nothing() -> None:
    stage = Stage()
    async with stage.run_test() as pilot:
        screen = Working()
        stage.show(screen)  # type: ignore[arg-type] # a screen ends with its own type
        await until(pilot, lambda: stage.screen is screen)

        async def ask() -> None:
            await screen.goes_on.wait()
            screen.stored.append(str(await screen.ask(ConfirmDialog("Sure?", loss="", yes="Yes"))))

        screen.start(ask(), name="ask")
        await stage.pop_screen()
        screen.goes_on.set()
        await until(pilot, lambda: bool(screen.stored))

        assert screen.stored == ["None"]
        assert len(stage.screen_stack) == 1
