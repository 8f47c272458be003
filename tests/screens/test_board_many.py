"""Actions on several cards at a time, and ctrl+z after each."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from textual.events import Key
from textual.widgets import Input

from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import Priority, TaskStatus
from agentmon.domain.tasks import InputContext, TaskDraft, draft_of
from agentmon.screens.tasks.run_dialog import RunChoice, RunDialog
from agentmon.screens.tasks.task_editor import EditedTask, TaskEditor
from agentmon.services.actors import USER_ACTOR
from agentmon.widgets.log_pane import LogPane
from tests.idle_worker import idle_worker
from tests.screen_stage import screen_text
from tests.screens.boards import Place, make_place, open_board
from tests.stored_runs import Stored

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agentmon.domain.executions import Execution
    from tests.screens.boards import Board

TODO, IN_PROGRESS, BLOCKED, REVIEW, DONE, CANCELLED = TaskStatus


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = make_place(tmp_path)
    with idle_worker(place.paths):
        yield place


async def _fill_with_commands(place: Place, *titles: str) -> None:
    async with place.services() as (services, workspace):
        agent = await services.agents.by_slug("command")
        context = InputContext(args={"argv": ["true"]})
        for title in titles:
            draft = TaskDraft(title=title, assignee_agent_id=agent.id, input_context=context)
            await services.tasks.add(workspace, draft, actor=USER_ACTOR)


async def _runs(place: Place) -> list[Execution]:
    async with place.services() as (services, _):
        return [listing.execution for listing in await services.executions.list(None, limit=50)]


def _states(board: Board) -> list[LiveState | None]:
    page = board.column(TODO).page
    return [] if page is None else [card.state for card in page.cards]


async def _undone(board: Board) -> None:
    await board.press("ctrl+z")
    await board.settled()


async def test_marked_cards_keep_their_order_when_moved_shifted_and_moved_back(place: Place) -> None:
    await place.fill("a", "b", "c", "d")
    await place.fill("x", "y", status=IN_PROGRESS)

    async with open_board(place) as board:
        await board.press("j", "j", "space", "g", "j", "space")
        await board.press("K")
        await board.until(lambda: board.shown(TODO) == ["b", "c", "a", "d"], "shifted up together")
        await board.settled()
        await board.press("K")
        await board.settled()
        assert board.shown(TODO) == ["b", "c", "a", "d"]
        await board.press("J")
        await board.until(lambda: board.shown(TODO) == ["a", "b", "c", "d"], "shifted down together")
        await board.settled()
        await _undone(board)
        assert board.shown(TODO) == ["b", "c", "a", "d"]
        await _undone(board)
        assert board.shown(TODO) == ["a", "b", "c", "d"]

        await board.press("l", "g", "space", "L")
        await board.until(lambda: board.shown(IN_PROGRESS) == ["b", "c", "y"], "moved from both columns")
        await board.settled()
        assert board.shown(IN_PROGRESS) == ["b", "c", "y"]
        assert board.shown(BLOCKED) == ["x"]
        await _undone(board)
        assert (board.shown(TODO), board.shown(IN_PROGRESS)) == (["a", "b", "c", "d"], ["x", "y"])


@pytest.mark.proof
async def test_cards_are_archived_shown_by_a_filter_and_brought_back(place: Place) -> None:
    await place.fill("a", "b", "c")
    await _fill_with_commands(place, "queued")

    async with open_board(place) as board:
        await board.press("space", "space", "Z")
        await board.until(lambda: board.shown(TODO) == ["c", "queued"], "archived")
        await board.told("Archived #1, #2 · ctrl+z brings them back")
        await _undone(board)
        assert board.shown(TODO) == ["a", "b", "c", "queued"]
        await board.press("G", "r")
        await board.settled()
        await board.press("g", "space", "G", "space", "Z")
        await board.until(lambda: any("waits in the queue, and cannot be archived" in told for told in board.toasts))
        await board.settled()
        assert board.shown(TODO) == ["b", "c", "queued"]

        await board.press("slash", *"is:archived", "enter")
        await board.until(lambda: board.shown(TODO) == ["a"], "the archived ones")
        await board.settled()
        assert board.selected == "a"
        await board.press("Z")
        await board.told("Brought back #1 · ctrl+z archives it again")
        await board.until(lambda: board.shown(TODO) == [], "no archived ones any more")
        await board.settled()
        await _undone(board)
        await board.until(lambda: board.shown(TODO) == ["a"], "archived again")
        await board.press("Z", "escape")
        await board.until(lambda: board.shown(TODO) == ["a", "b", "c", "queued"], "all on the board")
        await board.settled()

        await board.press("g", "enter", "Z")
        await board.told("Archived #1 · Z brings it back")
        await board.until(lambda: "archived" in screen_text(board.app), "shown on the page")
        await board.press("Z")
        await board.told("Brought #1 back to Todo")


async def test_one_card_that_cannot_be_changed_keeps_none_of_the_others(place: Place) -> None:
    await _fill_with_commands(place, "a", "queued", "c")

    async with open_board(place) as board:
        await board.press("j", "r")
        await board.settled()
        await board.press("g", "space", "space", "space", "D")
        await board.until(lambda: any("#2 is queued or running" in told for told in board.toasts), "told")
        await board.settled()
        assert board.shown(TODO) == ["queued"]
        await _undone(board)
        assert board.shown(TODO) == ["a", "queued", "c"]


async def test_marked_cards_run_with_one_choice_and_only_those_that_run_are_stopped(place: Place) -> None:
    await _fill_with_commands(place, "a", "b", "c")

    async with open_board(place) as board:
        await board.press("space", "space", "R")
        await board.until(lambda: isinstance(board.app.screen, RunDialog), "the dialog")
        await board.until(lambda: "and 1 more" in screen_text(board.app), "how many")
        board.app.screen.dismiss(RunChoice(agent_slug="command", capability_key="run", args={"argv": ["false"]}))
        await board.until(lambda: _states(board)[:2] == [LiveState.QUEUED] * 2, "both are queued")
        runs = await _runs(place)
        assert [run.args for run in runs] == [{"argv": ["false"]}] * 2
        assert {run.status for run in runs} == {ExecutionStatus.QUEUED}

        await board.press("g", "space", "space", "space", "x")
        await board.until(lambda: _states(board)[:2] == [LiveState.CANCELLED] * 2, "both are taken out")
        assert {run.status for run in await _runs(place)} == {ExecutionStatus.CANCELLED}
        assert not any("does not" in told for told in board.toasts)
        await board.press("g", "space", "space", "x")
        await board.told("none of the marked cards is queued or running")


async def test_an_undone_edit_keeps_what_somebody_else_changed_and_refuses_what_both_did(place: Place) -> None:
    (task,) = await place.fill("old")

    async def edit_here(board: Board, title: str) -> None:
        await board.press("e")
        await board.until(lambda: isinstance(board.app.screen, TaskEditor), "the editor")
        board.app.screen.dismiss(EditedTask(draft=TaskDraft(title=title), should_run=False))
        await board.until(lambda: title in board.shown(TODO), "edited")
        await board.settled()

    async with place.services() as (services, _):

        async def edit_there(**changes: Any) -> None:
            present = await services.tasks.get(task.id)
            draft = TaskDraft(
                **{**{name: getattr(draft_of(present), name) for name in ("title", "priority")}, **changes}
            )
            await services.tasks.edit(task.id, draft, expected_version=present.version, actor=USER_ACTOR)

        async with open_board(place) as board:
            await edit_here(board, "new")
            await edit_there(priority=Priority.URGENT)
            await services.tasks.move(task.id, BLOCKED, actor=USER_ACTOR)
            await _undone(board)
            after = await services.tasks.get(task.id)
            assert (after.title, after.priority, after.status) == ("old", Priority.URGENT, BLOCKED)

            await services.tasks.move(task.id, TODO, actor=USER_ACTOR)
            await board.until(lambda: board.shown(TODO) == ["old"], "moved")
            await board.settled()
            await board.press("h", "h", "h", "g", "e")
            await board.until(lambda: isinstance(board.app.screen, TaskEditor), "the editor")
            board.app.screen.dismiss(EditedTask(draft=TaskDraft(title="mine"), should_run=False))
            await board.until(lambda: "mine" in board.shown(TODO), "edited")
            await board.settled()
            await edit_there(title="theirs")
            await _undone(board)
            await board.until(lambda: any("changed again meanwhile (title)" in told for told in board.toasts), "told")
            assert (await services.tasks.get(task.id)).title == "theirs"


async def test_an_undone_move_leaves_a_card_that_somebody_else_has_moved_on(place: Place) -> None:
    first, _second = await place.fill("a", "b")

    async with open_board(place) as board, place.services() as (services, _):
        await board.press("space", "space", "L")
        await board.until(lambda: board.shown(IN_PROGRESS) == ["a", "b"], "moved")
        await board.settled()
        await services.tasks.move(first.id, DONE, actor=USER_ACTOR)
        await _undone(board)
        await board.until(lambda: any("#1 has moved on to Done meanwhile" in told for told in board.toasts), "told")
        await board.until(lambda: (board.shown(TODO), board.shown(DONE)) == (["b"], ["a"]), "the other one is back")


async def test_a_card_is_dropped_on_a_folded_column_which_a_click_unfolds(place: Place) -> None:
    await place.fill("a", "b")

    async with open_board(place, size=(160, 40)) as board:
        folded = board.column(CANCELLED)
        assert folded.is_folded
        await board.pilot.mouse_down(board.column(TODO), offset=(4, 1))
        await board.pilot.hover(folded, offset=(2, 5))
        await board.until(lambda: folded.drop_index is not None, "it would go there")
        await board.pilot.mouse_up(folded, offset=(2, 5))
        await board.until(lambda: board.shown(CANCELLED) == ["a"], "dropped")
        await board.settled()
        assert folded.is_folded
        await board.pilot.click(folded, offset=(2, 5))
        await board.until(lambda: not folded.is_folded, "unfolded")
        await board.pilot.click(folded, offset=(6, 0))
        await board.until(lambda: folded.is_folded, "folded by its heading")


async def test_what_is_typed_right_behind_a_key_goes_where_the_key_leads(place: Place) -> None:
    await place.fill("login", "logout")

    async with open_board(place) as board:
        for key, character in (("slash", "/"), *((letter, letter) for letter in "logi")):
            board.app.post_message(Key(key, character))
        await board.until(lambda: board.shown(TODO) == ["login"], "filtered by all letters")
        assert board.app.focused is not board.column(IN_PROGRESS)


async def test_what_is_typed_right_behind_an_entered_filter_is_for_the_cards(place: Place) -> None:
    await place.fill("login", "logout", "other")

    async with open_board(place) as board:
        typed = [("slash", "/"), *((letter, letter) for letter in "log"), ("enter", "\r"), ("G", "G"), ("slash", "/")]
        for key, character in (*typed, *((letter, letter) for letter in "in"), ("enter", "\r"), ("L", "L")):
            board.app.post_message(Key(key, character))
        await board.until(lambda: board.shown(IN_PROGRESS) == ["login"], "moved")
        assert board.app.screen.query_one("#filter", Input).value == "login"
        await board.until(lambda: not board.screen.is_writing, "stored")


async def test_what_is_typed_right_behind_the_key_of_a_tab_is_for_what_it_shows(place: Place) -> None:
    async with place.services() as (services, workspace):
        stored = Stored(services, workspace)
        output = b"".join(b"line %d\n" % number for number in range(1, 301))
        await stored.add_run((await stored.add_task()).id, ExecutionStatus.SUCCEEDED, output=output)

    async with open_board(place) as board:
        await board.press("L", "enter")
        await board.until(lambda: any(pane.path for pane in board.app.screen.query(LogPane)), "the page with its run")
        for key, character in (("right_square_bracket", "]"), ("g", "g")):
            board.app.post_message(Key(key, character))
        await board.until(lambda: "line 1 " in screen_text(board.app), "the first line")


@pytest.mark.proof
async def test_what_is_typed_right_behind_the_key_of_any_search_is_part_of_it(place: Place) -> None:
    async with place.services() as (services, workspace):
        stored = Stored(services, workspace)
        await stored.add_run((await stored.add_task()).id, ExecutionStatus.SUCCEEDED, output=b"a line\n")

    async with open_board(place) as board:
        places = {"2": "#filter", "5": "#search", "7": "#search", "enter": "#log-prompt"}
        for way, field_id in places.items():
            await board.press("1")
            await board.until(lambda: board.app.screen is board.screen, "the board")
            await board.press(way)
            await board.until(lambda: board.app.screen is not board.screen, "another place")
            await board.press(*["L"] * (way == "enter"))
            field = board.app.screen.query_one(field_id, Input)
            for key, character in (("slash", "/"), *((letter, letter) for letter in "exit")):
                board.app.post_message(Key(key, character))
            await board.until(partial(_has, field, "exit"), f"all letters in {field_id}")
            await board.press("escape")


def _has(field: Input, text: str) -> bool:
    return field.value == text


@pytest.mark.proof
async def test_a_word_of_the_filter_that_means_nothing_is_told_beside_it(place: Place) -> None:
    await place.fill("Fix flaky login", "other")

    async with open_board(place) as board:
        await board.press("slash", *"fix lgn is:fai")
        await board.until(lambda: board.shown(TODO) == ["Fix flaky login"], "found by letters in order")
        assert "means nothing" not in screen_text(board.app)
        await board.press(*"x")
        await board.until(lambda: "is:faix means nothing; states are is:needs-you" in screen_text(board.app), "told")
        assert board.shown(TODO) == ["Fix flaky login"]
        await board.press("backspace", "enter")
        await board.until(lambda: "is:fai means nothing; states are" in screen_text(board.app), "half a word is none")
        await board.press("slash", *["backspace"] * 6, *"!9")
        await board.until(lambda: "!9 means nothing; priorities are !1 to !5" in screen_text(board.app), "told")
        await board.press("enter", "escape")
        await board.until(lambda: "means nothing" not in screen_text(board.app), "gone with the filter")
