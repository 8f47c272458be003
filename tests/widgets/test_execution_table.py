from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App

from agentmon.domain.clock import FakeClock
from agentmon.domain.execution_columns import ExecutionColumn
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import Execution, ExecutionListing
from agentmon.domain.ids import AgentId, CapabilityId, ExecutionId, TaskId
from agentmon.widgets.cells import cells
from agentmon.widgets.cursor_table import fitted
from agentmon.widgets.execution_table import ExecutionTable, SortOrder
from tests.call_counts import calls_of

if TYPE_CHECKING:
    from textual.app import ComposeResult

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TITLES = (
    "fix [/] bug",
    "see [b + x",
    "🎉 party 👨‍👩‍👧",
    "שלום",
    "中文标题",
    "\x1b[31mred\x1b]0;own\x07",
    "two\nlines",
    "x" * 10_000,
)


def row(number: int, **changes: object) -> ExecutionListing:
    execution = Execution(
        id=ExecutionId(f"execution-{number}"),
        task_id=TaskId(f"task-{number}"),
        agent_id=AgentId("agent"),
        capability_id=CapabilityId("capability"),
        status=ExecutionStatus.SUCCEEDED,
        created_at=NOW - timedelta(minutes=number),
        started_at=NOW - timedelta(minutes=number),
        ended_at=NOW - timedelta(minutes=number) + timedelta(seconds=number),
        exit_code=0,
        log_byte_size=number * 1000,
        last_line=f"line {number}",
    )
    title = str(changes.pop("title", f"task {number}"))
    return ExecutionListing(
        execution=replace(execution, **changes),  # type: ignore[arg-type] # named by the tests
        task_number=number,
        task_title=title,
        agent_slug="make",
        capability_key="run",
    )


class Bench(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock(NOW)
        self.opened: list[int] = []
        self.highlighted: list[int | None] = []
        self.sorts: list[ExecutionColumn] = []

    def compose(self) -> ComposeResult:
        yield ExecutionTable(clock=self.clock)

    @property
    def table(self) -> ExecutionTable:
        return self.query_one(ExecutionTable)

    def on_execution_table_opened(self, message: ExecutionTable.Opened) -> None:
        self.opened.append(message.listing.task_number)

    def on_execution_table_highlighted(self, message: ExecutionTable.Highlighted) -> None:
        self.highlighted.append(None if message.listing is None else message.listing.task_number)

    def on_execution_table_sort_requested(self, message: ExecutionTable.SortRequested) -> None:
        self.sorts.append(message.column)


def lines(table: ExecutionTable) -> list[str]:
    return [table.render_line(y).text for y in range(table.size.height)]


def numbers(table: ExecutionTable) -> list[int]:
    return [listing.task_number for listing in table.rows]


async def test_the_rows_stand_below_their_headings_with_glyph_and_word() -> None:
    app = Bench()
    async with app.run_test(size=(120, 10)):
        app.table.listings = (
            row(1, status=ExecutionStatus.RUNNING, ended_at=None, exit_code=None),
            row(2, status=ExecutionStatus.FAILED, exit_code=3),
        )

        heading, running, failed, *_ = lines(app.table)

        assert heading.split() == ["State", "Task", "Program", "Time", "Tokens", "Cost", "Last", "line"]
        assert running.split()[:4] == ["●", "running", "#1", "task"]
        assert "1m00s" in running
        assert failed.split()[:5] == ["✗", "failed", "(exit", "3)", "#2"]


async def test_a_last_line_tells_paths_from_the_folder_and_a_title_stays_as_it_is() -> None:
    app = Bench()
    async with app.run_test(size=(200, 10)):
        app.table.folder = "/shop"
        app.table.listings = (row(1, title="move /shop/a.py", last_line="Edit: /shop/a.py"),)

        drawn = lines(app.table)[1]

        assert "move /shop/a.py" in drawn
        assert drawn.rstrip().endswith("Edit: a.py")


@pytest.mark.parametrize("width", [1, 10, 30, 45, 55, 65, 80, 100, 120, 200])
async def test_every_line_is_exactly_as_wide_as_the_table(width: int) -> None:
    app = Bench()
    async with app.run_test(size=(width, 12)):
        app.table.listings = tuple(row(number, title=title, last_line=title) for number, title in enumerate(TITLES, 1))

        drawn = lines(app.table)

        assert {cell_len(line) for line in drawn} == {width}
        assert not any(character < " " for line in drawn for character in line)


@settings(max_examples=300, deadline=None)
@given(text=st.text(max_size=80), width=st.integers(min_value=0, max_value=60), is_right=st.booleans())
def test_no_text_moves_what_stands_beside_it(text: str, width: int, is_right: bool) -> None:
    assert cells(fitted(text, width, is_right=is_right)) == width


async def test_the_selection_stays_on_its_execution_when_others_come_and_go() -> None:
    app = Bench()
    async with app.run_test(size=(100, 12)):
        app.table.listings = tuple(row(number) for number in range(10, 60))
        app.table.move_to(30)
        place = app.table.cursor_row - app.table.scroll_offset.y

        app.table.listings = tuple(row(number) for number in (1, 2, 3, *range(10, 25), *range(27, 60)))

        assert app.table.selected is not None
        assert app.table.selected.task_number == 40
        assert app.table.cursor_row - app.table.scroll_offset.y == place


async def test_the_selection_goes_to_a_neighbour_when_its_execution_is_gone() -> None:
    app = Bench()
    async with app.run_test(size=(100, 12)):
        app.table.listings = tuple(row(number) for number in range(5))
        app.table.move_to(4)

        app.table.listings = tuple(row(number) for number in range(3))

        assert app.table.selected is not None
        assert app.table.selected.task_number == 2


async def test_words_of_the_filter_are_found_anywhere_in_any_case() -> None:
    app = Bench()
    async with app.run_test(size=(100, 12)):
        app.table.listings = (
            row(1, title="Fix LOGIN", status=ExecutionStatus.FAILED, exit_code=1),
            row(2, title="login again"),
            row(31, title="other", last_line="Login [/] done"),
        )
        for text, expected in (("login", [1, 2, 31]), ("login failed", [1]), ("#31", [31]), ("[/]", [31]), ("no", [])):
            app.table.text_filter = text

            assert numbers(app.table) == expected
            assert ("No row has" in "".join(lines(app.table))) == (not expected), text

        assert "No row has “no”" in lines(app.table)[2]
        app.table.text_filter = ""
        assert numbers(app.table) == [1, 2, 31]


async def test_a_filter_that_hides_the_selection_gives_it_back() -> None:
    app = Bench()
    async with app.run_test(size=(100, 12)):
        app.table.listings = tuple(row(number) for number in range(10))
        app.table.move_to(7)

        app.table.text_filter = "nothing has this"
        assert numbers(app.table) == []
        app.table.text_filter = ""

        assert app.table.cursor_row == 7


async def test_sorting_puts_unknown_values_last_in_both_directions() -> None:
    app = Bench()
    async with app.run_test(size=(120, 12)):
        app.table.columns = (ExecutionColumn.TASK, ExecutionColumn.EXIT)
        app.table.listings = (row(1, exit_code=2), row(2, exit_code=None), row(3, exit_code=0), row(4, exit_code=143))

        app.table.sorting = SortOrder(column=ExecutionColumn.EXIT)
        rising = numbers(app.table)
        app.table.sorting = SortOrder(column=ExecutionColumn.EXIT, is_descending=True)

        assert rising == [3, 1, 4, 2]
        assert numbers(app.table) == [4, 1, 3, 2]
        assert "Exit▼" in lines(app.table)[0]
        app.table.sorting = None
        assert numbers(app.table) == [1, 2, 3, 4]


async def test_every_column_can_sort() -> None:
    app = Bench()
    async with app.run_test(size=(120, 12)):
        app.table.listings = (row(2), row(1, started_at=None, ended_at=None, last_line=None, exit_code=None), row(3))
        for column in ExecutionColumn:
            app.table.sorting = SortOrder(column=column)

            assert sorted(numbers(app.table)) == [1, 2, 3]


async def test_a_tick_moves_the_time_of_what_runs_and_of_nothing_else() -> None:
    app = Bench()
    async with app.run_test(size=(120, 12)):
        app.table.listings = (row(1, status=ExecutionStatus.RUNNING, ended_at=None), row(2))
        assert app.table.has_running
        before = lines(app.table)

        app.clock.move(timedelta(seconds=5))
        app.table.tick()

        after = lines(app.table)
        assert "1m05s" in after[1]
        assert after[2] == before[2]


async def test_clicks_move_open_and_sort() -> None:
    app = Bench()
    async with app.run_test(size=(120, 12)) as pilot:
        app.table.listings = tuple(row(number) for number in range(1, 6))
        await pilot.pause()

        await pilot.click(ExecutionTable, offset=(20, 3))
        assert app.table.cursor_row == 2
        await pilot.click(ExecutionTable, offset=(20, 4), times=2)
        assert app.opened == [4]
        await pilot.click(ExecutionTable, offset=(25, 0))
        assert app.sorts == [ExecutionColumn.TASK]


async def test_moving_stops_at_the_ends_and_brings_the_row_into_view() -> None:
    app = Bench()
    async with app.run_test(size=(100, 12)) as pilot:
        app.table.listings = tuple(row(number) for number in range(1000))
        await pilot.pause()

        app.table.move_by(5000)
        assert app.table.cursor_row == 999
        assert "#999" in lines(app.table)[-1]
        app.table.move_by(-5000)

        assert app.table.cursor_row == 0
        assert "#0" in lines(app.table)[1]
        assert app.highlighted[-1] == 0


async def test_an_empty_table_has_no_selection_and_survives_every_move() -> None:
    app = Bench()
    async with app.run_test(size=(100, 12)):
        app.table.move_by(1)
        app.table.open_selected()
        app.table.tick()

        assert app.table.selected is None
        assert app.opened == []


async def test_drawing_and_moving_cost_the_same_at_ten_rows_and_at_twenty_thousand() -> None:
    app = Bench()
    async with app.run_test(size=(120, 40)) as pilot:
        counts = []
        for rows in (36, 20_000):
            app.table.listings = tuple(row(number) for number in range(rows))
            await pilot.pause()
            _move_and_draw(app.table)
            counts.append(calls_of(lambda: _move_and_draw(app.table)))

        assert counts[1] < 1.2 * counts[0]


def _move_and_draw(table: ExecutionTable) -> None:
    table.move_by(1)
    lines(table)
    table.move_by(-1)
    lines(table)


async def test_what_runs_took_and_cost_has_columns_that_sort_where_there_is_room() -> None:
    bench = Bench()
    async with bench.run_test(size=(140, 10)) as pilot:
        bench.table.listings = (
            row(1, tokens_used=12_345, cost_nano=380_000_000),
            row(2),
            row(3, tokens_used=50, cost_nano=9_000_000_000),
        )
        await pilot.pause()
        lines = [bench.table.render_line(y).text for y in range(4)]

        assert {ExecutionColumn.TOKENS, ExecutionColumn.COST} <= set(bench.table.shown_columns)
        assert lines[0].split()[-4:] == ["Tokens", "Cost", "Last", "line"]
        assert "12 K     $0.38  line 1" in lines[1]
        assert "$" not in lines[2]
        bench.table.sorting = SortOrder(column=ExecutionColumn.COST, is_descending=True)
        assert [one.task_number for one in bench.table.rows] == [3, 1, 2]

        await pilot.resize_terminal(70, 10)
        assert ExecutionColumn.COST not in bench.table.shown_columns


async def test_chosen_columns_stand_in_their_order_and_those_asked_for_stay_longest() -> None:
    app = Bench()
    async with app.run_test(size=(200, 10)) as pilot:
        app.table.columns = (
            ExecutionColumn.MODEL,
            ExecutionColumn.STATE,
            ExecutionColumn.TRIES,
            ExecutionColumn.TASK,
            ExecutionColumn.LAST_LINE,
        )
        app.table.listings = (replace(row(1, attempt=2), model="opus"),)
        heading, first, *_ = lines(app.table)

        assert heading.split() == ["Model", "State", "Tries", "Task", "Last", "line"]
        assert first.split()[:6] == ["opus", "✓", "done", "3", "#1", "task"]

        await pilot.resize_terminal(60, 10)
        assert app.table.shown_columns == (ExecutionColumn.STATE, ExecutionColumn.TRIES, ExecutionColumn.TASK)


async def test_nothing_is_drawn_below_the_scroll_bar() -> None:
    app = Bench()
    async with app.run_test(size=(80, 8)) as pilot:
        app.table.listings = tuple(row(number) for number in range(1, 60))
        for width in range(30, 121):
            await pilot.resize_terminal(width, 8)
            room = app.table.scrollable_size.width
            assert room < width
            for y in range(4):
                assert app.table.render_line(y).text[room:].strip() == ""
