from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len, get_character_cell_size
from textual.app import App

from agentmon.domain.board import Card, ColumnPage
from agentmon.domain.ids import ExecutionId, TaskId
from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import AwaitedState, TaskStatus
from agentmon.widgets.board_column import BoardColumn
from agentmon.widgets.card_text import card_lines
from agentmon.widgets.cells import cells, cut, even_line, pad

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.strip import Strip

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


class RecordedColumn(BoardColumn):
    def __init__(self, status: TaskStatus) -> None:
        super().__init__(status)
        self.painted: list[int] = []

    def render_line(self, y: int) -> Strip:
        self.painted.append(y)
        return super().render_line(y)


class ColumnApp(App[None]):
    def __init__(self, page: ColumnPage | None) -> None:
        super().__init__()
        self.column = RecordedColumn(TaskStatus.TODO)
        self.column.page = page
        self.messages: list[str] = []

    def get_css_variables(self) -> dict[str, str]:
        return super().get_css_variables() | {"card-cursor": "#223344"}

    def compose(self) -> ComposeResult:
        yield self.column

    def on_mount(self) -> None:
        self.column.now = NOW
        self.column.focus()

    def on_board_column_selected(self) -> None:
        self.messages.append("selected")

    def on_board_column_page_needed(self) -> None:
        self.messages.append("page needed")

    def on_board_column_opened(self, message: BoardColumn.Opened) -> None:
        self.messages.append(f"opened {message.task_id}")

    def on_board_column_fold_requested(self) -> None:
        self.messages.append("fold")

    @property
    def lines(self) -> list[str]:
        return [self.column.render_line(y).text for y in range(self.column.size.height)]


def make_card(number: int, title: str = "", *, status: TaskStatus = TaskStatus.TODO) -> Card:
    return Card(
        task_id=TaskId(f"task-{number}"),
        number=number,
        title=title or f"title {number}",
        status=status,
        priority=3,
        agent_slug="sh",
    )


def make_page(cards: Sequence[Card], *, total: int | None = None, offset: int = 0) -> ColumnPage:
    return ColumnPage(
        status=TaskStatus.TODO, total=len(cards) if total is None else total, offset=offset, cards=tuple(cards)
    )


def window(first: int, last: int, total: int) -> ColumnPage:
    return make_page([make_card(number) for number in range(first, last)], total=total, offset=first)


any_title = st.text(st.characters(codec=None), min_size=1, max_size=60) | st.sampled_from(
    [
        "fix [/] bug",
        "see [b + x",
        "regex [a-z]+ [/foo]",
        '["a", 1]',
        "[@click=app.quit]x[/]",
        "👨‍👩‍👧 family ❤️ 1️⃣ 👍🏽 🇩🇪",
        "日本語のとても長いタイトルです",
        "שלום עולם",
        "e" + "\u0301" * 5000,
        "a\nb\tc\x1b[31md\x1b]52;c;eA==\x07e",
        "\u202eabc\u2066",
        "x" * 10_000,
    ]
)


@given(title=any_title, width=st.integers(0, 90), last_line=any_title, state=st.sampled_from([None, *LiveState]))
def test_every_line_of_a_card_has_exactly_the_asked_width(
    title: str, width: int, last_line: str, state: LiveState | None
) -> None:
    card = make_card(41, title)._replace(
        last_line=last_line, error=title, state=state, started_at=NOW, cost_nano=12 * 10**9
    )

    lines = card_lines(card, width=width, now=NOW + timedelta(seconds=90))

    for line in lines:
        text = "".join(part.text for part in line)
        assert cell_len(text) == width
        assert sum(map(get_character_cell_size, text)) == width
        assert text.isprintable() or not text.isascii()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(titles=st.lists(any_title, min_size=1, max_size=4))
async def test_every_row_of_a_column_has_the_width_of_the_column_and_shows_titles_letter_for_letter(
    titles: list[str],
) -> None:
    app = ColumnApp(make_page([make_card(number, title) for number, title in enumerate(titles)]))
    async with app.run_test(size=(70, 20)):
        for y in range(app.column.size.height):
            strip = app.column.render_line(y)
            assert strip.cell_length == app.column.size.width
            assert cell_len(strip.text) == app.column.size.width
            assert strip.text[0] in "╭│╰"
            assert strip.text[-1] in "╮│╯"
        text = "\n".join(app.lines)
        for title in titles:
            assert cut(even_line(title, max_characters=20), 20).rstrip("… ")[:20] in text


@given(text=any_title, width=st.integers(0, 80))
def test_padding_gives_the_width_and_cutting_never_more(text: str, width: int) -> None:
    line = even_line(text)

    assert cells(pad(line, width)) == width
    assert cells(cut(line, width)) <= width
    assert cell_len(line) == cells(line)


def test_a_card_says_its_state_by_glyph_and_word() -> None:
    started = make_card(38)._replace(started_at=NOW - timedelta(seconds=252), execution_id=ExecutionId("e"))
    running = started._replace(state=LiveState.RUNNING, last_line="Running pytest", cost_nano=380_000_000)
    failed = started._replace(state=LiveState.FAILED, exit_code=1, error="no such file", ended_at=NOW)
    waiting = make_card(41)._replace(waits_for=(38,))

    text = ["".join(part.text for part in line).rstrip() for line in card_lines(running, width=40, now=NOW)]
    failed_text = ["".join(part.text for part in line).rstrip() for line in card_lines(failed, width=40, now=NOW)]
    waiting_text = ["".join(part.text for part in line).rstrip() for line in card_lines(waiting, width=40, now=NOW)]

    assert text == ["#38 P3 title 38", "sh ● running 4m12s                 $0.38", "› Running pytest"]
    assert failed_text[1:] == ["sh ✗ failed (exit 1) 4m12s", "no such file"]
    assert waiting_text[1:] == ["sh · after #38"]


@pytest.mark.parametrize("labels", [(), ("ui",), ("auth", "backend", "urgent", "needs-a-review")])
@pytest.mark.parametrize("state", [LiveState.RUNNING, LiveState.DONE, LiveState.FAILED, LiveState.NEEDS_YOU])
@pytest.mark.parametrize("width", [18, 24, 30, 40, 60])
def test_a_card_shows_what_it_cost_whatever_else_it_has(labels: tuple[str, ...], state: LiveState, width: int) -> None:
    card = make_card(38)._replace(
        state=state, started_at=NOW - timedelta(seconds=252), subtask_count=3, labels=labels, tokens_used=12_000
    )
    spent = {
        "$1.80": card._replace(cost_nano=1_800_000_000),
        "<$0.01": card._replace(cost_nano=1),
        "12 K tokens": card._replace(unpriced_runs=1),
    }

    for text, one in spent.items():
        lines = ["".join(part.text for part in line) for line in card_lines(one, width=width, now=NOW)]
        assert [line for line in lines if line.endswith(f" {text}")]
        assert len(lines) <= 4


def test_a_blocked_card_says_what_it_waits_for() -> None:
    card = make_card(40, status=TaskStatus.BLOCKED)._replace(waits_for=(38, 39))

    lines = card_lines(card, width=40, now=NOW)

    assert "".join(part.text for part in lines[2]).rstrip() == "waits for #38, #39"


@pytest.mark.parametrize(
    ("width", "lines"),
    [(40, ["sh ◌ queued · after #38 (not queued)"]), (21, ["sh ◌ after #38", "#38 (not queued)"])],
)
def test_a_queued_card_says_that_what_it_waits_for_is_not_queued(width: int, lines: list[str]) -> None:
    card = make_card(40, status=TaskStatus.BLOCKED)._replace(
        state=LiveState.QUEUED, waits_for=(38,), awaited_states={38: AwaitedState.NOT_QUEUED}
    )

    shown = ["".join(part.text for part in line).rstrip() for line in card_lines(card, width=width, now=NOW)]

    assert shown[1:] == lines


async def test_the_selection_stays_on_its_task_when_cards_come_above_it() -> None:
    app = ColumnApp(make_page([make_card(number) for number in range(10)]))
    async with app.run_test(size=(40, 12)) as pilot:
        app.column.select(4)
        app.column.page = make_page([make_card(number) for number in (90, 91, *range(10))])
        await pilot.pause()

        selected = app.column.selected
        assert selected is not None
        assert selected.number == 4
        assert app.column.cursor == 6


async def test_a_column_where_nobody_was_shows_the_newest_card_with_its_title_on_top() -> None:
    app = ColumnApp(make_page([make_card(0)]))
    async with app.run_test(size=(40, 12)) as pilot:
        app.screen.set_focus(None)
        app.column._view.is_chosen = False
        for count in range(1, 9):
            app.column.page = make_page([make_card(number) for number in reversed(range(count))])
        await pilot.pause()

        assert "#7 " in app.lines[1]
        assert app.column.cursor == 0


async def test_the_card_on_top_is_whole_when_the_selection_goes_down() -> None:
    app = ColumnApp(make_page([make_card(number) for number in range(10)]))
    async with app.run_test(size=(40, 12)) as pilot:
        app.column.select(9)
        await pilot.pause()

        assert "#7 " in app.lines[1]
        assert "#9 " in app.lines[7]


async def test_the_selection_stays_at_its_index_when_its_card_goes() -> None:
    app = ColumnApp(make_page([make_card(number) for number in range(10)]))
    async with app.run_test(size=(40, 12)) as pilot:
        app.column.select(4)
        app.column.page = make_page([make_card(number) for number in range(10) if number != 4])
        await pilot.pause()

        selected = app.column.selected
        assert selected is not None
        assert selected.number == 5
        assert app.column.cursor == 4


async def test_a_refresh_keeps_a_view_that_was_scrolled_by_the_wheel() -> None:
    app = ColumnApp(make_page([make_card(number) for number in range(50)]))
    async with app.run_test(size=(40, 12)) as pilot:
        for _ in range(10):
            await pilot._post_mouse_events([_scroll_down()], widget=app.column)
        scrolled = app.lines
        app.column.page = make_page([make_card(number) for number in range(50)] + [make_card(70)])
        await pilot.pause()

        assert "#0 " not in "\n".join(scrolled)
        assert app.lines[1:-1] == scrolled[1:-1]


def _scroll_down() -> type:
    from textual.events import MouseScrollDown

    return MouseScrollDown


async def test_the_last_of_a_hundred_thousand_cards_is_reached_by_reading_its_window_alone() -> None:
    app = ColumnApp(window(0, 60, 100_000))
    async with app.run_test(size=(40, 20)) as pilot:
        app.column.select(99_999)
        await pilot.pause()
        request = app.column.request()
        app.column.page = window(request.offset, min(request.offset + request.limit, 100_000), 100_000)
        await pilot.pause()

        selected = app.column.selected
        assert "page needed" in app.messages
        assert request.limit < 200
        assert selected is not None
        assert selected.number == 99_999
        assert "#99999 " in app.lines[-4] + app.lines[-3]


async def test_a_window_that_covers_the_view_asks_for_nothing() -> None:
    app = ColumnApp(window(0, 60, 100_000))
    async with app.run_test(size=(40, 20)) as pilot:
        app.column.select(3)
        await pilot.pause()

        assert "page needed" not in app.messages


async def test_only_the_rows_that_changed_are_painted_again() -> None:
    app = ColumnApp(make_page([make_card(1), make_card(2)]))
    async with app.run_test(size=(40, 20)) as pilot:
        await pilot.pause()
        painted: list[int] = []
        app.column.painted = painted
        app.column.page = make_page([make_card(1), make_card(2, "another title")])
        await pilot.pause()
        await pilot.pause()

        assert painted == [4]


async def test_an_equal_page_paints_nothing() -> None:
    app = ColumnApp(make_page([make_card(1), make_card(2)]))
    async with app.run_test(size=(40, 20)) as pilot:
        await pilot.pause()
        painted: list[int] = []
        app.column.painted = painted
        app.column.page = make_page([make_card(1), make_card(2)])
        await pilot.pause()
        app.column.page = make_page([make_card(1), make_card(3)])
        await pilot.pause()
        await pilot.pause()

        assert painted == [4]


async def test_a_double_click_opens_and_a_click_on_the_heading_folds() -> None:
    app = ColumnApp(make_page([make_card(1), make_card(2)]))
    async with app.run_test(size=(40, 20)) as pilot:
        await pilot.click(app.column, offset=(5, 4), times=2)
        await pilot.click(app.column, offset=(5, 0))

        assert "opened task-2" in app.messages
        assert app.messages[-1] == "fold"


async def test_a_marked_card_carries_a_star_and_the_selected_one_a_bar() -> None:
    app = ColumnApp(make_page([make_card(1), make_card(2)]))
    async with app.run_test(size=(40, 20)) as pilot:
        app.column.marked = frozenset({TaskId("task-2")})
        await pilot.pause()

        assert app.lines[1][1] == "▌"
        assert app.lines[4][1] == "*"


async def test_a_folded_column_is_a_strip_with_count_and_name() -> None:
    app = ColumnApp(window(0, 60, 100_000))
    app.column.is_folded = True
    async with app.run_test(size=(40, 20)) as pilot:
        await pilot.pause()

        assert app.column.size.width == 5
        assert [line[1:4].strip() for line in app.lines[1:8]] == ["99+", "", "T", "o", "d", "o", ""]


async def test_an_empty_column_says_its_hint() -> None:
    app = ColumnApp(make_page([]))
    async with app.run_test(size=(30, 10)) as pilot:
        app.column.hint = "No tasks [/] yet.\n\nn makes the first one."
        await pilot.pause()

        assert app.lines[2] == "│ No tasks [/] yet." + " " * 10 + "│"
        assert "n makes the first one." in app.lines[4]


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (3, 1), (5, 3), (300, 80)])
async def test_a_column_of_any_size_is_drawn(size: tuple[int, int]) -> None:
    app = ColumnApp(make_page([make_card(number) for number in range(10)]))
    async with app.run_test(size=size) as pilot:
        app.column.move(1)
        await pilot.pause()

        assert [cell_len(line) for line in app.lines] == [size[0]] * size[1]
