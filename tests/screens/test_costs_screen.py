from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from textual.widgets import Static

from agentmon.domain.budgets import BudgetPeriod, BudgetScope
from agentmon.domain.clock import FakeClock
from agentmon.domain.costs import CostGroup
from agentmon.screens.answers_dialog import AnswersDialog
from agentmon.screens.costs import CostsScreen
from agentmon.services.actors import USER_ACTOR
from agentmon.widgets.row_table import RowTable
from agentmon.widgets.stacked_bars import StackedBars
from tests.idle_worker import idle_worker
from tests.screens.boards import Place, make_place, open_board
from tests.usage.histories import SAMPLES, environ_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.screens.boards import Board

NOW = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)
EXPECTED: dict[str, Any] = json.loads((SAMPLES / "expected.json").read_text())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("AGENTMON_COSTS_TIMEZONE", "UTC")
    place = make_place(tmp_path)
    with idle_worker(place.paths):
        yield place


@pytest.fixture
async def filled_place(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place that has imported the samples."""
    home = tmp_path / "samples"
    (home / "gemini-home").mkdir(parents=True)
    for name in ("claude", "claude-xdg", "codex"):
        (home / name).symlink_to(SAMPLES / name)
    (home / "gemini-home" / ".gemini").symlink_to(SAMPLES / "gemini")
    for name, value in environ_of(home).items():
        monkeypatch.setenv(name, value)
    async with place.services() as (services, _workspace):
        await services.costs.import_history()
    return place


async def open_costs(board: Board) -> CostsScreen:
    services = await board.screen.services()
    services.costs._clock = FakeClock(NOW)
    await board.press("3")
    await board.until(lambda: isinstance(board.app.screen, CostsScreen), "the costs")
    screen = board.app.screen
    assert isinstance(screen, CostsScreen)
    await board.until(lambda: screen._shown is not None, "the sums")
    return screen


def text_of(screen: CostsScreen, name: str) -> str:
    return str(screen.query_one(f"#{name}", Static).content)


def labels(screen: CostsScreen) -> list[str]:
    return [row.cells[0].text for row in screen.query_one("#costs", RowTable).rows]


async def until_group(board: Board, screen: CostsScreen, group: CostGroup, depth: int = 1) -> None:
    await board.until(
        lambda: (
            len(screen._trail) == depth
            and screen._shown is not None
            and screen._shown[2].group is group
            and screen._read_for == (screen._period, screen._view)
        ),
        str(group),
    )


async def test_budgets_stand_in_a_line_with_what_is_left_and_the_answer_that_may_pass_them(place: Place) -> None:
    async with open_board(place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)
        services = await screen.services()
        has_none = screen.query_one("#budgets", Static).display

        await services.budgets.set(
            scope=BudgetScope.ALL, period=BudgetPeriod.DAY, limit=20_000_000_000, actor=USER_ACTOR
        )

        await board.until(lambda: screen.query_one("#budgets", Static).display, "the budgets")
        assert not has_none
        assert text_of(screen, "budgets") == (
            "Budgets  everything a day $0.00 of $20.00 (0 %)   an answer that is being written is still paid"
        )


async def test_without_any_usage_the_costs_say_what_brings_it(place: Place) -> None:
    async with open_board(place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)

        assert screen.has_class("-empty")
        assert "agentmon costs import" in text_of(screen, "empty")


async def test_the_tiles_tell_today_this_week_and_this_month(filled_place: Place) -> None:
    months = EXPECTED["by_month_UTC"]
    november = sum(float(sums["cost_usd"]) for key, sums in months.items() if key.endswith(":2026-11"))

    async with open_board(filled_place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)

        assert text_of(screen, "tile-0").startswith("Today\n$")
        assert text_of(screen, "tile-2").startswith(f"This month\n${november:,.2f}")
        assert "2 unpriced" in text_of(screen, "summary")
        assert not screen.has_class("-empty")


async def test_each_group_has_its_rows_and_the_dearest_is_first(filled_place: Place) -> None:
    async with open_board(filled_place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)
        assert labels(screen)[0] == "gemini-3.1-pro-preview"

        await board.press("l")
        await until_group(board, screen, CostGroup.AGENT)
        assert labels(screen) == ["gemini", "claude", "codex"]

        await board.press("l")
        await until_group(board, screen, CostGroup.PROJECT)
        assert set(labels(screen)) <= {*EXPECTED["by_project"], "no folder known"}

        await board.press("h", "h", "h")
        await until_group(board, screen, CostGroup.TASK)
        assert labels(screen) == ["without a task"]


async def test_a_row_is_followed_to_its_sessions_and_their_answers_and_back(filled_place: Place) -> None:
    async with open_board(filled_place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)
        await board.press("enter")
        await until_group(board, screen, CostGroup.SESSION, depth=2)
        assert "gemini-3.1-pro-preview" in text_of(screen, "summary")
        assert labels(screen)

        await board.press("enter")
        await board.until(lambda: isinstance(board.app.screen, AnswersDialog), "the answers")
        dialog = board.app.screen
        await board.until(lambda: "together" in str(dialog.query_one("#explanation", Static).content), "why")
        explanation = str(dialog.query_one("#explanation", Static).content)
        assert "for a million" in explanation
        assert "at byte" in explanation
        assert "billed answer" in str(dialog.query_one("#heading", Static).content)

        await board.press("escape")
        await board.until(lambda: board.app.screen is screen, "the costs again")
        await board.press("escape")
        await until_group(board, screen, CostGroup.MODEL)
        assert labels(screen)[0] == "gemini-3.1-pro-preview"


async def test_the_chart_covers_days_weeks_or_months_in_money_or_tokens(filled_place: Place) -> None:
    async with open_board(filled_place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)
        chart = screen.query_one(StackedBars)
        assert len(chart.bars) == 30
        assert chart.bars[-1].label == "20"
        assert chart.bars[-1].parts

        await board.press("p")
        await until_group(board, screen, CostGroup.MODEL)
        assert len(chart.bars) == 26
        await board.press("p")
        await until_group(board, screen, CostGroup.MODEL)
        assert [bar.label for bar in chart.bars[-2:]] == ["Oct", "Nov"]
        money = chart.bars[-1]

        await board.press("t")
        await board.until(lambda: "tokens" in text_of(screen, "summary"), "tokens")
        tokens = sum(sums["total_tokens"] for key, sums in EXPECTED["by_month_UTC"].items() if key.endswith(":2026-11"))
        assert sum(amount for _, amount in chart.bars[-1].parts) == tokens
        assert chart.bars[-1] != money


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (200, 60)])
async def test_any_size_is_survived_by_the_costs(filled_place: Place, size: tuple[int, int]) -> None:
    async with open_board(filled_place, clock=FakeClock(NOW), size=size) as board:
        screen = await open_costs(board)
        await board.press("j", "G", "ctrl+u", "l", "p", "t")
        await until_group(board, screen, CostGroup.AGENT)
