from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.clock import SystemClock
from agentmon.domain.task_status import Priority, TaskStatus
from agentmon.domain.tasks import TaskDraft
from agentmon.screens.dialogs.menu_dialog import MenuDialog
from agentmon.services.actors import USER_ACTOR
from agentmon.widgets.status_line import StatusBar
from tests.idle_worker import idle_worker
from tests.screen_stage import screen_text
from tests.screens.boards import Place, make_place, open_board

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from agentmon.domain.board import BoardPage, ColumnRequest
    from agentmon.domain.events import Actor
    from agentmon.domain.tasks import Workspace
    from tests.screens.boards import Board

TODO = TaskStatus.TODO


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = make_place(tmp_path)
    with idle_worker(place.paths):
        yield place


async def _fill(place: Place, *drafts: TaskDraft) -> None:
    async with place.services() as (services, workspace):
        for draft in drafts:
            await services.tasks.add(workspace, draft, actor=USER_ACTOR)


async def _choose(board: Board, key: str, word: str) -> None:
    """Open a menu by its key and choose the entry."""
    await board.press(key)
    await board.until_menu()
    dialog = board.app.screen
    assert isinstance(dialog, MenuDialog)
    at = [entry.word for entry in dialog._entries].index(word)
    await board.press("home", *["j"] * at, "enter")
    await board.until(lambda: not isinstance(board.app.screen, MenuDialog), "the board again")


@pytest.mark.proof
async def test_filters_are_chosen_saved_and_chosen_again(place: Place) -> None:
    await _fill(
        place,
        TaskDraft(title="login", labels=("auth",), priority=Priority.URGENT),
        TaskDraft(title="logout", labels=("auth",)),
        TaskDraft(title="rename"),
    )

    async with open_board(place) as board:
        await _choose(board, "f", "#auth")
        await board.until(lambda: board.shown(TODO) == ["login", "logout"], "the label")
        await _choose(board, "f", "P1")
        await board.until(lambda: board.shown(TODO) == ["login"], "the label and the priority")
        await board.press("f")
        await board.until_menu()
        board.app.screen.query_one("#free").focus()
        await board.press(*"mine", "enter")
        await board.told("saved as")
        await _choose(board, "f", "no filter")
        await board.until(lambda: len(board.shown(TODO)) == 3, "all cards")
        await _choose(board, "f", "mine")
        await board.until(lambda: board.shown(TODO) == ["login"], "the saved filter")
        await _choose(board, "f", "P1")
        await board.until(lambda: board.shown(TODO) == ["login", "logout"], "without the priority")
        await board.press("escape")
        await board.until(lambda: len(board.shown(TODO)) == 3, "all cards again")


async def test_the_columns_are_sorted_by_a_key_which_stays(place: Place) -> None:
    await _fill(
        place, TaskDraft(title="low", priority=Priority.LOWEST), TaskDraft(title="high", priority=Priority.HIGH)
    )

    async with open_board(place) as board:
        assert board.shown(TODO) == ["low", "high"]
        await board.press("s")
        await board.until(lambda: board.shown(TODO) == ["high", "low"], "sorted by priority")
        await board.settled()
        assert board.selected == "low"
        assert "by priority" in board.screen.query_one(StatusBar).render_line(0).text
        await board.press("K")
        await board.told("s goes on to their own order")

    async with open_board(place) as board:
        assert board.shown(TODO) == ["high", "low"]
        for _ in ("due", "changed", "state", "order"):
            await board.press("s")
            await board.settled()
        await board.until(lambda: board.shown(TODO) == ["low", "high"], "their own order")
        await board.press("G", "K")
        await board.settled()

    assert await place.titles(TODO) == ["high", "low"]


async def test_a_second_key_goes_on_from_the_order_of_the_first_though_it_is_not_stored_yet(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_board(place) as board:
        settings = (await board.app.services()).settings
        store, gate = settings.set, asyncio.Event()

        async def store_late(key: str, value: str, *, actor: Actor) -> None:
            await gate.wait()
            await store(key, value, actor=actor)

        monkeypatch.setattr(settings, "set", store_late)
        await board.press("s")
        board.screen.request_refresh()
        await board.settled()
        await board.press("s")
        gate.set()
        await board.until(lambda: "by due" in board.screen.query_one(StatusBar).render_line(0).text, "by due date")


async def test_a_move_is_undone_to_the_cards_own_place_while_sorted(place: Place) -> None:
    await _fill(place, TaskDraft(title="a"), TaskDraft(title="b", priority=Priority.URGENT), TaskDraft(title="c"))

    async with open_board(place) as board:
        await board.press("s")
        await board.until(lambda: board.shown(TODO) == ["b", "a", "c"], "sorted by priority")
        await board.settled()
        await board.press("g", "L")
        await board.settled()
        await board.press("ctrl+z")
        await board.settled()

    assert await place.titles(TODO) == ["a", "b", "c"]


async def test_a_column_over_its_limit_says_so(place: Place) -> None:
    await place.fill("a", "b")
    async with place.services() as (services, _):
        await services.settings.set("board.limit_todo", "1", actor=services.actor)
        await services.settings.set("board.limit_in_progress", "5", actor=services.actor)

    async with open_board(place) as board:
        assert "Todo 2/1 over" in board.column(TODO).render_line(0).text
        assert "In progress 0/5 ─" in board.column(TaskStatus.IN_PROGRESS).render_line(0).text


async def test_a_dragged_card_shows_where_it_goes_and_escape_leaves_it(place: Place) -> None:
    await place.fill("a", "b")
    await place.fill("c", status=TaskStatus.IN_PROGRESS)

    async with open_board(place) as board:
        todo, progress = board.column(TODO), board.column(TaskStatus.IN_PROGRESS)
        await board.pilot.mouse_down(todo, offset=(4, 1))
        await board.pilot.hover(progress, offset=(4, 1))
        await board.until(lambda: progress.drop_index == 0, "the place is shown")
        assert "▸" in progress.render_line(1).text
        await board.press("escape")
        assert progress.drop_index is None
        await board.pilot.mouse_up(progress, offset=(4, 1))
        await board.settled()
        assert board.shown(TODO) == ["a", "b"]

        await board.pilot.mouse_down(todo, offset=(4, 1))
        await board.pilot.hover(progress, offset=(4, 1))
        await board.until(lambda: progress.drop_index == 0, "the place is shown")
        await board.pilot.mouse_up(progress, offset=(4, 1))
        await board.until(lambda: board.shown(TaskStatus.IN_PROGRESS) == ["a", "c"], "moved to its place")
        assert progress.drop_index is None
        await board.settled()


async def test_the_preview_tells_the_due_date_and_the_labels(place: Place) -> None:
    due_at = SystemClock().now() + timedelta(days=1)
    await _fill(place, TaskDraft(title="login", labels=("auth", "web"), due_at=due_at))

    async with open_board(place) as board:
        await board.until(lambda: "due tomorrow  #auth #web" in screen_text(board.app), "the facts")


async def test_a_filter_that_is_entered_before_its_cards_are_read_goes_to_the_first_that_fits(place: Place) -> None:
    await place.fill("needle", "hay")
    async with open_board(place) as board:
        await board.press("j", "L")
        await board.settled()
        assert board.selected == "hay"
        may_read = asyncio.Event()
        services = await board.screen.services()
        page = services.board.page

        async def late(workspace: Workspace | None, requests: Sequence[ColumnRequest]) -> BoardPage:
            await may_read.wait()
            return await page(workspace, requests)

        services.board.page = late  # type: ignore[method-assign] # stands for a slow database
        await board.press("slash", *"needle", "enter")
        may_read.set()

        await board.until(lambda: board.selected == "needle", "the card that fits")
