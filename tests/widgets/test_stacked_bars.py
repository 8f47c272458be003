from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult

from agentmon.widgets.cells import cells
from agentmon.widgets.stacked_bars import Bar, BarCell, StackedBars, bar_cells, nice_top


class ChartApp(App[None]):
    def compose(self) -> ComposeResult:
        yield StackedBars(lambda amount: f"${amount}", id="chart")

    @property
    def chart(self) -> StackedBars:
        return self.query_one(StackedBars)

    def lines(self) -> list[str]:
        return [self.chart.render_line(y).text for y in range(self.chart.size.height)]


@pytest.mark.parametrize(("amount", "top"), [(0, 1), (1, 1), (3, 5), (7, 10), (10, 10), (11, 20), (4_300, 5_000)])
def test_the_axis_ends_at_a_round_amount(amount: int, top: int) -> None:
    assert nice_top(amount) == top


def test_a_bar_is_stacked_from_its_foot_in_eighths() -> None:
    assert bar_cells([(0, 8), (1, 4)], 24, 3) == [
        BarCell(" ", None, None),
        BarCell("▄", 1, None),
        BarCell("█", 0, None),
    ]
    assert bar_cells([(0, 4), (1, 4)], 8, 1) == [BarCell("▄", 0, 1)]


def test_the_least_amount_shows_and_nothing_does_not() -> None:
    assert bar_cells([(2, 1)], 1_000_000, 2) == [BarCell(" ", None, None), BarCell("▁", 2, None)]
    assert bar_cells([(2, 0)], 10, 1) == [BarCell(" ", None, None)]
    assert bar_cells([], 10, 1) == [BarCell(" ", None, None)]


@given(
    parts=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 10**15)), max_size=6),
    rows=st.integers(1, 20),
)
def test_any_bar_fills_as_many_eighths_as_its_share(parts: list[tuple[int, int]], rows: int) -> None:
    amount = sum(part for _, part in parts)
    top = nice_top(amount)

    drawn = bar_cells(parts, top, rows)

    eighths = sum(8 if cell.ground is not None else " ▁▂▃▄▅▆▇█".index(cell.block) for cell in drawn)
    wanted = round(amount * rows * 8 / top)
    assert len(drawn) == rows
    assert eighths == max(wanted, 1 if amount else 0)


async def test_the_chart_has_its_axis_at_the_left_and_the_labels_below() -> None:
    app = ChartApp()
    async with app.run_test(size=(24, 8)) as pilot:
        app.chart.bars = tuple(Bar(f"{day}", ((0, day),)) for day in (8, 9, 10))
        await pilot.pause()
        lines = app.lines()

    assert lines[0].strip() == ""
    assert lines[1].startswith("$10 ┤")
    assert lines[4].startswith(" $5 ┤")
    assert lines[2].startswith("    │")
    assert lines[-1].split() == ["8", "9", "10"]
    assert lines[1].rstrip().endswith("█")


async def test_bars_of_nothing_have_no_amounts_beside_the_axis() -> None:
    app = ChartApp()
    async with app.run_test(size=(24, 8)) as pilot:
        app.chart.bars = tuple(Bar(f"{day}", ((0, 0),)) for day in (8, 9, 10))
        await pilot.pause()
        lines = app.lines()

    assert "$" not in "".join(lines)
    assert lines[-1].split() == ["8", "9", "10"]


async def test_the_newest_bars_stay_when_there_is_no_room_for_all() -> None:
    app = ChartApp()
    async with app.run_test(size=(20, 5)) as pilot:
        app.chart.bars = tuple(Bar(str(number), ((0, 1 if number < 99 else 5),)) for number in range(100))
        await pilot.pause()
        lines = app.lines()

    assert lines[0].endswith("█")
    assert all(cells(line) == 20 for line in lines)


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (10, 3), (200, 60)])
async def test_any_size_is_survived_by_the_chart(size: tuple[int, int]) -> None:
    app = ChartApp()
    async with app.run_test(size=size) as pilot:
        app.chart.bars = tuple(Bar("Nov 1", ((0, 4), (1, 5))) for _ in range(31))
        await pilot.pause()
        lines = app.lines()

        app.chart.bars = ()
        await pilot.pause()
        assert "".join(app.lines()).strip() == ""

    assert all(cells(line) == size[0] for line in lines)
