from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App

from agentmon.widgets.row_table import Column, RowTable, TableRow
from agentmon.widgets.text_rows import Span

if TYPE_CHECKING:
    from textual.app import ComposeResult


class Bench(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.table = RowTable((Column("Name"), Column("Size", 6, from_width=30, is_right=True)))
        self.told: list[str | None] = []

    def compose(self) -> ComposeResult:
        yield self.table

    def on_row_table_opened(self, message: RowTable.Opened) -> None:
        self.told.append(message.key)


def rows(*names: str) -> tuple[TableRow, ...]:
    return tuple(TableRow(name, (Span(name), Span("12", "muted"))) for name in names)


def line(table: RowTable, y: int) -> list[str]:
    return table.render_line(y).text.split()


async def test_columns_that_have_no_room_are_left_out() -> None:
    app = Bench()
    async with app.run_test(size=(40, 5)) as pilot:
        app.table.rows = rows("a")
        assert (line(app.table, 0), line(app.table, 1)) == (["Name", "Size"], ["a", "12"])

        await pilot.resize_terminal(20, 5)

        assert (line(app.table, 0), line(app.table, 1)) == (["Name"], ["a"])


async def test_the_cursor_stays_on_its_row_and_the_row_on_its_place() -> None:
    app = Bench()
    async with app.run_test(size=(40, 5)):
        app.table.rows = rows(*"abcdefgh")
        app.table.move_to(6)
        shown = [line(app.table, y) for y in range(1, 5)]

        app.table.rows = rows(*"xyabcdefgh")

        assert app.table.selected_key == "g"
        assert [line(app.table, y) for y in range(1, 5)] == shown


async def test_the_row_under_the_pointer_is_lit_and_a_double_click_opens_it() -> None:
    app = Bench()
    async with app.run_test(size=(40, 5)) as pilot:
        app.table.rows = rows(*"abc")
        before = app.table.render_line(2)

        await pilot.hover(app.table, offset=(5, 2))
        assert app.table.render_line(2) != before
        await pilot.click(app.table, offset=(5, 2), times=2)
        await pilot.pause()

        assert app.told == ["b"]


async def test_nothing_is_drawn_below_the_scroll_bar() -> None:
    app = Bench()
    app.table = RowTable(
        (Column("Name", 20), Column("Said"), Column("Cost", 8, is_right=True), Column("Share", 12, 40))
    )
    async with app.run_test(size=(60, 6)) as pilot:
        app.table.rows = tuple(
            TableRow(str(number), (Span("n" * 30), Span("s" * 90), Span("$1,234.5"), Span("#" * 12)))
            for number in range(50)
        )
        for width in range(24, 60):
            await pilot.resize_terminal(width, 6)
            room = app.table.scrollable_size.width
            assert room < width
            for y in range(3):
                assert app.table.render_line(y).text[room:].strip() == ""
            assert "$1,234.5" in app.table.render_line(1).text
