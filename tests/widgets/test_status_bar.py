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
