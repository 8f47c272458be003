from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.selection import Selection

from agentmon.logs.log_file import LogFile
from agentmon.logs.pattern import LogPattern
from agentmon.logs.search import Direction, find_next
from agentmon.widgets.log_rows import RowReader
from agentmon.widgets.log_scroll_bar import LogScrollBar
from agentmon.widgets.log_view import LogView
from tests.call_counts import calls_of

if TYPE_CHECKING:
    from pathlib import Path

    from textual.geometry import Region
    from textual.pilot import Pilot
    from textual.strip import Strip


class LogApp(App[None]):
    CSS = "LogView { height: 1fr; }"

    def __init__(self, path: Path | None, *, is_tail: bool = False) -> None:
        super().__init__()
        self._path = path
        self._is_tail = is_tail
        self.following_changes: list[bool] = []

    def compose(self) -> ComposeResult:
        yield LogView(self._path, is_tail=self._is_tail)

    def on_log_view_following_changed(self, message: LogView.FollowingChanged) -> None:
        self.following_changes.append(message.following)

    @property
    def view(self) -> LogView:
        return self.query_one(LogView)


class PaintCountingView(LogView):
    paint_count = 0

    def render_lines(self, crop: Region) -> list[Strip]:
        self.paint_count += 1
        return super().render_lines(crop)


class PaintCountingApp(LogApp):
    def compose(self) -> ComposeResult:
        yield PaintCountingView(self._path)


def numbered(count: int, first: int = 0) -> bytes:
    return b"".join(b"line %d\n" % number for number in range(first, first + count))


def screen_rows(app: App[None]) -> list[str]:
    """Return what the compositor paints, row by row."""
    return [strip.text for strip in app.screen._compositor.render_strips()]


def shown(app: LogApp) -> list[str]:
    return [row.rstrip("┃│ ") for row in screen_rows(app)]


async def poll(app: LogApp, pilot: Pilot[None]) -> None:
    app.view.poll()
    await pilot.pause()


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    return tmp_path / "output.log"


async def test_a_gigabyte_opens_at_its_tail(log_path: Path) -> None:
    write(log_path, b"first line\n")
    os.truncate(log_path, 2**30)
    append(log_path, b"\n" + numbered(100))
    app = LogApp(log_path)

    async with app.run_test(size=(60, 10)):
        calls = calls_of(lambda: app.view.shown_text)

        assert shown(app) == [f"line {number}" for number in range(90, 100)]
        assert app.view.shown_text.split("\n") == shown(app)
        assert calls < 10_000


async def test_the_tail_is_followed_until_a_person_scrolls_up_and_again_at_the_end(log_path: Path) -> None:
    write(log_path, numbered(50))
    app = LogApp(log_path)
    async with app.run_test(size=(40, 5)) as pilot:
        append(log_path, numbered(10, 50))
        await poll(app, pilot)
        assert shown(app)[-1] == "line 59"

        app.view.action_scroll_lines(-2)
        await pilot.pause()
        assert shown(app) == [f"line {number}" for number in range(53, 58)]
        append(log_path, numbered(10, 60))
        await poll(app, pilot)
        assert shown(app) == [f"line {number}" for number in range(53, 58)]
        assert not app.view.following

        app.view.action_end()
        await pilot.pause()
        assert shown(app)[-1] == "line 69"
        assert app.following_changes == [False, True]


async def test_scrolling_down_to_the_end_follows_again(log_path: Path) -> None:
    write(log_path, numbered(50))
    app = LogApp(log_path)
    async with app.run_test(size=(40, 5)) as pilot:
        app.view.action_page_up()
        await pilot.pause()
        assert shown(app)[-1] == "line 45"
        app.view.action_page_down()
        await pilot.pause()

        assert shown(app)[-1] == "line 49"
        assert app.view.following


async def test_home_pages_and_the_wheel_move_through_the_log(log_path: Path) -> None:
    write(log_path, numbered(50))
    app = LogApp(log_path)
    async with app.run_test(size=(40, 5)) as pilot:
        app.view.action_home()
        await pilot.pause()
        assert shown(app)[0] == "line 0"
        app.view.action_page_down()
        await pilot.pause()
        assert shown(app)[0] == "line 4"
        await pilot._post_mouse_events([events.MouseScrollDown], LogView)
        await pilot.pause()

        assert shown(app)[0] == "line 7"
        await poll(app, pilot)
        assert app.view.first_line_number == 8


async def test_a_file_that_a_capped_one_replaces_is_read_again(log_path: Path) -> None:
    write(log_path, numbered(5000))
    app = LogApp(log_path)
    async with app.run_test(size=(60, 5)) as pilot:
        capped = log_path.with_name("capped")
        write(capped, numbered(20) + b"\n[agentmon: 12,345 bytes left out here]\n" + numbered(3, 4997))
        capped.rename(log_path)
        await poll(app, pilot)

        assert shown(app) == ["", "[agentmon: 12,345 bytes left out here]", "line 4997", "line 4998", "line 4999"]
        assert app.screen.get_style_at(3, 1).color != app.screen.get_style_at(3, 2).color


async def test_a_replaced_file_keeps_a_reader_inside_it(log_path: Path) -> None:
    write(log_path, numbered(5000))
    app = LogApp(log_path)
    async with app.run_test(size=(60, 5)) as pilot:
        app.view.go_to_offset(40_000)
        await pilot.pause()
        short = log_path.with_name("short")
        write(short, numbered(20))
        short.rename(log_path)
        await poll(app, pilot)

        assert shown(app) == [f"line {number}" for number in range(15, 20)]
        assert not app.view.following


async def test_a_missing_log_says_so_and_appears_later(log_path: Path) -> None:
    app = LogApp(log_path)
    async with app.run_test(size=(40, 5)) as pilot:
        assert shown(app)[0] == "No output yet."
        app.view.placeholder = "Waiting for [/] output…"
        await pilot.pause()
        assert shown(app)[0] == "Waiting for [/] output…"

        write(log_path, b"here it is\n")
        await poll(app, pilot)

        assert shown(app)[0] == "here it is"


async def test_a_path_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    app = LogApp(tmp_path)
    async with app.run_test(size=(60, 5)):
        assert shown(app)[0] == "The log cannot be read: it is not a file."


async def test_the_background_follows_the_theme(log_path: Path) -> None:
    write(log_path, b"plain \x1b[31mred\x1b[0m\n")
    app = LogApp(log_path)
    async with app.run_test(size=(40, 5)) as pilot:
        await pilot.pause()
        dark = {app.screen.get_style_at(*place).bgcolor for place in ((1, 0), (7, 0), (20, 0), (1, 3), (39, 0))}
        app.theme = "textual-light"
        await pilot.pause()
        light = {app.screen.get_style_at(*place).bgcolor for place in ((1, 0), (7, 0), (20, 0), (1, 3), (39, 0))}

        assert len(dark) == len(light) == 1
        assert None not in dark
        assert dark != light


async def test_another_path_is_shown_at_its_tail(log_path: Path) -> None:
    write(log_path, numbered(50))
    other = log_path.with_name("other.log")
    write(other, b"other\n")
    app = LogApp(log_path)
    async with app.run_test(size=(40, 5)) as pilot:
        app.view.action_home()
        app.view.path = other
        await pilot.pause()
        assert shown(app)[0] == "other"
        assert app.view.following

        app.view.path = None
        await pilot.pause()
        assert shown(app)[0] == "No output yet."


async def test_a_path_set_between_mounting_and_the_first_frame_counts(log_path: Path) -> None:
    write(log_path, b"here\n")
    app = LogApp(None)
    async with app.run_test(size=(40, 5)) as pilot:
        await app.view.remove()
        view = LogView()
        app.screen.mount(view)
        view.path = log_path
        await pilot.pause()

        assert shown(app)[0] == "here"


async def test_progress_on_one_line_shows_its_last_state(log_path: Path) -> None:
    write(log_path, b"start\n10%\r20%")
    app = LogApp(log_path)
    async with app.run_test(size=(40, 5)) as pilot:
        assert shown(app)[:2] == ["start", "20%"]

        append(log_path, b"\r30%\r\x1b[K40%")
        await poll(app, pilot)

        assert shown(app)[:2] == ["start", "40%"]


async def test_a_huge_line_is_wrapped_scrolled_and_reached_everywhere(log_path: Path) -> None:
    write(log_path, b"x" * 3_000_000 + b"MIDDLE" + b"y" * 17_000_000 + b"END\nlast\n")
    app = LogApp(log_path)
    async with app.run_test(size=(40, 6)) as pilot:
        app.view.action_toggle_wrap()
        await pilot.pause()
        assert shown(app)[-1] == "last"
        assert shown(app)[-2].endswith("END")
        app.view.action_page_up()
        await pilot.pause()
        assert set(shown(app)[0]) == {"y"}

        app.view.highlight(LogPattern("MIDDLE"))
        app.view.go_to_offset(3_000_001)
        await pilot.pause()

        assert "MIDDLE" in "".join(shown(app))
        app.view.action_home()
        await pilot.pause()
        assert shown(app)[0] == "x" * 39


async def test_wrapped_rows_keep_every_character(log_path: Path) -> None:
    text = "ab漢字" * 20
    write(log_path, text.encode() + b"\n")
    app = LogApp(log_path)
    async with app.run_test(size=(20, 12)) as pilot:
        app.view.wrap = True
        await pilot.pause()

        assert "".join(row.rstrip() for row in shown(app)) == text


async def test_long_lines_scroll_sideways_and_back(log_path: Path) -> None:
    write(log_path, b"0123456789" * 6 + b"\nshort\n")
    app = LogApp(log_path)
    async with app.run_test(size=(21, 3)) as pilot:
        app.view.action_scroll_right()
        await pilot.pause()
        assert shown(app)[0] == "89012345678901234567"
        for _ in range(10):
            app.view.action_scroll_right()
        await pilot.pause()
        assert shown(app)[0] == "01234567890123456789"
        for _ in range(10):
            app.view.action_scroll_left()
        await pilot.pause()
        assert shown(app)[:2] == ["01234567890123456789", "short"]


async def test_resizing_keeps_the_tail_and_the_top(log_path: Path) -> None:
    write(log_path, numbered(100))
    app = LogApp(log_path)
    async with app.run_test(size=(40, 5)) as pilot:
        await pilot.resize_terminal(60, 9)
        await pilot.pause()
        assert shown(app) == [f"line {number}" for number in range(91, 100)]
        app.view.action_home()
        await pilot.resize_terminal(30, 4)
        await pilot.pause()

        assert shown(app) == [f"line {number}" for number in range(4)]


async def test_a_search_goes_to_its_match_and_marks_it(log_path: Path) -> None:
    write(log_path, numbered(100) + b"\x1b[31mfound\x1b[0m here\n" + numbered(100, 100))
    app = LogApp(log_path)
    async with app.run_test(size=(40, 9)) as pilot:
        pattern = LogPattern("found here")
        app.view.highlight(pattern)
        app.view.action_home()
        with LogFile(log_path) as log:
            steps = find_next(log, pattern, origin=app.view.search_origin, direction=Direction.FORWARDS)
            match = next(step.matches[0] for step in steps if step.matches)
        app.view.go_to_offset(match)
        await pilot.pause()

        assert shown(app)[3] == "found here"
        assert app.view.search_origin == match
        assert app.screen.get_style_at(2, 3).bgcolor != app.screen.get_style_at(2, 2).bgcolor


async def test_a_line_is_reached_by_its_number(log_path: Path) -> None:
    write(log_path, numbered(300_000))
    app = LogApp(log_path)
    async with app.run_test(size=(40, 5)) as pilot:
        app.view.go_to_line(200_001)
        deadline = time.monotonic() + 20
        while app.view.following and time.monotonic() < deadline:
            await pilot.pause()

        assert "line 200000" in shown(app)
        while app.view.line_count is None and time.monotonic() < deadline:
            await poll(app, pilot)
        assert app.view.line_count == 300_000
        assert app.view.first_line_number == 200_000


async def test_selected_text_is_copied_from_the_file_beyond_the_view(log_path: Path) -> None:
    content = numbered(100)
    write(log_path, content)
    app = LogApp(log_path)
    async with app.run_test(size=(40, 5)) as pilot:
        start, end = content.index(b"line 20\n"), content.index(b"line 22\n")
        app.screen.selections = {app.view: Selection(Offset(5, start), Offset(4, end))}
        await pilot.pause()

        assert app.screen.get_selected_text() == "20\nline 21\nline"


async def test_a_drag_with_the_mouse_selects_what_is_under_it(log_path: Path) -> None:
    write(log_path, numbered(100))
    app = LogApp(log_path)
    async with app.run_test(size=(40, 5)) as pilot:
        await pilot.mouse_down(LogView, offset=(5, 1))
        await pilot.hover(LogView, offset=(4, 2))
        await pilot.mouse_up(LogView, offset=(4, 2))
        await pilot.pause()

        assert (app.screen.get_selected_text() or "").startswith("96\nline")


async def test_the_scroll_bar_shows_and_takes_places(log_path: Path) -> None:
    write(log_path, numbered(1000))
    app = LogApp(log_path)
    async with app.run_test(size=(40, 10)) as pilot:
        assert [row[-1] for row in screen_rows(app)] == ["│"] * 9 + ["┃"]

        await pilot.mouse_down(LogScrollBar, offset=(0, 0))
        await pilot.mouse_up(LogScrollBar, offset=(0, 0))
        await pilot.pause()

        assert shown(app)[0] == "line 0"
        assert screen_rows(app)[0][-1] == "┃"
        await pilot.click(LogScrollBar, offset=(0, 9))
        await pilot.pause()
        assert app.view.following


async def test_a_tail_has_no_bar_and_does_not_scroll(log_path: Path) -> None:
    write(log_path, numbered(100))
    app = LogApp(log_path, is_tail=True)
    async with app.run_test(size=(40, 5)) as pilot:
        app.view.action_page_up()
        app.view.action_home()
        app.view.action_toggle_follow()
        await pilot.pause()

        assert shown(app)[-1] == "line 99"
        assert not app.query(LogScrollBar)
        assert not app.view.can_focus


async def test_nothing_is_painted_when_nothing_changed(log_path: Path) -> None:
    write(log_path, numbered(100))
    app = PaintCountingApp(log_path)
    async with app.run_test(size=(40, 5)) as pilot:
        view = app.query_one(PaintCountingView)
        await pilot.pause()
        view.paint_count = 0
        await poll(app, pilot)
        assert view.paint_count == 0

        append(log_path, b"more\n")
        await poll(app, pilot)
        assert view.paint_count > 0

        view.action_home()
        await pilot.pause()
        view.paint_count = 0
        append(log_path, b"more\n")
        await poll(app, pilot)
        assert view.paint_count == 0


async def test_markup_and_escape_sequences_do_nothing(log_path: Path) -> None:
    write(log_path, b"[bold]x[/] [/foo]\n\x1b]0;title\x07\x1b[2J\x1b[10;10Hy\x9b\x85\n")
    app = LogApp(log_path)
    async with app.run_test(size=(40, 5)):
        assert shown(app)[:2] == ["[bold]x[/] [/foo]", "y��"]


@pytest.mark.proof
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(min_size=1, max_size=80), wrap=st.booleans(), left=st.sampled_from([0, 8]))
async def test_any_text_leaves_the_border_straight(log_path: Path, text: str, wrap: bool, left: int) -> None:
    write(log_path, (text * 3 + "\n").encode("utf-8", "surrogatepass") * 50)
    app = LogApp(log_path)
    async with app.run_test(size=(24, 6)) as pilot:
        app.view.wrap = wrap
        if left:
            app.view.action_scroll_right()
        await pilot.pause()

        rows = screen_rows(app)
        assert all(cell_len(row) == 24 for row in rows)
        assert all(row[-1] in "│┃" for row in rows)


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(st.text(alphabet="ab漢e\u0301\t", max_size=60), min_size=1, max_size=20),
    columns=st.integers(1, 30),
    wraps=st.booleans(),
)
def test_rows_are_the_same_forwards_and_backwards(
    lines: list[str], columns: int, wraps: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_bytes("\n".join(lines).encode() + b"\n")
    with LogFile(path) as log:
        reader = RowReader(log)
        reader.columns, reader.wraps = columns, wraps
        rows = reader.backwards(None, 10**6)

        assert reader.forwards(rows[0].position, 10**6) == rows
        for index, row in enumerate(rows):
            assert reader.backwards(row.position, 3) == rows[max(0, index - 3) : index]
            assert reader.forwards(row.position, 3) == rows[index : index + 3]
        assert all(row.line.cell(row.end) - row.line.cell(row.start) <= max(2, columns) for row in rows)


def styles_of(app: LogApp, words: str) -> list[Style]:
    """Return the styles of the segments that hold the words, as they are painted."""
    strips = app.screen._compositor.render_strips()
    return [segment.style or Style.null() for strip in strips for segment in strip if segment.text == words]


async def test_a_level_stands_out_unless_the_log_has_colours_of_its_own(log_path: Path) -> None:
    write(log_path, b"12:00 ERROR one\n12:01 WARNING two\n\x1b[32mok\x1b[0m DEBUG three\n")
    app = LogApp(log_path)
    async with app.run_test(size=(60, 5)):
        (error,), (warning,) = styles_of(app, "ERROR"), styles_of(app, "WARNING")
        assert error.color != warning.color
        assert not styles_of(app, "DEBUG")


async def test_a_web_address_is_a_link_that_a_click_opens(log_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = b"\x1b]8;;https://example.org/hidden\x07"
    lines = (
        b"see https://example.org/a?b=1.",
        hidden + b"here\x1b]8;;\x07",
        hidden + b"https://shown.example/\x1b]8;;\x07",
    )
    write(log_path, b"\n".join(lines))
    monkeypatch.setenv("DISPLAY", ":9")
    app = LogApp(log_path)
    opened: list[str] = []
    monkeypatch.setattr(app, "open_url", opened.append)
    async with app.run_test(size=(60, 5)) as pilot:
        (style,) = styles_of(app, "https://example.org/a?b=1")
        assert style.link == "https://example.org/a?b=1"

        await pilot.click(LogView, offset=Offset(1, 0))
        assert not opened
        await pilot.click(LogView, offset=Offset(6, 0))
        assert opened == ["https://example.org/a?b=1"]

        await pilot.click(LogView, offset=Offset(1, 1))
        await pilot.click(LogView, offset=Offset(1, 2))
        # A text that is an address leads where it says.
        assert opened[1:] == ["https://example.org/hidden", "https://shown.example/"]


async def test_a_web_address_is_copied_where_no_window_could_show_it(
    log_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(log_path, b"see https://example.org/a?b=1.\n")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr("agentmon.widgets.log_view.sys.platform", "linux")
    app = LogApp(log_path)
    async with app.run_test(size=(60, 5)) as pilot:
        await pilot.click(LogView, offset=Offset(6, 0))
        assert app.clipboard == "https://example.org/a?b=1"


async def test_a_filter_holds_while_the_log_grows_scrolls_and_is_replaced(log_path: Path) -> None:
    write(log_path, numbered(3000))
    app = LogApp(log_path)
    async with app.run_test(size=(40, 4)) as pilot:
        app.view.show_only(LogPattern("0$"))
        await pilot.pause()
        assert shown(app) == ["line 2960", "line 2970", "line 2980", "line 2990"]

        app.view.action_scroll_lines(-2)
        await pilot.pause()
        assert shown(app) == ["line 2940", "line 2950", "line 2960", "line 2970"]
        append(log_path, numbered(20, 3000))
        await poll(app, pilot)
        assert shown(app)[0] == "line 2940"
        app.view.action_page_down()
        app.view.action_page_down()
        await pilot.pause()
        assert app.view.following
        assert shown(app) == ["line 2980", "line 2990", "line 3000", "line 3010"]
        app.view.action_home()
        await pilot.pause()
        assert shown(app)[0] == "line 0"

        write(log_path, numbered(15))
        await poll(app, pilot)
        assert shown(app)[:2] == ["line 0", "line 10"]
        app.view.show_only(None)
        await pilot.pause()
        assert app.view.filtered is None
        assert "line 1" in shown(app)


@pytest.mark.parametrize("is_tail", [False, True])
async def test_a_megabyte_of_progress_is_one_row_with_its_last_state(log_path: Path, is_tail: bool) -> None:
    states = b"".join(b"\r\x1b[32m%d of 90000\x1b[0m" % count for count in range(60_000))
    write(log_path, b"before\n" + states)
    app = LogApp(log_path, is_tail=is_tail)
    async with app.run_test(size=(60, 4)) as pilot:
        assert shown(app) == ["before", "59999 of 90000", "", ""]

        append(log_path, b"\r90000 of 90000\r\nafter\n")
        await poll(app, pilot)
        assert shown(app) == ["before", "90000 of 90000", "after", ""]
        if not is_tail:
            app.view.go_to_offset(700_000)
            app.view.wrap = True
            await pilot.pause()
            assert shown(app)[:3] == ["before", "90000 of 90000", "after"]
