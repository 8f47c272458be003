from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.app import App

from agentmon.domain.board import StatusLine
from agentmon.widgets.status_line import StatusBar

if TYPE_CHECKING:
    from textual.app import ComposeResult

DOLLAR = 1_000_000_000


class Line(App[None]):
    def compose(self) -> ComposeResult:
        yield StatusBar(id="status")


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        (StatusLine(cost_today_nano=4 * DOLLAR), "$4.00 today "),
        (StatusLine(cost_today_nano=4 * DOLLAR, budget_today_nano=20 * DOLLAR), "$4.00 / $20 today "),
        (StatusLine(unpriced_today=1), "? today "),
        (StatusLine(), "● 0 running "),
    ],
)
async def test_the_line_tells_what_the_day_costs_and_may_cost(numbers: StatusLine, told: str) -> None:
    app = Line()
    async with app.run_test(size=(80, 3)) as pilot:
        bar = app.query_one(StatusBar)
        bar.numbers = numbers
        await pilot.pause()

        assert bar.render_line(0).text.endswith(told)


async def test_a_day_that_nears_its_budget_stands_out() -> None:
    app = Line()
    async with app.run_test(size=(80, 3)) as pilot:
        bar = app.query_one(StatusBar)
        styles = []
        for cost in (15, 16):
            bar.numbers = StatusLine(cost_today_nano=cost * DOLLAR, budget_today_nano=20 * DOLLAR)
            await pilot.pause()
            styles += [part.style for part in bar.render_line(0) if "today" in part.text]

        assert styles[0] != styles[1]


async def test_a_trouble_stands_before_all_else_and_is_shortened_where_there_is_little_room() -> None:
    app = Line()
    async with app.run_test(size=(100, 3)) as pilot:
        bar = app.query_one(StatusBar)
        bar.place, bar.trouble = "acme", "usage import fails: the disk that holds it is full"
        lines = []
        for width in (100, 60, 44, 30, 16):
            await pilot.resize_terminal(width, 3)
            lines.append(bar.render_line(0).text)

    assert "! usage import fails: the disk that holds it… · B shows   ● 0 running" in lines[0]
    assert "! usage import fails: the… " in lines[1]
    assert "! B shows" in lines[2]
    assert all("! " in line for line in lines)


async def test_a_click_on_a_trouble_tells_so() -> None:
    clicks: list[StatusBar.TroubleClicked] = []

    class Clicked(Line):
        def on_status_bar_trouble_clicked(self, message: StatusBar.TroubleClicked) -> None:
            clicks.append(message)

    app = Clicked()
    async with app.run_test(size=(100, 3)) as pilot:
        bar = app.query_one(StatusBar)
        bar.trouble = "the worker is halted"
        await pilot.pause()
        await pilot.click(bar, offset=(bar.render_line(0).text.index("worker"), 0))
        await pilot.click(bar, offset=(bar.render_line(0).text.index("running"), 0))
        await pilot.pause()

    assert len(clicks) == 1
