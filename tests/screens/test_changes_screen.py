"""The changes of a run on their screen: read, looked at, commented on, taken back."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from textual.widgets import TextArea

from agentmon.screens.board.screen import BoardScreen
from agentmon.screens.changes.screen import ChangesScreen
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.screens.dialogs.text_dialog import TextDialog
from agentmon.screens.executions.screen import ExecutionsScreen
from agentmon.screens.tasks.task_page import TaskPage
from agentmon.store.changes import ChangeRepository
from agentmon.widgets.diff_view import DiffView
from agentmon.workspaces.comparison import compare
from agentmon.workspaces.snapshots import SnapshotStore
from tests.screens.boards import Board, make_place, open_board
from tests.stored_runs import Stored

if TYPE_CHECKING:
    from pathlib import Path

    from tests.screens.boards import Place

_BEFORE = "".join(f"line {number}\n" for number in range(60))
_AFTER = _BEFORE.replace("line 2\n", "line two\n").replace("line 50\n", "line fifty  and more\n")


@pytest.fixture
async def place(tmp_path: Path) -> Place:
    """A board whose one card has a run that changed two files."""
    place = make_place(tmp_path)
    (place.root / "a.py").write_text(_BEFORE)
    async with place.services() as (services, workspace):
        stored = Stored(services, workspace)
        task = await stored.add_task("change it")
        run = await stored.add_run(task.id)
        store = SnapshotStore(services.paths.snapshots_dir)
        before = await asyncio.to_thread(store.take, place.root)
        (place.root / "a.py").write_text(_AFTER)
        (place.root / "b.txt").write_text("new\n")
        after = await asyncio.to_thread(store.take, place.root)
        found = await asyncio.to_thread(compare, store, before, after)
        changes, now = ChangeRepository(services.database), datetime.now(UTC)
        await changes.begin(run.id, snapshot_id=before.id, note="", at=now)
        await changes.record(run.id, snapshot_id=after.id, root=str(place.root), changes=found, at=now)
    return place


async def changes_of(board: Board) -> DiffView:
    await board.until(lambda: isinstance(board.app.screen, ChangesScreen), "the changes")
    view = board.app.screen.query_one(DiffView)
    await board.until(lambda: len(view.diff.files) == 2, "both files")
    return view


async def test_the_keys_move_through_the_files_and_their_lines(place: Place) -> None:
    async with open_board(place, size=(170, 50)) as board:
        await board.press("d")
        view = await changes_of(board)
        text = view.text
        seen = [text.row]
        for key in ("j", "J", "tab", "shift+tab", "G", "g", "J", "K", "ctrl+d", "ctrl+u", "k", "down", "up"):
            await board.press(key)
            assert text.row is not None
            if text.row != seen[-1]:
                seen.append(text.row)
        assert len(seen) > 8

        before = text.layout_of_diff
        for key in ("enter", "enter", "z", "z"):
            await board.press(key)
            assert text.layout_of_diff is not before
            before = text.layout_of_diff
            told = [(text.wants_sides, text.ignores_blanks)]
        for key in ("b", "I"):
            await board.press(key)
            told.append((text.wants_sides, text.ignores_blanks))
        sides = told[0][0]
        assert told == [(sides, False), (not sides, False), (not sides, True)]
        await board.press("l", "h", "right", "left")
        await board.press("v")
        assert view.has_something_open
        await board.press("escape")
        assert not view.has_something_open


async def test_a_search_goes_from_match_to_match(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("d")
        view = await changes_of(board)
        await board.press("slash", *"fifty", "enter")
        await board.until(lambda: view.text.row is not None and view.text.row.place.part > 1, "a match")
        found = view.text.row
        await board.press("n", "N")
        assert view.text.row == found

        await board.press("escape", "escape")
        assert not view.has_something_open
        await board.press("escape")
        await board.until(lambda: not isinstance(board.app.screen, ChangesScreen), "the board")


async def test_what_was_looked_at_stays_so(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("d")
        view = await changes_of(board)
        await board.press("J", "space")
        await board.until(lambda: len(view.looked) == 1, "one looked at")
        looked = view.looked
        await board.press("escape")
        await board.press("d")
        view = await changes_of(board)
        assert view.looked == looked
        await board.press("J", "space")
        await board.until(lambda: not view.looked, "none")


async def test_comments_become_one_message(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("d")
        view = await changes_of(board)
        await board.press("J", "j", "j", "c")
        await board.until(lambda: isinstance(board.app.screen, TextDialog), "the comment")
        await board.press(*"why", "ctrl+s")
        await board.until(lambda: len(view.commented) == 1 and board.app.screen.is_current, "kept")
        await board.until(lambda: isinstance(board.app.screen, ChangesScreen), "the changes again")
        await board.press("m")
        await board.until(lambda: isinstance(board.app.screen, TextDialog), "the message")
        text = board.app.screen.query_one(TextArea).text

        (span,) = view.commented
        assert text.startswith(f"a.py:{span.first_line}\n> ")
        assert text.endswith("\nwhy")
        await board.press("escape")
        await board.until(lambda: isinstance(board.app.screen, ChangesScreen), "the changes again")
        for answer, kind in (("n", ChangesScreen), ("y", BoardScreen)):
            await board.press("escape")
            await board.until(lambda: isinstance(board.app.screen, ConfirmDialog), "the question")
            await board.press(answer)
            await board.until(lambda: isinstance(board.app.screen, kind), "what was answered")  # noqa: B023 - awaited


@pytest.mark.parametrize("is_sure", [True, False])
async def test_lines_are_taken_back_when_one_is_sure(place: Place, is_sure: bool) -> None:
    async with open_board(place) as board:
        await board.press("d")
        await changes_of(board)
        await board.press("J", "u")
        await board.until(lambda: isinstance(board.app.screen, ConfirmDialog), "the question")
        await board.press("y" if is_sure else "n")
        await board.until(lambda: isinstance(board.app.screen, ChangesScreen), "the changes again")
        wanted = _AFTER.replace("line two\n", "line 2\n") if is_sure else _AFTER
        await board.until(lambda: (place.root / "a.py").read_text() == wanted, "the file")


async def test_the_file_is_opened_at_its_line(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[list[str]] = []

    def note(argv: list[str], path: Path, _environ: object, *, line: int) -> None:
        opened.append([*argv, str(path), str(line)])

    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr("agentmon.runners.text_editor.open_file", note)
    async with open_board(place) as board:
        monkeypatch.setattr(board.app, "suspend", nullcontext)
        await board.press("d")
        await changes_of(board)
        await board.press("J", "e")
        await board.until(lambda: bool(opened), "the editor")
    ((_, path, line),) = opened
    assert (path, int(line) <= 3) == (str(place.root / "a.py"), True)


async def test_the_changes_are_shown_from_the_page_and_from_executions(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("enter")
        await board.until(lambda: isinstance(board.app.screen, TaskPage) and board.app.focused is not None, "the page")
        await board.press("d")
        await changes_of(board)
        await board.press("escape", "escape")
        await board.press("2")
        await board.until(
            lambda: isinstance(board.app.screen, ExecutionsScreen) and board.app.focused is not None, "the runs"
        )
        await board.settled()
        await board.press("d")
        await changes_of(board)
