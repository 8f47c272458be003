from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from textual.events import Key, Resize
from textual.geometry import Size

from agentmon.domain.clock import FakeClock
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import TaskDraft
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.screens.help import HelpScreen
from agentmon.screens.tasks.task_editor import EditedTask, TaskEditor
from agentmon.services.actors import USER_ACTOR
from agentmon.widgets.board_column import BoardColumn
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.status_line import StatusBar
from tests.idle_worker import idle_worker
from tests.screen_stage import screen_text
from tests.screens.boards import Place, make_place, open_board
from tests.stored_runs import Stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from agentmon.domain.board import BoardPage, Card, ColumnRequest
    from agentmon.domain.tasks import Workspace

TODO, IN_PROGRESS, BLOCKED, REVIEW, DONE, CANCELLED = TaskStatus


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = make_place(tmp_path)
    with idle_worker(place.paths):
        yield place


async def test_the_board_shows_the_tasks_of_its_workspace_letter_for_letter(place: Place) -> None:
    await place.fill("fix [/] bug", "see [b + x", "regex [a-z]+ [/foo]")

    async with open_board(place) as board:
        assert board.shown(TODO) == ["fix [/] bug", "see [b + x", "regex [a-z]+ [/foo]"]
        assert "fix [/] bug" in board.column(TODO).render_line(1).text


async def test_an_empty_board_says_what_to_do(place: Place) -> None:
    async with open_board(place) as board:
        text = "\n".join(board.column(TODO).render_line(y).text for y in range(12))

        assert "n makes the first one." in text
        assert "agentmon demo" in text


async def test_the_keys_move_between_cards_and_columns(place: Place) -> None:
    await place.fill("a", "b", "c")
    await place.fill("d", status=DONE)

    async with open_board(place) as board:
        places = []
        for key in ("j", "down", "k", "G", "g", "l", "l", "l", "right", "h"):
            await board.press(key)
            assert isinstance(board.app.focused, BoardColumn)
            places.append((board.app.focused.status.label, board.selected))

    assert places == [
        ("Todo", "b"),
        ("Todo", "c"),
        ("Todo", "b"),
        ("Todo", "c"),
        ("Todo", "a"),
        ("In progress", None),
        ("Blocked", None),
        ("Review", None),
        ("Done", "d"),
        ("Review", None),
    ]


async def test_moving_a_card_takes_the_selection_along_and_is_stored(place: Place) -> None:
    await place.fill("a", "b")

    async with open_board(place) as board:
        await board.press("j", "L")
        shown_at_once = board.shown(IN_PROGRESS)
        selected_at_once = board.selected
        await board.settled()

        assert shown_at_once == ["b"]
        assert selected_at_once == "b"
        assert board.selected == "b"
        assert board.shown(TODO) == ["a"]
    assert await place.titles(IN_PROGRESS) == ["b"]


async def test_moves_in_quick_succession_are_all_stored_in_their_order(place: Place) -> None:
    await place.fill("a")

    async with open_board(place) as board:
        await board.press("L", "L", "L", "H")
        await board.until(lambda: board.shown(BLOCKED) == ["a"])

        assert board.selected == "a"
    assert await place.titles(BLOCKED) == ["a"]


async def test_a_page_that_was_read_while_a_move_was_written_does_not_take_the_move_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.fill("a")
    shown: list[Card] = []
    read, go_on = asyncio.Event(), asyncio.Event()

    async with open_board(place) as board:
        services = await board.screen.services()
        read_page = services.board.page

        async def held_page(workspace: Workspace, requests: Sequence[ColumnRequest]) -> BoardPage:
            page = await read_page(workspace, requests)
            read.set()
            await go_on.wait()
            return page

        monkeypatch.setattr(services.board, "page", held_page)
        async with board.screen._changes._writes:
            await board.press("L")
            board.screen.request_refresh()
            await asyncio.wait_for(read.wait(), 20)
        await board.until(lambda: not board.screen.is_writing, "the move is written")
        board.screen.watch(board.column(TODO), "page", lambda page: shown.extend(page.cards), init=False)
        go_on.set()
        await board.settled()

        assert shown == []
        assert board.shown(IN_PROGRESS) == ["a"]


async def test_an_illegal_move_is_told_and_the_card_stays(place: Place) -> None:
    await place.fill("a", status=DONE)

    async with open_board(place) as board:
        await board.press("L")
        await board.settled()

        await board.until(lambda: board.toasts == ["a task cannot go from done to cancelled"], "it is told")
        assert board.shown(DONE) == ["a"]


async def test_a_card_is_shifted_inside_its_column(place: Place) -> None:
    await place.fill("a", "b", "c")

    async with open_board(place) as board:
        await board.press("J")
        await board.settled()

        assert board.shown(TODO) == ["b", "a", "c"]
        assert board.selected == "a"
        await board.press("K")
        await board.settled()
        assert board.shown(TODO) == ["a", "b", "c"]


async def test_a_delete_is_taken_back_by_ctrl_z(place: Place) -> None:
    await place.fill("a", "b", "c")

    async with open_board(place) as board:
        await board.press("j", "D")
        await board.settled()
        after_delete = board.shown(TODO)
        await board.press("ctrl+z")
        await board.settled()

        assert after_delete == ["a", "c"]
        assert board.shown(TODO) == ["a", "b", "c"]
        assert board.selected == "b"
        await board.until(
            lambda: board.toasts == ["Deleted #2 · ctrl+z brings it back", "Undid the deletion of #2"], "it is told"
        )


async def test_moves_are_taken_back_to_where_the_card_was(place: Place) -> None:
    await place.fill("a", "b", "c")

    async with open_board(place) as board:
        await board.press("j", "L", "L")
        await board.settled()
        await board.press("ctrl+z")
        await board.settled()
        after_first = board.shown(IN_PROGRESS)
        await board.press("ctrl+z", "ctrl+z")
        await board.settled()

        assert after_first == ["b"]
        assert board.shown(TODO) == ["a", "b", "c"]
        await board.told("nothing to undo")


async def test_an_action_takes_all_marked_cards(place: Place) -> None:
    await place.fill("a", "b", "c")

    async with open_board(place) as board:
        await board.press("space", "space", "L")
        await board.settled()
        moved = board.shown(IN_PROGRESS)
        await board.press("ctrl+z")
        await board.settled()

        assert sorted(moved) == ["a", "b"]
        assert board.shown(TODO) == ["a", "b", "c"]
        assert not board.column(TODO).marked


async def test_escape_clears_the_marks(place: Place) -> None:
    await place.fill("a", "b")

    async with open_board(place) as board:
        await board.press("space")
        marked = board.column(TODO).marked
        assert "project · 1 marked" in screen_text(board.app)
        await board.press("escape")

        assert len(marked) == 1
        assert not board.column(TODO).marked
        assert "marked" not in screen_text(board.app)


async def test_the_filter_narrows_as_one_types_and_escape_brings_all_back(place: Place) -> None:
    await place.fill("login page", "logout", "rename")

    async with open_board(place) as board:
        await board.press("slash", "l", "o", "g", "i")
        await board.until(lambda: board.shown(TODO) == ["login page"])
        await board.press("escape")
        await board.until(lambda: len(board.shown(TODO)) == 3)

        assert board.selected == "login page"


async def test_a_filter_is_kept_by_enter_and_the_keys_work_again(place: Place) -> None:
    await place.fill("login page", "logout", "rename")

    async with open_board(place) as board:
        await board.press("slash", "l", "o", "g", "enter")
        await board.until(lambda: len(board.shown(TODO)) == 2)
        await board.press("j")

        assert board.selected == "logout"


async def test_a_change_from_outside_shows_by_itself(place: Place) -> None:
    await place.fill("a")

    async with open_board(place) as board:
        await place.fill("from elsewhere")

        await board.until(lambda: "from elsewhere" in board.shown(TODO))
        assert board.selected == "a"


async def test_the_selection_goes_along_with_its_card_when_somebody_else_moves_it(place: Place) -> None:
    tasks = await place.fill("a", "b", "c")

    async with open_board(place) as board:
        await board.press("j")
        async with place.services() as (services, _workspace):
            await services.tasks.move(tasks[1].id, DONE, actor=USER_ACTOR)

        await board.until(lambda: board.shown(DONE) == ["b"] and board.app.focused is board.column(DONE), "along")
        assert board.selected == "b"


async def test_what_is_selected_otherwise_is_not_left_for_a_card_that_was_followed(place: Place) -> None:
    tasks = await place.fill("a", "b", "c")

    async with open_board(place) as board:
        await board.press("j")
        async with place.services() as (services, _workspace):
            await services.tasks.move(tasks[1].id, DONE, actor=USER_ACTOR)
        await board.until(lambda: board.app.focused is board.column(DONE), "along")
        await board.screen._follow(await board.app.services(), tasks[2].id)
        await board.settled()
        assert board.selected == "c"

        async with place.services() as (services, _workspace):
            await services.tasks.move(tasks[0].id, BLOCKED, actor=USER_ACTOR)
        await board.until(lambda: board.shown(BLOCKED) == ["a"], "another change")
        await board.settled()
        assert board.selected == "c"


async def test_a_key_is_not_for_a_card_that_came_under_the_cursor_by_itself(place: Place) -> None:
    tasks = await place.fill("a", "b")

    async with open_board(place) as board:
        board.app.replaced_doubt_s = 0.5
        await board.press("j", "k")
        async with place.services() as (services, _workspace):
            await services.tasks.delete(tasks[0].id, actor=USER_ACTOR)
        await board.until(lambda: board.shown(TODO) == ["b"], "only the other is left")
        await board.until(lambda: board.screen.replaced_at > 0, "noted")
        for later_s, count in ((0.4, 1), (0.6, 0)):
            key = Key("D", "D")
            key.time = board.screen.replaced_at + later_s
            board.app.post_message(key)
            await board.until(lambda: bool(board.toasts), "what became of it")
            await board.settled()
            assert len(board.shown(TODO)) == count
            board.app.clear_notifications()


async def test_attaching_is_not_for_a_card_that_came_under_the_cursor_by_itself(place: Place) -> None:
    tasks = await place.fill("a", "b")

    async with open_board(place) as board:
        board.app.replaced_doubt_s = 0.5
        async with place.services() as (services, _workspace):
            await services.tasks.delete(tasks[0].id, actor=USER_ACTOR)
        await board.until(lambda: board.shown(TODO) == ["b"] and board.screen.replaced_at > 0, "only the other is left")
        key = Key("a", "a")
        key.time = board.screen.replaced_at + 0.4
        board.app.post_message(key)
        await board.told("ignored")


async def test_no_action_takes_a_marked_card_that_the_filter_hides(place: Place) -> None:
    await place.fill("alpha", "gamma", "beta")

    async with open_board(place) as board:
        await board.press("space", "space")
        await board.until(lambda: len(board.column(TODO).marked) == 2, "two marks")
        await board.press("slash", *"beta", "enter")
        await board.until(lambda: board.shown(TODO) == ["beta"], "the filter")
        await board.told("Marks cleared")
        await board.press("D")
        await board.until(lambda: board.shown(TODO) == [], "deleted")

    assert await place.titles(TODO) == ["alpha", "gamma"]


async def test_stopping_an_agent_whose_card_nobody_selected_asks_first(place: Place) -> None:
    async with place.services() as (services, workspace):
        stored = Stored(services, workspace)
        task = await stored.add_task()
        execution = await stored.add_run(task.id, ExecutionStatus.RUNNING)
        with closing(sqlite3.connect(place.paths.database_path)) as connection, connection:
            connection.execute("UPDATE executions SET mode = ?", (ExecutionMode.STREAM_JSON.value,))

    async with open_board(place) as board:
        await board.press("l", "h")
        board.screen._followed_id = None
        await board.press("x")
        await board.until(lambda: isinstance(board.app.screen, ConfirmDialog), "a question")
        await board.press("n")
        await board.settled()
        async with place.services() as (services, _):
            assert (await services.executions.get(execution.id)).status is ExecutionStatus.RUNNING

        await board.press("x")
        await board.told("Stopping")


async def test_running_a_task_without_a_program_says_what_to_do_and_the_app_lives(place: Place) -> None:
    await place.fill("a")

    async with open_board(place) as board:
        await board.until(lambda: "Never ran: e chooses its program." in screen_text(board.app), "the preview")
        await board.press("r")
        await board.until(lambda: len(board.toasts) == 1)

        assert board.toasts[0].startswith("#1 has no program to run\n")
        await board.press("L")
        await board.settled()
        assert board.shown(IN_PROGRESS) == ["a"]


async def test_stopping_what_does_not_run_is_a_hint(place: Place) -> None:
    await place.fill("a")

    async with open_board(place) as board:
        await board.press("X")
        await board.press("a")
        await board.settled()

        await board.until(lambda: board.toasts == ["#1 does not run", "#1 does not run; r runs it"], "it is told")


async def test_a_new_task_is_made_in_the_editor_and_selected(place: Place) -> None:
    await place.fill("a")

    async with open_board(place) as board:
        await board.press("n")
        await board.until(lambda: isinstance(board.app.screen, TaskEditor))
        board.app.screen.dismiss(EditedTask(draft=TaskDraft(title="[b]new"), should_run=False))
        await board.until(lambda: board.selected == "[b]new", "it is selected")


async def test_an_edit_is_stored_and_taken_back(place: Place) -> None:
    await place.fill("a")

    async with open_board(place) as board:
        await board.press("e")
        await board.until(lambda: isinstance(board.app.screen, TaskEditor))
        board.app.screen.dismiss(EditedTask(draft=TaskDraft(title="changed"), should_run=False))
        await board.until(lambda: board.shown(TODO) == ["changed"])
        await board.press("ctrl+z")
        await board.until(lambda: board.shown(TODO) == ["a"])

        await board.until(lambda: board.toasts == ["Undid the edit of #1"], "it is told")


async def test_the_cancelled_column_is_folded_until_asked(place: Place) -> None:
    async with open_board(place) as board:
        folded = board.column(CANCELLED).size.width
        await board.press("l", "l", "l", "l", "l", "z")
        await board.pilot.pause()

        assert folded == 5
        assert board.column(CANCELLED).size.width >= 20


@pytest.mark.parametrize(("width", "shown"), [(80, 4), (60, 2), (40, 1), (120, 6), (200, 6)])
async def test_columns_are_never_narrower_than_they_can_be_read(place: Place, width: int, shown: int) -> None:
    async with open_board(place, size=(width, 24)) as board:
        columns = [column for column in board.screen.query(BoardColumn) if column.display]

        assert len(columns) == shown
        assert all(column.size.width >= 24 or column.is_folded for column in columns)


async def test_every_column_is_reached_in_a_narrow_window(place: Place) -> None:
    async with open_board(place, size=(80, 24)) as board:
        reached = []
        for _ in TaskStatus:
            assert isinstance(board.app.focused, BoardColumn)
            assert board.app.focused.display
            reached.append(board.app.focused.status)
            await board.press("l")

        assert reached == list(TaskStatus)


async def test_review_unfolds_with_its_first_card_and_folds_without(place: Place) -> None:
    await place.fill("a", status=BLOCKED)

    async with open_board(place) as board:
        review = board.column(REVIEW)
        before = review.is_folded
        await board.press("L")
        await board.settled()
        with_a_card = review.is_folded
        await board.press("L")
        await board.settled()

        assert (before, with_a_card, review.is_folded) == (True, False, True)
        assert board.shown(DONE) == ["a"]
        assert board.selected == "a"
    assert await place.titles(DONE) == ["a"]


async def test_review_that_is_switched_off_is_shown_only_where_it_has_cards(place: Place) -> None:
    async with place.services() as (services, _):
        await services.settings.set("board.review", "false", actor=USER_ACTOR)
    (card,) = await place.fill("a", status=REVIEW)

    async with open_board(place, size=(160, 30)) as board:
        with_a_card = board.column(REVIEW).display
        await board.press("L", "H")
        await board.settled()
        async with place.services() as (services, _):
            await services.tasks.move(card.id, DONE, actor=USER_ACTOR)
        await board.until(lambda: board.shown(REVIEW) == [])
        await board.press("h", "h")
        await board.until(lambda: not board.column(REVIEW).display)

        assert with_a_card
        assert board.app.focused is not board.column(REVIEW)


async def test_a_window_that_is_too_small_says_so_and_comes_back(place: Place) -> None:
    await place.fill("a")

    async with open_board(place) as board:
        for size in ((39, 9), (20, 5), (1, 1), (300, 80), (80, 24)):
            await board.pilot.resize_terminal(*size)
            await board.pilot.pause()
            assert board.screen.has_class("-too-small") == (size < (40, 10))

        assert board.column(TODO).size.width >= 24
        assert board.selected == "a"


async def test_fifty_quick_resizes_leave_the_board_whole(place: Place) -> None:
    await place.fill("a")

    async with open_board(place) as board:
        for step in range(50):
            board.app.post_message(_resize(30 + step * 7 % 200, 5 + step * 3 % 60))
        await board.pilot.resize_terminal(120, 40)
        await board.pilot.pause()

        assert board.column(TODO).region.right <= 120


def _resize(width: int, height: int) -> Resize:
    return Resize(Size(width, height), Size(width, height))


async def test_the_preview_stands_below_or_beside_the_columns_as_the_window_allows(place: Place) -> None:
    await place.fill("a [/]")

    async with open_board(place, size=(200, 60)) as board:
        preview = board.screen.query_one("#preview")
        beside = preview.region.x
        await board.pilot.resize_terminal(120, 40)
        await board.pilot.pause()
        below = (preview.region.x, preview.region.y > 15)
        await board.press("p")
        await board.pilot.pause()

        assert beside > 120
        assert below == (0, True)
        assert not preview.region


async def test_the_status_line_shows_the_workspace_and_the_minute(place: Place) -> None:
    clock = FakeClock(datetime(2026, 3, 4, 14, 2, tzinfo=UTC))

    async with open_board(place, clock=clock) as board:
        text = board.screen.query_one(StatusBar).render_line(0).text
        local = clock.now().astimezone()

        assert text.startswith(" agentmon  project ")
        assert text.endswith(f"● 0/4 running   {local:%H:%M} ")


async def test_the_footer_fits_eighty_columns_and_ends_with_the_help(place: Place) -> None:
    await place.fill("a")

    async with open_board(place, size=(80, 24)) as board:
        text = board.screen.query_one(KeyFooter).render_line(0).text

        assert text.rstrip().endswith("? Help")
        assert text.startswith(" n New  e Edit  r Run ")


async def test_the_help_lists_every_key_of_the_board(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("question_mark")
        await board.pilot.pause()
        opened = isinstance(board.app.screen, HelpScreen)
        await board.press("escape")
        await board.pilot.pause()

        assert opened
        assert board.app.screen is board.screen


async def test_a_question_is_answered_with_no_by_enter_and_by_escape(place: Place) -> None:
    async with open_board(place) as board:
        answers: list[bool | None] = []
        for key in ("enter", "escape", "n", "y"):
            board.app.push_screen(ConfirmDialog("Kill #1 [/]?", loss="what it did", yes="Kill"), answers.append)
            await board.pilot.pause()
            await board.press(key)
            await board.pilot.pause()

        assert answers == [False, False, False, True]


async def test_needs_you_says_when_nothing_does(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("w")
        await board.until(lambda: board.toasts == ["nothing needs you"])


async def test_a_wheel_click_and_drag_move_selection_and_card(place: Place) -> None:
    await place.fill("a", "b")

    async with open_board(place) as board:
        todo, done = board.column(TODO), board.column(DONE)
        await board.pilot.click(todo, offset=(4, 4))
        clicked = board.selected
        await board.pilot.mouse_down(todo, offset=(4, 4))
        await board.pilot.hover(done, offset=(5, 5))
        await board.pilot.mouse_up(done, offset=(5, 5))
        await board.settled()

        assert clicked == "b"
        assert board.shown(DONE) == ["b"]
        assert board.selected == "b"
    assert await place.titles(DONE) == ["b"]


async def test_the_preview_shows_the_screen_of_a_program_that_repaints(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    async with place.services() as (services, workspace):
        stored_rows = Stored(services, workspace)
        await stored_rows.add_run(
            (await stored_rows.add_task("painted")).id,
            ExecutionStatus.FAILED,
            output=b"Trust this?\r\n> Yes\x1b[1A\x1b[2K\x1b[G\x1b[1Bready",
        )

    async with open_board(place, size=(200, 60)) as board:
        await board.until(lambda: "ready" in screen_text(board.app), "its screen")
        assert "Trust this?" not in screen_text(board.app)


async def test_the_preview_shows_the_log_of_a_run_that_was_queued_from_another_data_folder(place: Place) -> None:
    async with place.services() as (services, workspace):
        stored_rows = Stored(services, workspace)
        run = await stored_rows.add_run((await stored_rows.add_task("elsewhere")).id, output=b"written elsewhere\n")
        log = services.executions.log_path(run)
        moved = place.root / "other data folder"
        log.parent.rename(moved)
        with closing(sqlite3.connect(place.paths.database_path)) as connection, connection:
            connection.execute("UPDATE executions SET log_file_path = ?", (str(moved / log.name),))

    async with open_board(place, size=(200, 60)) as board:
        await board.until(lambda: "written elsewhere" in screen_text(board.app), "its log")
