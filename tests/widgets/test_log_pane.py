from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Static

from agentmon.logs.search import Direction
from agentmon.widgets.log_pane import LogPane, Prompt
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot


class PaneApp(App[None]):
    def compose(self) -> ComposeResult:
        yield LogPane(placeholder="No output yet.")

    @property
    def pane(self) -> LogPane:
        return self.query_one(LogPane)

    @property
    def place(self) -> str:
        self.pane.poll()
        return str(self.query_one("#log-place", Static).content)


async def search(app: PaneApp, pilot: Pilot[None], expression: str) -> None:
    app.pane.ask(Prompt.SEARCH, expression)
    await pilot.press("enter")
    await pilot.pause()


async def searched(app: PaneApp, pilot: Pilot[None]) -> None:
    async def is_over() -> bool:
        await pilot.pause()
        return "searching" not in app.place

    await until(is_over, "the end of the search")


async def test_a_log_whose_name_is_gone_is_shown_and_searched_on_and_says_so(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    log.write_bytes(b"".join(b"line %d\n" % number for number in range(500)))
    app = PaneApp()
    async with app.run_test(size=(80, 10)) as pilot:
        app.pane.path = log
        log.unlink()
        await search(app, pilot, "line 7$")
        assert "line 7" in app.pane.view.shown_text
        assert "the file was removed" in app.place
        assert "not found" not in app.place

        log.symlink_to(log)
        assert "cannot be read any more: too many levels of symbolic links" in app.place
        assert "line 7" in app.pane.view.shown_text
        app.pane.view.action_toggle_follow()
        assert "line 499" in app.pane.view.shown_text

        log.unlink()
        log.write_bytes(b"another\n")
        app.pane.poll()
        assert app.pane.view.shown_text == "another"
        assert "removed" not in app.place
        assert "read" not in app.place


async def test_a_log_that_is_replaced_during_a_search_is_searched_anew(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    log.write_bytes(b"x\n" * 2_000_000 + b"needle\n")
    app = PaneApp()
    async with app.run_test(size=(80, 10)) as pilot:
        app.pane.path = log
        await search(app, pilot, "needle")
        await searched(app, pilot)
        app.pane.view.action_home()

        app.pane.find(Direction.FORWARDS)
        other = tmp_path / "other"
        other.write_bytes(b"y\n" * 50 + b"the needle is here\n" + b"y\n" * 2_000_000)
        other.replace(log)
        await searched(app, pilot)
        assert "the needle is here" in app.pane.view.shown_text

        app.pane.find(Direction.BACKWARDS)
        log.write_bytes(b"")
        await searched(app, pilot)
        assert app.pane.view.shown_text == ""
        assert "not found" in app.place


@pytest.mark.parametrize("prompt", [Prompt.SEARCH, pytest.param(Prompt.FILTER, marks=pytest.mark.proof)])
async def test_keys_come_between_the_slices_of_a_search(tmp_path: Path, prompt: Prompt) -> None:
    log = tmp_path / "output.log"
    log.write_bytes(bytes(10_000_000))
    app = PaneApp()
    async with app.run_test(size=(80, 10)) as pilot:
        app.pane.path = log
        turns = 0

        def is_over() -> bool:
            filtered = app.pane.view.filtered
            place = str(app.query_one("#log-place", Static).content)
            return "searching" not in place and (filtered is None or filtered.is_complete)

        async def take_turns() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0.001)
                turns += not is_over()

        async def is_found() -> bool:
            # A slow machine may look before the search has begun.
            has_begun = "not found" in app.place if prompt is Prompt.SEARCH else app.pane.view.filtered is not None
            return has_begun and is_over()

        other = asyncio.create_task(take_turns())
        app.pane.ask(prompt, "absent")
        await pilot.press("enter")
        await until(is_found, "the end of the search")
        other.cancel()
        assert turns > 8
