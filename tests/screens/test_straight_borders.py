from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from textual.app import App

from agentmon.domain.board import StatusLine
from agentmon.screens.tasks.task_page import TaskPage
from agentmon.widgets.cells import cells
from agentmon.widgets.status_line import StatusBar
from tests.screen_stage import Stage, screen_text, until
from tests.stored_runs import stored

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import ComposeResult

ANY_TEXT = st.text(max_size=120) | st.text(alphabet="a \u0301\u200d\ufe0f👩🇩🇪שل中ｱ🎉\t\x1b[]\u202e", max_size=60)


class Line(App[None]):
    CSS: ClassVar[str] = "Screen { overflow: hidden; }"

    def compose(self) -> ComposeResult:
        yield StatusBar(id="status")


@pytest.mark.proof
async def test_the_status_line_is_as_wide_as_the_window_for_any_name() -> None:
    app = Line()
    async with app.run_test(size=(60, 3)) as pilot:
        bar = app.query_one(StatusBar)
        bar.numbers = StatusLine(running=3, running_limit=4, queued=12, needs_you=1)
        await pilot.pause()

        @settings(max_examples=200, deadline=None)
        @given(ANY_TEXT)
        def check(name: str) -> None:
            bar.place = name
            line = bar.render_line(0)

            assert cells(line.text) == 60
            assert line.text.endswith("1 needs you ")

        check()


@pytest.mark.proof
async def test_the_heading_of_a_task_page_stays_in_its_line_for_any_title(tmp_path: Path) -> None:
    stage = Stage()
    titles: list[str] = []

    @settings(max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(ANY_TEXT.filter(str.strip))
    def collect(title: str) -> None:
        titles.append(title)

    collect()
    async with stored(tmp_path) as store, stage.run_test(size=(80, 24)) as pilot:
        task = await store.add_task("a title")
        page = TaskPage(task_id=task.id, services=store.get_services, workspace=store.get_workspace)
        stage.show(page)  # type: ignore[arg-type] # a screen ends with its own type
        await until(pilot, lambda: stage.screen is page and page._shown is not None)
        for title in titles:
            assert page._shown is not None
            page._shown = replace(page._shown, task=replace(page._shown.task, title=title))
            page._show_heading()
            await pilot.pause()
            rows = screen_text(stage).split("\n")

            assert all(cells(row) == 80 for row in rows)
            assert rows[1].strip().startswith("never run")
            assert rows[2].strip().startswith("Details  Log  Conversation")
