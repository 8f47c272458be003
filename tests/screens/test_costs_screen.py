from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from textual.widgets import Input, OptionList, Static

from agentmon.domain.budgets import BudgetPeriod, BudgetScope
from agentmon.domain.clock import FakeClock
from agentmon.domain.costs import CostFilter, CostGroup, CostSums
from agentmon.screens.costs.answers_dialog import AnswersDialog
from agentmon.screens.costs.cost_rows import cost_rows
from agentmon.screens.costs.screen import CostsScreen
from agentmon.screens.dialogs.menu_dialog import MenuDialog
from agentmon.services.actors import USER_ACTOR
from agentmon.services.cost_reports import CostBucket
from agentmon.widgets.row_table import RowTable, Sorting
from agentmon.widgets.stacked_bars import PATTERNS, SERIES, StackedBars, bar_cells
from agentmon.widgets.status_line import StatusBar
from agentmon.worker.import_progress import ImportProgress, clear_progress, write_progress
from tests.idle_worker import idle_worker
from tests.screens.boards import Place, make_place, open_board
from tests.usage.histories import SAMPLES, environ_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agentmon.services.cost_reports import CostReport
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
            and screen._shown.table.group is group
            and screen._read_for == screen._wanted
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
            "Budgets  everything a day $0.00 of $20.00 (0 %)   an answer that is being written is still paid   "
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


async def test_a_row_that_is_followed_before_its_group_was_read_is_one_of_that_group(filled_place: Place) -> None:
    async with open_board(filled_place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)
        screen.action_go_group(1)
        screen.action_open_row()

        await until_group(board, screen, CostGroup.SESSION, depth=2)

        chosen = screen._view.chosen
        assert (chosen.model, chosen.agent_slug) == ("", "gemini")
        assert labels(screen)


async def test_keys_behind_a_followed_row_are_for_its_sessions_and_going_back_finds_the_row(
    filled_place: Place,
) -> None:
    async with open_board(filled_place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)
        table = screen.query_one("#costs", RowTable)
        await board.press("l", "j")
        await until_group(board, screen, CostGroup.AGENT)
        followed = table.selected_key
        assert followed != table.rows[0].key

        await board.press("enter", "s", "j")
        await until_group(board, screen, CostGroup.SESSION, depth=2)
        await board.until(lambda: not board.app.are_keys_held, "the keys")
        await board.pilot.pause()
        assert screen._view.chosen.agent_slug == followed
        assert (screen._sorting, table.cursor_row) == (Sorting(0), min(1, len(table.rows) - 1))

        await board.press("escape")
        await until_group(board, screen, CostGroup.AGENT)
        assert table.selected_key == followed


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
        days = {key.rpartition(":")[2]: 0 for key in EXPECTED["by_day_UTC"]}
        for key, sums in EXPECTED["by_day_UTC"].items():
            days[key.rpartition(":")[2]] += sums["total_tokens"]
        tokens = sum(count for day, count in days.items() if "2026-11-01" <= day <= f"{NOW:%Y-%m-%d}")
        assert sum(amount for _, amount in chart.bars[-1].parts) == tokens
        assert chart.bars[-1] != money


async def choose(board: Board, screen: CostsScreen, word: str) -> None:
    """Choose from the menu of filters."""
    await board.press("f")
    await board.until_menu()
    dialog = board.app.screen
    assert isinstance(dialog, MenuDialog)
    entries = dialog.query_one(OptionList)
    entries.highlighted = [entry.word for entry in dialog._entries].index(word)
    await board.press("enter")
    await board.until(lambda: board.app.screen is screen and board.is_answered(screen), "the costs")
    await board.until(lambda: screen._read_for == screen._wanted, "the costs again")


async def test_beside_the_groups_stands_how_much_was_done_in_that_time(filled_place: Place) -> None:
    async with open_board(filled_place, clock=FakeClock(NOW), size=(120, 40)) as board:
        screen = await open_costs(board)
        services = await screen.services()
        assert re.search(r" tasks +4 sessions$", text_of(screen, "groups"))

        async with services.database.writing() as connection:
            for ref, status in enumerate(["success", "failed", "blocked", "pending"]):
                await connection.exec_driver_sql(
                    "INSERT INTO operations (id, session_id, tool_name, type, target, status, started_at, day_local, "
                    "created_at, updated_at) SELECT ?, id, 'Tool', 'read', '', ?, started_at, day_local, started_at, "
                    "started_at FROM sessions WHERE day_local = '2026-11-20' ORDER BY session_ref LIMIT 1",
                    (str(ref), status),
                )

        done = "4 sessions · 4 tool calls · 50 % ok · 1 blocked"
        await board.until(lambda: text_of(screen, "groups").endswith(done), "the tool calls")
        await board.press("enter")
        await until_group(board, screen, CostGroup.SESSION, depth=2)
        assert "tool call" not in text_of(screen, "groups")
        await board.press("escape")
        await until_group(board, screen, CostGroup.MODEL)
        assert text_of(screen, "groups").endswith(done)


async def test_a_filter_is_chosen_from_a_menu_told_and_taken_back(filled_place: Place) -> None:
    async with open_board(filled_place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)
        everything = labels(screen)

        await choose(board, screen, "claude")
        await choose(board, screen, "all time")
        of_claude = labels(screen)
        told = text_of(screen, "summary")
        await board.press("l")
        await until_group(board, screen, CostGroup.AGENT)
        agents = labels(screen)
        await choose(board, screen, "claude")

        assert set(of_claude) >= {"claude-opus-4-8"}
        assert not [label for label in of_claude if label.startswith("g")]
        assert "only claude   all time" in told
        assert agents == ["claude"]
        assert set(labels(screen)) == {"gemini", "claude", "codex"}
        assert "only" not in text_of(screen, "summary")
        assert "gemini-9-ultra" in everything


async def test_a_filter_survives_what_is_followed_and_escape_takes_back_the_last_first(filled_place: Place) -> None:
    async with open_board(filled_place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)
        await choose(board, screen, "/home/dev/webshop")
        await board.press("s", "enter")
        await until_group(board, screen, CostGroup.SESSION, depth=2)
        followed = screen._wanted.chosen

        await board.press("escape")
        await until_group(board, screen, CostGroup.MODEL)
        back = screen._wanted.chosen
        await board.press("escape")
        await until_group(board, screen, CostGroup.MODEL)
        cleared, sorting = screen._wanted.chosen, screen._sorting
        await board.press("escape")

        assert (followed.project, back.project, cleared.project) == ("/home/dev/webshop", "/home/dev/webshop", "")
        assert followed.model
        assert not back.model
        assert sorting is not None
        assert screen._sorting is None


async def test_a_folder_that_is_typed_filters_what_lies_below_it(filled_place: Place) -> None:
    async with open_board(filled_place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)
        await board.press("f")
        await board.until_menu()
        board.app.screen.query_one("#free", Input).value = "/home/dev"
        board.app.screen.query_one("#free", Input).focus()
        await board.press("enter")
        await board.until(
            lambda: board.app.screen is screen and board.is_answered(screen) and screen._read_for == screen._wanted,
            "the costs",
        )

        await board.press("l", "l")
        await until_group(board, screen, CostGroup.PROJECT)

        assert labels(screen)
        assert all(label.startswith("/home/dev/") for label in labels(screen))


async def test_what_has_no_known_price_is_no_sum_of_zero(filled_place: Place) -> None:
    async with open_board(filled_place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)
        screen._filter = CostFilter(model="acme-coder-9")
        screen._go_elsewhere()
        await board.until(lambda: screen._read_for == screen._wanted, "the model without a price")

        assert "1 unpriced" in text_of(screen, "summary")
        assert "?" in text_of(screen, "summary")
        assert "$0.00" not in text_of(screen, "summary")


async def test_a_filter_that_leaves_nothing_says_how_it_is_taken_back(filled_place: Place) -> None:
    async with open_board(filled_place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)
        screen._filter = CostFilter(agent_slug="codex", model="claude-opus-4-8")
        screen._go_elsewhere()
        await board.until(lambda: screen._read_for == screen._wanted, "nothing")

        assert labels(screen) == []
        assert not screen.has_class("-empty")
        assert "nothing of this choice; esc takes it back" in text_of(screen, "summary")


async def test_rows_are_sorted_by_a_key_or_by_a_click_on_a_heading(filled_place: Place) -> None:
    async with open_board(filled_place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)
        dearest = labels(screen)

        await board.press("s")
        by_name, told = labels(screen), text_of(screen, "summary")
        await board.press("S")
        by_name_turned = labels(screen)
        table = screen.query_one("#costs", RowTable)
        heading = "".join(segment.text for segment in table.heading_segments(table.rich_style))
        await board.pilot.click("#costs", offset=(heading.index("Tokens") + 1, 0))
        await board.pilot.pause()
        assert screen._shown is not None
        totals = {bucket.label: bucket.sums.total_tokens for bucket in screen._shown.table.buckets}
        by_tokens = [totals[label] for label in labels(screen)]

        assert by_name == sorted(dearest, key=str.casefold)
        assert by_name_turned == by_name[::-1]
        assert "by name, rising" in told
        assert "by tokens, falling" in text_of(screen, "summary")
        assert by_tokens == sorted(totals.values(), reverse=True)


async def test_the_word_of_a_group_can_be_clicked(filled_place: Place) -> None:
    async with open_board(filled_place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)

        await board.pilot.click("#groups", offset=(text_of(screen, "groups").index("projects") + 2, 0))
        await until_group(board, screen, CostGroup.PROJECT)

        assert screen._view.group is CostGroup.PROJECT


async def test_what_was_read_is_not_read_again_before_the_data_change(
    filled_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_board(filled_place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)
        services = await screen.services()
        await board.press("l")
        await until_group(board, screen, CostGroup.AGENT)
        asked: list[CostGroup] = []
        report = services.costs.report

        async def count(group: CostGroup, chosen: CostFilter, **further: Any) -> CostReport:
            asked.append(group)
            return await report(group, chosen, **further)

        monkeypatch.setattr(services.costs, "report", count)
        await board.press("h")
        await until_group(board, screen, CostGroup.MODEL)
        known = list(asked)
        await services.settings.set("costs.decimals", "3", actor=services.actor)
        await board.until(lambda: bool(asked), "a new look at the data")

        assert known == []
        await board.until(lambda: re.search(r"\$\d+\.\d{3}\b", text_of(screen, "tile-2")) is not None, "the digits")


@pytest.mark.proof
async def test_a_running_import_has_a_bar_with_files_bytes_and_time(place: Place) -> None:
    async with open_board(place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)
        file = place.paths.import_progress
        file.parent.mkdir(parents=True, exist_ok=True)
        progress = ImportProgress(files=12, all_files=40, read_bytes=430_000_000, all_bytes=10**9, elapsed_s=43)
        write_progress(file, progress)

        await board.until(lambda: screen.has_class("-importing"), "the bar")
        bar = text_of(screen, "import")
        clear_progress(file)
        await board.until(lambda: not screen.has_class("-importing"), "its end")

        assert bar.startswith("Reading history █████████████████▎░")
        assert " 43 % 12/40 files · 430.0 MB/1.0 GB · 57s left" in bar


async def test_the_board_tells_how_far_an_import_is(place: Place) -> None:
    async with open_board(place, clock=FakeClock(NOW), size=(120, 30)) as board:
        bar = board.screen.query_one(StatusBar)
        progress = ImportProgress(files=12, all_files=40, read_bytes=430_000_000, all_bytes=10**9, elapsed_s=43)
        place.paths.import_progress.parent.mkdir(parents=True, exist_ok=True)
        write_progress(place.paths.import_progress, progress)
        board.screen.request_refresh()

        await board.until(lambda: "reading history 43 %" in bar.render_line(0).text, "the import")
        clear_progress(place.paths.import_progress)
        await board.until(lambda: "reading history" not in bar.render_line(0).text, "its end")


async def test_windows_of_vendors_stand_above_the_bars_and_in_one_line_where_there_is_no_room(
    filled_place: Place,
) -> None:
    async with open_board(filled_place, clock=FakeClock(NOW)) as board:
        services = await board.screen.services()
        services.limits._clock = FakeClock(NOW)
        screen = await open_costs(board)
        told = text_of(screen, "limits")

        await board.pilot.resize_terminal(80, 24)
        await board.until(lambda: "\n" not in text_of(screen, "limits"), "one line")

        assert "estimate" in told
        assert "week" in told
        assert "at this pace" in told.splitlines()[-1]
        assert screen.query_one("#limits").display
        assert screen.query_one("#limits").size.height == 1


async def test_without_windows_and_rates_nothing_stands_in_their_place(place: Place) -> None:
    async with open_board(place, clock=FakeClock(NOW)) as board:
        screen = await open_costs(board)

        assert not screen.query_one("#limits").display


def test_many_rows_end_with_one_that_says_how_many_more_there_are() -> None:
    buckets = [
        CostBucket(group=f"s{at:05}", label=f"s{at}", agents=("claude",), models=(), sums=CostSums(cost_nano=at))
        for at in range(10_000)
    ]

    rows = cost_rows(CostGroup.SESSION, buckets, is_by_tokens=False)

    assert len(rows) == 501
    assert rows[0].cells[0].text == "s9999"
    assert rows[-1].cells[0].text == "… 9,500 more; enter shows the next of them"
    assert len(rows[-1].cells) == len(rows[0].cells)


def test_bars_without_colours_have_a_pattern_for_each_model() -> None:
    parts = tuple((series, 10) for series in range(SERIES))

    patterns = [cell.pattern for cell in bar_cells(parts, 60, 6)]

    assert patterns == list(reversed(PATTERNS))


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (200, 60)])
async def test_any_size_is_survived_by_the_costs(filled_place: Place, size: tuple[int, int]) -> None:
    async with open_board(filled_place, clock=FakeClock(NOW), size=size) as board:
        screen = await open_costs(board)
        await board.press("j", "G", "ctrl+u", "l", "p", "t")
        await until_group(board, screen, CostGroup.AGENT)
